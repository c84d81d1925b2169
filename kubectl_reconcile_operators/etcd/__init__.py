"""EtcdCluster: a database run step by step, each step shown before it is taken.

``decision`` says what the one next step is, ``situation`` what it is decided on; ``children`` are manifests, ``driver`` is the only file
that talks to etcd.
"""

from kubectl_reconcile_operators.etcd.cluster import EtcdCluster

__all__ = ["EtcdCluster"]
