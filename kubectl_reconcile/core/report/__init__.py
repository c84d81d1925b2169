"""What there is to be said of a namespace, or of a Sync, at one moment: the contents of a report, and how they are written."""
