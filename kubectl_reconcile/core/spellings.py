"""Spellings: the ways in which a text is written within another one, as servers and libraries quote what they complain of.

Vocabulary: a *reading* of a text is what it says to somebody who undoes one kind of quoting, or several one after the other: escapes
of Go, JSON, YAML, Python and git, doubled quotes, entities of HTML, percent signs of URLs, base64 wherever it begins, base32, and bytes as
numbers. Each of its characters knows from where in the text it comes. A reading is *folded*: blanks and what can't be printed are one space, since
whoever quotes a text may fold its lines, and whoever shows it keeps control characters from a terminal.

Whether a value is in a text is asked of all readings at once, so no spelling has to be foreseen in combination with another.

Texts and values are other people's, and may be long and made to be compared forever. The comparisons are counted, and a text that takes too many
is hidden whole. Most texts hold no value: where each of their characters is from is found out only for those that may.

Pure: text in, places out.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, pairwise
from typing import Final

from msgspec import Struct

SHORT: Final = 4
"""Characters: what isn't longer is looked for only where it stands alone, since "a" is in every sentence."""

_CUT: Final = 8
"""Characters of a value's beginning or end that tell it where a text was cut short."""

_DEEP: Final = ((8 * 1024, 3), (64 * 1024, 2))
"""Up to how many characters a text is read how often over; longer ones once."""

_MOST_READINGS: Final = 64
_MOST_COMPARED: Final = 2_000_000
"""Characters of matches in all readings of a text: some tenths of a second. A value that doesn't repeat itself comes nowhere near."""
_PIECE: Final = 64 * 1024
_BREAK: Final = "\ue000"
_ELLIPSES: Final = ("…", "...")


class _Reading(Struct, frozen=True):
    """A text as somebody reads it, where each character *starts* and *ends* in the text that was given, and whether it was *loose*ly read: by what may be no quoting at all.

    Without places it is just the text.
    """

    text: str
    places: tuple[array[int], array[int]] | None = None
    loose: bool = False

    @classmethod
    def of(cls, text: str) -> _Reading:
        """Return a text that was given, with the places of its characters."""
        return cls(text, (array("I", range(len(text))), array("I", range(1, len(text) + 1))))

    def with_places(self) -> tuple[array[int], array[int]]:
        """Return where each character starts and ends."""
        return self.places or (array("I"), array("I"))


class _TooMuchError(Exception):
    """A text and a value take more comparisons than they may."""


class _Comparisons(Struct):
    """How many more characters may be compared."""

    left: int = _MOST_COMPARED

    def spend(self, number: int) -> None:
        """Count some.

        Raises:
            _TooMuchError: there were too many.
        """
        self.left -= number
        if self.left < 0:
            raise _TooMuchError


_Meaning = Callable[[re.Match[str]], str | None]


class Sought(Struct, frozen=True):
    """Values that are looked for in texts: their *needles*, the longest first, and the *signs* of which a text has one if it holds any."""

    needles: tuple[str, ...]
    signs: tuple[str, ...]

    @classmethod
    def of(cls, values: Iterable[str]) -> Sought:
        """Return what is looked for of these values."""
        needles = sorted({needle for value in values for needle in _needles(value)}, key=len, reverse=True)
        return cls(tuple(needles), tuple(dict.fromkeys(sign for needle in needles for sign in _signs(needle))))

    def places_in(self, text: str) -> list[tuple[int, int]]:
        """Return where in *text* the values stand in any spelling, whole, line by line, or cut short: places in order that don't overlap.

        Of a text that takes too long to look through it is all of it.
        """
        if not self.needles or not text or not any(map(self._may_be_in, _readings(_Reading(text)))):
            return []
        comparisons = _Comparisons()
        try:
            found = {
                place for each in _readings(_Reading.of(text)) for place in _found_in(each, self.needles, comparisons)
            }
        except _TooMuchError:
            return [(0, len(text))]
        joined: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if joined and start < joined[-1][1]:
                joined[-1] = joined[-1][0], max(end, joined[-1][1])
            else:
                joined.append((start, end))
        return joined

    def _may_be_in(self, reading: _Reading) -> bool:
        return any(sign in reading.text for sign in self.signs)


