"""What sandboxes are called; apart, since it is known before anything of them is imported."""

DEFAULT_NAME = "default"
"""The sandbox that is meant where nobody names one."""
