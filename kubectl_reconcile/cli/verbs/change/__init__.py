"""Verbs that change a cluster, a Sync or a repository."""
