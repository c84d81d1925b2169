"""Asking a Git server over HTTP where refs are, by ourselves: no process, and over connections that are kept."""
