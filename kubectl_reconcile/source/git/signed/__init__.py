"""Commits and tags whose signatures were checked by git, and a source of which only those come."""
