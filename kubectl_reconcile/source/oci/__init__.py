"""Artifacts of OCI registries: asked for by tag or digest, held in memory by digest, and shown as a tree of files."""
