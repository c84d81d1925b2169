"""The Syncs of a cluster, as somebody wants to see them: searched, filtered, sorted, grouped, and a page at a time.

Vocabulary: a *row* is what a table shows of one Sync; it *matches* where the text is in its name, namespace, source or message and
its state and namespace are among those asked for. Counts are of all that match but for their state, so that they say what another
choice of states would show.

Pure: rows in, a page out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any

from msgspec import Meta

from kubectl_reconcile.views.document import Count, Document, Grade, SyncName, about
from kubectl_reconcile.views.syncs import RowDocument

MOST_ROWS = 200
"""How many entries one page holds at most: rows, and the headings of groups."""
_LONGEST_TEXT = 200
_GRADES = {"bad": 0, "warn": 1, "plain": 2, "good": 3}

SORTS: Mapping[str, Callable[[RowDocument], Any]] = {
    "state": lambda row: (_GRADES.get(row.grade, 2), row.state),
    "name": lambda row: row.name,
    "namespace": lambda row: row.namespace,
    "repository": lambda row: (row.url, row.path),
    "revision": lambda row: row.revision,
    "changed": lambda row: row.changed_at or "",
}
"""By what rows are sorted; those of the same stand in order of namespace and name."""
GROUPS: Mapping[str, Callable[[RowDocument], str]] = {
    "": lambda _: "",
    "namespace": lambda row: str(row.namespace),
    "repository": lambda row: str(row.url or "applied by hand"),
}


@dataclass(frozen=True, slots=True)
class FleetQuery:
    """Which rows are asked for, and in which order; *states* and *namespace* are all where they are empty."""

    text: str = ""
    states: frozenset[str] = frozenset()
    namespace: str = ""
    sort: str = "state"
    descending: bool = False
    group: str = ""
    offset: int = 0
    limit: int = 100

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> FleetQuery:
        """Read what stands in a URL.

        Raises:
            ValueError: something of it can't be meant.
        """
        sort = parameters.get("sort") or "state"
        descending, sort = sort.startswith("-"), sort.removeprefix("-")
        group = parameters.get("group", "")
        if sort not in SORTS or group not in GROUPS:
            raise ValueError(f"sort by {', '.join(SORTS)}; group by {', '.join(filter(None, GROUPS))}")
        return cls(
            text=parameters.get("q", "").strip().lower()[:_LONGEST_TEXT],
            states=frozenset(filter(None, parameters.get("state", "").split(","))),
            namespace=parameters.get("namespace", ""),
            sort=sort,
            descending=descending,
            group=group,
            offset=_number(parameters, "offset", 0, 10_000_000),
            limit=_number(parameters, "limit", 100, MOST_ROWS),
        )

    def matches(self, row: RowDocument) -> bool:
        """Tell whether a row is asked for, whatever its state."""
        if self.namespace and row.namespace != self.namespace:
            return False
        return all(word in _text_of(row) for word in self.text.split())


class StateDocument(Document, frozen=True, kw_only=True):
    """How many Syncs are in a state."""

    state: str
    grade: Grade
    count: Count


class HeadingDocument(Document, frozen=True, kw_only=True):
    """What a group begins with."""

    heading: str
    count: Count


_ENTRIES = {"items": {"anyOf": [{"$ref": "#/components/schemas/Row"}, {"$ref": "#/components/schemas/Heading"}]}}
"""A row, or what begins a group: msgspec tells records of two kinds apart by a tag alone, which these have not."""


class FleetDocument(Document, frozen=True, kw_only=True):
    """One page of the Syncs that match."""

    total: Annotated[Count, about("How many Syncs there are.")]
    matching: Annotated[Count, about("How many of them match.")]
    length: Annotated[Count, about("How many entries the list has: rows, and headings of groups.")]
    offset: Annotated[Count, about("Which entry is the first here.")]
    states: Annotated[list[StateDocument], about("How many there are of each state, of those that match otherwise.")]
    namespaces: Annotated[list[str], about("Those that have Syncs.")]
    rows: Annotated[Sequence[Any], Meta(description=f"{MOST_ROWS} entries at most.", extra_json_schema=_ENTRIES)]
    only: Annotated[str, about("The only namespace that is shown; empty for all.")]
    at: Annotated[str, about("The version of this answer: the stream continues from there.")]


class PushedDocument(Document, frozen=True, kw_only=True):
    """Syncs that have changed, and those that are gone."""

    rows: Sequence[RowDocument]
    gone: Sequence[SyncName]


def page(rows: Iterable[RowDocument], query: FleetQuery, *, only: str = "", at: str = "") -> FleetDocument:
    """Return the page that *query* asks for, with how many there are of each state; *only* and *at* say of which answer."""
    known = list(rows)
    matching = [row for row in known if query.matches(row)]
    chosen = [row for row in matching if not query.states or row.state in query.states]
    chosen.sort(key=lambda row: (row.namespace, row.name))
    chosen.sort(key=SORTS[query.sort], reverse=query.descending)
    chosen.sort(key=GROUPS[query.group])
    entries: list[RowDocument | HeadingDocument] = [*(_headed(chosen, GROUPS[query.group]) if query.group else chosen)]
    states = sorted(_states(matching).items(), key=lambda each: _GRADES.get(each[0][1], 2))
    return FleetDocument(
        total=len(known),
        matching=len(chosen),
        length=len(entries),
        offset=query.offset,
        states=[StateDocument(state=state, grade=grade, count=count) for (state, grade), count in states],
        namespaces=sorted({str(row.namespace) for row in known}),
        rows=entries[query.offset : query.offset + query.limit],
        only=only,
        at=at,
    )


def _headed(
    rows: Iterable[RowDocument], group_of: Callable[[RowDocument], str]
) -> Iterator[RowDocument | HeadingDocument]:
    """Yield rows with an entry before each group that says which one it is, and how many are in it."""
    for heading, group in groupby(rows, group_of):
        members = list(group)
        yield HeadingDocument(heading=heading, count=len(members))
        yield from members


def _states(rows: Iterable[RowDocument]) -> Counter[tuple[str, str]]:
    return Counter((row.state, row.grade) for row in rows)


def _text_of(row: RowDocument) -> str:
    return f"{row.namespace}/{row.name} {row.url} {row.path} {row.revision} {row.message}".lower()


def _number(parameters: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = parameters.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError(f"{name} is a number from 0 to {most}")
    return min(int(text), most)