# --- what is looked for ----------------------------------------------------------------------------------------


def _needles(value: str) -> Iterator[str]:
    """Yield what is looked for of a value: all of it, forwards and backwards, its lines, and of a short one how base64 has it, of which a part may be hidden."""
    whole = _plain(value)
    if not whole:
        return
    yield whole
    if len(whole) > SHORT:
        yield whole[::-1]
    if any("\udc80" <= char <= "\udcff" for char in whole):
        yield "".join("�" if "\udc80" <= char <= "\udcff" else char for char in whole)
    if len(whole) <= SHORT:
        for text in {value, whole}:
            encoded = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
            yield from {encoded, encoded.rstrip("=")}
    lines = [line for each in value.splitlines() if (line := _plain(each))]
    yield from (line for line in lines if len(lines) > 1 and (len(line) > SHORT or line.isalnum()))


def _signs(needle: str) -> Iterator[str]:
    """Yield words of which one is in a text that has *needle* in it, whole or cut short: folding changes none."""
    for part in (needle[:_CUT], needle[-_CUT:]):
        yield max(part.split(" "), key=len)


def _plain(text: str) -> str:
    """Return a value as readings have it: on one line, without blanks around it."""
    return " ".join("".join(" " if _is_blank(char) else char for char in text).split())


def _is_blank(char: str) -> bool:
    return char.isspace() or not (char.isprintable() or char == _BREAK or "\udc80" <= char <= "\udcff")


# --- where it is found -----------------------------------------------------------------------------------------


def _found_in(reading: _Reading, needles: Iterable[str], comparisons: _Comparisons) -> Iterator[tuple[int, int]]:
    folded = _folded(reading)
    starts, ends = folded.with_places()
    for needle in needles:
        for start, end in _spans(folded, needle, comparisons):
            yield starts[start], ends[end - 1]


def _spans(folded: _Reading, needle: str, comparisons: _Comparisons) -> Iterator[tuple[int, int]]:
    if len(needle) <= SHORT:
        if not folded.loose:
            alone = re.compile(f"(?<![A-Za-z0-9]){re.escape(needle)}(?![A-Za-z0-9])")
            yield from (match.span() for match in alone.finditer(folded.text))
        return
    for start in _each(folded.text, needle, comparisons):
        yield start, start + len(needle)
    if len(needle) > _CUT:
        yield from _cut(folded.text, needle, comparisons)


def _each(text: str, part: str, comparisons: _Comparisons) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        comparisons.spend(len(part))
        yield at
        at = text.find(part, at + 1)


def _cut(text: str, needle: str, comparisons: _Comparisons) -> Iterator[tuple[int, int]]:
    """Yield where no more than the beginning of *needle* stands because the text was cut there, or its end.

    An ellipsis tells; where a text just ends, or begins, it takes more of the value, since many a word begins as a value does.
    """
    for start in _each(text, needle[:_CUT], comparisons):
        end = start + _CUT
        while end < len(text) and end - start < len(needle) and text[end] == needle[end - start]:
            end += 1
        comparisons.spend(end - start)
        if text.startswith((_BREAK, *_ELLIPSES), end) or (end == len(text) and end - start > 2 * _CUT):
            yield start, end
    for at in _each(text, needle[-_CUT:], comparisons):
        start, end = at, at + _CUT
        while start > 0 and end - start < len(needle) and text[start - 1] == needle[start - end - 1]:
            start -= 1
        comparisons.spend(end - start)
        if text.endswith((_BREAK, *_ELLIPSES, "…}"), 0, start) or (start == 0 and end - start > 2 * _CUT):
            yield start, end


# --- readings --------------------------------------------------------------------------------------------------


