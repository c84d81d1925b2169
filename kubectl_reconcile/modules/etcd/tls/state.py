"""What is known of the Secrets with an EtcdCluster's certificates.

Vocabulary: the *authority* is the Secret with the keys that certificates are signed by. It has a *signer*, whose certificate all members trust, and maybe one that is *upcoming*, which members
are about to trust. What is *trusted* are all authorities whose certificates stand in ``ca.crt``; each is known by its fingerprint. A *certificate* is a Secret of the shape that
``TLS.static`` names: ``tls.crt``, ``tls.key``, and in ``ca.crt`` what is trusted.

Facts (``tls``, by kind) are what the driver brings. Moments that aren't known are empty: those of what a preview has issued.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import Context, Facts, map_at

AUTHORITY = "ca"
CERTIFICATES: Mapping[str, str] = {
    "peer": "what members show to one another",
    "server": "what members show to clients",
    "operator": "what the daemon and backups show to members",
    "client": "what clients may show to members",
}
"""The kinds of certificates, which are the ends of their Secrets' names, and what each is for."""
OF_MEMBERS = ("peer", "server")


class SecretState(StrEnum):
    """What is known of a Secret."""

    OK = "ok"
    ABSENT = "absent"
    FOREIGN = "foreign"
    """It is there, and not the cluster's own."""
    BROKEN = "broken"
    """It is the cluster's own, and of no use."""


@dataclass(frozen=True, slots=True)
class EtcdAuthority:
    """The Secret that certificates are signed by. *why* says what is wrong with it; *until* is when its signer ends."""

    name: str
    state: SecretState = SecretState.ABSENT
    why: str = ""
    signer: str = ""
    until: str = ""
    upcoming: str = ""
    trusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EtcdCertificate:
    """A Secret with a certificate, signed by *issuer*, good from *since* to *until*, and what it says is *trusted*."""

    kind: str
    name: str
    state: SecretState = SecretState.ABSENT
    why: str = ""
    issuer: str = ""
    since: str = ""
    until: str = ""
    trusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """The authority, and all certificates."""

    authority: EtcdAuthority
    certificates: tuple[EtcdCertificate, ...]

    @property
    def own(self) -> tuple[EtcdCertificate, ...]:
        """The certificates whose Secrets aren't somebody else's."""
        return tuple(each for each in self.certificates if each.state is not SecretState.FOREIGN)


def secret_names(ctx: Context) -> dict[str, str]:
    """Return the names of the Secrets, by kind."""
    return {kind: ctx.name(kind) for kind in (AUTHORITY, *CERTIFICATES)}


def tls_of(facts: Facts, ctx: Context) -> EtcdTls:
    """Return what *facts* say of the Secrets; what they don't tell of isn't there."""
    names = secret_names(ctx)
    told = map_at(facts, "tls", AUTHORITY)
    authority = EtcdAuthority(
        name=names[AUTHORITY],
        state=_state(told),
        why=str(told.get("why") or ""),
        signer=str(told.get("signer") or ""),
        until=str(told.get("until") or ""),
        upcoming=str(told.get("upcoming") or ""),
        trusted=_trusted(told),
    )
    return EtcdTls(
        authority, tuple(_certificate(kind, names[kind], map_at(facts, "tls", kind)) for kind in CERTIFICATES)
    )


def trust_of(facts: Facts) -> str:
    """Return what members that start now trust, in one line: it is noted on their pods, and part of what these are made by."""
    return ",".join(sorted(_trusted(map_at(facts, "tls", "peer"))))


def _certificate(kind: str, name: str, told: Mapping[str, Any]) -> EtcdCertificate:
    return EtcdCertificate(
        kind=kind,
        name=name,
        state=_state(told),
        why=str(told.get("why") or ""),
        issuer=str(told.get("issuer") or ""),
        since=str(told.get("since") or ""),
        until=str(told.get("until") or ""),
        trusted=_trusted(told),
    )


def _state(told: Mapping[str, Any]) -> SecretState:
    return SecretState(told.get("state") or SecretState.ABSENT)


def _trusted(told: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(map(str, told.get("trusted") or ()))
