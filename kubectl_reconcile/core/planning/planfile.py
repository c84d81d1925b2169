"""Plan files: a plan that somebody looked at, kept until it is carried out exactly as it was, or not at all.

``diff -o json`` writes the file, ``sync --plan`` reads it. The file isn't what is applied: the plan is made
again from the source and the cluster as they are now, and goes ahead only if it comes out the same. Values of
Secrets are neither shown nor in the fingerprints; the revision and the live object's version tell whether they moved.

A *fingerprint* is the digest of one change: which object, from which state, to which. The *hash* covers the
Sync, the revision and all fingerprints, and those of plans that are nested in it: what follows from what is carried out is held to be the same, too. Facts about pods that were noted by a daemon must be the same besides. ``plan.schema.json`` beside this page describes the file.

Pure: bytes in, sentences out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.objects import API_GROUP, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Nested, Plan, fingerprint
from kubectl_reconcile.core.resources.sync import SYNC

API_VERSION = f"{API_GROUP}/v1alpha1"
KIND = "Plan"


class PlanFileError(Exception):
    """A file that is no plan which could be carried out; *hint* says what to do."""

    def __init__(
        self, message: str, hint: str = "create it with: kubectl reconcile diff … -o json > plan.json"
    ) -> None:
        self.hint = hint
        super().__init__(message)


class PlanMoved(Exception):  # noqa: N818 - it isn't an error that source or cluster moved on
    """The plan made now isn't the one in the file; *moved* names each difference."""

    def __init__(self, moved: list[str]) -> None:
        self.moved = moved
        self.hint = "to see the new plan: kubectl reconcile diff"
        more = f" (and {len(moved) - 5} more)" if len(moved) > 5 else ""
        super().__init__(f"the plan is no longer valid, nothing was written: {'; '.join(moved[:5])}{more}")


class NestedPrint(Struct, frozen=True):
    """What of a nested plan is needed to tell whether one made now is the same; *revision* is empty where there is no plan."""

    op: str
    revision: str = ""
    fingerprints: Mapping[tuple[ObjectRef, str], str] = field(default_factory=dict)


_Below: TypeAlias = Mapping[tuple[ObjectRef, ...], NestedPrint]
"""Nested plans by their Syncs, from the top down."""


class PlanFile(Struct, frozen=True):
    """What of a plan file is needed to tell whether a plan made now is the same; one with *nested* plans is compared with one that has them."""

    sync: ObjectRef
    revision: str
    hash: str
    confirmed: bool
    fingerprints: Mapping[tuple[ObjectRef, str], str]
    recalled: Mapping[ObjectRef, Any] = field(default_factory=dict)
    nested: _Below = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read a plan file.

        Raises:
            PlanFileError: it is none, or belongs to no Sync.
        """
        try:
            tree = json.loads(data)
        except ValueError as error:
            raise PlanFileError(f"it isn't JSON: {error}") from None
        if not isinstance(tree, dict) or tree.get("kind") != KIND:
            raise PlanFileError(f"it isn't a {KIND}")
        if tree.get("apiVersion") != API_VERSION:
            raise PlanFileError(f"it is a {KIND} of {tree.get('apiVersion')}, this program reads {API_VERSION}")
        if tree.get("base"):
            raise PlanFileError(
                "it compares two revisions, and says nothing about a cluster", "create it without --base"
            )
        if not tree.get("sync"):
            raise PlanFileError(
                "it belongs to no Sync, so nothing would record its objects",
                "create it with diff … --name NAME -o json",
            )
        try:
            revision, digest, confirmed = str(tree["revision"]), str(tree["hash"]), bool(tree["confirmed"])
            prints, below = _prints(tree["changes"]), _nested(tree.get("nested"))
            return cls(_sync(tree["sync"]), revision, digest, confirmed, prints, _recalled(tree), below)
        except KeyError as error:
            raise PlanFileError(f"its field {error} is missing") from None

    def check(self, made: Plan) -> None:
        """Pass if *made* is the plan in the file.

        Raises:
            PlanMoved: it isn't; each difference is named.
        """
        if moved := list(self._moved(made)):
            raise PlanMoved(moved)

    def _moved(self, made: Plan) -> Iterator[str]:
        now = fingerprints(made)
        if made.revision != self.revision:
            yield f"the source is at {made.revision[:16]}, the plan was made at {self.revision[:16]}"
        yield from _moved_among(self.fingerprints, now)
        below = {(*each.above, each.sync): _print_of(each) for each in made.nested}
        yield from _moved_below(self.nested, below)
        for ref, facts in self.recalled.items():
            seen = made.outcomes.observed.get(ref)
            if seen is None or seen.facts != facts:
                yield f"{ref}: the state of its pods has changed since"
        is_same = now == self.fingerprints and made.revision == self.revision and below == self.nested
        if is_same and made.hash != self.hash:
            yield "the file was edited: its hash isn't that of its changes"


def _moved_among(shown: Mapping[tuple[ObjectRef, str], str], now: Mapping[tuple[ObjectRef, str], str]) -> Iterator[str]:
    """Yield what moved between fingerprints that were *shown* and those of *now*."""
    was, wanted = _by_object(shown), _by_object(now)
    for ref in dict.fromkeys((*was, *wanted)):
        yield from _differences(ref, was.get(ref, {}), wanted.get(ref, {}))


def _moved_below(shown: _Below, now: _Below) -> Iterator[str]:
    """Yield what moved of nested plans."""
    for way in dict.fromkeys((*shown, *now)):
        name = f"Sync {way[-1].namespace}/{way[-1].name}"
        if way not in shown or way not in now:
            yield f"{name} {'changes with it, too' if way in now else 'no longer changes with it'}"
            continue
        was, then = shown[way], now[way]
        if was.op != then.op:
            yield f"{name} would be {_done(then.op)}, not {_done(was.op)}"
        if was.revision != then.revision:
            yield f"{name} would be at {then.revision[:16] or 'no revision'}, not at {was.revision[:16] or 'none'}"
        yield from (f"{name}: {text}" for text in _moved_among(was.fingerprints, then.fingerprints))


def _print_of(each: Nested) -> NestedPrint:
    return NestedPrint(each.op.value, *((each.plan.revision, fingerprints(each.plan)) if each.plan else ()))


def _by_object(prints: Mapping[tuple[ObjectRef, str], str]) -> dict[ObjectRef, dict[str, str]]:
    """Return the fingerprints of each object, by what happens to it."""
    found: dict[ObjectRef, dict[str, str]] = {}
    for (ref, what), digest in prints.items():
        found.setdefault(ref, {})[what] = digest
    return found


def _differences(ref: ObjectRef, shown: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield what moved of one object; several things may happen to it: a CR changes, and its module acts."""
    gone = [_done(what) for what in shown if what not in now]
    new = [_done(what) for what in now if what not in shown]
    if gone and new:
        yield f"{ref} would be {' and '.join(new)}, not {' and '.join(gone)}"
    elif gone and now:
        yield f"{ref} wouldn't be {' and '.join(gone)} any more"
    elif gone:
        yield f"{ref} needs no change any more"
    elif new:
        yield f"{ref} would be {' and '.join(new)} too"
    if any(now[what] != known for what, known in shown.items() if what in now):
        yield f"{ref} has changed since"


