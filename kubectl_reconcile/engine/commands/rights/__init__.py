"""The rights of Syncs' accounts: what a source needs, what is held and what is missing, and the grant that gives it."""
