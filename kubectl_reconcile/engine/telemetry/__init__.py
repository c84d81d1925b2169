"""What the engine tells of its work: log lines, metrics, Kubernetes Events."""
