"""What reaches a terminal: clean text, colour where it is welcome, tables that fit.

Vocabulary: a *terminal* says how lines (of ``views.text``) are written to one stream.

Rules: whatever is shown passes through `clean` here and nowhere else, so renderers needn't think of
it. What is shown never breaks a line in two; a person's screen is there to cut tables for, and to wrap messages at its width, but
for a command in one: what is copied is run.

Never: lets a control character, an escape sequence or a change of direction through.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import IO

from msgspec import Struct

from kubectl_reconcile.views.text import Line, Span, Tone, clean

_COLOURS = {
    Tone.ADDED: "32",
    Tone.REMOVED: "31",
    Tone.PLACE: "36",
    Tone.TITLE: "1",
    Tone.ASIDE: "2",
    Tone.GOOD: "32;1",
    Tone.WARNING: "33",
    Tone.BAD: "31;1",
}
"""The code of each tone's colour, for terminals that have colours."""


class Terminal(Struct, frozen=True):
    """How to write to standard output, or with *is_stderr* to standard error.

    *width* is None where no person's screen limits a line.
    """

    colour: bool = False
    width: int | None = None
    is_stderr: bool = False

    @classmethod
    def of(cls, stream: IO[str], colour: str = "auto", environment: Mapping[str, str] = os.environ) -> Terminal:
        """Return what is known of *stream*. *colour* is ``auto``, ``always`` or ``never``.

        ``auto`` colours a terminal, unless it is a dumb one or ``NO_COLOR`` is set.
        """
        is_screen = stream.isatty()
        welcome = is_screen and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
        wanted = colour == "always" or (colour == "auto" and welcome)
        width = shutil.get_terminal_size().columns if is_screen else None
        return cls(colour=wanted, width=width, is_stderr=stream is sys.stderr)

    def text(self, one: Line) -> str:
        """Return *one* line as it is written."""
        return "".join(self._painted(span) for span in one)

    def _painted(self, span: Span) -> str:
        text = clean(span.text)
        return f"\x1b[{code}m{text}\x1b[0m" if (code := _COLOURS.get(span.tone)) and self.colour and text else text

    @property
    def stream(self) -> IO[str]:
        """Where lines go. What was written to standard output before goes ahead of what is written to standard error."""
        if not self.is_stderr:
            return sys.stdout
        sys.stdout.flush()
        return sys.stderr

    def write(self, lines: Iterable[Line]) -> None:
        """Write *lines*, each with its end, and messages within the width of a person's screen."""
        stream = self.stream
        fitting = (part for one in lines for part in (wrapped(one, self.width) if _is_message(one) else (one,)))
        stream.writelines(f"{self.text(one)}\n" for one in fitting)
        stream.flush()

    def rewind(self, lines: int) -> None:
        """Go back to where the last *lines* lines of a screen began, and clear everything from there."""
        stream = self.stream
        stream.write(f"\x1b[{lines}F\x1b[J")
        stream.flush()


_MESSAGES = ("error: ", "warning: ", "hint: ")
_WORD = re.compile(r"kubectl .*|\S+ *| +", re.DOTALL)
_INDENT = "  "


def wrapped(one: Line, width: int | None) -> list[Line]:
    """Return *one* line as lines of *width* at most, broken between words; a command stays whole, for it is copied."""
    words = [Span(word, span.tone) for span in one for word in _WORD.findall(clean(span.text))]
    if width is None or sum(len(word.text) for word in words) <= width:
        return [one]
    made: list[list[Span]] = [[]]
    taken = 0
    for word in words:
        if made[-1] and taken + len(word.text.rstrip()) > width:
            made.append([Span(_INDENT)])
            taken = len(_INDENT)
        made[-1].append(word)
        taken += len(word.text)
    return [_joined(spans) for spans in made]


def _is_message(one: Line) -> bool:
    """Tell whether *one* is prose: an error, what to do, or a sentence of one tone that wants to be read."""
    if one and one[0].text.startswith(_MESSAGES):
        return True
    return len(one) == 1 and one[0].tone in (Tone.BAD, Tone.WARNING) and not one[0].text.startswith(" ")


def _joined(spans: Sequence[Span]) -> Line:
    """Return *spans* with neighbours of one tone as one."""
    groups = ((tone, "".join(span.text for span in some)) for tone, some in groupby(spans, lambda span: span.tone))
    return tuple(Span(text, tone) for tone, text in groups)


def terminals(colour: str) -> tuple[Terminal, Terminal]:
    """Return how to write to standard output and to standard error."""
    return Terminal.of(sys.stdout, colour), Terminal.of(sys.stderr, colour)


def table(titles: Sequence[str], rows: Iterable[Sequence[Span]], width: int | None = None) -> list[Line]:
    """Return a table in kubectl's manner: three spaces between columns, titles in capitals.

    Beyond *width* the last column is cut, ending in an ellipsis; other columns never are, since
    they hold names.
    """
    cells = [
        tuple(Span(title) for title in titles),
        *(tuple(Span(clean(text.replace("\t", " ")), tone) for text, tone in row) for row in rows),
    ]
    widths = [max(len(row[at].text) for row in cells) for at in range(len(titles))]
    room = None if width is None else max(width - sum(widths[:-1]) - 3 * (len(widths) - 1), 12)
    return [_row(row, widths, room) for row in cells]


def _row(row: Sequence[Span], widths: Sequence[int], room: int | None) -> Line:
    *first, last = row
    text = last.text if room is None or len(last.text) <= room else f"{last.text[: room - 1]}…"
    padded = [
        part
        for span, wide in zip(first, widths, strict=False)
        for part in (span, Span(" " * (wide - len(span.text) + 3)))
    ]
    return (*padded, Span(text, last.tone)) if text else tuple(padded[:-1])
