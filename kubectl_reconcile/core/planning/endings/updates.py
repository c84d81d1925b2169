"""What ends because an object is updated: claims of replicas that are taken away, and the object itself where its owners aren't there.

The cluster's garbage collector deletes an object when none of its owners is there: under that name, with that uid, in its namespace or in
none. Nobody means that in a manifest, so one that names an owner that isn't there is refused; whoever wants an object to go removes its file.
An owner that is there takes the object along when it goes, and is asked about then.

A StatefulSet may say that the claims of replicas that are taken away go (``whenScaled: Delete``). That waits for a person, as a claim's deletion does.

What somebody has deleted, and a finalizer keeps, goes when a manifest states that finalizer no more: it is *let go*. That is what a replacement does, and is
planned as one: named, counted, and held where it has to be.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_reconcile.core.objects import (
    GroupKind,
    Manifest,
    ObjectRef,
    map_at,
    maps_in,
    metadata_of,
    number_of,
    text_at,
)
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing, owners_in
from kubectl_reconcile.core.planning.kinds import CLAIM
from kubectl_reconcile.core.planning.plan import Change, Op

_STATEFUL_SET = GroupKind("apps", "StatefulSet")

BOUND_TO_GO = (
    "all that metadata.ownerReferences names goes in this very sync, and the cluster's garbage collector would delete this object with it "
    "(hint: remove metadata.ownerReferences; to have it deleted, remove its file)"
)
"""Why an object is left as it is."""

# --- owners ---------------------------------------------------------------------------------------


def is_rewired(change: Change) -> bool:
    """Tell whether an object has other owners after a change of its manifest than before."""
    after = change.after
    if after is None or change.op not in {Op.CREATE, Op.UPDATE} or change.is_child:
        return False
    owners = owners_in(after)
    return bool(owners or change.before) and owners != owners_in(change.before or {})


def owner_listings(change: Change) -> tuple[Listing, ...]:
    """Return the lists that show whether the owners of a rewired object are there."""
    return tuple(_listing(change.ref, owner) for owner in _owners(change.after))


def _owners(manifest: Manifest | None) -> list[Mapping[str, Any]]:
    return maps_in(metadata_of(manifest or {}).get("ownerReferences"))


def _listing(ref: ObjectRef, owner: Mapping[str, Any]) -> Listing:
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    return Listing(GroupKind(group, str(owner.get("kind") or "")), ref.namespace, name=str(owner.get("name") or ""))


def owners_fault(change: Change, listed: Mapping[Listing, Listed]) -> str:
    """Return why a rewired object can't be applied as it is; empty where it can.

    An owner that it gets isn't there, or that can't be seen; or none is left that is.
    """
    before, faults, there = owners_in(change.before or {}), [], False
    for owner in _owners(change.after):
        listing = _listing(change.ref, owner)
        answer = listed.get(listing)
        found = answer.objects if answer else ()
        if any(metadata_of(each).get("uid") == owner.get("uid") and _stays(each) for each in found):
            there = True
        else:
            why = _fault(listing, owner, found, seen=answer is not None and not answer.unseen)
            faults.append((owner.get("uid") in before, why))
    if not faults or (there and all(is_old for is_old, _ in faults)):
        return ""
    ways = "correct them, or remove metadata.ownerReferences; to have the object deleted, remove its file"
    return f"{min(faults)[1]}; the cluster's garbage collector deletes objects whose owners aren't there (hint: {ways})"


def _stays(owner: Manifest) -> bool:
    return not metadata_of(owner).get("deletionTimestamp")


def _fault(listing: Listing, owner: Mapping[str, Any], found: tuple[Manifest, ...], *, seen: bool) -> str:
    place = f" in namespace {listing.namespace}" if listing.namespace else ""
    named = f"metadata.ownerReferences names {listing.kind} {listing.name}"
    if not seen:
        return f"{named}{place}, which can't be looked at, so nobody knows whether it is there"
    if not found:
        return f"{named}, which isn't there{place}"
    if any(metadata_of(each).get("uid") == owner.get("uid") for each in found):
        return f"{named}, which is being deleted"
    return f"{named} with the uid {owner.get('uid')}, and the one{place} has another"


# --- finalizers -----------------------------------------------------------------------------------


def lets_go(change: Change) -> bool:
    """Tell whether an update of an object that is being deleted takes a finalizer away that keeps it."""
    before, after = metadata_of(change.before or {}), metadata_of(change.after or {})
    return bool(before.get("deletionTimestamp")) and bool(_finalizers(before) - _finalizers(after))


def _finalizers(metadata: Mapping[str, Any]) -> set[str]:
    found = metadata.get("finalizers")
    return set(map(str, found)) if isinstance(found, list | tuple) else set()


# --- replicas that are taken away ---------------------------------------------------------------------


def ends_claims(change: Change) -> bool:
    """Tell whether claims go with the replicas that an update of a StatefulSet takes away."""
    if (
        change.ref.group_kind != _STATEFUL_SET
        or change.op is not Op.UPDATE
        or change.before is None
        or not change.after
    ):
        return False
    return _policy(change.after) == "Delete" and bool(_condemned(change.before, change.after))


def _policy(manifest: Manifest) -> str:
    return text_at(manifest, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")


def _ordinals(manifest: Manifest) -> range:
    spec = map_at(manifest, "spec")
    start, replicas = number_of(map_at(spec, "ordinals").get("start")), number_of(spec.get("replicas"))
    first = start or 0
    return range(first, first + (1 if replicas is None else replicas))


def _condemned(before: Manifest, after: Manifest) -> list[range]:
    """Return the ordinals that an update takes away: of very many replicas, too."""
    old, new = _ordinals(before), _ordinals(after)
    found = (range(old.start, min(old.stop, new.start)), range(max(old.start, new.stop), old.stop))
    return [each for each in found if each]


def claims_listing(change: Change) -> Listing:
    """Return the list that shows the claims of a StatefulSet."""
    return Listing(CLAIM, change.ref.namespace)


def condemned_claims(change: Change, answer: Listed) -> list[Manifest]:
    """Return the claims in a list that go with the replicas that *change* takes away."""
    condemned, found = _condemned(change.before or {}, change.after or {}), []
    for each in answer.objects:
        ordinal = next(_ordinal_in(each, change), None)
        if ordinal is not None and any(ordinal in some for some in condemned):
            found.append(each)
    return found


def _ordinal_in(claim: Manifest, change: Change) -> Iterator[int]:
    """Yield the ordinal in the name of a claim that a StatefulSet made."""
    name = str(metadata_of(claim).get("name") or "")
    for template in maps_in(map_at(change.before or {}, "spec").get("volumeClaimTemplates")):
        prefix = f"{text_at(template, 'metadata', 'name')}-{change.ref.name}-"
        rest = name.removeprefix(prefix)
        if name.startswith(prefix) and re.fullmatch(r"\d{1,10}", rest):
            yield int(rest)


def replicas_gone(change: Change) -> str:
    """Return how many replicas go, as a sentence."""
    replicas = sum(map(len, _condemned(change.before or {}, change.after or {})))
    gone = (
        "1 replica would go, and its claims with it"
        if replicas == 1
        else f"{replicas} replicas would go, and their claims with them"
    )
    return f"{gone} (persistentVolumeClaimRetentionPolicy.whenScaled is Delete)"


def scale_states(change: Change) -> tuple[str, ...]:
    """Return what tells this very step from any other: it is approved for once."""
    metadata = metadata_of(change.before or {})
    return str(metadata.get("uid") or ""), str(metadata.get("generation") or ""), str(_ordinals(change.after or {}))