def _readings(first: _Reading) -> Iterator[_Reading]:
    """Yield the text as it is, and as it reads once or several times over; none is kept that isn't read again."""
    yield first
    known, last = {first.text}, [first]
    deep = next((deep for most, deep in _DEEP if len(first.text) <= most), 1)
    for left in reversed(range(deep)):
        fresh: list[_Reading] = []
        for reading in last:
            for sign, pattern, meaning, loose in _QUOTINGS:
                read = _read(reading, pattern, meaning, loose=loose) if sign in reading.text else None
                if read is not None and read.text not in known and len(known) < _MOST_READINGS:
                    known.add(read.text)
                    yield read
                    fresh += [read] if left else []
        last = fresh


def _read(reading: _Reading, pattern: re.Pattern[str], meaning: _Meaning, *, loose: bool) -> _Reading | None:
    """Return a reading with each match of *pattern* as what it means, None where nothing means anything else."""
    meant = [
        (*match.span(), text)
        for match in pattern.finditer(reading.text)
        if (text := meaning(match)) is not None and text != match[0]
    ]
    if not meant:
        return None
    parts: list[str] = []
    at = 0
    for start, end, text in meant:
        parts += (reading.text[at:start], text)
        at = end
    read = "".join([*parts, reading.text[at:]])
    places = _moved(reading.places, meant) if reading.places is not None else None
    return _Reading(read, places, reading.loose or loose)


def _moved(
    places: tuple[array[int], array[int]], meant: Iterable[tuple[int, int, str]]
) -> tuple[array[int], array[int]]:
    """Return the places of the characters of a text in which others stand for some."""
    starts, ends = array("I"), array("I")
    at = 0
    for start, end, text in meant:
        starts += places[0][at:start] + array("I", [places[0][start]]) * len(text)
        ends += places[1][at:start] + array("I", [places[1][end - 1]]) * len(text)
        at = end
    return starts + places[0][at:], ends + places[1][at:]


def _folded(reading: _Reading) -> _Reading:
    if reading.text.isprintable() and "  " not in reading.text:
        return reading
    kept, last = bytearray(), ""
    pieces: list[str] = []
    for begin in range(0, len(reading.text), _PIECE):  # characters by themselves take much more room than a text
        shown = [" " if _is_blank(char) else char for char in reading.text[begin : begin + _PIECE]]
        keeps = [char != " " or before != " " for before, char in pairwise([last, *shown])]
        pieces.append("".join(compress(shown, keeps)))
        kept += bytes(keeps)
        last = shown[-1]
    starts, ends = (array("I", compress(places, kept)) for places in reading.with_places())
    return _Reading("".join(pieces), (starts, ends), reading.loose)


_LETTERS: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0",
    "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip

_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<u>[0-9a-fA-F]{4})|u\{(?P<code>[0-9a-fA-F]{1,6})\}|U(?P<U>[0-9a-fA-F]{8})|x(?P<x>[0-9a-fA-F]{2})"
    r"|(?P<octal>[0-7]{3})|(?P<letter>[abefnrtv0N_LP])|(?P<fold>\r?\n[ \t]*)|(?P<itself>[^A-Za-z0-9]))"
)
_ESCAPED_BYTES: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\[0-3][0-7]{2})+")
_ESCAPED_BYTE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3}))")
_OTHER_ESCAPE: Final = re.compile(f"{_ESCAPED_BYTES.pattern}|{_ESCAPE.pattern}")


def _escaped(match: re.Match[str]) -> str | None:
    r"""Return what an escape stands for; ``\xe9`` is a character, as in YAML and Python."""
    if match["high"]:
        return chr(0x10000 + ((int(match["high"], 16) - 0xD800) << 10) + int(match["low"], 16) - 0xDC00)
    if code := match["u"] or match["code"] or match["U"] or match["x"]:
        number = int(code, 16)
    elif match["octal"]:
        number = int(match["octal"], 8)
    elif match["letter"]:
        return _LETTERS[match["letter"]]
    else:
        return "" if match["fold"] else match["itself"]
    return chr(number) if number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else None


