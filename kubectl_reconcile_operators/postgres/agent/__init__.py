"""What the Jobs of a MyDatabase's backups run in our own image: ``keep`` makes one file of a copy of a server, ``fetch`` makes a folder of that file again.

``python -m kubectl_reconcile_operators.postgres.agent`` is a program of its own, never the daemon. ``archive`` knows what a copy is.
"""
