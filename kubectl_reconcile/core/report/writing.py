"""How a report is written: as JSON, or as Markdown with a heading for each part that has something to say, and a table below it.

One that is to fit somewhere loses the ends of its longest lists, and says how many lines each one lacks. What comes from objects is text here, never markup.

Pure: a report in, text out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any, Final

from kubectl_reconcile.core.report.contents import LEFT_OUT, short_by

_HEADINGS: Final = {
    "held": "Waits for somebody",
    "problems": "Problems",
    "unhealthy": "Not healthy",
    "drift": "Drift that is left alone",
    "putBack": "Drift that was corrected",
    "contested": "Fields that somebody else keeps changing",
    "certificates": "Certificates that expire soon",
    "changes": "Changes",
    "syncs": "Syncs",
    "inventory": "Inventory",
    "images": "Images",
}
"""The parts in the order in which they matter."""
_ENTITIES: Final = str.maketrans(
    {one: f"&#{ord(one)};" for one in "\\`*_{}[]#!|~@"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)


def markdown_of(report: Mapping[str, Any]) -> str:
    """Return a report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    counts = report["counts"]
    yield f"# Report: {_text(report['of'])}"
    yield ""
    since = f", since {report['since']}" if report.get("since") else ""
    yield f"As of {_text(report['time'])}{_text(since)}: {_count(counts['objects'], 'object')}, {counts['unhealthy']} not healthy, {_count(counts['changes'], 'change')}."
    if unread := report.get("unread"):
        yield ""
        yield f"You may not list {_text(unread)}: the report leaves these out."
    for name, heading in _HEADINGS.items():
        if lines := report.get(name):
            yield ""
            yield f"## {heading}"
            yield ""
            yield from _table(lines)
        if left := report.get("leftOut", {}).get(name):
            yield ""
            yield f"{heading}: {left} more {'line is' if left == 1 else 'lines are'} left out here."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    columns = list(dict.fromkeys(name for line in lines for name in line))
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for line in lines:
        yield f"| {' | '.join(_text(line.get(name, '')) for name in columns)} |"


def _text(value: Any) -> str:
    plain = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " ".join(plain.split()).translate(_ENTITIES)


def json_of(report: Mapping[str, Any]) -> str:
    """Return a report as JSON for people and programs."""
    return json.dumps(report, indent=1)


_WRITERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {"markdown": markdown_of, "json": json_of}


def report_texts(report: Mapping[str, Any], formats: Collection[str], most_bytes: int) -> dict[str, str]:
    """Return a report in these *formats* (``markdown``, ``json``), which have the same lines and are no longer than *most_bytes* together."""
    most, found = most_bytes, _texts(report, formats)
    while most and sum(len(text.encode()) for text in found.values()) > most_bytes:
        most = most * 4 // 5
        found = _texts(_cut(report, most), formats)
    return found


def _texts(report: Mapping[str, Any], formats: Iterable[str]) -> dict[str, str]:
    return {name: _WRITERS[name](report) for name in formats}


def _cut(report: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a report of which no list is longer than so many bytes of JSON."""
    lists = {name: value for name, value in report.items() if isinstance(value, list)}
    kept = {name: _beginning(lines, most) for name, lines in lists.items()}
    left = {name: len(lines) - len(kept[name]) for name, lines in lists.items()}
    return {**report, **kept, LEFT_OUT: short_by(left, report.get(LEFT_OUT, {}))}


def _beginning(lines: list[Any], most: int) -> list[Any]:
    sizes = accumulate(len(json.dumps(line)) for line in lines)
    return lines[: sum(1 for _ in takewhile(lambda size: size <= most, sizes))]
