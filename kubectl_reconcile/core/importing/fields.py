"""What happens to each field of another tool's objects: a table for each kind, and what an object says held against it.

Vocabulary: the *fate* of a field is whether it is translated, approximated or not possible. A *place* is a field by its path, ``[]`` for any
entry of a list: ``spec.patches[].target``. A *row* says the fate of a place and of all below it.

Rules: a field that no row has isn't dropped, it is *unknown*. A field that is false or empty asks for nothing, so nothing is said of it but
where that is translated.

Pure: data, and values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest


class Fate(StrEnum):
    """What happens to a field."""

    TRANSLATED = "translated"
    """A Sync says the same."""
    APPROXIMATED = "approximated"
    """A Sync does something close to it."""
    NOT_POSSIBLE = "not possible"
    """No Sync can do that, so none is made of the object."""
    UNKNOWN = "unknown"
    """No list has it: it is of another version of the tool, or a slip of the pen."""


class Row(NamedTuple):
    """The *fate* of a *place* and of all below it, and what it is *here*; *means_nothing* are values that ask for nothing but the default."""

    place: str
    fate: Fate
    here: str
    means_nothing: tuple[Any, ...] = ()

    def asks(self, value: Any) -> bool:
        """Tell whether a field with this *value* asks for anything."""
        return bool(value) and value not in self.means_nothing


def translated(place: str, here: str) -> Row:
    """Return the row of a field that a Sync says as well."""
    return Row(place, Fate.TRANSLATED, here)


def approximated(place: str, here: str, *means_nothing: Any) -> Row:
    """Return the row of a field that a Sync does something close to."""
    return Row(place, Fate.APPROXIMATED, here, means_nothing)


def not_possible(place: str, here: str, *means_nothing: Any) -> Row:
    """Return the row of a field that no Sync can do."""
    return Row(place, Fate.NOT_POSSIBLE, here, means_nothing)


class Finding(NamedTuple):
    """What is to be known of one field of one object: its *fate*, and how or why."""

    place: str
    fate: Fate
    text: str


class KindTable(Struct, frozen=True):
    """The fields of one *kind* of another tool, by its *group*."""

    group: str
    kind: str
    rows: tuple[Row, ...]

    def row(self, place: str) -> Row | None:
        """Return the row of a place: its own, else the nearest above it; None where there is none."""
        found = {row.place: row for row in self.rows}
        return next((found[above] for above in _upwards(place) if above in found), None)

    def findings(self, manifest: Manifest) -> Iterator[Finding]:
        """Yield what is to be known of what *manifest* says, but for what is translated, each once."""
        told = set()
        for place, value in self._said(manifest):
            row = self.row(place)
            if row is None:
                finding = Finding(place, Fate.UNKNOWN, "isn't among the fields that are known here: see what it does")
            elif row.fate is Fate.TRANSLATED or not row.asks(value):
                continue
            else:
                finding = Finding(row.place, row.fate, row.here)
            if finding not in told:
                told.add(finding)
                yield finding

    def _said(self, manifest: Manifest) -> Iterator[tuple[str, Any]]:
        places = {row.place for row in self.rows}
        for name, value in manifest.items():
            if name not in _NO_FIELDS:
                yield from _leaves(value, name, places)


_NO_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def _upwards(place: str) -> Iterator[str]:
    while place:
        yield place
        place = place[:-2] if place.endswith("[]") else place.rpartition(".")[0]


def _leaves(value: Any, place: str, places: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a tree by their places, not below one that has a row."""
    if place in places:
        yield place, value
    elif isinstance(value, Mapping):
        for name, below in value.items():
            yield from _leaves(below, f"{place}.{name}", places)
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        for each in value:
            yield from _leaves(each, f"{place}[]", places)
    elif value not in (None, [], {}):
        yield place, value
