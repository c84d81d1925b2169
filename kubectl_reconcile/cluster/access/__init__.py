"""The way to a cluster: what a user says of it, kubeconfig files, credentials, and the route that results."""

from __future__ import annotations

from kubectl_reconcile.cluster.access.flags import Access, ImpersonationFlags, TlsFlags

__all__ = ["Access", "ImpersonationFlags", "TlsFlags"]
