"""YAML that can't be parsed: what is wrong with it, and where the file goes on after it.

A line that starts with ``---`` begins a document wherever it stands: YAML allows it within none, quoted and literal text included. So
a syntax error is one document's own, and the next one can be read. But not in a file that a person or a program isn't done with, one
with the marks of an unresolved merge or of a template: which of its documents are meant nobody knows.

Pure: bytes in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_reconcile.core.manifests.limits import EndOfReadingError
from kubectl_reconcile.core.manifests.scalars import printable

MOST_BROKEN = 20
"""Documents of a file that are passed over; the next one ends the reading, so that what a file costs is bounded."""

_LAYOUT_HINT = "check the indentation; quote text that has ': ' or ' #' or starts with one of @ ` % * & ! [ {"
_CONFLICT = re.compile(rb"^(?:<{7}|>{7}) ", re.MULTILINE)
_MARKER = re.compile(rb"^---(?=\s|\Z)", re.MULTILINE)


def syntax_error(data: bytes, error: Any) -> EndOfReadingError:
    """Return what the parser's *error* says of a file, with its line and what to do."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:  # a character that YAML forbids; libyaml says at which byte
        line = data.count(b"\n", 0, getattr(error, "position", 0)) + 1
        reason = str(getattr(error, "reason", error)).lower()
        return EndOfReadingError(line, f"not valid YAML: {reason}", "remove the character, or write it as an escape")
    said = [part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part]
    return EndOfReadingError(
        mark.line + 1, f"not valid YAML: {printable(', '.join(said))}", likely_cause(data, mark.line)
    )


def likely_cause(data: bytes, line: int, otherwise: str = _LAYOUT_HINT) -> str:
    """Return what most often stands behind unreadable YAML on *line* of *data*, counted from 0."""
    row = _line(data, line)
    if _CONFLICT.search(data):
        return "it has markers of an unresolved merge conflict"
    if re.search(rb"\{\{.*\}\}", _line(data, max(0, line - 1)) + b"\n" + row):
        return "it looks like a template; render it first, or list the file in .reconcileignore"
    if b"\t" in row[: len(row) - len(row.lstrip())]:
        return "indent with spaces, not tabs"
    return otherwise


def rest_after(data: bytes, line: int, error: Any) -> bytes:
    """Return *data* as if it began with the document that comes after the broken one of *line*, counted from 0, on the same lines.

    Empty where there is none, and where what comes after mustn't be read.
    """
    mark = getattr(error, "problem_mark", None)
    if mark is None or b"{{" in data or _CONFLICT.search(data):
        return b""
    after = [(at, start) for at, start in _markers(data) if at > line]
    if _line(data, mark.line).startswith(b"%"):  # a directive, which belongs to the document that begins next
        del after[:1]
    if not after:
        return b""
    at, start = after[0]
    return b"\n" * at + data[start:]


def _line(data: bytes, number: int) -> bytes:
    rows = data.splitlines()
    return rows[number] if number < len(rows) else b""


def _markers(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield line, counted from 0, and place of each marker of a document."""
    line = counted = 0
    for found in _MARKER.finditer(data):
        line += data.count(b"\n", counted, found.start())
        counted = found.start()
        yield line, found.start()


# ------------------------------------------------------------------------------------------ what may be said

HIDDEN = "***"


def may_hold_secrets(data: bytes) -> bool:
    """Tell whether a file may hold a Secret, before it is known what it holds: it says so anywhere, or doesn't say what it is."""
    text = data.lower()
    if any(word in text for word in (b"secret", b"stringdata", b"\\x", b"\\u")):  # or says so in escapes
        return True
    return b"data" in text and b"kind" not in text


def echoed(data: bytes, text: str, event: Any = None) -> str:
    """Return what of a file may be said in a problem: a value without quotes is easily taken for an alias, a tag or a key.

    It is judged by the document of *event* alone, where that is known: what is beside a Secret in a file may be told.
    """
    return (
        HIDDEN
        if text and may_hold_secrets(data if event is None else _document_at(data, event.start_mark.index))
        else text
    )


def _document_at(data: bytes, index: int) -> bytes:
    """Return the document that the character *index* is in, by where libyaml says that it is: what it takes for lines isn't what others do."""
    text = data.decode(errors="replace")
    after = _BOUNDARY.search(text, index + 1)
    return text[_begin_of(text, index) : after.start() if after else len(text)].encode(errors="replace")


def _begin_of(text: str, index: int) -> int:
    """Return where the document begins that the character *index* is in. It is looked for a short way back first: there may be many documents, and many problems."""
    back = _SHORT_WAY
    while True:
        start = max(index - back, 0)
        marks = _BOUNDARY.finditer(text, start, index + _BOUNDARY_LENGTH)
        found = [match.start() for match in marks if match.start() <= index]
        if found or not start:
            return found[-1] if found else 0
        back *= 2


_SHORT_WAY = 4096
_BOUNDARY_LENGTH = 4  # with the blank behind it: one that begins at a character ends so far on
_BOUNDARY = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
