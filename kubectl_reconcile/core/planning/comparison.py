"""A plan against another state of the source, where there is no cluster to compare with: what two revisions ask for, object by object.

Both are plans of an empty cluster, in which all is created. What is the same in both stays as it is; the lines and fields of what differs are those
that the files say, since nobody knows what a server makes of them.

Pure: two plans in, one out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from kubectl_reconcile.core.objects import FieldPath, Manifest
from kubectl_reconcile.core.planning.plan import BY_GIT, Change, Gate, Op, Plan
from kubectl_reconcile.core.rendering.unstable import hidden
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason

_DEEPEST: Final = 100


def compared(before: Plan, now: Plan, base: str) -> Plan:
    """Return what *now* asks for, against what *before* asked for, which was the revision *base*."""
    was = {each.ref: each for each in before.changes if each.after is not None}
    last = max((each.gate.wave for each in now.changes), default=0)
    changes = [_change(was.get(each.ref), each) for each in now.changes]
    asked = {each.ref for each in now.changes}
    gone = [
        Change(each.ref, Op.DELETE, each.kind, before=each.after, provenance=BY_GIT, gate=Gate(last + 1))
        for each in reversed(before.changes)
        if each.ref in was and each.ref not in asked
    ]
    return replace(now.with_changes((*changes, *gone)), base=base)


def nothing_like(made: Plan) -> Plan:
    """Return the plan of a source that asks for nothing, beside *made*."""
    return Plan(made.sync, "", ())


def _change(before: Change | None, now: Change) -> Change:
    if before is None or before.after is None or now.after is None or now.gate.blocked:
        return now
    old, new = _told(before), _told(now)
    if old == new:  # a Sync may do something else though it stays as it is
        return replace(now, op=Op.UNCHANGED, before=before.after, intent=None)
    return replace(now, op=Op.UPDATE, before=before.after, fields=tuple(_fields(old, new, (), 0)))


def _told(change: Change) -> Manifest:
    """Return what a manifest says, without values that are drawn each time."""
    found = hidden(change.after or {}, change.provenance.drawn)
    return found if found is not None else {}


def _fields(old: Any, new: Any, path: tuple[str, ...], depth: int) -> Iterator[FieldChange]:
    """Yield the fields that differ; items of a list by their names, where all have one."""
    if old == new and type(old) is type(new):
        return
    sides = _by_name(old), _by_name(new)
    if sides[0] is None or sides[1] is None or depth >= _DEEPEST:
        op = "add" if old is None else "remove" if new is None else "replace"
        yield FieldChange(FieldPath(path), op, old, new, Reason.GIT)
        return
    for element in dict.fromkeys((*sides[0], *sides[1])):
        yield from _fields(sides[0].get(element), sides[1].get(element), (*path, element), depth + 1)


def _by_name(value: Any) -> Mapping[str, Any] | None:
    """Return what a map or a list of named items holds, by the elements of its paths; None of anything else."""
    if isinstance(value, Mapping):
        return {f"f:{name}": each for name, each in value.items()}
    if not isinstance(value, Sequence) or isinstance(value, str | bytes) or not value:
        return None
    if not all(isinstance(each, Mapping) and isinstance(each.get("name"), str) for each in value):
        return None
    found = {f"k:{json.dumps({'name': each['name']})}": each for each in value}
    return found if len(found) == len(value) else None
