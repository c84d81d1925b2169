"""Defaults that the server's Go code sets on built-in kinds: no schema shows them, and no verdict rests on them.

They tell which predicted changes are none, so that nobody is shown one. Servers differ by version: where one is asked, its word counts.
"""
