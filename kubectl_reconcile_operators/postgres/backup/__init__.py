"""Backups of a MyDatabase by Jobs, and a MyDatabase that begins with one.

``spec`` is the part of the spec, ``children`` are manifests, ``upkeep`` says what is due and what happened to it; ``beginning`` is the way from a backup to a first instance.
"""
