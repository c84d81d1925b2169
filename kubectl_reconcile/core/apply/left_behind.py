"""What stays of a map that Git drops, since somebody else owns a field in it, and what to do where the server refuses that.

An apply takes away only what it owned. So of a webhook's configuration that Git drops, the CA that an injector wrote is left, and by
itself it may be invalid. Nobody sees that in a manifest.

Pure.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from itertools import chain

from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.outlook.explain import steps_to
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.ssa.lookup import value_at
from kubectl_reconcile.core.ssa.managed_fields import owners_of
from kubectl_reconcile.core.ssa.typed import ABSENT

_SHOWN = 3


def advice_on_rest(change: Change) -> str:
    """Return what of dropped maps is left, its owner, and how it goes; empty where nothing is."""
    return "; ".join(_sentence(change, path) for path in _left(change))


def _left(change: Change) -> Iterator[FieldPath]:
    """Yield the topmost maps that Git dropped and that are there still."""
    if change.op is not Op.UPDATE or change.kind is None or change.after is None:
        return
    root, told = change.kind.schema.root, set[FieldPath]()
    for field in change.fields:
        above = (FieldPath(field.path[:depth]) for depth in range(2, len(field.path)) if field.op == "remove")
        dropped = next((path for path in above if value_at(change.intent, path, root) is ABSENT), None)
        if (
            dropped is not None
            and dropped not in told
            and value_at(change.after, dropped, root) not in (ABSENT, None, {})
        ):
            told.add(dropped)
            yield dropped


def _sentence(change: Change, path: FieldPath) -> str:
    rest = {
        owner.manager: [FieldPath((*path, *leaf)) for leaf in below.leaves()]
        for owner in owners_of(change.before or {})
        if owner.manager != change.provenance.manager and (below := owner.fields.under(path))
    }
    fields = first_few(map(str, dict.fromkeys(chain.from_iterable(rest.values()))), _SHOWN)
    whose, ref = " and ".join(sorted(rest)) or "somebody else", change.ref
    place = f" -n {ref.namespace}" if ref.namespace else ""
    patch = json.dumps([{"op": "remove", "path": _pointer(change, path)}])
    remove = f"kubectl patch {str(ref.group_kind).lower()} {ref.name}{place} --type=json -p {shlex.quote(patch)}"
    return f"Git drops {path}, and {fields or 'a part'} is left, which belongs to {whose}; have {whose} leave it alone, then remove it: {remove}"


def _pointer(change: Change, path: FieldPath) -> str:
    """Return a path as a JSON pointer into the live object has it: items of lists by their numbers."""
    steps = steps_to(path, change.before or {}, change.kind.schema) if change.kind else ()
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
