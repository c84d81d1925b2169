"""What programs read: JSON and YAML, and templates that pick from it."""
