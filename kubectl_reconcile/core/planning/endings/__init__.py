"""What ends with an operation, whatever it is called, and what of that waits for a person. Pure."""
