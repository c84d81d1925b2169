"""Server-side apply without a request: what the API server would make of one object.

Follows KEP-555 and structured-merge-diff rule by rule. Knows objects and schemas; never Git, Syncs or plans.
"""
