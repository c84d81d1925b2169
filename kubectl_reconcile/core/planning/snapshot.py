"""What the planner can ask about the cluster: an immutable view of live objects.

Asking it costs no request, and it never changes under the planner's feet. The caches of a running
daemon are one such view; a handful of objects in a test is another; two can be laid over each other.

Pure: views on values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Protocol, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, controller_of, labels_of
from kubectl_reconcile.core.resources import applyset

Moment: TypeAlias = Hashable
"""What tells one view of something that changes from a later one; only the view itself knows how."""


class Stored(Protocol):
    """One live object, as caches keep it: cheap facts at hand, the whole parsed on demand."""

    @property
    def ref(self) -> ObjectRef:
        """Which object this is."""

    @property
    def uid(self) -> str:
        """Tells it from any other object that ever had this name."""

    @property
    def resource_version(self) -> str:
        """Changes with every write to it."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""

    @property
    def version(self) -> str:
        """What tells this very state of it from all others; empty where nothing does."""

    def manifest(self) -> Manifest:
        """Return the whole object, parsed."""


class Snapshot(Protocol):
    """Immutable view of live objects."""

    def stored(self, ref: ObjectRef) -> Stored | None:
        """Return the live object, or None."""

    def owned_by(self, uid: str) -> Sequence[Stored]:
        """Return the objects whose controller has this uid."""

    def labelled(self, key: str, value: str) -> Sequence[Stored]:
        """Return the objects that carry a label with this value."""

    def of_kind(self, kind: GroupKind, namespace: str) -> Sequence[Stored]:
        """Return the objects of *kind* in *namespace*, by name."""

    def moment(self, kinds: Iterable[GroupKind]) -> Moment | None:
        """Return what a later view of the same is compared with, as far as objects of *kinds* go; None where it can't be."""

    def changed_since(self, moment: Moment) -> Collection[ObjectRef] | None:
        """Return the objects that may not be as they were at that moment, and no fewer; None where all may be.

        Objects of other kinds than the moment is about may be left out.
        """


class Whole(Struct, frozen=True):
    """A live object kept as it is."""

    ref: ObjectRef
    body: Manifest

    @property
    def uid(self) -> str:
        """Tells it from any other object that ever had this name."""
        return self.body["metadata"].get("uid") or ""

    @property
    def resource_version(self) -> str:
        """Changes with every write to it."""
        return self.body["metadata"].get("resourceVersion") or ""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return labels_of(self.body)

    @property
    def version(self) -> str:
        """Nothing: it may be as a plan leaves it, which has no version yet."""
        return ""

    def manifest(self) -> Manifest:
        """Return the object."""
        return self.body


def members_in(live: Snapshot, set_id: str, places: Collection[str] | None) -> list[Stored]:
    """Return the live members of a set that may have some in *places*: all that the label says, where it may say so."""
    found = live.labelled(applyset.PART_OF, set_id)
    spread = set(map(attrgetter("ref.namespace"), found))
    elsewhere = {place for place in spread if not applyset.may_be_in(place, places)}
    return [each for each in found if each.ref.namespace not in elsewhere] if elsewhere else list(found)


def is_marked(live: Snapshot, set_id: str, ref: ObjectRef) -> bool:
    """Tell whether a live object carries the mark of a set's members."""
    stored = live.stored(ref)
    return stored is not None and stored.labels.get(applyset.PART_OF) == set_id


