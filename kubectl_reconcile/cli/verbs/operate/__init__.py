"""Verbs for those who run the tool: the daemon, its installation, modules, the sandbox, completion."""
