"""How a cluster begins with what an EtcdRestore writes: what it tells the restore, and what the restore tells it.

The cluster makes the volume claim of its first member and publishes in ``status.seed`` what the data on it must be for. The restore writes, and
publishes in its own ``status.seed`` which claim (by uid) holds the data now, and which member that is. Nothing else starts a member:
a claim of the same name that was made later is another one, and empty.

Pure: values in, values out.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_reconcile.module_api import Manifest, Owned, Select, condition_of, map_at, text_at


@dataclass(frozen=True, slots=True)
class RestoreState:
    """The EtcdRestore that a cluster begins with. *claim_uid* and *member* are of what it has written, empty until then; *says* is its own sentence.

    *digest*, *file* and *revision* are of the snapshot that it has checked to replace a cluster's data, empty where it hasn't, or is done.
    """

    name: str
    is_there: bool = False
    has_failed: bool = False
    says: str = ""
    claim_uid: str = ""
    member: str = ""
    digest: str = ""
    file: str = ""
    revision: int = 0
    is_done: bool = False


def restore_named(cr: Manifest) -> Select:
    """Select the EtcdRestore that a cluster names, whatever the cluster looks like."""
    return Select.named(_name_of(cr))


def restore_of(cr: Manifest, owned: Owned) -> RestoreState | None:
    """Return what is known of the restore that a cluster begins with, None where it begins empty."""
    name = _name_of(cr)
    if not name:
        return None
    found = owned.other("EtcdRestore", name)
    if found is None:
        return RestoreState(name)
    status = map_at(found, "status")
    seed = map_at(status, "seed")
    ready = condition_of(found, "Ready") or {}
    is_ours = text_at(found, "spec", "clusterRef", "name") == cr["metadata"]["name"]
    checked = map_at(status, "checked") if is_ours and status.get("phase") != "Succeeded" else {}
    revision = checked.get("revision")
    return RestoreState(
        name,
        is_there=True,
        has_failed=status.get("phase") == "Failed",
        says=str(ready.get("message") or "it hasn't started yet"),
        claim_uid=str(seed.get("claimUID") or ""),
        member=str(seed.get("memberID") or ""),
        digest=text_at(checked, "digest"),
        file=text_at(checked, "file"),
        revision=revision if isinstance(revision, int) else 0,
        is_done=status.get("phase") == "Succeeded",
    )


def _name_of(cr: Manifest) -> str:
    return text_at(cr, "spec", "restoreFrom", "name")
