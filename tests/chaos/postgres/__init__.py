"""Faults that befall a real MyDatabase, one after the other, while somebody writes to it all the time."""
