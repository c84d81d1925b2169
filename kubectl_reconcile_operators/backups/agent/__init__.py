"""What programs share that Jobs of backups run: where backups are, how they are written, checked and found again, and which of them go.

A backup is one file, or one object of a bucket, called by when it was begun and a number of what it holds. What it is a backup of, its `BackupKind` says. These programs run in our own image and
never in the daemon.

``retention`` says what goes, purely; ``folder`` talks to files, ``bucket`` to S3, and ``place`` is either; ``choice`` finds a backup again, and ``program`` tells how a program ends.
"""
