"""How the members of followed Syncs are: watched, and told."""
