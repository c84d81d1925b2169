"""One pass over one Sync, shared by daemon and command line: its source read, the cluster gathered, planned, written, reported."""
