"""What a nodelet answers to the API server, as a kubelet does: logs, commands in containers, ports of pods."""
