"""What a watch event means: which items it concerns, and what happened to them.

Vocabulary: an *item* is a Sync or a CR whose kind has a module, the things that a daemon works on. The *index* knows which
objects belong to which items; it is informed of Syncs and CRs as they come and go.

Pure: *before* and *after* are an object as it was and as it is, None where it wasn't or isn't there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import (
    APPROVED_PLAN,
    MEMBERS_FROM,
    MODULE_LABEL,
    PUSHED_AT,
    SYNC_REQUESTED_AT,
    names_of,
)
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.inputs import INSTANCE_LABEL, Context
from kubectl_reconcile.core.objects import (
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    annotations_of,
    condition_of,
    mapping_of,
    maps_in,
    metadata_of,
    number_of,
)
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.sync import Sync

_DEEPEST = 8
"""CRs above one another, at most: a circle of owners ends there."""


def is_asked(sync: Manifest) -> bool:
    """Tell whether somebody asked for a sync that wasn't answered yet."""
    asked = annotations_of(sync).get(SYNC_REQUESTED_AT)
    return bool(asked) and asked != mapping_of(sync.get("status")).get("lastHandledSyncAt")


def is_newly_set(annotation: str, before: Manifest | None, after: Manifest | None) -> bool:
    """Tell whether somebody just set an annotation to another value."""
    if before is None or after is None:
        return False
    was, noted = annotations_of(before), annotations_of(after)
    return any(noted.get(name) and noted.get(name) != was.get(name) for name in names_of(annotation))


def generation_of(manifest: Manifest | None) -> int:
    """Return how often the spec of an object has changed, 0 where there is none."""
    return number_of(metadata_of(manifest).get("generation")) or 0 if manifest else 0


def is_status_alone(before: Manifest | None, after: Manifest | None) -> bool:
    """Tell whether nothing but the status of an object changed, written through its subresource: that is nobody's drift."""
    if before is None or after is None or generation_of(before) != generation_of(after):
        return False
    return _without_status(before) == _without_status(after) and before.get("status") != after.get("status")


def _without_status(manifest: Manifest) -> dict[str, object]:
    """Return an object without its status, and what is noted of who wrote that; the time of any other write counts."""
    metadata = {key: value for key, value in metadata_of(manifest).items() if key != "resourceVersion"}
    managers = maps_in(metadata.get("managedFields"))
    metadata["managedFields"] = [each for each in managers if each.get("subresource") != "status"]
    return {key: value for key, value in manifest.items() if key not in {"status", "metadata"}} | {"metadata": metadata}


# --- CRDs ---------------------------------------------------------------------------------------------------------------


class CrdFacts(NamedTuple):
    """What of a CRD decides which kinds are served, and how; a status that tells anything else is no news."""

    generation: int = 0
    established: str = ""


def crd_facts(crd: Manifest | None) -> CrdFacts:
    """Return what decides which kinds a CRD has the server serve."""
    if crd is None:
        return CrdFacts()
    return CrdFacts(generation_of(crd), str((condition_of(crd, "Established") or {}).get("status") or ""))


def kind_of_crd(crd: Manifest) -> GroupKind:
    """Return the kind that a CRD defines."""
    spec = mapping_of(crd.get("spec"))
    return GroupKind(str(spec.get("group") or ""), str(mapping_of(spec.get("names")).get("kind") or ""))


def established_kinds(crd: Manifest | None) -> tuple[GroupVersionKind, ...]:
    """Return the kinds that the server promises by a CRD's condition Established."""
    if crd is None or crd_facts(crd).established != "True" or crd["metadata"].get("deletionTimestamp"):
        return ()
    spec = mapping_of(crd.get("spec"))
    group, kind = str(spec.get("group") or ""), str(mapping_of(spec.get("names")).get("kind") or "")
    versions = (str(version.get("name")) for version in maps_in(spec.get("versions")) if version.get("served"))
    return tuple(GroupVersionKind(group, version, kind) for version in versions)


# --- Syncs --------------------------------------------------------------------------------------------------------------


def sync_events(before: Manifest | None, after: Manifest) -> Iterator[on.Event]:
    """Yield what a watch event of a Sync that is there means for its state."""
    if is_newly_set(APPROVED_PLAN, before, after) or is_newly_set(MEMBERS_FROM, before, after):
        yield on.Approved()
    if is_newly_set(PUSHED_AT, before, after):
        yield on.Pushed()


def sync_priority(before: Manifest | None, after: Manifest) -> Priority | None:
    """Return why a Sync is to be looked at, None where its change is no reason: we write its status ourselves."""
    if is_asked(after) or (after["metadata"].get("deletionTimestamp") and _noted(before) != _noted(after)):
        return Priority.ASKED
    return Priority.PUSH if generation_of(before) != generation_of(after) else None


