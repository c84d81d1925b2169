"""Three-way merge of one Kubernetes object: the API server's server-side apply, without a request.

Vocabulary follows KEP-555. *Desired* is what Git asks for now, *live* is what the cluster holds,
with its owners in ``metadata.managedFields``. The *base* is what we applied last: its fields are
our own managedFields entry, its values (where known) the manifest at the revision applied last.
The *intent* is what we send: desired without what the server ignores and what a policy yields.

Rules, in the server's order:

1. *merge*: the intent goes into live; nothing is removed, stated leaves win.
2. *prune*: a field that we applied last and no longer state goes, unless another manager owns
   it too; a parent that is left empty goes with it.
3. *conflicts*: a field that another manager owns and that changes is a conflict. An apply by
   force takes it from them. The same value is shared, without a conflict.
4. *storage*: what comes out is defaulted, pruned and respelled (`storage.settled`).

The verdict is *same* only if neither a value nor an owner would change. It is never guessed: what
the schema, the versions or the server's Go defaults leave open is *unsure*, and one dry-run of
the server decides.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from kubectl_reconcile.core.objects import FIELD_MANAGER, FieldPath, GroupKind, Manifest, annotations_of
from kubectl_reconcile.core.ssa.csa_upgrade import (
    CLIENT_SIDE_MANAGERS,
    LAST_APPLIED_NAME,
    handed_over,
    managers_to_take_over,
    renumbered_ports,
    taken_over,
    takeover_patch,
)
from kubectl_reconcile.core.ssa.defaulting import settled, softly_same, zero_value
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.lookup import (
    Difference,
    differences,
    extract,
    leaves_of,
    left_out,
    struct_field_at,
    value_at,
)
from kubectl_reconcile.core.ssa.managed_fields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    IGNORED_METADATA,
    STRIPPED,
    UPDATE,
    Owner,
    entry_of,
    owners_in,
    repeats_an_owner,
)
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.core.ssa.typed import (
    ABSENT,
    MergeError,
    compare,
    fields_of,
    merge,
    reconciled,
    remove,
    validate,
    with_named_fields,
)
from kubectl_reconcile.core.ssa.unchanged import is_unchanged
from kubectl_reconcile.core.ssa.values import is_zero, same

__all__ = [
    "ConflictPolicy",
    "FieldChange",
    "FieldConflict",
    "IgnoreRule",
    "Merge",
    "MergeError",
    "Reason",
    "Verdict",
    "three_way",
]


class ConflictPolicy(StrEnum):
    """What becomes of a field that another manager owns and Git wants otherwise."""

    OVERRIDE = "override"
    """Git wins: the apply takes the field by force, and the loser is named."""
    YIELD = "yield"
    """The owner keeps it: the field is left out of what we send (an autoscaler's replicas)."""
    FAIL = "fail"
    """Nobody wins: the apply isn't forced, so the server refuses the object."""


class Reason(StrEnum):
    """Why a field changes."""

    GIT = "git"
    """Git asks for something else than we applied last."""
    DRIFT = "drift"
    """Somebody changed it in the cluster; Git still asks for what we applied last."""
    BOTH = "both"
    """Git asks for something else, and somebody changed it in the cluster too."""
    ADOPT = "adopt"
    """We never applied this object before."""


class Verdict(StrEnum):
    """Whether an apply would change the object."""

    SAME = "same"
    """Neither a value nor an owner would change."""
    DIFFERENT = "different"
    """A value or an owner would change."""
    UNSURE = "unsure"
    """Only the server can tell: ask it for a dry-run."""


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One place that an apply changes; *before* or *after* is None where it is added or removed.

    *manager*, *operation* and *time* say who drifted it; *commit* and its *author* are for the caller to fill in.
    """

    path: FieldPath
    op: str
    before: Any
    after: Any
    reason: Reason
    manager: str = ""
    time: str = ""
    commit: str = ""
    author: str = ""
    operation: str = ""


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that *manager* owns and that we want otherwise; None where a side doesn't state it."""

    path: FieldPath
    manager: str
    live: Any
    desired: Any


@dataclass(frozen=True, slots=True)
class Merge:
    """What an apply would do.

    *merged* is the object as the server will hold it, *intent* the body to send, *owned* the
    fields that will be ours. *takeover* is a JSON patch to send before the apply, empty if none
    is needed. *doubt* says why the verdict is unsure.
    """

    merged: Manifest
    intent: Manifest
    changes: tuple[FieldChange, ...]
    conflicts: tuple[FieldConflict, ...]
    verdict: Verdict
    owned: FieldSet = field(default_factory=FieldSet)
    takeover: tuple[Mapping[str, Any], ...] = ()
    doubt: str = ""


def three_way(
    *,
    desired: Manifest,
    live: Manifest | None,
    schema: Schema,
    manager: str = FIELD_MANAGER,
    base: Manifest | None = None,
    policy: ConflictPolicy = ConflictPolicy.OVERRIDE,
    ignores: Sequence[IgnoreRule] = (),
    client_side: Collection[str] = CLIENT_SIDE_MANAGERS,
) -> Merge:
    """Say what applying *desired* over *live* as *manager* would do.

    *live* None is a create. *base* is the manifest that the last apply of this object sent;
    without it the reasons are coarser, the merge is the same. *ignores* leave single fields as
    they are live, whatever *policy* says; *client_side* names managers to take over at first.

    Raises:
        MergeError: the server must refuse *desired*: a field that the schema doesn't know, a value
            of the wrong type, two list items with the same key.
    """
    intent = stated(desired, schema)
    if live is None:
        return _create(intent, schema)
    entry = entry_of(live, manager)
    if (
        entry is not None
        and schema.known
        and not ignores
        and entry["apiVersion"] == intent["apiVersion"]
        and is_unchanged(intent, live, entry["fieldsV1"], schema)
        and not repeats_an_owner(live)
        and not managers_to_take_over(live, manager, client_side)
    ):
        return Merge(live, intent, (), (), Verdict.SAME, FieldSet(entry["fieldsV1"]))
    try:
        return _Apply(intent["apiVersion"], schema, manager, live, base, client_side).decide(intent, policy, ignores)
    except MergeError:
        raise
    except ValueError as problem:  # live isn't what its schema says: what the server makes of that is its secret
        return Merge(live, intent, (), (), Verdict.UNSURE, doubt=f"live doesn't fit its schema: {problem}")


def stated(desired: Manifest, schema: Schema) -> Manifest:
    """Return *desired* without what the server ignores: its own metadata, and status where that is a subresource."""
    metadata = desired.get("metadata") or {}
    if schema.has_status and "status" in desired:
        desired = {name: value for name, value in desired.items() if name != "status"}
    if any(name in metadata for name in IGNORED_METADATA):
        kept = {name: value for name, value in metadata.items() if name not in IGNORED_METADATA}
        desired = {**desired, "metadata": kept}
    return desired


def _create(intent: Manifest, schema: Schema) -> Merge:
    if schema.known:
        validate(intent, schema.root)
    merged = settled(intent, schema)
    owned = fields_of(intent, schema.root) - STRIPPED
    leaves = ((FieldPath(path), value) for path, value in leaves_of(merged, schema.root))
    changes = tuple(FieldChange(path, "add", None, value, Reason.GIT) for path, value in leaves if path not in STRIPPED)
    return Merge(merged, intent, changes, (), Verdict.DIFFERENT, owned)


def _or_none(value: Any) -> Any:
    return None if value is ABSENT else value


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What the server makes of one intent."""

    merged: Any
    owned: FieldSet
    conflicts: tuple[tuple[Owner, FieldSet], ...]


class _Apply:
    """One apply over a live object: its owners as they will be found, and the server's rules."""

    def __init__(
        self,
        api_version: str,
        schema: Schema,
        manager: str,
        live: Manifest,
        base: Manifest | None,
        client_side: Collection[str],
    ) -> None:
        """Read *live* at *api_version* and its owners, after a takeover if one is due."""
        self.schema, self.root, self.manager = schema, schema.root, manager
        self.live = live
        self.base = stated(base, schema) if base is not None else None
        metadata = {name: value for name, value in live["metadata"].items() if name != "managedFields"}
        self.values: Manifest = {**live, "apiVersion": api_version, "metadata": metadata}
        self.versions = {api_version, *schema.same_versions}
        self.doubt = self._doubt()
        self.takeover: tuple[Mapping[str, Any], ...] = ()
        self.adopts = self.owners_lapse = False
        self.ours, self.others = self._owners(client_side)
        self.found = self.others

    def _doubt(self) -> str:
        """Return what leaves the whole merge to the server, "" if nothing does."""
        if not self.schema.known:
            return "the kind's schema is unknown"
        if self.live["apiVersion"] not in self.versions:
            return f"live was read at {self.live['apiVersion']}, which only the server can convert"
        if self.manager == "kubectl" and LAST_APPLIED_NAME in annotations_of(self.live):
            return "the server has rules of its own for kubectl and its last-applied annotation"
        return ""

    # --- owners --------------------------------------------------------------------------------

    def _owners(self, client_side: Collection[str]) -> tuple[Owner | None, tuple[Owner, ...]]:
        try:
            managers = managers_to_take_over(self.live, self.manager, client_side)
            entries = self.live["metadata"].get("managedFields") or []
            if managers:
                entries = taken_over(self.live, managers, self.manager)
                self.takeover, self.adopts = takeover_patch(self.live, entries), True
            owners = owners_in(entries)
        except (ValueError, KeyError, TypeError) as problem:
            self.doubt = self.doubt or f"its managedFields can't be read: {problem}"
            owners = ()
        self.owners_lapse = len(owners) < len(self.live["metadata"].get("managedFields") or ())
        if not owners:
            owners = (self._before_first_apply(),)
            self.owners_lapse = bool(owners[0].fields)
        return self._parted(owners)

    def _parted(self, owners: Sequence[Owner]) -> tuple[Owner | None, tuple[Owner, ...]]:
        """Return what we applied, and what everybody else owns."""
        owners = tuple(replace(owner, fields=reconciled(owner.fields, self.root)) for owner in owners)
        ours = next((owner for owner in owners if owner.is_(self.manager)), None)
        return ours, tuple(owner for owner in owners if owner is not ours)

    def _take_back_ports(self, intent: Manifest) -> None:
        """Have the ports that somebody renumbered by hand go with the apply; what another manager applied stays."""
        if self.schema.is_custom or self.doubt or self.adopts or self.ours is None:
            return
        if self.ours.api_version not in self.versions:
            return
        appliers = [owner for owner in self.others if owner.operation == APPLY]
        items = FieldSet.of(
            path
            for path in renumbered_ports(intent, self.values, self.root)
            if not any(path in owner.fields or owner.fields.under(path) for owner in appliers)
        )
        if items:
            entries = handed_over(self.live["metadata"]["managedFields"], items, self.manager)
            self.takeover = takeover_patch(self.live, entries)
            self.ours, self.others = self._parted(owners_in(entries))

    def _before_first_apply(self) -> Owner:
        """Return the owner that the server makes up for an object that nobody tracks."""
        empty = {} if self.schema.is_custom else zero_value(self.root, self.values)
        fields = self._heeded(compare(empty, self.values, self.root).changed) - STRIPPED
        return Owner(BEFORE_FIRST_APPLY, UPDATE, "", self.live["apiVersion"], "", fields)

    def _heeded(self, fields: FieldSet) -> FieldSet:
        """Return *fields* without those that the server resets on an apply to the object itself."""
        return fields.recursive_difference(_STATUS) if self.schema.has_status else fields

    # --- the apply: merge, prune, conflicts -------------------------------------------------------

    def run(self, intent: Manifest) -> _Outcome:
        """Return what a forced apply of *intent* makes of the object."""
        merged = merge(self.values, intent, self.root)
        owned = self._heeded(fields_of(intent, self.root))
        if self.ours is not None and self.ours.fields:  # also where all of them are stated again: see _pruned
            merged = self._pruned(merged, owned, self.ours.fields)
        changed = self._heeded(compare(self.values, merged, self.root).changed)
        clashes = ((owner, owner.fields & changed) for owner in self.others)
        return _Outcome(merged, owned - STRIPPED, tuple((owner, fields) for owner, fields in clashes if fields))

    def _pruned(self, merged: Any, owned: FieldSet, last: FieldSet) -> Any:
        """Return *merged* without the fields of *last* that neither *owned* nor another owner holds.

        Removing is done by whole subtrees (a named parent of a removed field goes too), so two steps
        add back: first what somebody owns, then what nobody does and we never applied. A struct
        that we state empty goes, too, if all that nobody owns in it is an empty list.
        """
        of = self.root
        last = with_named_fields(last, of)
        held = owned
        for owner in self.others:
            held |= owner.fields
        everything = with_named_fields(fields_of(merged, of), of)
        kept = with_named_fields(fields_of(remove(merged, last, of), of), of) | with_named_fields(held, of)
        pruned = remove(merged, everything - kept, of)
        return remove(merged, (everything - with_named_fields(fields_of(pruned, of), of)) & last, of)

    # --- policies ---------------------------------------------------------------------------------

    def decide(self, intent: Manifest, policy: ConflictPolicy, ignores: Sequence[IgnoreRule]) -> Merge:
        """Return the merge of *intent*, fields yielded as *policy* and *ignores* say.

        Under FAIL it is what a forced apply would give; the conflicts say why the server will refuse.
        """
        if self.schema.known:
            validate(intent, self.root)
        if ignores:
            intent = self._without_ignored(intent, ignores)
        if policy is ConflictPolicy.OVERRIDE:
            self._take_back_ports(intent)
        outcome = self.run(intent)
        conflicts = self._conflicts(outcome, intent)
        if policy is ConflictPolicy.YIELD:
            rounds = 0
            while outcome.conflicts and rounds < _MOST_ROUNDS:
                intent = self._without(intent, FieldSet.of(path for _, fields in outcome.conflicts for path in fields))
                outcome, rounds = self.run(intent), rounds + 1
        return self._judged(intent, outcome, conflicts)

    def _conflicts(self, outcome: _Outcome, intent: Manifest) -> tuple[FieldConflict, ...]:
        return tuple(
            FieldConflict(path, owner.manager, _or_none(self._at(self.values, path)), _or_none(self._at(intent, path)))
            for owner, fields in outcome.conflicts
            for path in fields
        )

    def _without(self, intent: Manifest, fields: FieldSet) -> Manifest:
        """Return *intent* without *fields*, its identity kept."""
        left = left_out(intent, fields, self.root)
        identity = {name: intent["metadata"][name] for name in ("name", "namespace") if name in intent["metadata"]}
        metadata = {**identity, **(left.get("metadata") or {})}
        return {"apiVersion": intent["apiVersion"], "kind": intent["kind"], **left, "metadata": metadata}

    def _without_ignored(self, intent: Manifest, ignores: Sequence[IgnoreRule]) -> Manifest:
        """Leave the ignored fields as they are live.

        Others' fields are simply left out. What only we own must be stated, at its live value, or
        the server would take our silence for a wish to remove it.
        """
        stated_fields = fields_of(intent, self.root) - STRIPPED
        ours = self.ours.fields if self.ours is not None else FieldSet()
        ignored = [path for path in stated_fields.leaves() | ours.leaves() if self._is_ignored(path, ignores)]
        if not ignored:
            return intent
        left = self._without(intent, FieldSet.of(ignored))
        kept = [path for path in ignored if self._falls_to_us(path)]
        held = extract(self.values, FieldSet.of(kept), self.root) if kept else ABSENT
        restored: Manifest = left if held is ABSENT else merge(held, left, self.root)
        return restored

    def _falls_to_us(self, path: FieldPath) -> bool:
        """Return whether our silence would remove *path*: it, its container or something in it is ours, and nobody else's."""
        ours = self.ours.fields if self.ours is not None else FieldSet()
        is_ours = any(path[:depth] in ours for depth in range(1, len(path) + 1)) or bool(ours.under(path))
        return is_ours and not any(path in owner.fields for owner in self.others)

    def _is_ignored(self, path: FieldPath, ignores: Sequence[IgnoreRule]) -> bool:
        stored_at = FieldPath(("f:data", *path[1:])) if self._is_string_data(path) else path
        return any(
            (rule.matches(path) or rule.matches(stored_at))
            and (
                not rule.manager or any(path in owner.fields for owner in self.others if owner.manager == rule.manager)
            )
            for rule in ignores
        )

    def _is_string_data(self, path: FieldPath) -> bool:
        return self.schema.gvk.group_kind == _SECRET and path[0] == "f:stringData"

    # --- the verdict --------------------------------------------------------------------------------

    def _judged(self, intent: Manifest, outcome: _Outcome, conflicts: tuple[FieldConflict, ...]) -> Merge:
        final = settled(outcome.merged, self.schema)
        found = list(differences(settled(self.values, self.schema), final, self.root))
        hard = [difference for difference in found if not self._is_soft(difference, intent)]
        soft = [difference for difference in found if self._is_soft(difference, intent)]
        open_ = [difference for difference in soft if not self._was_stored_so(difference, intent)]
        shown = hard + open_
        last = self.ours.fields if self.ours is not None else FieldSet()
        owners_change = bool(self.takeover) or self.owners_lapse or outcome.owned != last or bool(outcome.conflicts)
        doubt = self.doubt or self._doubt_of_versions(found)
        if not (hard or owners_change) and open_:
            doubt = doubt or "defaults of the server may explain the difference"
        verdict = Verdict.UNSURE if doubt else Verdict.DIFFERENT if hard or owners_change else Verdict.SAME
        changes = tuple(self._explained(difference) for difference in shown)
        merged = self.live if verdict is Verdict.SAME else final
        return Merge(merged, intent, changes, conflicts, verdict, outcome.owned, self.takeover, doubt)

    def _doubt_of_versions(self, found: Sequence[Difference]) -> str:
        """Return what owners at other versions leave to the server: their fields convert in ways unknown here."""
        foreign = [owner for owner in (*self.others, self.ours) if owner and owner.api_version not in self.versions]
        if not foreign or not (found or (self.ours in foreign)):
            return ""
        return f"{foreign[0].manager} wrote {foreign[0].api_version}, which only the server can convert"

    def _is_soft(self, difference: Difference, intent: Manifest) -> bool:
        """Return whether defaults in the server's Go code may undo *difference*."""
        path, before, after = difference.path, difference.before, difference.after
        kind = None if self.schema.is_custom else struct_field_at(path, self.root)
        if kind is None:
            return False
        if after is ABSENT:
            wanted = self._at(intent, path)
            return wanted is not ABSENT and is_zero(wanted)
        if before is ABSENT:
            return is_zero(after) or self._is_owned(path)
        if self.schema.gvk.group_kind == _POD and path == _TOLERATIONS:
            before = before[: len(after)]
        return softly_same(after, before, kind)

    def _is_owned(self, path: tuple[str, ...]) -> bool:
        return self.ours is not None and self.ours.fields.covers(path)

    def _was_stored_so(self, difference: Difference, intent: Manifest) -> bool:
        """Return whether live is what the server made of this very value when we applied it last.

        While a field is still ours nobody has changed it since. So an owned zero scalar that live
        lacks was dropped by the server (a struct may have gone with somebody else's last field), and
        an owned value that equals the base's was stored as live has it. A base whose fields aren't
        those that we own isn't what we applied.
        """
        if not self._is_owned(difference.path):
            return False
        if difference.before is ABSENT:
            return is_zero(difference.after) and not isinstance(difference.after, dict)
        wanted = self._at(intent, difference.path)
        return (
            self.base is not None
            and self.ours is not None
            and wanted is not ABSENT
            and same(wanted, self._at(self.base, difference.path))
            and self._heeded(fields_of(self.base, self.root)) - STRIPPED == self.ours.fields
        )

    def _at(self, tree: Any, path: tuple[str, ...]) -> Any:
        return value_at(tree, path, self.root)

    # --- reasons ------------------------------------------------------------------------------------

    def _explained(self, difference: Difference) -> FieldChange:
        path, before, after = difference.path, difference.before, difference.after
        op = "add" if before is ABSENT else "remove" if after is ABSENT else "replace"
        reason = self._reason(difference)
        culprit = self._latest_other(path) if reason in {Reason.DRIFT, Reason.BOTH} else None
        return FieldChange(
            path=FieldPath(path),
            op=op,
            before=_or_none(before),
            after=_or_none(after),
            reason=reason,
            manager=culprit.manager if culprit else "",
            time=culprit.time if culprit else "",
            operation=culprit.operation if culprit else "",
        )

    def _reason(self, difference: Difference) -> Reason:
        """Say why: by the base's values, or, where they are unknown, by who owns the field now."""
        if self.base is None:
            if self.ours is None or self.adopts:
                return Reason.ADOPT
            return Reason.DRIFT if self._latest_other(difference.path) else Reason.GIT
        applied = self._at(settled(self.base, self.schema), difference.path)
        by_git = not _alike(applied, difference.after)
        drifted = not _alike(applied, difference.before)
        if by_git and drifted and applied is not ABSENT:
            return Reason.BOTH
        return Reason.DRIFT if drifted and not by_git else Reason.GIT

    def _latest_other(self, path: tuple[str, ...]) -> Owner | None:
        """Return who else owned *path* or something below it, the latest first."""
        found = [owner for owner in self.found if owner.fields.covers(path) or owner.fields.under(path)]
        return max(found, key=lambda owner: owner.time, default=None)


_STATUS: Final = FieldSet.of([FieldPath.fields("status")])
_MOST_ROUNDS: Final = 10
_POD: Final = GroupKind("", "Pod")
_SECRET: Final = GroupKind("", "Secret")
_TOLERATIONS: Final = FieldPath.fields("spec", "tolerations")
"""Admission appends to the tolerations of every pod."""


def _alike(one: Any, other: Any) -> bool:
    return one is other or (one is not ABSENT and other is not ABSENT and same(one, other))
