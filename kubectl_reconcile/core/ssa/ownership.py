"""Who owns which fields of a live object, and what one apply makes of them: structured-merge-diff's merge/update.go.

Vocabulary: *ours* is what our manager applied to the object itself, *others* is everybody else. A
*takeover* makes other managers' entries ours by a JSON patch that is sent before the apply. Owners
*lapse* where the server will forget an entry that says nothing, or one of two that are the same.

Rules, in the server's order: merge (`typed_merge`), prune what we applied last and state no
longer, find the conflicts: fields of others that changed.

Pure: inputs are never mutated; what is known about owners is a value, made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.objects import FieldPath, Manifest, annotations_of, maps_in
from kubectl_reconcile.core.ssa.csa_upgrade import (
    LAST_APPLIED_NAME,
    TakeOver,
    handed_over,
    managers_to_take_over,
    renumbered_ports,
    taken_from,
    taken_over,
)
from kubectl_reconcile.core.ssa.defaulting import zero_value
from kubectl_reconcile.core.ssa.fieldset import FieldSet, Tree, children
from kubectl_reconcile.core.ssa.lookup import value_at
from kubectl_reconcile.core.ssa.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    STRIPPED,
    UPDATE,
    Entry,
    Owner,
    entry_of,
    owners_in,
    takeover_patch,
)
from kubectl_reconcile.core.ssa.schema import UNTYPED, Schema, Type
from kubectl_reconcile.core.ssa.typed import compare, fields_of, remove
from kubectl_reconcile.core.ssa.typed_merge import merge

_STATUS: Final = FieldSet.of([FieldPath.fields("status")])


class LiveObject(Struct, frozen=True):
    """A live object as an apply at one version reads it.

    *manifest* is as the server showed it; *values* is the same at the version that is sent, without
    managedFields. Owners at *versions* have field sets that can be compared with ours.
    """

    manifest: Manifest
    values: Manifest
    schema: Schema
    versions: frozenset[str]

    @classmethod
    def read(cls, live: Manifest, api_version: str, schema: Schema) -> LiveObject:
        """Return *live* as an apply at *api_version* reads it."""
        metadata = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
        values = {**live, "apiVersion": api_version, "metadata": metadata}
        return cls(live, values, schema, frozenset({api_version, *schema.same_versions}))

    @property
    def root(self) -> Type:
        """The type of the whole object."""
        return self.schema.root

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """The managedFields."""
        return list(maps_in(self.manifest["metadata"].get("managedFields")))

    def at(self, path: tuple[str, ...]) -> Any:
        """Return the value at *path*, ABSENT if there is none."""
        return value_at(self.values, path, self.root)

    def considered(self, fields: FieldSet) -> FieldSet:
        """Return *fields* without those that the server resets on an apply to the object itself."""
        return fields.recursive_difference(_STATUS) if self.schema.has_status else fields

    def stated_by(self, manifest: Manifest) -> FieldSet:
        """Return the fields that would be ours had we applied *manifest*."""
        return self.considered(fields_of(manifest, self.root)) - STRIPPED


class Ownership(Struct, frozen=True):
    """Whose fields are whose as an apply will find them, a takeover done.

    *found* are the others before ports were taken back: who drifted what. *adopts* says that a
    takeover makes the object ours. *doubt* says why only the server can tell, "" if we can too.
    """

    manager: str
    ours: Owner | None
    others: tuple[Owner, ...]
    found: tuple[Owner, ...]
    takeover: tuple[Mapping[str, Any], ...] = ()
    adopts: bool = False
    lapses: bool = False
    doubt: str = ""

    @property
    def last(self) -> FieldSet:
        """The fields that we applied last."""
        return self.ours.fields if self.ours is not None else FieldSet()

    def covers(self, path: tuple[str, ...]) -> bool:
        """Return whether *path*, or what it is part of, is ours."""
        return self.last.covers(path)

    def latest_other(self, path: tuple[str, ...]) -> Owner | None:
        """Return who else owned *path* or something below it, the latest first."""
        found = [owner for owner in self.found if owner.fields.covers(path) or owner.fields.under(path)]
        return max(found, key=lambda owner: owner.time, default=None)


class ApplyOutcome(Struct, frozen=True):
    """What the server makes of one intent, by force: the object, our fields, and whose fields that changes."""

    merged: Any
    owned: FieldSet
    conflicts: tuple[tuple[Owner, FieldSet], ...]

    @property
    def contested(self) -> FieldSet:
        """The fields in conflict."""
        return FieldSet.of(path for _, fields in self.conflicts for path in fields)


# --- before the apply -----------------------------------------------------------------------------


def ownership_of(
    live: LiveObject,
    manager: str,
    take_over: TakeOver,
    *,
    adopting: bool | None = None,
    recalled: Manifest | None = None,
) -> Ownership:
    """Return the owners of *live* as an apply of *manager* will find them, after a takeover if one is due.

    *recalled* is what *manager* applied before, as far as that is known: where a member isn't recorded to be the manager's any more, or nobody's, it is recorded
    again. Else nothing that leaves Git would ever go; where all owners were lost, the server would make up one of all that is there.
    """
    doubt = _doubt_of(live, manager)
    entries = live.entries
    takeover: tuple[Mapping[str, Any], ...] = ()
    owners: tuple[Owner, ...] = ()
    try:
        if managers := managers_to_take_over(live.manifest, manager, take_over, adopting=adopting):
            entries = taken_over(live.manifest, managers, manager)
            takeover = takeover_patch(live.manifest, entries)
        elif adopting is False and recalled is not None and entry_of(live.manifest, manager) is None:
            entries = [*entries, _recalled(live, manager, recalled)]
            takeover = takeover_patch(live.manifest, entries)
        owners = owners_in(entries)
    except (ValueError, KeyError, TypeError) as problem:
        doubt = doubt or f"its managedFields can't be read: {problem}"
    lapses = len(owners) < len(live.entries)
    if not owners:
        owners = (_before_first_apply(live),)
        lapses = bool(owners[0].fields)
    ours, others = _parted(live, manager, owners)
    return Ownership(manager, ours, others, others, takeover, bool(takeover), lapses, doubt)


def _recalled(live: LiveObject, manager: str, applied: Manifest) -> Entry:
    """Return the entry that says again that *manager* applied of *live* what is in *applied*."""
    fields = live.stated_by(applied) & fields_of(live.values, live.root)
    return {
        "manager": manager,
        "operation": APPLY,
        "apiVersion": live.values["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields.to_wire(),
    }


def _doubt_of(live: LiveObject, manager: str) -> str:
    """Return what leaves the whole merge to the server, "" if nothing does."""
    if not live.schema.known:
        return "the kind's schema is unknown"
    if live.manifest["apiVersion"] not in live.versions:
        return f"live was read at {live.manifest['apiVersion']}, which only the server can convert"
    if manager == "kubectl" and LAST_APPLIED_NAME in annotations_of(live.manifest):
        return "the server has rules of its own for kubectl and its last-applied annotation"
    return ""


def _parted(live: LiveObject, manager: str, owners: Iterable[Owner]) -> tuple[Owner | None, tuple[Owner, ...]]:
    """Return what we applied, and what everybody else owns."""
    owners = tuple(replace(owner, fields=reconciled(owner.fields, live.root)) for owner in owners)
    ours = next((owner for owner in owners if owner.is_(manager)), None)
    return ours, tuple(owner for owner in owners if owner is not ours)


def _before_first_apply(live: LiveObject) -> Owner:
    """Return the owner that the server makes up for an object that nobody tracks."""
    empty = {} if live.schema.is_custom else zero_value(live.root, live.values)
    fields = live.considered(compare(empty, live.values, live.root).changed) - STRIPPED
    return Owner(BEFORE_FIRST_APPLY, UPDATE, "", live.manifest["apiVersion"], "", fields)


def with_ports_taken_back(owners: Ownership, live: LiveObject, intent: Manifest) -> Ownership:
    """Return *owners* with the ports that somebody renumbered by hand made ours, so that they go with the apply.

    What another manager applied stays. See `csa_upgrade` for why.
    """
    if live.schema.is_custom or owners.doubt or owners.adopts or owners.ours is None:
        return owners
    if owners.ours.api_version not in live.versions:
        return owners
    appliers = [owner for owner in owners.others if owner.operation == APPLY]
    items = FieldSet.of(
        path
        for path in renumbered_ports(intent, live.values, live.root)
        if not any(path in owner.fields or owner.fields.under(path) for owner in appliers)
    )
    if not items:
        return owners
    entries = handed_over(live.entries, items, owners.manager)
    ours, others = _parted(live, owners.manager, owners_in(entries))
    return replace(owners, ours=ours, others=others, takeover=takeover_patch(live.manifest, entries))


class Handover(Struct, frozen=True):
    """What changes hands by one apply: managers taken over, fields that become ours, and those that no longer are."""

    taken_from: tuple[str, ...]
    gained: FieldSet
    given_up: FieldSet


def handover_of(
    live: Manifest, intent: Manifest, schema: Schema, manager: str, takeover: Sequence[Mapping[str, Any]]
) -> Handover:
    """Return what changes hands when *manager* sends *takeover* and then *intent*.

    Raises:
        ValueError: the managedFields of *live* can't be read.
    """
    entry = entry_of(live, manager)
    before = FieldSet.of_wire(entry["fieldsV1"]) if entry is not None else FieldSet()
    after = LiveObject.read(live, intent["apiVersion"], schema).stated_by(intent)
    return Handover(taken_from(live, takeover), (after - before).leaves(), (before - after).leaves())


# --- the apply: merge, prune, conflicts -------------------------------------------------------------


def applied(intent: Manifest, live: LiveObject, owners: Ownership) -> ApplyOutcome:
    """Return what a forced apply of *intent* makes of *live*."""
    merged = merge(live.values, intent, live.root)
    owned = live.considered(fields_of(intent, live.root))
    if owners.last:  # also where all of them are stated again: see _pruned
        merged = _pruned(merged, owned, owners, live.root)
    changed = live.considered(compare(live.values, merged, live.root).changed)
    clashes = ((owner, owner.fields & changed) for owner in owners.others)
    return ApplyOutcome(merged, owned - STRIPPED, tuple((owner, fields) for owner, fields in clashes if fields))


def _pruned(merged: Any, owned: FieldSet, owners: Ownership, of: Type) -> Any:
    """Return *merged* without the fields that we applied last and that neither *owned* nor another owner holds.

    Removing is done by whole subtrees (a named parent of a removed field goes too), so two steps
    add back: first what somebody owns, then what nobody does and we never applied. A struct
    that we state empty goes, too, if all that nobody owns in it is an empty list.
    """
    last = with_named_fields(owners.last, of)
    held = owned
    for owner in owners.others:
        held |= owner.fields
    everything = with_named_fields(fields_of(merged, of), of)
    kept = with_named_fields(fields_of(remove(merged, last, of), of), of) | with_named_fields(held, of)
    pruned = remove(merged, everything - kept, of)
    return remove(merged, (everything - with_named_fields(fields_of(pruned, of), of)) & last, of)


# --- field sets under a schema --------------------------------------------------------------------


def with_named_fields(fields: FieldSet, of: Type) -> FieldSet:
    """Return *fields* and every declared field above one of them, so that parents can be removed.

    The rule is fieldpath/set.go's ``EnsureNamedFieldsAreMembers``.
    """
    return FieldSet(_named(fields.tree, of))


def _named(tree: Tree, of: Type | None) -> Tree:
    out: Tree = {".": {}} if "." in tree else {}
    for element, node in tree.items():
        if element == ".":
            continue
        below: Type | None = None
        declared = False
        if of is not None and of.map is not None and element.startswith("f:"):
            record = of.map.field(element[2:])
            declared = record is not None
            below = record.type if record is not None else of.map.other
        elif of is not None and of.list is not None and element.startswith("k:"):
            below = of.list.item
        inner = _named(node, below)
        out[element] = {".": {}, **inner} if declared and inner and "." not in inner else inner
    return out


def reconciled(fields: FieldSet, of: Type) -> FieldSet:
    """Return *fields* with paths below what the schema has since made atomic replaced by that atom.

    The rule is typed/reconcile_schema.go's.
    """
    tree = _reconciled(fields.tree, of)
    return fields if tree is fields.tree else FieldSet(tree)


def _reconciled(tree: Tree, of: Type | None) -> Tree:
    if of is None or not children(tree):
        return tree
    if of.map is not None:
        if _is_deduced(of):
            return tree
        if of.map.atomic:
            return {}
    elif not of.scalar and of.list is not None and of.list.atomic:
        return {}
    out = {element: _reconciled(node, _below(element, of)) for element, node in tree.items()}
    return tree if all(out[element] is tree[element] for element in tree) else out


def _is_deduced(of: Type) -> bool:
    """Return whether nothing describes the map *of*: such maps were never anything but granular."""
    other = of.map.other if of.map is not None and not of.map.names else None
    return of is not UNTYPED and other is not None and other.scalar == "untyped"


def _below(element: str, of: Type) -> Type | None:
    if of.map is not None:
        return of.map.type_at(element[2:]) if element.startswith("f:") else of.map.other
    return of.list.item if not of.scalar and of.list is not None else None
