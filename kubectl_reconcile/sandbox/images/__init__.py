"""What stands in for container images: programs of this machine, and how to get those that are missing."""
