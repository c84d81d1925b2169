"""Three-way merge of one Kubernetes object: the API server's server-side apply, without a request.

Vocabulary follows KEP-555. *Desired* is what Git asks for now, *live* is what the cluster holds,
with its owners in ``metadata.managedFields``. The *base* is what we applied last: its fields are
our own managedFields entry, its values (where known) the manifest at the revision applied last.
The *intent* is what we send: desired without what the server ignores and what a policy yields.

Rules, in the server's order, each where it is decided:

1. *merge* (`typed_merge`): the intent goes into live; nothing is removed, stated leaves win.
2. *prune* (`ownership`): a field that we applied last and no longer state goes, unless another
   manager owns it too; a parent that is left empty goes with it.
3. *conflicts* (`policy`): a field that another manager owns and that changes is a conflict. An
   apply by force takes it from them. The same value is shared, without a conflict.
4. *storage* (`defaulting.settled`): what comes out is defaulted, pruned and respelled.
5. *verdict* (`verdict`): what all that changes, and why.

The verdict is *same* only if neither a value nor an owner would change. It is never guessed: what
the schema, the versions or the server's Go defaults leave open is *unsure*, and one dry-run of
the server decides.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from msgspec import Struct, field

from kubectl_reconcile.core.objects import FIELD_MANAGER, FieldPath, Manifest
from kubectl_reconcile.core.ssa.csa_upgrade import KNOWN_TOOLS, TakeOver, managers_to_take_over
from kubectl_reconcile.core.ssa.defaulting import settled
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.lookup import leaves_of
from kubectl_reconcile.core.ssa.managed_fields import IGNORED_METADATA, STRIPPED, entry_of, repeats_an_owner
from kubectl_reconcile.core.ssa.ownership import LiveObject, ownership_of
from kubectl_reconcile.core.ssa.policy import ConflictPolicy, FieldConflict, decided, without_left_open
from kubectl_reconcile.core.ssa.schema import Schema, Type
from kubectl_reconcile.core.ssa.typed import MergeError, fields_of, validate
from kubectl_reconcile.core.ssa.unchanged import is_unchanged
from kubectl_reconcile.core.ssa.verdict import FieldChange, Reason, Verdict, judged

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


class Merge(Struct, frozen=True):
    """What an apply would do.

    *merged* is the object as the server will hold it, *intent* the body to send. *takeover* is a
    JSON patch to send before the apply, empty if none is needed. *doubt* says why the verdict is
    unsure. *left* are fields that Git wants otherwise and rules leave as they are. *ours* is what `owned` returns, or, where nothing was compared, the type to read it by.
    """

    merged: Manifest
    intent: Manifest
    changes: Sequence[FieldChange]
    conflicts: tuple[FieldConflict, ...]
    verdict: Verdict
    ours: FieldSet | Type = field(default_factory=FieldSet)
    takeover: tuple[Mapping[str, Any], ...] = ()
    doubt: str = ""
    left: tuple[FieldPath, ...] = ()

    @property
    def owned(self) -> FieldSet:
        """The fields that will be ours."""
        return self.ours if isinstance(self.ours, FieldSet) else fields_of(self.intent, self.ours) - STRIPPED


def three_way(
    *,
    desired: Manifest,
    live: Manifest | None,
    schema: Schema,
    manager: str = FIELD_MANAGER,
    base: Manifest | None = None,
    policy: ConflictPolicy = ConflictPolicy.OVERRIDE,
    ignores: Sequence[IgnoreRule] = (),
    take_over: TakeOver = KNOWN_TOOLS,
    adopting: bool | None = None,
) -> Merge:
    """Say what applying *desired* over *live* as *manager* would do.

    *live* None is a create. *base* is the manifest that the last apply of this object sent;
    without it the reasons are coarser, the merge is the same. *ignores* leave single fields as
    they are live, whatever *policy* says. *take_over* says whose fields become ours when we adopt an
    object; *adopting* that *live* isn't a member yet (None: it isn't if *manager* never applied it).

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
        and _is_stated_again(intent, live, entry, schema)
        and not repeats_an_owner(live)
        and not managers_to_take_over(live, manager, take_over, adopting=adopting)
    ):
        return Merge(live, intent, (), (), Verdict.SAME, FieldSet(entry["fieldsV1"]))
    try:
        read = LiveObject.read(live, intent["apiVersion"], schema)
        last = stated(base, schema) if base is not None else None
        recalled = last or (None if read.entries else intent)
        owners = ownership_of(read, manager, take_over, adopting=adopting, recalled=recalled)
        if schema.known:
            validate(intent, schema.root)
        decision = decided(intent, read, owners, policy, ignores, last)
        found = judged(read, decision, last)
    except MergeError:
        raise
    except ValueError as problem:  # live isn't what its schema says: what the server makes of that is its secret
        return Merge(live, intent, (), (), Verdict.UNSURE, doubt=f"live doesn't fit its schema: {problem}")
    return Merge(
        merged=live if found.verdict is Verdict.SAME else found.final,
        intent=decision.intent,
        changes=found.changes,
        conflicts=decision.conflicts,
        verdict=found.verdict,
        ours=decision.outcome.owned,
        takeover=decision.owners.takeover,
        doubt=found.doubt,
        left=decision.left,
    )


def _is_stated_again(intent: Manifest, live: Manifest, entry: Mapping[str, Any], schema: Schema) -> bool:
    """Tell whether *intent* repeats what *entry* owns; an entry of a shape that no server writes calls for a closer look."""
    try:
        return entry["apiVersion"] == intent["apiVersion"] and is_unchanged(intent, live, entry["fieldsV1"], schema)
    except (AttributeError, KeyError, TypeError):
        return False


def stated(desired: Manifest, schema: Schema) -> Manifest:
    """Return *desired* without what the server ignores, its own metadata, and status where that is a subresource; nor what others fill in."""
    metadata = desired.get("metadata") or {}
    if not schema.is_custom:
        desired = without_left_open(desired)
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
    return Merge(merged, intent, Additions(merged, schema.root), (), Verdict.DIFFERENT, schema.root)


class Additions(Sequence[FieldChange]):
    """All fields of an object that is created, found once somebody asks: a first apply of many objects asks for none."""

    __slots__ = ("_found", "_merged", "_of")

    def __init__(self, merged: Manifest, of: Type) -> None:
        self._merged, self._of = merged, of
        self._found: tuple[FieldChange, ...] | None = None

    def _all(self) -> tuple[FieldChange, ...]:
        if self._found is None:
            leaves = ((FieldPath(path), value) for path, value in leaves_of(self._merged, self._of))
            self._found = tuple(
                FieldChange(path, "add", None, value, Reason.GIT) for path, value in leaves if path not in STRIPPED
            )
        return self._found

    @overload
    def __getitem__(self, index: int) -> FieldChange: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[FieldChange, ...]: ...

    def __getitem__(self, index: int | slice) -> FieldChange | tuple[FieldChange, ...]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Additions | tuple) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())