def _escaped_bytes(match: re.Match[str]) -> str | None:
    r"""Return what an escape stands for; ``\xc3\xa9`` and ``\303\251`` are one character, as in Go and git."""
    if not _ESCAPED_BYTES.fullmatch(match[0]):
        return _escaped(match)
    return _text(bytes(int(x, 16) if x else int(octal, 8) for x, octal in _ESCAPED_BYTE.findall(match[0])))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _percent(match: re.Match[str]) -> str:
    return " " if match[0] == "+" else _text(bytes.fromhex(match[0].replace("%", "")))


def _encoded(match: re.Match[str]) -> str | None:
    """Return what a run of base64 holds: four readings, since it may begin anywhere in it."""
    run = re.sub(r"[^A-Za-z0-9+/]", "", match[0].replace("-", "+").replace("_", "/"))
    meant = []
    for first in range(4):
        part = run[first:]
        part = part[: len(part) - 1] if len(part) % 4 == 1 else part
        try:
            meant.append(_text(base64.b64decode(part + "=" * (-len(part) % 4))))
        except (binascii.Error, ValueError):
            continue
    return _BREAK.join(["", *meant, ""])


def _base32(match: re.Match[str]) -> str | None:
    """Return what a run of base32 holds, read from its beginning."""
    run = match[0].rstrip("=").upper()
    whole = run[: len(run) - 1] if len(run) % 8 in {1, 3, 6} else run
    try:
        return _text(base64.b32decode(whole + "=" * (-len(whole) % 8)))
    except (binascii.Error, ValueError):
        return None


def _parted(match: re.Match[str]) -> str:
    """Return what bytes say that are written in hexadecimal, each by itself."""
    return _text(bytes.fromhex(re.sub(r"[^0-9a-fA-F]", "", match[0])))


def _numbers(match: re.Match[str]) -> str | None:
    """Return what bytes say that are written as numbers: as Go prints them, or in hexadecimal."""
    if match["hex"]:
        return _text(bytes.fromhex(match["hex"][: len(match["hex"]) // 2 * 2]))
    numbers = [int(each, 0) for each in re.findall(r"0x[0-9a-fA-F]+|(?<![0-9a-fA-Fx])[1-9]\d*|0(?!x)", match[0])]
    return _text(bytes(numbers)) if all(number < 256 for number in numbers) else None


_QUOTINGS: Final[tuple[tuple[str, re.Pattern[str], _Meaning, bool], ...]] = (
    ("\\", _ESCAPE, _escaped, False),
    ("\\", _OTHER_ESCAPE, _escaped_bytes, False),
    ("&", re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|\w{2,8});"), lambda match: html.unescape(match[0]), False),
    ("'", re.compile(r"'\\''|'\"'\"'|''"), lambda _: "'", False),
    ('"', re.compile(r'""'), lambda _: '"', False),
    ("%", re.compile(r"(?:%[0-9a-fA-F]{2})+"), _percent, False),
    ("", re.compile(r"(?:%[0-9a-fA-F]{2})+|\+"), _percent, False),
    (
        "",
        re.compile(r"[A-Za-z0-9+/_-]{7,}(?:\s+[A-Za-z0-9+/_-]{4,})*(?:\s+[A-Za-z0-9+/_-]{2,3}(?==))?={0,2}"),
        _encoded,
        True,
    ),
    (
        "",
        re.compile(
            r"(?<![0-9a-fA-F])(?P<hex>[0-9a-fA-F]{10,})|(?:(?:0x[0-9a-fA-F]{1,2}|\b\d{1,3}\b)(?:[ ,]+|(?=\W|$))){3,}"
        ),
        _numbers,
        True,
    ),
    ("", re.compile(r"\b[0-9a-fA-F]{2}(?:(?:\s+|[:-])[0-9a-fA-F]{2}\b){4,}"), _parted, True),
    ("", re.compile(r"\b(?:[A-Z2-7]{8,}|[a-z2-7]{16,})={0,6}"), _base32, True),
)
"""What each begins with, for a quick look, how it is found, what it means, and whether that may be no quoting at all."""
