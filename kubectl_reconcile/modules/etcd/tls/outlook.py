"""What the Secrets will hold after a step, for previews of what follows.

Pure: facts in, facts out.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from kubectl_reconcile.module_api import Action, Facts, map_at
from kubectl_reconcile.modules.etcd.steps import Do
from kubectl_reconcile.modules.etcd.tls.state import AUTHORITY, CERTIFICATES, OF_MEMBERS, SecretState


def after_issuing(facts: Facts, action: Action) -> dict[str, Any]:
    """Return what is known of the Secrets after a step. Keys that are yet to be drawn have no fingerprint, only a place among those."""
    known: Mapping[str, Any] = facts.get("tls") or {}
    kind, authority = str(action.parameters["member"]), map_at(known, AUTHORITY)
    match action.verb:
        case Do.ISSUE:
            made: Mapping[str, Any] = {
                "state": SecretState.OK.value, "issuer": authority.get("signer", ""), "trusted": authority.get("trusted", []),
            }  # fmt: skip
        case Do.TRUST:
            made = {**map_at(known, kind), "trusted": authority.get("trusted", [])}
        case Do.MAKE_AUTHORITY:
            made = _made_again(known)
        case Do.ADD_AUTHORITY:
            new = _drawn(known)
            made = {**authority, "upcoming": new, "trusted": [*_trusted(authority), new]}
        case Do.USE_AUTHORITY:
            made = {**authority, "signer": authority.get("upcoming", ""), "upcoming": "", "until": ""}
        case _:
            made = {**authority, "trusted": [str(authority.get("signer", ""))]}
    return {"tls": {**known, kind: made}}


def _made_again(known: Mapping[str, Any]) -> dict[str, Any]:
    new = _drawn(known)
    before = {each for kind in OF_MEMBERS for each in _trusted(map_at(known, kind)) if _is_own(map_at(known, kind))}
    before |= set(_trusted(map_at(known, AUTHORITY)))
    return {
        "state": SecretState.OK.value, "signer": "" if before else new, "upcoming": new if before else "",
        "until": "", "trusted": [*sorted(before), new],
    }  # fmt: skip


def _is_own(told: Mapping[str, Any]) -> bool:
    return told.get("state") in {SecretState.OK.value, SecretState.BROKEN.value}


def _drawn(known: Mapping[str, Any]) -> str:
    """Return what stands for the fingerprint of a key that is yet to be drawn."""
    taken = {each for kind in (AUTHORITY, *CERTIFICATES) for each in _trusted(map_at(known, kind))}
    return next(name for name in (f"new-{number}" for number in count(1)) if name not in taken)


def _trusted(told: Mapping[str, Any]) -> list[str]:
    return list(told.get("trusted") or ())
