"""The patterns of .gitignore, matched as git matches them, in time that no pattern can run away with.

Vocabulary follows gitignore(5): a pattern with a slash that isn't its last character is *anchored* to the folder of its
file, another one is held against names anywhere below; one that ends in a slash matches folders only; ``!`` takes back in.
Like git's wildmatch.c, all of this is about bytes: ``?`` is one byte.

A pattern becomes a regular expression in which nothing is ever tried twice. Between two stars stand tokens of one byte
each, so if they match somewhere, it is right to take the first place: whatever a later star needs is still ahead. Each
such piece is an atomic group, and the time for one name is at most its length times the pattern's. Without that, thirty
stars take longer than a day.

Pure.
"""

from __future__ import annotations

import re
from typing import Final, Self

from msgspec import Struct

LONGEST: Final = 256
"""Bytes of a pattern, at most."""

_SPECIAL: Final = frozenset(b"*?[\\")
_STAR, _SLASH, _BACKSLASH, _NOTHING = b"*"[0], b"/"[0], b"\\"[0], 0
_CLASSES: Final = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e",
    b"lower": rb"a-z",
    b"print": rb"\x20-\x7e",
    b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb" \t\n\x0b\x0c\r",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}


class NoPatternError(ValueError):
    """A line that isn't taken as a pattern; the message says why not. *hides*: it may have been meant to hide files."""

    def __init__(self, message: str, *, hides: bool = False) -> None:
        self.hides = hides
        super().__init__(message)


class IgnorePattern(Struct, frozen=True):
    """One pattern. *anchored* is held against the path below its folder, another one against the name alone."""

    expression: re.Pattern[bytes]
    anchored: bool
    folders_only: bool
    takes_back: bool

    @classmethod
    def parse(cls, line: bytes) -> Self | None:
        """Read one line; None if it is empty, a comment, or one that git takes and that matches nothing.

        Raises:
            NoPatternError: it is too long, or nothing but ``!``.
        """
        text = _trimmed(line)
        if not text or text.startswith(b"#"):
            return None
        takes_back = text.startswith(b"!")
        text = text.removeprefix(b"!")
        if not text:
            raise NoPatternError("isn't a pattern")
        if len(text) > LONGEST:
            message = f"is longer than {LONGEST} bytes; nothing of this folder is applied"
            raise NoPatternError(message, hides=True)
        folders_only = text.endswith(b"/")
        text = text[:-1] if folders_only else text
        anchored = b"/" in text
        expression = _expression(text.removeprefix(b"/"), anchored=anchored)
        return cls(re.compile(expression, re.DOTALL), anchored, folders_only, takes_back) if expression else None

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """Return whether the pattern matches *path*, as seen from the folder of the pattern's file."""
        if self.folders_only and not is_folder:
            return False
        return self.expression.match(path if self.anchored else path.rpartition(b"/")[2]) is not None


def _trimmed(line: bytes) -> bytes:
    """Return a line without the spaces at its end, unless a backslash keeps the first of them."""
    kept = line.rstrip(b" ")
    escaped = (len(kept) - len(kept.rstrip(b"\\"))) % 2
    return kept + b" " if escaped and len(kept) < len(line) else kept


def _expression(pattern: bytes, *, anchored: bool) -> bytes:
    """Return the regular expression for a pattern; none if git takes it and matches nothing with it."""
    literal = next((at for at, byte in enumerate(pattern) if byte in _SPECIAL), len(pattern))
    # git compares what stands before the first special character by itself, and has wildmatch.c begin behind it.
    try:
        pieces = _pieces(pattern[literal:], anchored=anchored)
    except _MatchesNothingError:
        return b""
    return re.escape(pattern[:literal]) + pieces if pattern else b""


class _MatchesNothingError(Exception):
    """A pattern that git gives up on whatever it is held against: an unclosed or unknown class, a backslash at the end."""


