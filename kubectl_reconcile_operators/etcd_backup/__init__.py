"""EtcdBackup: snapshots of an etcd by Jobs of their own, once or on a schedule.

What is due and what happened to what was begun, the module API says as it does of all backups; ``children`` are manifests. ``agent`` is another program: what the Jobs run, and
no part of the module.
"""

from kubectl_reconcile_operators.etcd_backup.backup import EtcdBackup

__all__ = ["EtcdBackup"]
