"""Verbs that only look: at Syncs, their objects, and what a sync would change."""
