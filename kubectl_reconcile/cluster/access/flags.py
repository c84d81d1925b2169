"""What a user says about the cluster to talk to: kubectl's common flags, nothing looked up yet.

``route.py`` makes a route of it, by way of the kubeconfig files (``kubeconfig.py``) and their credentials (``credentials.py``).
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from msgspec import Struct, field

from kubectl_reconcile.core.records import Guarded


class TlsFlags(Struct, frozen=True):
    """What the flags say about TLS: files of the user's own, and how far the server is to be trusted."""

    certificate_authority: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None


class ImpersonationFlags(Struct, frozen=True):
    """Whom the flags say to act as.

    *as_user* alone tells None (no impersonation) from empty (refused, since it would fall back to our own rights).
    """

    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    as_uid: str | None = None


class Access(Guarded, frozen=True):
    """What kubectl's common flags say about the cluster to talk to. None (or empty) leaves it to the kubeconfig."""

    hidden: ClassVar = frozenset({"token"})

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None
    server: str | None = None
    token: str | None = None
    tls: TlsFlags = field(default_factory=TlsFlags)
    impersonation: ImpersonationFlags = field(default_factory=ImpersonationFlags)
    request_timeout_s: float | None = None

    @classmethod
    def of_flags(cls, **flags: Any) -> Self:
        """Return what flags say that are named as kubectl names them (``as_user`` for ``--as``)."""
        tls, impersonation = _taken(flags, TlsFlags), _taken(flags, ImpersonationFlags)
        return cls(**flags, tls=TlsFlags(**tls), impersonation=ImpersonationFlags(**impersonation))


def _taken(flags: dict[str, Any], part: type[TlsFlags | ImpersonationFlags]) -> dict[str, Any]:
    """Take the flags that *part* holds out of *flags*."""
    return {name: flags.pop(name) for name in part.__struct_fields__ if name in flags}
