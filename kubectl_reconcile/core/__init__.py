"""The pure core: everything that decides. No I/O, no clock, no randomness, no logging, no threads."""
