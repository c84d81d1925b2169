"""EtcdRestore: a new EtcdCluster begins with what a backup holds.

``source`` says which snapshot, ``target`` whose volume, ``progress`` what happened to the Job that writes it; ``children`` are manifests. What the Job
runs is part of the backups' agent.
"""

from kubectl_reconcile_operators.etcd_restore.restore import EtcdRestore

__all__ = ["EtcdRestore"]
