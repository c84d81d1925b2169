"""What a preview asks of the cluster for the findings that it tells."""
