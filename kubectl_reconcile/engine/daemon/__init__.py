"""The daemon: watch events in, passes out, for all Syncs and custom resources, shared among replicas."""
