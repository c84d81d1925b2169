"""Runs containers as processes in namespaces of Linux: what a container runtime is elsewhere.

It holds the network and the processes of all pods of one sandbox and knows nothing of an API server; what is to run it is told
over a Unix socket. Nothing of it survives its process, and everything of it survives whoever talks to it.
"""
