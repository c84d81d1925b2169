"""Where a change comes from besides its file, in words: another version of a chart, and values of variables.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.plan import Change
from kubectl_reconcile.core.rendering.uses import names_at

_SHOWN: Final = 4
_ARCHIVE: Final = re.compile(r"(?:^|.*/)([a-z0-9][-a-z0-9._]*?)-(v?[0-9]+\.[0-9]+\.[0-9]+[^/]*)\.tgz/.*")


def moved_chart(change: Change) -> Iterator[str]:
    """Yield by which versions of which chart an object moves; nothing where it comes from the same archive, or from none."""
    before = _ARCHIVE.fullmatch(MemberOptions.of(change.before or {}).source)
    after = _ARCHIVE.fullmatch(change.provenance.file)
    if before is None or after is None or before.groups() == after.groups():
        return
    name = after[1] if before[1] == after[1] else f"{before[1]} → {after[1]}"
    yield f"chart {name} {before[2]} → {after[2]}"


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
