"""Public repositories of raw manifests, followed from the first sync to the last deletion."""
