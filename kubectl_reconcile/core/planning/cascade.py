"""What a deletion takes along: objects that go because another one goes, though no file or module said so.

A Sync that prunes takes its members; a Namespace what is in it; a CustomResourceDefinition its custom resources; any
object those that it owns, and all of these take along theirs. Caches show only part of that, so the planner names the
*listings* that it lacks, somebody makes them, and the plan is built once more. What could not be listed is *uncounted*: nobody
knows what goes with it.

What a controller recreates at any time (the pods and ReplicaSets of a workload, events, endpoints, leases) doesn't count.

Pure: lists in, references out. What lists hold was written by others, and may be anything.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, controller_of
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE
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
    }
)
"""Kinds that come and go by themselves."""

_CLAIM = GroupKind("", "PersistentVolumeClaim")
_STATEFUL_SET = GroupKind("apps", "StatefulSet")
_WORKLOAD_GROUPS = frozenset({"", "apps", "batch"})
_BUILT_IN = frozenset({"", "apps", "autoscaling", "batch", "extensions", "policy"}) | {
    f"{name}.k8s.io"
    for name in (
        "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
        "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "metrics", "networking", "node",
        "rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
    )
}  # fmt: skip
"""Groups of the server's own kinds. Whom their objects own is known: pods, Jobs, claims; those of other groups may own anything."""
_DEFAULTS = frozenset({(GroupKind("", "ServiceAccount"), "default"), (GroupKind("", "ConfigMap"), "kube-root-ca.crt")})
_FEW_NAMESPACES = 5
_ANYTHING = GroupKind("", "objects")


class Listing(Struct, frozen=True):
    """A question: the objects of *kind* (None: of every kind) in *namespace* (empty: in all), or those of one set there."""

    kind: GroupKind | None
    namespace: str = ""
    set_id: str = ""


class Listed(Struct, frozen=True, dict=True):
    """The answer: objects by their metadata, whole only those of ``WHOLE`` kinds; and the kinds that could not be listed."""

    objects: tuple[Manifest, ...] = ()
    unseen: tuple[GroupKind, ...] = ()

    @functools.cached_property
    def by_owner(self) -> Mapping[str, Sequence[Manifest]]:
        """The objects that name an owner, by the uid of each: thousands may go at once, and each takes along a few of thousands."""
        found: dict[str, list[Manifest]] = {}
        for each in self.objects:
            for uid in _owners(each):
                found.setdefault(uid, []).append(each)
        return found


class Cascade(Struct):
    """What goes along with one object, each with the object that takes it.

    *lacking* are listings to be made before all of it is known; *uncounted* says what nobody listed of what goes for sure. Of
    what an object may own, what can't be listed is passed over: most own nothing there.
    """

    taken: dict[ObjectRef, tuple[Manifest, ObjectRef]] = field(default_factory=dict)
    lacking: set[Listing] = field(default_factory=set)
    uncounted: set[str] = field(default_factory=set)


def cascade_of(root: Manifest, listed: Mapping[Listing, Listed], live: Snapshot) -> Cascade:
    """Return what the deletion of *root* takes along, as far as *listed* and *live* show it."""
    found, queue = Cascade(), [root]
    gone = {_uid(root)}
    while queue:
        carrier = queue.pop(0)
        for each in (*_listed(carrier, listed, found, gone), *_owned(carrier, live)):
            ref = ObjectRef.of(each)
            if ref not in found.taken and _uid(each) not in gone and not _is_fleeting(each):
                found.taken[ref] = each, ObjectRef.of(carrier)
                gone.add(_uid(each))
                queue.append(each)
    return found


