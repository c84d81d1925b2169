"""What a daemon decides between two passes: who works on what, what a push is about, which fields are contended."""
