"""What ends with an object: others that go because it goes, though no file or module said so.

A Sync that prunes takes its members; a Namespace what is in it; a CustomResourceDefinition its custom resources; any
object those that nobody else owns, and all of these take along theirs. Caches show only part of that, so the planner names the
*listings* that it lacks, somebody makes them, and the plan is built once more. What could not be listed is *uncounted*: nobody
knows what goes with it.

Why an object ends doesn't matter: it is deleted, or deleted to be recreated, or its namespace goes.

What a controller recreates at any time (the pods and ReplicaSets of a workload, events, endpoints, leases) doesn't count, but what
that owns does. An owner reference is anybody's to write, so these are known by their own kinds, too.

Pure: lists in, references out. What lists hold was written by others, and may be anything.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.objects import (
    GroupKind,
    Manifest,
    ObjectRef,
    annotations_of,
    controller_of,
    labels_of,
    map_at,
    maps_in,
    metadata_of,
)
from kubectl_reconcile.core.planning.kinds import CLAIM, CRD, NAMESPACE
from kubectl_reconcile.core.planning.snapshot import Snapshot
from kubectl_reconcile.core.resources import applyset
from kubectl_reconcile.core.resources.sync import SYNC, DeletionPolicy

WHOLE = frozenset({SYNC.group_kind, CRD})
"""Kinds of which listings must show all: what they take along stands in their spec."""

FLEETING = frozenset(
    {
        GroupKind("", "Event"),
        GroupKind("", "Endpoints"),
        GroupKind("apps", "ControllerRevision"),
        GroupKind("coordination.k8s.io", "Lease"),
        GroupKind("discovery.k8s.io", "EndpointSlice"),
        GroupKind("events.k8s.io", "Event"),
        GroupKind("metrics.k8s.io", "PodMetrics"),
        GroupKind("storage.k8s.io", "CSIStorageCapacity"),
    }
)
"""Kinds that come and go by themselves."""

_POD, _SECRET, _ACCOUNT = GroupKind("", "Pod"), GroupKind("", "Secret"), GroupKind("", "ServiceAccount")
_WORKLOADS = frozenset({GroupKind("apps", kind) for kind in ("DaemonSet", "ReplicaSet", "StatefulSet")}) | {
    GroupKind("batch", "Job"),
    GroupKind("", "ReplicationController"),
}
_RECREATED: Final[Mapping[GroupKind, frozenset[GroupKind]]] = {
    _POD: _WORKLOADS,
    GroupKind("apps", "ReplicaSet"): frozenset({GroupKind("apps", "Deployment")}),
    GroupKind("batch", "Job"): frozenset({GroupKind("batch", "CronJob")}),
    CLAIM: frozenset({_POD}),
    GroupKind("resource.k8s.io", "ResourceClaim"): frozenset({_POD}),
}
"""Kinds that come and go with those that control them: a claim that a pod controls is its scratch space."""
_OF_ACCOUNT: Final = ("kubernetes.io/service-account.name", "kubernetes.io/service-account.uid")
"""What a Secret with a token says of the account that it is for."""
_BUILT_IN = frozenset({"", "apps", "autoscaling", "batch", "extensions", "policy"}) | {
    f"{name}.k8s.io"
    for name in (
        "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
        "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "metrics", "networking", "node",
        "rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
    )
}  # fmt: skip
"""Groups of the server's own kinds. Of those that are in no namespace only claims are looked for: most own nothing, and a look at all would be a look at the whole cluster."""
_DEFAULTS = frozenset({(_ACCOUNT, "default"), (GroupKind("", "ConfigMap"), "kube-root-ca.crt")})
_FEW_NAMESPACES = 5
_ANYTHING = GroupKind("", "objects")


class Listing(Struct, frozen=True):
    """A question: the objects of *kind* (None: of every kind) in *namespace* (empty: in all), or those of one set there, or the one of that *name*."""

    kind: GroupKind | None
    namespace: str = ""
    set_id: str = ""
    name: str = ""


class Listed(Struct, frozen=True, dict=True):
    """The answer: objects by their metadata, whole only those of ``WHOLE`` kinds; and the kinds that could not be listed."""

    objects: tuple[Manifest, ...] = ()
    unseen: tuple[GroupKind, ...] = ()

    @functools.cached_property
    def by_owner(self) -> Mapping[str, Sequence[Manifest]]:
        """The objects that name an owner, by the uid of each: thousands may go at once, and each takes along a few of thousands."""
        found: dict[str, list[Manifest]] = {}
        for each in self.objects:
            for uid in owners_in(each):
                found.setdefault(uid, []).append(each)
        return found

    @functools.cached_property
    def tokens(self) -> Sequence[Manifest]:
        """The Secrets that say that they are tokens of an account."""
        return [
            each for each in self.objects if each.get("kind") == _SECRET.kind and _OF_ACCOUNT[0] in annotations_of(each)
        ]


