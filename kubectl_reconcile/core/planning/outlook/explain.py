"""Why each field of a live object is what it is: who owns it, what Git asks for, and whether that is drift.

Vocabulary: a *field* is the smallest place that somebody owns or Git states. What Git asks for is the manifest, or
for a module's child what the module wants. The *standing* of a field says how the two go together; the plan of the next
sync decides it, so what is said here is what will be done.

Pure: values in, values out.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import FIELD_MANAGER, FieldPath, Manifest, ObjectRef, labels_of
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.resources.sync import DriftPolicy, Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.lookup import leaves_of, value_at
from kubectl_reconcile.core.ssa.managed_fields import APPLY, STRIPPED, Owner, owners_of
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.core.ssa.typed import ABSENT, elements_of

_STATUS = "f:status"
_STRING_DATA = "f:stringData"


class FieldState(StrEnum):
    """How a live field and what is asked for go together."""

    SAME = "same"
    """It is as Git, or the module, asks for."""
    DRIFT = "drift"
    """Somebody changed it in the cluster; Git asks for what it asked for before."""
    GIT = "git"
    """Git asks for something else than was applied last."""
    BOTH = "both"
    """Git asks for something else, and somebody changed it in the cluster too."""
    ADOPT = "adopt"
    """We have never applied the object; the next sync takes it over."""
    LEFT = "left"
    """Git asks for something else, but a rule leaves the field to its owner."""
    OTHER = "other"
    """Git doesn't mention it: it is its owner's business."""
    DEFAULT = "default"
    """Nobody owns it: the server filled it in, or somebody who isn't tracked."""
    APPLIED = "applied"
    """It is as it was applied last; what is asked for now isn't known."""
    UNKNOWN = "unknown"
    """Neither what is asked for nor what was applied last is known."""


_OF_REASON = {
    Reason.GIT: FieldState.GIT,
    Reason.DRIFT: FieldState.DRIFT,
    Reason.BOTH: FieldState.BOTH,
    Reason.ADOPT: FieldState.ADOPT,
}
DIFFERS = frozenset({FieldState.DRIFT, FieldState.GIT, FieldState.BOTH, FieldState.ADOPT})
"""Standings of fields that the next sync changes."""


class ExplainFacts(Struct, frozen=True):
    """All that is known of one live object.

    *manifest* is what Git asks for, None for what isn't in Git; *change* what the next sync does with it, None where it
    is nobody's member or child; *contended* are fields that the daemon leaves to another controller for a while.
    *unread* says in a clause why what is asked for isn't known, empty where it is.
    """

    live: Manifest
    schema: Schema
    sync: Sync | None = None
    manifest: Manifest | None = None
    change: Change | None = None
    contended: Sequence[str] = ()
    unread: str = ""


class ExplainedField(Struct, frozen=True):
    """One field, explained. *live* and *wanted* are ABSENT where it isn't there, or nobody sets it.

    *rule* says why it is left to its owner, or why it isn't known what was applied last.
    """

    path: FieldPath
    live: Any
    wanted: Any
    standing: FieldState
    owners: tuple[Owner, ...] = ()
    change: FieldChange | None = None
    rule: str = ""


def explained(facts: ExplainFacts, query: IgnoreRule | None = None) -> list[ExplainedField]:
    """Return the fields of an object, those that differ first; with *query* only what it touches.

    Without a query, what is in ``status`` is left out: it is nobody's wish.
    """
    found = [_field(facts, path, owners) for path, owners in _owned(facts, query).items()]
    return sorted(found, key=lambda each: (each.standing not in DIFFERS, each.standing is not FieldState.LEFT))


def _owned(facts: ExplainFacts, query: IgnoreRule | None) -> dict[FieldPath, tuple[Owner, ...]]:
    """Return all fields that somebody owns or states, or that will change, with their owners, the latest first."""
    owners = _owners(facts.live)
    paths = dict.fromkeys(path for owner in owners for path in owner.fields.leaves() if path not in STRIPPED)
    paths |= dict.fromkeys(_stated(facts))
    paths |= dict.fromkeys(change.path for change in (facts.change.fields if facts.change else ()))
    wanted = [path for path in paths if _is_wanted(path, query)]
    if query is not None and not wanted:
        wanted = [
            FieldPath(path) for path, _ in leaves_of(facts.live, facts.schema.root) if query.touches(FieldPath(path))
        ]
    deepest = [path for path in wanted if not any(_is_above(path, other) for other in wanted)]
    return {path: tuple(_who(owners, path)) for path in deepest}


