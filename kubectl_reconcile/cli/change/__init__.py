"""Verbs that change a cluster or a repository."""