class Cascade(Struct):
    """What goes along with others, each with the object that takes it; *roots* says with which of those it began.

    *lacking* are listings to be made before all of it is known; *uncounted* says what nobody listed of what goes for sure, and
    *blind* are the roots that it goes with. Of what an object may own, what can't be listed is passed over: most own nothing there.
    """

    taken: dict[ObjectRef, tuple[Manifest, ObjectRef]] = field(default_factory=dict)
    roots: dict[ObjectRef, ObjectRef] = field(default_factory=dict)
    lacking: set[Listing] = field(default_factory=set)
    uncounted: set[str] = field(default_factory=set)
    blind: set[ObjectRef] = field(default_factory=set)

    @property
    def along(self) -> tuple[ObjectRef, ...]:
        """What goes along, in order."""
        return tuple(sorted(self.taken))

    def with_root(self, root: ObjectRef) -> Iterator[ObjectRef]:
        """Yield what goes along with *root*."""
        return (ref for ref, each in self.roots.items() if each == root and ref in self.taken)


NO_REWIRING: Final[Mapping[ObjectRef, Manifest]] = {}
"""Nobody's owners change."""


def cascade_of(
    root: Manifest,
    listed: Mapping[Listing, Listed],
    live: Snapshot,
    rewired: Mapping[ObjectRef, Manifest] = NO_REWIRING,
) -> Cascade:
    """Return what goes along with *root*, as far as *listed* and *live* show it; *rewired* are objects as they are by then, whose owners are others."""
    return cascade_of_all([root], listed, live, rewired)


def cascade_of_all(
    roots: Iterable[Manifest],
    listed: Mapping[Listing, Listed],
    live: Snapshot,
    rewired: Mapping[ObjectRef, Manifest] = NO_REWIRING,
    beside: Iterable[Manifest] = (),
) -> Cascade:
    """Return what goes along with *roots*, which go together: what several of them own goes, too, though with none alone.

    What is *beside* them goes in any case: what these own together with roots goes along with the roots.
    """
    found, sure, unsure, gone = Cascade(), deque(beside), deque(roots), set[str]()
    found.roots = {(ref := ObjectRef.of(each)): ref for each in (*sure, *unsure)}
    for queue in (sure, unsure):
        gone |= set(map(_uid, queue)) - {""}
        _follow(queue, gone, found, listed, live, rewired)
    return found


def _follow(
    queue: deque[Manifest],
    gone: set[str],
    found: Cascade,
    listed: Mapping[Listing, Listed],
    live: Snapshot,
    rewired: Mapping[ObjectRef, Manifest],
) -> None:
    """Find what goes with all in *queue*, where what is *gone* already goes, too."""
    while queue:
        carrier = queue.popleft()
        above = ObjectRef.of(carrier)
        for each in (*_listed(carrier, listed, found), *_owned(carrier, live, rewired)):
            ref = ObjectRef.of(each)
            if ref in found.roots or not _goes(rewired.get(ref, each), carrier, gone):
                continue
            found.roots[ref] = found.roots[above]
            gone.add(_uid(each))
            queue.append(each)
            if not _is_fleeting(each):
                found.taken[ref] = each, above


def bound_to_go(
    roots: Sequence[Manifest],
    listed: Mapping[Listing, Listed],
    live: Snapshot,
    rewired: Mapping[ObjectRef, Manifest],
) -> set[ObjectRef]:
    """Return those of *rewired* that go along with *roots* by their new owners alone: whoever leaves them as they are keeps them."""
    if not rewired:
        return set()
    as_is = cascade_of_all(roots, listed, live).taken
    then = cascade_of_all(roots, listed, live, rewired).taken
    return {ref for ref in rewired if ref in then and ref not in as_is}


def parting_from(
    roots: Iterable[Manifest], live: Mapping[ObjectRef, Manifest], rewired: Mapping[ObjectRef, Manifest]
) -> tuple[ObjectRef, ...]:
    """Return those of *rewired* that one of *roots* owns as they are *live*, and doesn't any more by then."""
    uids = set(map(_uid, roots))
    return tuple(ref for ref, then in rewired.items() if uids & (owners_in(live.get(ref, {})) - owners_in(then)))


def _listed(carrier: Manifest, listed: Mapping[Listing, Listed], found: Cascade) -> Iterator[Manifest]:
    """Yield what lists show that may go with *carrier*; note what they lack."""
    holds_all, places = _holds_all(carrier), _places(carrier)
    for listing in listings_of(carrier):
        answer = listed.get(listing)
        if answer is None:
            found.lacking.add(listing)
        unseen = answer.unseen if answer else (listing.kind or _ANYTHING,)
        if listing.kind is not None and not _is_served(carrier):
            unseen = (listing.kind,)
        if holds_all and unseen:
            found.uncounted.update(_placed(kind, listing) for kind in unseen)
            found.blind.add(found.roots[ObjectRef.of(carrier)])
        known = () if answer is None else answer.objects if holds_all else answer.by_owner.get(_uid(carrier), ())
        if answer is not None and ObjectRef.of(carrier).group_kind == _ACCOUNT:
            known = (*known, *answer.tokens)
        yield from (each for each in known if applyset.may_be_member(ObjectRef.of(each), places))


