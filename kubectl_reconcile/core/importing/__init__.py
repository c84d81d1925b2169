"""What other tools were told to apply, as Syncs: every field translated, or said why not. Pure."""