class _Groups(Struct):
    """An expression that grows: what follows a star of any kind is a group, and no group is entered twice."""

    text: bytes = b""
    inner: bool = False
    outer: bool = False

    def star(self) -> None:
        """Begin what follows ``*``."""
        self._end_inner()
        self.text += b"(?>[^/]*?"
        self.inner = True

    def stars(self, beginning: bytes) -> None:
        """Begin what follows ``**``."""
        self._end_inner()
        self.text += (b")" if self.outer else b"") + b"(?>" + beginning
        self.outer = True

    def end(self) -> bytes:
        """Return the whole: what it matches ends where the name ends."""
        self.text += rb"\Z"
        self._end_inner()
        return self.text + (b")" if self.outer else b"")

    def _end_inner(self) -> None:
        self.text += b")" if self.inner else b""
        self.inner = False


def _pieces(pattern: bytes, *, anchored: bool) -> bytes:
    """Return the expression for what begins with a special character."""
    groups = _Groups()
    at = 0
    while at < len(pattern):
        byte = pattern[at]
        if byte == _STAR:
            at = _stars(pattern, at, groups, anchored=anchored)
        elif byte == b"?"[0]:
            groups.text += b"[^/]"
            at += 1
        elif byte == b"["[0]:
            members, at = _class(pattern, at + 1)
            groups.text += members
        else:
            at += byte == _BACKSLASH
            groups.text += re.escape(bytes([_byte(pattern, at)]))
            at += 1
    return groups.end()


def _stars(pattern: bytes, at: int, groups: _Groups, *, anchored: bool) -> int:
    """Take in the stars at *at*; return where the pattern goes on. Two of them cross slashes if they fill a whole part."""
    end = at
    while end < len(pattern) and pattern[end] == _STAR:
        end += 1
    rest = pattern[end:]
    whole = (at == 0 or pattern[at - 1] == _SLASH) and (not rest or rest.startswith((b"/", rb"\/")))
    if not (anchored and end - at > 1 and whole):
        groups.star()
        return end
    if rest.startswith(b"/"):  # ``**/`` may be nothing at all
        groups.stars(b"(?:|.*?/)")
        return end + 1
    groups.stars(b".*?")
    return end


def _byte(pattern: bytes, at: int) -> int:
    """Return the byte at *at*, which has to be there."""
    if at >= len(pattern):
        raise _MatchesNothingError
    return pattern[at]


def _class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Return the expression for the class whose content begins at *at*, and where the pattern goes on behind it."""
    negated = _byte(pattern, at) in b"!^"
    at += negated
    members, previous = b"", _NOTHING
    while True:
        found, previous, at = _member(pattern, at, previous)
        members += found
        if _byte(pattern, at) == b"]"[0]:
            break
    inside = b"[" + members + b"]" if members else b"(?!)"
    return (b"(?:(?!" + inside + b")[^/])" if negated else b"(?:(?!/)" + inside + b")"), at + 1


def _member(pattern: bytes, at: int, previous: int) -> tuple[bytes, int, int]:
    """Return one member of a class, the byte that a range may begin with, and where the next member stands."""
    byte = _byte(pattern, at)
    if byte == _BACKSLASH:
        byte = _byte(pattern, at + 1)
        return _one(byte), byte, at + 2
    if byte == b"-"[0] and previous and pattern[at + 1 : at + 2] not in {b"", b"]"}:
        at += 1 + (pattern[at + 1] == _BACKSLASH)
        last = _byte(pattern, at)
        return (_one(previous) + b"-" + _one(last) if previous <= last else b""), _NOTHING, at + 1
    if byte == b"["[0] and pattern[at + 1 : at + 2] == b":":
        end = pattern.find(b"]", at + 2)
        if end < 0:
            raise _MatchesNothingError
        name = pattern[at + 2 : end]
        if name.endswith(b":"):
            if name[:-1] not in _CLASSES:
                raise _MatchesNothingError
            return _CLASSES[name[:-1]], _NOTHING, end + 1
    return _one(byte), byte, at + 1


def _one(byte: int) -> bytes:
    return b"\\x%02x" % byte
