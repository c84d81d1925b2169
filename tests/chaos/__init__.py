"""Kills syncs at random moments, and looks at what is left: `make chaos N=50`."""
