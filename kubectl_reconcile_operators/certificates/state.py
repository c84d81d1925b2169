"""What is known of the Secrets with the certificates that a module issues for one custom resource.

Vocabulary: a *member* is a pod that shows a certificate to others of its kind. The *authority* is the Secret with the keys that certificates are signed by. It has a *signer*, whose certificate all
members trust, and maybe one that is *upcoming*, which members are about to trust. What is *trusted* are all authorities whose certificates stand in ``ca.crt``; each is known by its fingerprint. A *certificate*
is a Secret with ``tls.crt``, ``tls.key``, and in ``ca.crt`` what is trusted.

Facts (``tls``, by kind) are what ``kubectl_reconcile_operators.certificates.keys`` brings. Moments that aren't known are empty: those of what a preview has issued.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from kubectl_reconcile.module_api import Context, Facts, map_at

AUTHORITY = "ca"


class SecretState(StrEnum):
    """What is known of a Secret."""

    OK = "ok"
    ABSENT = "absent"
    FOREIGN = "foreign"
    """It is there, and not the custom resource's own."""
    BROKEN = "broken"
    """It is the custom resource's own, and of no use."""


@dataclass(frozen=True, slots=True)
class CertificateKind:
    """One kind of certificate: its purpose, whether members mount it, and whether its user can wait until there is a key that members trust."""

    purpose: str
    is_of_members: bool = False
    can_wait: bool = False


CertificateKinds: TypeAlias = Mapping[str, CertificateKind]
"""All kinds of a module, by what is the end of their Secrets' names."""


@dataclass(frozen=True, slots=True)
class CertificateTerms:
    """How long certificates are valid, how long before its end a certificate is renewed, and how long the authority is valid, in seconds."""

    lasts_s: int = 90 * 86_400
    renewed_before_s: int = 30 * 86_400
    authority_lasts_s: int = 3650 * 86_400


@dataclass(frozen=True, slots=True)
class OwnAuthority:
    """The Secret that certificates are signed by. *why* says what is wrong with it; *until* is when its signer ends."""

    name: str
    state: SecretState = SecretState.ABSENT
    why: str = ""
    signer: str = ""
    until: str = ""
    upcoming: str = ""
    trusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """A Secret with a certificate, signed by *issuer*, good from *since* to *until*, and what it says is *trusted*."""

    kind: str
    name: str
    of: CertificateKind
    state: SecretState = SecretState.ABSENT
    why: str = ""
    issuer: str = ""
    since: str = ""
    until: str = ""
    trusted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OwnTls:
    """The authority, and all certificates."""

    authority: OwnAuthority
    certificates: tuple[OwnCertificate, ...]

    @property
    def own(self) -> tuple[OwnCertificate, ...]:
        """The certificates whose Secrets don't belong to somebody else."""
        return tuple(each for each in self.certificates if each.state is not SecretState.FOREIGN)

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of the Secrets that belong to somebody else."""
        every: tuple[OwnAuthority | OwnCertificate, ...] = (self.authority, *self.certificates)
        return tuple(each.name for each in every if each.state is SecretState.FOREIGN)

    @property
    def signers(self) -> frozenset[str]:
        """The signers of all certificates in use. A member that doesn't trust all of them is cut off."""
        return frozenset(each.issuer for each in self.certificates if each.issuer and not each.of.can_wait)


def secret_names(kinds: CertificateKinds, ctx: Context) -> dict[str, str]:
    """Return the names of the Secrets, by kind."""
    return {kind: ctx.name(kind) for kind in (AUTHORITY, *kinds)}


def own_tls_of(kinds: CertificateKinds, facts: Facts, ctx: Context) -> OwnTls:
    """Return what *facts* say about the Secrets. A Secret that they don't mention doesn't exist."""
    names = secret_names(kinds, ctx)
    told = map_at(facts, "tls", AUTHORITY)
    authority = OwnAuthority(
        name=names[AUTHORITY],
        state=_state(told),
        why=str(told.get("why") or ""),
        signer=str(told.get("signer") or ""),
        until=str(told.get("until") or ""),
        upcoming=str(told.get("upcoming") or ""),
        trusted=_trusted(told),
    )
    found = (_certificate(kind, names[kind], of, map_at(facts, "tls", kind)) for kind, of in kinds.items())
    return OwnTls(authority, tuple(found))


def trust_of(facts: Facts, kind: str) -> str:
    """Return, in one line, what members trust that mount this kind and start now. It is recorded on their pods, which depend on it."""
    return ",".join(sorted(_trusted(map_at(facts, "tls", kind))))


def _certificate(kind: str, name: str, of: CertificateKind, told: Mapping[str, Any]) -> OwnCertificate:
    return OwnCertificate(
        kind=kind,
        name=name,
        of=of,
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
