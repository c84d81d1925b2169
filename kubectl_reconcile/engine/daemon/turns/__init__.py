"""Whose turn it is: the queue of items, what makes one wait, and the workers that take turns."""
