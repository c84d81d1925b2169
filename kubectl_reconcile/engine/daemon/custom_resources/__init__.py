"""Passes over custom resources whose kinds have modules."""
