"""What a server says: the protocol that it speaks, sessions with it, and the log that it writes."""
