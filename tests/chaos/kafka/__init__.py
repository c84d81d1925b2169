"""Faults that befall a real Kafka, one after the other, while somebody writes to it and reads from it all the time."""
