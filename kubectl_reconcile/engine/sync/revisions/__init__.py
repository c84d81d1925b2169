"""What earlier revisions of a source asked for."""
