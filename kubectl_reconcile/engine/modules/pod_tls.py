"""TLS to pods: the certificates that a Secret beside the custom resource holds."""

from __future__ import annotations

import ssl

from kubectl_reconcile.cluster.access.cluster import Tls
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, KubeconfigError
from kubectl_reconcile.core.module.api import PodTls, SilentPodError
from kubectl_reconcile.core.objects import decoded, mapping_of

_AUTHORITY, _CERTIFICATE, _KEY = "ca.crt", "tls.crt", "tls.key"


async def context_of(client: Client, namespace: str, tls: PodTls) -> ssl.SSLContext:
    """Return what connections are made with: the authority of the Secret alone is trusted, and its certificate shown.

    Raises:
        SilentPodError: the Secret can't be read, lacks a key, or holds what is no certificate.
    """
    where = f"Secret {namespace}/{tls.secret}"
    try:
        secret = await client.get(f"/api/v1/namespaces/{namespace}/secrets/{tls.secret}")
    except ApiError as error:
        raise SilentPodError(f"{where} can't be read: {error}") from error
    data = mapping_of(secret.get("data"))
    if missing := [key for key in (_AUTHORITY, _CERTIFICATE, _KEY) if not data.get(key)]:
        raise SilentPodError(f"{where} lacks the key {missing[0]}")
    try:
        authority, certificate, key = (decoded(data[name]) for name in (_AUTHORITY, _CERTIFICATE, _KEY))
        return Tls(authority, certificate, key).context()
    except (ValueError, KubeconfigError) as error:
        raise SilentPodError(f"{where} holds no certificates that can be used") from error