def _noted(sync: Manifest | None) -> list[object]:
    """Return what people and finalizers write of a Sync that is being deleted, the status left out."""
    metadata = metadata_of(sync) if sync else {}
    return [metadata.get(key) for key in ("deletionTimestamp", "generation", "annotations", "finalizers")]


# --- whose an object is -------------------------------------------------------------------------------------------------


class _Instance(NamedTuple):
    module: str
    namespace: str
    name: str


class ItemIndex(Struct):
    """Which Sync a set belongs to, and which CR a child does; *namespace* limits the CRs to it and to members of Syncs."""

    namespace: str = ""
    _sets: dict[str, ObjectRef] = field(default_factory=dict)
    _instances: dict[_Instance, ObjectRef] = field(default_factory=dict)
    _owners: dict[str, ObjectRef] = field(default_factory=dict)
    _here: dict[tuple[str, str], set[ObjectRef]] = field(default_factory=lambda: defaultdict(set))

    def __len__(self) -> int:
        return len(self._sets)

    def sync_came(self, manifest: Manifest) -> None:
        """Note a Sync, unless it can't be meant as it is written."""
        try:
            sync = Sync.of(manifest)
        except SyncSpecError:
            return
        self._sets[set_id_of(sync)] = sync.ref

    def cr_came(self, ref: ObjectRef, uid: str, module: Module, cr: Manifest) -> None:
        """Note a CR and the name under which its children know it."""
        self._instances[_instance(ref, module, cr)] = ref
        self._owners[uid] = ref
        self._here[module.name, ref.namespace].add(ref)

    def cr_went(self, ref: ObjectRef, uid: str, module: Module, cr: Manifest) -> None:
        """Forget a CR."""
        self._instances.pop(_instance(ref, module, cr), None)
        self._owners.pop(uid, None)
        here = self._here[module.name, ref.namespace]
        here.discard(ref)
        if not here:
            del self._here[module.name, ref.namespace]

    def looks_after(self, ref: ObjectRef, labels: Mapping[str, str]) -> bool:
        """Tell whether a CR is ours: a member of a Sync may be in any namespace, and all members share one watch."""
        return self.namespace in {"", ref.namespace} or labels.get(PART_OF, "") in self._sets

    def sync_of(self, labels: Mapping[str, str]) -> ObjectRef | None:
        """Return the Sync whose member an object with these labels is."""
        return self._sets.get(labels.get(PART_OF, ""))

    def cr_of(self, uid: str) -> ObjectRef | None:
        """Return the CR with this uid, None where none is known."""
        return self._owners.get(uid)

    def owners_of(self, ref: ObjectRef, labels: Mapping[str, str], controller_uid: str) -> frozenset[ObjectRef]:
        """Return the CRs that a child belongs to, by its labels and by its owner."""
        key = _Instance(labels.get(MODULE_LABEL, ""), ref.namespace, labels.get(INSTANCE_LABEL, ""))
        found = (self._instances.get(key), self._owners.get(controller_uid))
        return frozenset(each for each in found if each is not None)

    def readers_of(
        self, ref: ObjectRef, manifest: Callable[[], Manifest], modules: Iterable[Module],
        live: Callable[[ObjectRef], Manifest | None],
    ) -> Iterator[ObjectRef]:  # fmt: skip
        """Yield the CRs whose modules say, CR by CR, that they read this object."""
        for module in modules:
            for reads in module.reads:
                if reads.of is None or reads.gvk.group_kind != ref.group_kind:
                    continue
                for instance, reader in self._instances.items():
                    is_near = instance.module == module.name and instance.namespace in {"", ref.namespace}
                    cr = live(reader) if is_near else None
                    if cr is not None and reads.of(cr).matches(manifest()):
                        yield reader

    def reading_all(self, ref: ObjectRef, modules: Iterable[Module]) -> Iterator[ObjectRef]:
        """Yield the other CRs whose modules read all objects of this one's kind in its namespace."""
        for module in modules:
            here = self._here.get((module.name, ref.namespace))
            if here and any(each.whole_namespace and each.gvk.group_kind == ref.group_kind for each in module.reads):
                yield from sorted(here - {ref})

    def top_of(self, ref: ObjectRef, controller_uid: Callable[[ObjectRef], str]) -> ObjectRef:
        """Return the CR on top of a nested one, since its pass writes what is below; anything else is on its own."""
        for _ in range(_DEEPEST):
            above = self._owners.get(controller_uid(ref))
            if above is None:
                break
            ref = above
        return ref


def _instance(ref: ObjectRef, module: Module, cr: Manifest) -> _Instance:
    return _Instance(module.name, ref.namespace, Context(now="", module=module.name, cr=cr).name())