def _owned(carrier: Manifest, live: Snapshot, rewired: Mapping[ObjectRef, Manifest]) -> Iterator[Manifest]:
    """Yield what caches show to be owned by *carrier*, and what will be."""
    if uid := _uid(carrier):
        yield from (stored.manifest() for stored in live.owned_by(uid))
        yield from (each for each in rewired.values() if uid in owners_in(each))


def _goes(each: Manifest, carrier: Manifest, gone: set[str]) -> bool:
    """Tell whether an object that a list or a cache shows with *carrier* goes with it."""
    kind, namespace = ObjectRef.of(carrier).group_kind, each["metadata"].get("namespace")
    if kind == SYNC.group_kind and labels_of(each).get(applyset.PART_OF) == applyset.applyset_id(ObjectRef.of(carrier)):
        options = MemberOptions.of(each)
        return applyset.is_marked_by_us(each) and not (options.kept or options.theirs.asks)
    if kind == NAMESPACE and namespace == ObjectRef.of(carrier).name:
        return True
    if kind == CRD and ObjectRef.of(each).group_kind in {listing.kind for listing in _listings_of_crd(carrier)}:
        return True
    if kind == _ACCOUNT and _is_token_of(each, carrier):
        return True
    owners = owners_in(each)
    return _uid(carrier) in owners and gone.issuperset(owners)


def _is_token_of(each: Manifest, account: Manifest) -> bool:
    """Tell whether an object is a token for an account, which the control plane deletes with it, though nothing owns it."""
    ref, of = ObjectRef.of(each), ObjectRef.of(account)
    name, uid = map(annotations_of(each).get, _OF_ACCOUNT)
    is_near = ref.group_kind == _SECRET and ref.namespace == of.namespace
    return is_near and name == of.name and uid in {None, "", _uid(account)}


def owners_in(manifest: Manifest) -> set[str]:
    """Return the uids of all that an object names as its owners."""
    return {str(owner.get("uid") or "") for owner in maps_in(metadata_of(manifest).get("ownerReferences"))}


def _placed(kind: GroupKind, listing: Listing) -> str:
    return f"{kind} in namespace {listing.namespace}" if listing.namespace else str(kind)


# --- who takes what -------------------------------------------------------------------------------


def listings_of(carrier: Manifest) -> tuple[Listing, ...]:
    """Return the lists that show what goes with *carrier*."""
    ref = ObjectRef.of(carrier)
    if ref.group_kind == NAMESPACE:
        return (Listing(None, ref.name),)
    if ref.group_kind == CRD:
        return tuple(_listings_of_crd(carrier))
    if ref.group_kind == SYNC.group_kind:
        return tuple(_listings_of_sync(carrier)) if prunes(carrier) else ()
    if ref.namespace or ref.group not in _BUILT_IN:
        return (Listing(None, ref.namespace),)
    return (Listing(CLAIM),)


def _holds_all(carrier: Manifest) -> bool:
    """Tell whether *carrier* takes along whatever its lists show, and not just what it owns."""
    return ObjectRef.of(carrier).group_kind in {NAMESPACE, CRD, SYNC.group_kind}


def _listings_of_crd(crd: Manifest) -> Iterator[Listing]:
    spec = crd.get("spec") or {}
    if kind := (spec.get("names") or {}).get("kind"):
        yield Listing(GroupKind(spec.get("group") or "", kind))


def _is_served(carrier: Manifest) -> bool:
    """Tell whether a list shows the objects of a CRD: those of which no version is served are there, and nobody sees them."""
    if ObjectRef.of(carrier).group_kind != CRD:
        return True
    versions = maps_in(map_at(carrier, "spec").get("versions"))
    return not versions or any(each.get("served", True) for each in versions)


def _listings_of_sync(sync: Manifest) -> Iterator[Listing]:
    contents, set_id = applyset.Contents.recorded(sync), applyset.applyset_id(ObjectRef.of(sync))
    places = sorted(contents.namespaces) if len(contents.namespaces) <= _FEW_NAMESPACES else [""]
    return (Listing(kind, place, set_id) for kind in sorted(contents.kinds) for place in places)


def _places(carrier: Manifest) -> frozenset[str] | None:
    """Return the namespaces that what goes with *carrier* is in; None where it may be anywhere that a list shows."""
    is_sync = ObjectRef.of(carrier).group_kind == SYNC.group_kind
    return applyset.Contents.recorded(carrier).namespaces if is_sync else None


def prunes(sync: Manifest) -> bool:
    """Tell whether the end of a Sync is the end of its members. A suspended one leaves them as they are."""
    spec = sync.get("spec") or {}
    return spec.get("deletionPolicy") == DeletionPolicy.PRUNE and not spec.get("suspend")


def _is_fleeting(manifest: Manifest) -> bool:
    """Tell whether an object comes and goes by itself, so that nobody misses it."""
    ref = ObjectRef.of(manifest)
    if ref.group_kind in FLEETING or (ref.group_kind, ref.name) in _DEFAULTS:
        return True
    if (controller := controller_of(manifest)) is None:
        return False
    group = str(controller.get("apiVersion") or "").rpartition("/")[0]
    return GroupKind(group, str(controller.get("kind"))) in _RECREATED.get(ref.group_kind, ())


def _uid(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("uid") or "")