_DONE = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted", "act": "acted on",
         "unchanged": "left alone"}  # fmt: skip


def _done(what: str) -> str:
    op, _, action = what.partition(":")
    return _DONE.get(op, op) + (f" ({action})" if action else "")


def fingerprints(made: Plan) -> dict[tuple[ObjectRef, str], str]:
    """Return the fingerprint of everything that a plan changes, or would if it could."""
    shown = (change for change in made.changes if not change.is_quiet)
    return {(change.ref, _what(change)): fingerprint(change) for change in shown}


def _what(change: Change) -> str:
    return change.op.value if change.action is None else f"{change.op.value}:{change.action.key}"


def _sync(entry: Any) -> ObjectRef:
    if not isinstance(entry, dict):
        raise PlanFileError("its field 'sync' isn't in the format of this program")
    return ObjectRef(SYNC.group, SYNC.kind, str(entry["namespace"]), str(entry["name"]))


def _nested(entries: Any) -> _Below:
    try:
        return dict(map(_nested_one, entries or ()))
    except (TypeError, AttributeError):
        raise PlanFileError("its field 'nested' isn't in the format of this program") from None


def _nested_one(entry: Mapping[str, Any]) -> tuple[tuple[ObjectRef, ...], NestedPrint]:
    way = tuple(map(_sync, (*entry["above"], entry["sync"])))
    plan = entry.get("plan")
    known = (str(plan["revision"]), _prints(plan["changes"])) if plan else ()
    return way, NestedPrint(str(entry["op"]), *known)


def _prints(entries: Any) -> dict[tuple[ObjectRef, str], str]:
    try:
        return {_key(each): str(each["fingerprint"]) for each in entries}
    except (TypeError, AttributeError):
        raise PlanFileError("one of its changes isn't in the format of this program") from None


def _recalled(tree: Mapping[str, Any]) -> dict[ObjectRef, Any]:
    """Return the facts that weren't of their time when the plan was made: they may have moved, and the plan come out the same."""
    try:
        return {_ref(each["object"]): each["facts"] for each in tree.get("observed") or () if each.get("asOf")}
    except (TypeError, AttributeError):
        raise PlanFileError("its field 'observed' isn't in the format of this program") from None


def _key(entry: Mapping[str, Any]) -> tuple[ObjectRef, str]:
    action = entry.get("action")
    return _ref(entry["object"]), f"{entry['op']}:{action['key']}" if action else str(entry["op"])


def _ref(entry: Mapping[str, Any]) -> ObjectRef:
    return ObjectRef(*(str(entry[part]) for part in ("group", "kind", "namespace", "name")))
