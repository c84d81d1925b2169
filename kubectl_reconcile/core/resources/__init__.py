"""Our own API: what people write in a Sync, which objects belong to it (an ApplySet), and the status it is given."""
