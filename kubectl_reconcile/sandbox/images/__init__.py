"""What stands in for container images: programs of this machine, and how those that are missing can be had."""