class Objects:
    """A view of just these objects."""

    __slots__ = ("_by_label", "_by_owner", "_by_ref")

    def __init__(self, manifests: Iterable[Manifest] = ()) -> None:
        self._by_ref = {(ref := ObjectRef.of(each)): Whole(ref, each) for each in manifests}
        self._by_owner: dict[str, list[Whole]] = defaultdict(list)
        self._by_label: dict[tuple[str, str], list[Whole]] = defaultdict(list)
        for _, whole in sorted(self._by_ref.items()):
            if controller := controller_of(whole.body):
                self._by_owner[str(controller.get("uid") or "")].append(whole)
            for label in labels_of(whole.body).items():
                self._by_label[label].append(whole)

    def stored(self, ref: ObjectRef) -> Stored | None:
        """Return the live object, or None."""
        return self._by_ref.get(ref)

    def owned_by(self, uid: str) -> Sequence[Stored]:
        """Return the objects whose controller has this uid."""
        return tuple(self._by_owner.get(uid, ()))

    def labelled(self, key: str, value: str) -> Sequence[Stored]:
        """Return the objects that carry a label with this value."""
        return tuple(self._by_label.get((key, value), ()))

    def of_kind(self, kind: GroupKind, namespace: str) -> Sequence[Stored]:
        """Return the objects of *kind* in *namespace*, by name."""
        refs = sorted(each for each in self._by_ref if each.group_kind == kind and each.namespace == namespace)
        return tuple(self._by_ref[each] for each in refs)

    def moment(self, kinds: Iterable[GroupKind]) -> Moment | None:  # noqa: ARG002 - of all kinds
        """Return this very view: it never changes."""
        return self

    def changed_since(self, moment: Moment) -> Collection[ObjectRef] | None:
        """Return the objects that aren't the same in another view of just some objects."""
        if not isinstance(moment, Objects):
            return None
        return {ref for ref in {*self.refs(), *moment.refs()} if self.stored(ref) != moment.stored(ref)}

    def joined(self, others: Objects) -> Objects:
        """Return these objects and *others*."""
        found = (some.stored(ref) for some in (self, others) for ref in some.refs())
        return Objects(each.manifest() for each in found if each is not None)

    def refs(self) -> Collection[ObjectRef]:
        """Return which objects these are."""
        return self._by_ref.keys()

    def __len__(self) -> int:
        return len(self._by_ref)


class Overlay(Struct, frozen=True):
    """A view, and objects found besides; the view's word counts where both know an object."""

    below: Snapshot
    found: Objects

    def stored(self, ref: ObjectRef) -> Stored | None:
        """Return the live object, or None."""
        return self.below.stored(ref) or self.found.stored(ref)

    def owned_by(self, uid: str) -> Sequence[Stored]:
        """Return the objects whose controller has this uid."""
        return self._joined(self.below.owned_by(uid), self.found.owned_by(uid))

    def labelled(self, key: str, value: str) -> Sequence[Stored]:
        """Return the objects that carry a label with this value."""
        return self._joined(self.below.labelled(key, value), self.found.labelled(key, value))

    def of_kind(self, kind: GroupKind, namespace: str) -> Sequence[Stored]:
        """Return the objects of *kind* in *namespace*."""
        return self._joined(self.below.of_kind(kind, namespace), self.found.of_kind(kind, namespace))

    def moment(self, kinds: Iterable[GroupKind]) -> Moment | None:  # noqa: ARG002 - of none
        """Return nothing: what was found besides isn't looked for in a later view."""
        return None

    def changed_since(self, moment: Moment) -> Collection[ObjectRef] | None:
        """Return what may not be as it was in the view below, and all that was found besides."""
        changed = self.below.changed_since(moment)
        return None if changed is None else {*changed, *self.found.refs()}

    def _joined(self, below: Sequence[Stored], found: Sequence[Stored]) -> Sequence[Stored]:
        new = [each for each in found if self.below.stored(each.ref) is None]
        return (*below, *new) if new else below


class OwnSet(Struct, frozen=True):
    """What one set may see of a view that many share: its members, by the label that they carry, and what those own.

    Whoever watches on behalf of many sees more than each of them may. What else a set names is asked for as its account.
    """

    below: Snapshot
    key: str
    value: str

    def stored(self, ref: ObjectRef) -> Stored | None:
        """Return the live member, or None."""
        found = self.below.stored(ref)
        return found if found is not None and found.labels.get(self.key) == self.value else None

    def owned_by(self, uid: str) -> Sequence[Stored]:
        """Return the objects whose controller has this uid."""
        return self.below.owned_by(uid)

    def labelled(self, key: str, value: str) -> Sequence[Stored]:
        """Return the members that carry a label with this value."""
        found = self.below.labelled(key, value)
        if key == self.key:
            return found if value == self.value else ()
        return tuple(each for each in found if each.labels.get(self.key) == self.value)

    def of_kind(self, kind: GroupKind, namespace: str) -> Sequence[Stored]:
        """Return the members of *kind* in *namespace*."""
        return tuple(each for each in self.below.of_kind(kind, namespace) if each.labels.get(self.key) == self.value)

    def moment(self, kinds: Iterable[GroupKind]) -> Moment | None:
        """Return what a later view of the same set is compared with."""
        return self.below.moment(kinds)

    def changed_since(self, moment: Moment) -> Collection[ObjectRef] | None:
        """Return what may not be as it was, of this set and of others."""
        return self.below.changed_since(moment)