def _listed(carrier: Manifest, listed: Mapping[Listing, Listed], found: Cascade, gone: set[str]) -> Iterator[Manifest]:
    """Yield what lists show to go with *carrier*; note what they lack."""
    holds_all, places = _holds_all(carrier), _places(carrier)
    for listing in listings_of(carrier):
        answer = listed.get(listing)
        if answer is None:
            found.lacking.add(listing)
        unseen = answer.unseen if answer else (listing.kind or _ANYTHING,)
        if holds_all:
            found.uncounted.update(_placed(kind, listing) for kind in unseen)
        known = () if answer is None else answer.objects if holds_all else answer.by_owner.get(_uid(carrier), ())
        objects = [each for each in known if applyset.may_be_member(ObjectRef.of(each), places)]
        yield from (each for each in objects if _goes(each, listing, gone, all_of_it=holds_all))


def _owned(carrier: Manifest, live: Snapshot) -> Iterator[Manifest]:
    uid = _uid(carrier)
    return (stored.manifest() for stored in (live.owned_by(uid) if uid else ()))


def _goes(each: Manifest, listing: Listing, gone: set[str], *, all_of_it: bool) -> bool:
    if listing.set_id:
        return applyset.is_marked_by_us(each) and not MemberOptions.of(each).kept
    return all_of_it or gone.issuperset(_owners(each))  # it has owners, the carrier among them


def _owners(manifest: Manifest) -> set[str]:
    """Return the uids of all that an object names as its owners."""
    return {str(owner.get("uid") or "") for owner in manifest["metadata"].get("ownerReferences") or ()}


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
        return tuple(_listings_of_sync(carrier)) if _prunes(carrier) else ()
    if ref.group_kind == _STATEFUL_SET:
        return (Listing(_CLAIM, ref.namespace),)
    return (Listing(None, ref.namespace),) if ref.group not in _BUILT_IN else ()


def _holds_all(carrier: Manifest) -> bool:
    """Tell whether *carrier* takes along whatever its lists show, and not just what it owns."""
    return ObjectRef.of(carrier).group_kind in {NAMESPACE, CRD, SYNC.group_kind}


def _listings_of_crd(crd: Manifest) -> Iterator[Listing]:
    spec = crd.get("spec") or {}
    if kind := (spec.get("names") or {}).get("kind"):
        yield Listing(GroupKind(spec.get("group") or "", kind))


def _listings_of_sync(sync: Manifest) -> Iterator[Listing]:
    contents, set_id = applyset.Contents.recorded(sync), applyset.applyset_id(ObjectRef.of(sync))
    places = sorted(contents.namespaces) if len(contents.namespaces) <= _FEW_NAMESPACES else [""]
    return (Listing(kind, place, set_id) for kind in sorted(contents.kinds) for place in places)


def _places(carrier: Manifest) -> frozenset[str] | None:
    """Return the namespaces that what goes with *carrier* is in; None where it may be anywhere that a list shows."""
    is_sync = ObjectRef.of(carrier).group_kind == SYNC.group_kind
    return applyset.Contents.recorded(carrier).namespaces if is_sync else None


def _prunes(sync: Manifest) -> bool:
    """Tell whether the end of a Sync is the end of its members. A suspended one leaves them as they are."""
    spec = sync.get("spec") or {}
    return spec.get("deletionPolicy") == DeletionPolicy.PRUNE and not spec.get("suspend")


def _is_fleeting(manifest: Manifest) -> bool:
    """Tell whether an object comes and goes by itself, so that nobody misses it."""
    ref = ObjectRef.of(manifest)
    if ref.group_kind in FLEETING or (ref.group_kind, ref.name) in _DEFAULTS:
        return True
    controller = controller_of(manifest)
    group = str((controller or {}).get("apiVersion") or "").rpartition("/")[0]
    return controller is not None and group in _WORKLOAD_GROUPS and ref.group_kind != _CLAIM


def _uid(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("uid") or "")


def taken_along(roots: Iterable[ObjectRef], cascades: Iterable[Cascade]) -> tuple[ObjectRef, ...]:
    """Return all that goes with *roots* and isn't one of them, in order."""
    return tuple(sorted({below for cascade in cascades for below in cascade.taken}.difference(roots)))


def uncounted_in(cascades: Iterable[Cascade]) -> tuple[str, ...]:
    """Return all that could not be listed, in order."""
    return tuple(sorted({each for cascade in cascades for each in cascade.uncounted}))
