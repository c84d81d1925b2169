"""Volumes of stateful modules: claims that stay when their pods go, grow and never shrink.

They also stay when their custom resource goes, unless its spec says otherwise: so they carry no owner, see `KEPT_CLAIMS`. The volume of a member, a replica or a broker that isn't
wanted any more is *surplus*: it stays as well, or goes once somebody has approved that of this very volume, see `end_of_surplus`.

Pure: a wish and a context in, manifests out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kubectl_reconcile.module_api import Context, Keeps, Manifest, Owned, key_of, map_at

CLAIM = "PersistentVolumeClaim"
KEPT_CLAIMS = Keeps("v1", CLAIM)
_QUANTITY = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)([KMGTP]i|[kMGTP])?")
_UNITS: dict[str | None, int] = {None: 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_UNITS |= {f"{unit}i": 1 << (10 * power) for power, unit in enumerate("KMGTP", 1)}


END_VOLUME = "end-volume"
"""The verb of the action by which somebody gives up a surplus volume, with what is on it."""


class SurplusEnd(StrEnum):
    """What happens to a surplus volume."""

    KEPT = "kept"
    """It stays until somebody deletes it."""
    ASKED = "asked"
    """It stays until somebody approves that it goes."""
    GONE = "gone"
    """Somebody has approved that it goes."""


def end_of_surplus(deletion_policy: str, slot: str, uid: str, done: Collection[str]) -> SurplusEnd:
    """Return what happens to the volume of a slot that isn't wanted any more; *done* are the keys of actions that have run."""
    if deletion_policy != KEPT_CLAIMS.gone:
        return SurplusEnd.KEPT
    return SurplusEnd.GONE if f"{END_VOLUME}-{surplus_occasion(slot, uid)}" in done else SurplusEnd.ASKED


def surplus_occasion(slot: str, uid: str) -> str:
    """Return what tells the end of this very volume from that of any other: a part of the action's key."""
    return hashlib.sha256(f"{slot} {uid}".encode()).hexdigest()[:10]


def surplus_told(slot: str, what: str) -> str:
    """Return what somebody is asked to approve; *what* says what isn't on it any more, as in ``replica``."""
    return f"delete the volume of {slot}, which is no {what} any more (.spec.deletionPolicy is Delete)"


def surplus_set_aside(deletion_policy: str, slot: str, what: str) -> str:
    """Return what is said of a surplus volume that is set aside."""
    until = "until somebody deletes it (.spec.deletionPolicy is Retain)"
    if deletion_policy == KEPT_CLAIMS.gone:
        until = "until somebody approves that it is deleted"
    return f"set the volume of {slot} aside, which is no {what} any more; it is kept {until}"


@dataclass(frozen=True, slots=True)
class VolumeWish:
    """A desired volume, such as ``10Gi``. An empty class is the cluster's default."""

    size: str
    storage_class_name: str = ""


@dataclass(frozen=True, slots=True)
class ClaimsAtTheEnd:
    """What happens to volume claims with their custom resource: whether they *stay*, which are *there*, which have yet to go or to be freed (*left*), and the keys of those that are *dropped*."""

    stay: bool
    there: tuple[Manifest, ...]
    left: tuple[Manifest, ...]
    dropped: tuple[str, ...]


def claims_at_the_end(cr: Manifest, owned: Owned, ctx: Context) -> ClaimsAtTheEnd:
    """Return what happens to the claims of *cr*, which is being deleted; its spec may be anything."""
    bound, stay = owned.of(CLAIM), map_at(cr, "spec").get("deletionPolicy") != KEPT_CLAIMS.gone
    found = {each["metadata"]["name"]: each for each in (*filter(ctx.sees, owned.read(CLAIM)), *bound)}
    there = tuple(found.values())
    return ClaimsAtTheEnd(stay, there, bound if stay else there, () if stay else tuple(map(key_of, there)))


def bytes_of(quantity: str) -> int | None:
    """Return how many bytes a quantity such as ``10Gi`` is, None if it isn't a quantity."""
    found = _QUANTITY.fullmatch(quantity)
    return int(float(found[1]) * _UNITS[found[2]]) if found else None


def would_shrink(size: str, wanted: str) -> bool:
    """Tell whether a volume of *size* would be made smaller by the *wanted* one; Kubernetes refuses that."""
    return (bytes_of(size) or 0) > (bytes_of(wanted) or 0)


def shrink_refused(field: str, wanted: str, sizes: Mapping[str, str], hint: str = "set it to {size}") -> str:
    """Return that the *field* of a spec would make a volume smaller, empty where it makes none so; *sizes* are those of volumes by slot."""
    for slot, size in sorted(sizes.items()):
        if would_shrink(size, wanted):
            return f"{field}: {wanted} is less than the {size} that the volume of {slot} has, and volumes can't be made smaller (hint: {hint.format(size=size)})"
    return ""


def volume_claim(ctx: Context, name: str, wish: VolumeWish, size: str, noted: Mapping[str, str]) -> Manifest:
    """Return the claim of a volume whose current size is *size* (empty if it doesn't exist yet). *noted* are its annotations; empty ones are left out."""
    storage = size if would_shrink(size, wish.size) else wish.size
    of_class = {"storageClassName": wish.storage_class_name} if wish.storage_class_name else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "labels": ctx.labels(),
            "annotations": {key: value for key, value in noted.items() if value},
        },
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **of_class},
    }
