"""A report as Markdown: a heading for each part that has something to say, a table below it.

What comes from objects is text here, never markup.

Pure: a report in, text out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

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
