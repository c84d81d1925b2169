"""Which fields of a change have values of variables in them, in words.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.plan import Change
from kubectl_reconcile.core.rendering.uses import names_at

_SHOWN = 4


def variables_of(change: Change) -> Iterator[str]:
    """Yield a sentence for each set of variables; of what has no single fields, as it is new or recreated, which it has."""
    uses, tree = change.provenance.uses, change.after if change.after is not None else change.intent
    if not uses or change.is_child:
        return
    if not change.fields:
        names = sorted({name for use in uses for name in use.names})
        yield f"with the values of {first_few(map(named, names), _SHOWN)}"
    by_names: dict[tuple[str, ...], list[str]] = {}
    for field in change.fields:
        if found := names_at(uses, field.path, tree):
            by_names.setdefault(found, []).append(str(field.path))
    for found, paths in by_names.items():
        yield f"{first_few(paths, _SHOWN)} from {' and '.join(map(named, found))}"


def named(name: str) -> str:
    """Return a variable as it is written; what a chart looked up has words of its own."""
    return name if " " in name else f"${{{name}}}"
