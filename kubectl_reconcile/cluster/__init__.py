"""The API server: verbs and errors, kinds and schemas, and caches of live objects."""
