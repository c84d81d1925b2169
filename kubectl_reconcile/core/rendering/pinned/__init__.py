"""What charts and overlays have fetched: what they refer to, and the lock file that says by digests what that is."""