def _owners(live: Manifest) -> tuple[Owner, ...]:
    try:
        return owners_of(live)
    except ValueError:  # an entry that the server couldn't read either: then nobody is known to own anything
        return ()


def _is_wanted(path: FieldPath, query: IgnoreRule | None) -> bool:
    return query.touches(path) if query is not None else path[:1] != (_STATUS,)


def _is_above(path: FieldPath, other: FieldPath) -> bool:
    return len(path) < len(other) and other[: len(path)] == path


def _stated(facts: ExplainFacts) -> Iterator[FieldPath]:
    """Yield the fields that Git states; where it doesn't mention them, what we have applied tells."""
    if facts.manifest is None:
        return
    for path, _ in leaves_of(facts.manifest, facts.schema.root):
        if path not in STRIPPED and path[:1] != (_STATUS,):
            yield (
                FieldPath(("f:data", *path[1:]))
                if path[0] == _STRING_DATA and _is_secret(facts.live)
                else FieldPath(path)
            )


def _who(owners: Sequence[Owner], path: FieldPath) -> list[Owner]:
    holding = [
        owner for owner in owners if path in owner.fields or owner.fields.covers(path) or owner.fields.under(path)
    ]
    return sorted(holding, key=lambda owner: owner.time, reverse=True)


def _field(facts: ExplainFacts, path: FieldPath, owners: tuple[Owner, ...]) -> ExplainedField:
    root = facts.schema.root
    live = value_at(facts.live, path, root)
    wanted = ABSENT if facts.manifest is None else _wanted(facts.manifest, path, facts.schema)
    change = _change_at(facts.change, path)
    standing, rule = _standing(facts, path, wanted, owners, change)
    if change is not None and change.path == path:
        wanted = ABSENT if change.op == "remove" else change.after
    return ExplainedField(path, live, wanted, standing, owners, change, rule)


def _wanted(manifest: Manifest, path: FieldPath, schema: Schema) -> Any:
    written = as_written(path, manifest)
    value = value_at(manifest, written, schema.root)
    if written == path or not isinstance(value, str):
        return value
    return base64.b64encode(value.encode()).decode()


def as_written(path: FieldPath, manifest: Manifest) -> FieldPath:
    """Return where a manifest states what is stored at *path*: what a Secret has in ``stringData`` becomes ``data``."""
    given = manifest.get("stringData")
    stated = _is_secret(manifest) and len(path) > 1 and isinstance(given, Mapping) and path[1][2:] in given
    return FieldPath((_STRING_DATA, *path[1:])) if stated and path[0] == "f:data" else path


def _is_secret(manifest: Manifest) -> bool:
    return manifest.get("kind") == "Secret" and manifest.get("apiVersion") == "v1"


def _change_at(change: Change | None, path: FieldPath) -> FieldChange | None:
    """Return what the next sync does at *path*, above or below it."""
    for each in change.fields if change is not None else ():
        shorter = min(len(each.path), len(path))
        if each.path[:shorter] == path[:shorter]:
            return each
    return None


def _standing(
    facts: ExplainFacts, path: FieldPath, wanted: Any, owners: Sequence[Owner], change: FieldChange | None
) -> tuple[FieldState, str]:
    contention = next((text for text in facts.contended if f": {path}:" in text), "")
    if contention:
        return FieldState.LEFT, f"a back-off: {contention}"
    if facts.unread:
        return _as_applied(facts, path, owners)
    if change is not None and facts.change is not None and facts.change.op is not Op.UNCHANGED:
        return _OF_REASON[change.reason], ""
    if wanted is not ABSENT and (rule := _rule(facts, path)):
        return FieldState.LEFT, rule
    if wanted is not ABSENT or _ours(facts.sync, owners):
        return FieldState.SAME, ""
    return (FieldState.OTHER if owners else FieldState.DEFAULT), ""


def _as_applied(facts: ExplainFacts, path: FieldPath, owners: Sequence[Owner]) -> tuple[FieldState, str]:
    """Return what the owners alone say about a field, and what they can't tell."""
    if _ours(facts.sync, owners):
        return FieldState.APPLIED, ""
    if rule := _rule(facts, path):
        return FieldState.LEFT, rule
    applied = [owner.time for owner in _ours(facts.sync, _owners(facts.live))]
    if not applied or not all(applied):
        return FieldState.UNKNOWN, "the object doesn't say when it was applied"
    since = [owner.manager for owner in owners if not owner.time or owner.time >= max(applied)]
    if since:
        return FieldState.UNKNOWN, f"{since[0]} wrote after the last apply"
    return (FieldState.OTHER if owners else FieldState.DEFAULT), ""


