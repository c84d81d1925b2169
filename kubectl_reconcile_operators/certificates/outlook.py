"""What the Secrets will hold after a step, for previews of what follows.

Pure: facts in, facts out.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from kubectl_reconcile.module_api import Facts, map_at
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.state import AUTHORITY, CertificateKinds, SecretState


def after_issuing(kinds: CertificateKinds, facts: Facts, do: CertificateDo, kind: str) -> dict[str, Any]:
    """Return the state of the Secrets after a step on the Secret of a *kind*. Keys that aren't generated yet have a placeholder instead of a fingerprint."""
    known: Mapping[str, Any] = facts.get("tls") or {}
    authority = map_at(known, AUTHORITY)
    match do:
        case CertificateDo.ISSUE:
            made: Mapping[str, Any] = {
                "state": SecretState.OK.value, "issuer": authority.get("signer", ""), "trusted": authority.get("trusted", []),
            }  # fmt: skip
        case CertificateDo.TRUST:
            made = {**map_at(known, kind), "trusted": authority.get("trusted", [])}
        case CertificateDo.MAKE_AUTHORITY:
            made = _made_again(kinds, known)
        case CertificateDo.ADD_AUTHORITY:
            new = _drawn(kinds, known)
            made = {**authority, "upcoming": new, "trusted": [*_trusted(authority), new]}
        case CertificateDo.USE_AUTHORITY:
            made = {**authority, "signer": authority.get("upcoming", ""), "upcoming": "", "until": ""}
        case _:
            made = {**authority, "trusted": [str(authority.get("signer", ""))]}
    return {"tls": {**known, kind: made}}


def _made_again(kinds: CertificateKinds, known: Mapping[str, Any]) -> dict[str, Any]:
    new, mounted = _drawn(kinds, known), [kind for kind, of in kinds.items() if of.is_of_members]
    before = {each for kind in mounted for each in _trusted(map_at(known, kind)) if _is_own(map_at(known, kind))}
    before |= set(_trusted(map_at(known, AUTHORITY)))
    return {
        "state": SecretState.OK.value, "signer": "" if before else new, "upcoming": new if before else "",
        "until": "", "trusted": [*sorted(before), new],
    }  # fmt: skip


def _is_own(told: Mapping[str, Any]) -> bool:
    return told.get("state") in {SecretState.OK.value, SecretState.BROKEN.value}


def _drawn(kinds: CertificateKinds, known: Mapping[str, Any]) -> str:
    """Return what stands for the fingerprint of a key that is yet to be drawn."""
    taken = {each for kind in (AUTHORITY, *kinds) for each in _trusted(map_at(known, kind))}
    return next(name for name in (f"new-{number}" for number in count(1)) if name not in taken)


def _trusted(told: Mapping[str, Any]) -> list[str]:
    return list(told.get("trusted") or ())
