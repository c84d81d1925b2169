"""Writes plans: the only room that changes members, children and their statuses in the cluster."""