def was_applied(live: Manifest, sync: Sync | None) -> bool:
    """Return whether something on *live* was applied from here, as the field manager of *sync* or for a module."""
    return bool(_ours(sync, _owners(live)))


def _ours(sync: Sync | None, owners: Sequence[Owner]) -> list[Owner]:
    own = sync.field_manager if sync is not None else FIELD_MANAGER
    return [owner for owner in owners if owner.operation == APPLY and owner.manager.startswith((own, FIELD_MANAGER))]


def _rule(facts: ExplainFacts, path: FieldPath) -> str:
    """Return the rule by which the field is left to its owner, "" if there is none."""
    labels, ref = labels_of(facts.live), ObjectRef.of(facts.live)
    for rule in facts.sync.ignore if facts.sync is not None else ():
        if rule.matches(path) and rule.means(ref, labels):
            return f"spec.ignore has {rule}"
    left = {conflict.path: conflict.manager for conflict in (facts.change.conflicts if facts.change else ())}
    return f"the conflict policy is Yield, and {left[path]} owns it" if path in left else ""


def outlook(each: ExplainedField, facts: ExplainFacts) -> str:
    """Return in a sentence what comes of a field, and why."""
    if each.standing is FieldState.DRIFT:
        return _of_drift(facts)
    if facts.unread and each.standing in _UNREAD:
        return _UNREAD[each.standing].format(why=facts.unread)
    if each.standing is FieldState.SAME and facts.change is not None and facts.change.op is Op.DELETE:
        return (
            "it has the value that was applied last; the next sync deletes the object, because no file has it any more"
        )
    source = "Git" if facts.sync is None or facts.sync.source else "the files"
    return _KNOWN[each.standing].format(rule=each.rule, source=source)


_KNOWN: Final[Mapping[FieldState, str]] = {
    FieldState.SAME: "no drift: it has the desired value",
    FieldState.GIT: "no drift: {source} changed, and the next sync applies it",
    FieldState.BOTH: "drift, and {source} changed too; the next sync applies the new value",
    FieldState.ADOPT: "it was never applied from here; the next sync takes it over",
    FieldState.LEFT: "left alone: {rule}",
    FieldState.OTHER: "no drift: it isn't in {source}, so its owner decides",
    FieldState.DEFAULT: "no drift: it isn't in {source} and nobody owns it; it is a default of the server",
}
_UNREAD: Final[Mapping[FieldState, str]] = {
    FieldState.APPLIED: "it has the value that was applied last; whether that is still the desired value isn't known: {why}",
    FieldState.OTHER: "the last apply didn't set it; whether it is desired now isn't known: {why}",
    FieldState.DEFAULT: "the last apply didn't set it, and nobody owns it; it is a default of the server",
    FieldState.UNKNOWN: "whether it is drift isn't known: {why}",
}


def _of_drift(facts: ExplainFacts) -> str:
    sync = facts.sync
    if sync is not None and sync.suspend:
        return "drift; it stays until the suspended Sync is resumed"
    if (
        sync is not None
        and sync.drift is not DriftPolicy.CORRECT
        and facts.change is not None
        and not facts.change.provenance.owner
    ):
        return f"drift; spec.drift is {sync.drift.value}, so it stays until somebody syncs, or Git changes the object"
    return "drift; the next sync reverts it"


def steps_to(path: FieldPath, manifest: Manifest, schema: Schema) -> tuple[int | str, ...]:
    """Return where *path* stands in *manifest*: names and indexes, as far as it is stated."""
    steps: list[int | str] = []
    here: Any = manifest
    of = schema.root
    for element in path:
        if element.startswith("f:") and isinstance(here, Mapping) and element[2:] in here:
            steps.append(element[2:])
            here = here[element[2:]]
            below = of.map.type_at(element[2:]) if of.map is not None else None
        elif isinstance(here, list) and of.list is not None and element in (known := elements_of(here, of.list)):
            steps.append(known.index(element))
            here, below = here[known.index(element)], of.list.item
        else:
            break
        if below is None:
            break
        of = below
    return tuple(steps)
