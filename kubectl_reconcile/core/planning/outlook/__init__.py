"""What a reader of a plan should know besides its changes: what is not well before it, and which pods it replaces."""
