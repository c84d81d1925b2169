"""A report that fits where it is written: the longest lists lose their ends, and the report says how many lines each one lacks.

Pure: a report in, text out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import accumulate, takewhile
from typing import Any, Final

from kubectl_reconcile.core.report.contents import LEFT_OUT, short_by
from kubectl_reconcile.core.report.markdown import markdown_of


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
