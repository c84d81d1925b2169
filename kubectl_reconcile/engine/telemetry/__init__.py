"""What the engine reports about its work: log lines, metrics, Kubernetes Events."""
