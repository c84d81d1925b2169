"""How a cluster begins with what an EtcdRestore writes: what it tells the restore, and what the restore tells it.

The cluster makes the volume claim of its first member and publishes in ``status.seed`` what the data on it must be for. The restore writes, and
publishes in its own ``status.seed`` which claim (by uid) holds the data now, and which member that is. Nothing else starts a member:
a claim of the same name that was made later is another one, and empty.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import Manifest, Owned, Select, condition_of


@dataclass(frozen=True, slots=True)
class RestoreState:
    """The EtcdRestore that a cluster begins with. *claim_uid* and *member* are of what it has written, empty until then; *says* is its own sentence."""

    name: str
    is_there: bool = False
    has_failed: bool = False
    says: str = ""
    claim_uid: str = ""
    member: str = ""


def restore_named(cr: Manifest) -> Select:
    """Select the EtcdRestore that a cluster names, whatever the cluster looks like."""
    name = _name(cr)
    return Select(names=(name,) if name else ())


def restore_of(cr: Manifest, owned: Owned) -> RestoreState | None:
    """Return what is known of the restore that a cluster begins with, None where it begins empty."""
    name = _name(cr)
    if not name:
        return None
    found = next((each for each in owned.read("EtcdRestore") if each["metadata"]["name"] == name), None)
    if found is None:
        return RestoreState(name)
    status = found.get("status")
    status = status if isinstance(status, Mapping) else {}
    seed = status.get("seed")
    seed = seed if isinstance(seed, Mapping) else {}
    ready = condition_of(found, "Ready") or {}
    return RestoreState(
        name,
        is_there=True,
        has_failed=status.get("phase") == "Failed",
        says=str(ready.get("message") or "it hasn't begun yet"),
        claim_uid=str(seed.get("claimUID") or ""),
        member=str(seed.get("memberID") or ""),
    )


def _name(cr: Manifest) -> str:
    found: Any = cr.get("spec")
    for part in ("restoreFrom", "name"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else ""
