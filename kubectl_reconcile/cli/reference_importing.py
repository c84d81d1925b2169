"""The page that lists what happens to each field of Argo CD's and Flux's objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_reconcile.core.importing import argocd_fields, flux_fields
from kubectl_reconcile.core.importing.fields import Fate, KindTable, Row

_HEAD = """\
# Fields of Argo CD and Flux

What happens to each field when [another tool's objects become Syncs](migrating.md). `make manifests` generates this page from `kubectl_reconcile/core/importing`, and a test holds it against the tools' published CRDs.

- **translated**: the Sync says the same.
- **approximated**: the Sync does something close to it.
- **not possible**: no Sync is made of an object that uses the field.

A row is about the field and all below it. A field that is false or empty asks for nothing, so nothing is said of it. A field that isn't here is reported as unknown.
"""

_CATALOGUES = (
    ("Argo CD", argocd_fields.TABLES, argocd_fields.NOT_READ),
    ("Flux", flux_fields.TABLES, flux_fields.NOT_READ),
)


def imported_fields_page() -> str:
    """Return the lists of fields, one for each kind."""
    return "\n".join([_HEAD, *_tools()])


def _tools() -> Iterator[str]:
    for tool, tables, not_read in _CATALOGUES:
        yield f"## {tool}\n"
        for table in tables:
            yield from _of_kind(table)
        if tool == "Argo CD":
            yield "### Sync options\n"
            yield from _rows("option", argocd_fields.SYNC_OPTIONS)
        yield f"### Other kinds of {tool}\n"
        yield from ("No Sync is made of these.\n", "| kind | why, and what to do |", "|---|---|")
        yield from (
            f"| `{kind}` | {text} |" for (_, kind), text in sorted(not_read.items(), key=lambda each: each[0][1])
        )
        yield ""


def _of_kind(table: KindTable) -> Iterator[str]:
    yield f"### {table.kind}\n"
    yield from _rows("field", table.rows)


def _rows(what: str, rows: Iterable[Row]) -> Iterator[str]:
    order = [Fate.TRANSLATED, Fate.APPROXIMATED, Fate.NOT_POSSIBLE]
    yield from (f"| {what} | | here |", "|---|---|---|")
    for row in sorted(rows, key=lambda each: order.index(each.fate)):
        unless = "".join(f"; `{each}` is the same here" for each in row.means_nothing if isinstance(each, str))
        yield f"| `{row.place}` | {row.fate} | {row.here}{unless} |"
    yield ""
