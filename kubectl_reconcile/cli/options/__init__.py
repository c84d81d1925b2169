"""Flags that verbs share, and what they say as plain values. Imports nothing that takes time."""
