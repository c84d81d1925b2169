"""EtcdBackup: snapshots of an etcd by Jobs of their own, once or on a schedule.

``decision`` says what is due, ``runs`` what became of what was begun, ``children`` are manifests. ``agent`` is another program: what the Jobs run, and
no part of the module.
"""

from kubectl_reconcile.modules.etcd_backup.backup import EtcdBackup

__all__ = ["EtcdBackup"]
