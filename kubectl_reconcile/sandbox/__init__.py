"""A real Kubernetes control plane on this machine, without containers."""
