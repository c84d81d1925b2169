"""Small domain modules that come with the product: one file or package per domain, pure functions from CR to children.

Each is found as anybody's: by the entry point that names its kind (pyproject.toml).
"""
