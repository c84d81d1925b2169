"""Desired state in folders of this machine: what is read of them, and when it changed."""
