"""What the Job of a backup runs: asks etcd for a snapshot, writes it to a folder, checks it, and takes away old ones.

``python -m kubectl_reconcile_operators.etcd_backup.agent`` is a program of its own, started in our image and never in the daemon. Its last line, which is its
termination message too, is JSON: what was written, or ``error`` and ``message``.

``restore`` is the other program, of an EtcdRestore's Job: what it does with a backup and a volume, ``seed`` says.

``gateway`` talks to etcd, ``snapshots`` checks files; ``database`` reads what a snapshot holds, purely. Places, names and retention are those of all backups (``kubectl_reconcile_operators.backups.agent``).
"""
