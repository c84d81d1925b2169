"""Desired state in Git repositories: how they are asked, fetched and read, and whose signatures count."""
