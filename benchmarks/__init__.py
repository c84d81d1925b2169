"""Us against what you would use instead: see ``__main__``."""
