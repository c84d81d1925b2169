"""Our own objects on the API server: Syncs read, asked for a sync and approved; who this process is."""
