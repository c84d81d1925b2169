"""Keeps a daemon busy for a while, with everything that happens in a cluster: `make soak MINUTES=15`."""
