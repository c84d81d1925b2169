"""Ranges of versions, and the newest version of one among names of tags.

Versions are those of Semantic Versioning 2.0.0, with an optional ``v`` before them; a tag that isn't one is passed over. Ranges are written as for Helm and Flux (Masterminds/semver):

- ``1.2.3``, ``>=1.2.3``, ``!=1.2.3``; several, parted by spaces or commas, hold together; ``||`` parts alternatives;
- ``1.2``, ``1.2.x`` and ``*`` leave out what may be anything;
- ``~1.2.3`` lets the last number grow, ``^1.2.3`` all but the first that isn't zero; ``1.2 - 1.4`` is from and to.

A version before a release (``1.2.3-rc.1``) is in a range only where that names one, too: ``>=1.2.3-0``. What stands after a ``+`` plays no part in the order.

Pure: text in, text out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Self

from msgspec import Struct

_NUMBER: Final = r"(?:0|[1-9][0-9]{0,17})"
_WORDS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(rf"v?({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_WORDS}))?(?:\+{_WORDS})?")
_PART: Final = rf"({_NUMBER}|[xX*])"
_BOUND: Final = re.compile(
    rf"(=|==|!=|>=|=>|<=|=<|>|<|~>|~|\^)?\s*v?{_PART}(?:\.{_PART})?(?:\.{_PART})?(?:-({_WORDS}))?(?:\+{_WORDS})?"
)
_HYPHEN: Final = re.compile(r"(\S+)\s+-\s+(\S+)")
_LONGEST: Final = 256


class RangeError(ValueError):
    """A text that is no range of versions; the message says why, as a sentence about it."""


class Version(NamedTuple):
    """A version in the order of Semantic Versioning: *before* are the words of one before a release, empty for a release."""

    major: int
    minor: int
    patch: int
    is_release: bool
    before: tuple[tuple[bool, int, str], ...]

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return the version that *text* is, None where it isn't one."""
        found = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
        return None if found is None else cls.made(int(found[1]), int(found[2]), int(found[3]), found[4] or "")

    @classmethod
    def made(cls, major: int, minor: int = 0, patch: int = 0, before: str = "") -> Self:
        """Return a version of its parts; numbers are before words."""
        words = before.split(".") if before else []
        return cls(major, minor, patch, not before, tuple(_word(each) for each in words))


def _word(text: str) -> tuple[bool, int, str]:
    return (False, int(text), "") if text.isascii() and text.isdecimal() and len(text) < 19 else (True, 0, text)


class _Bound(Struct, frozen=True):
    """From *least* on and below *end*, None for no end; or, with *is_not*, anywhere else."""

    least: Version
    end: Version | None
    before: bool
    is_not: bool = False

    def has(self, version: Version) -> bool:
        if not version.is_release and not self.before:
            return False
        return (self.least <= version and (self.end is None or version < self.end)) is not self.is_not


class VersionRange(Struct, frozen=True):
    """Versions that are in all bounds of one of the *alternatives*; *text* is how it was written."""

    text: str
    alternatives: tuple[tuple[_Bound, ...], ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the range that *text* is.

        Raises:
            RangeError: it isn't one.
        """
        if len(text) > _LONGEST:
            raise RangeError(f"has more than {_LONGEST} characters")
        return cls(text, tuple(_bounds(each) for each in text.split("||")))

    def has(self, version: Version) -> bool:
        """Tell whether a version is in the range."""
        return any(all(bound.has(version) for bound in bounds) for bounds in self.alternatives)

    def newest(self, names: Iterable[str], version_of: Callable[[str], str] = str) -> str:
        """Return the name of the newest version in the range, empty where none is; *version_of* says which version a name is.

        Of several names of one version it is the last in the order of the alphabet, so that it doesn't depend on the order of the names.
        """
        found = ((Version.of(version_of(name)), name) for name in names)
        inside = [(version, name) for version, name in found if version is not None and self.has(version)]
        return max(inside, default=(None, ""))[1]


def _bounds(text: str) -> tuple[_Bound, ...]:
    """Return what holds together."""
    left = _HYPHEN.sub(r">=\1 <=\2", text.strip()).replace(",", " ").strip()
    found = []
    while left:
        bound = _BOUND.match(left)
        rest = left[bound.end() :] if bound is not None else left
        if bound is None or (rest and not rest[0].isspace()):
            raise RangeError(f"has {left[:80]!r}, which is no version or bound, such as 1.2.x or >=1.2.0")
        found.append(_bound(bound))
        left = rest.lstrip()
    if not found:
        raise RangeError("is empty: write * for any version")
    return tuple(found)


def _bound(found: re.Match[str]) -> _Bound:
    before = found[5] or ""
    numbers = _numbers(found)
    if before and len(numbers) < 3:
        raise RangeError("names a version before a release that isn't whole: write 1.2.3-rc.1")
    if not numbers and found[1] not in {None, "=", ">="}:
        raise RangeError(f"has {found[0]!r}, which compares with no version: write * for any")
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    least = Version.made(major, minor, patch, before)
    after = _after(least) if len(numbers) == 3 else _next(numbers, len(numbers))
    first = next((place for place, each in enumerate(numbers) if each), len(numbers) - 1)
    bounds: dict[str, tuple[Version, Version | None]] = {
        "!=": (least, after),
        ">": (after, None) if after is not None else (least, least),
        ">=": (least, None),
        "<": (_FIRST, least),
        "<=": (_FIRST, after),
        "^": (least, _next(numbers, first + 1)),
        "~": (least, _next(numbers, min(len(numbers), 2))),
    }
    operator = _SAME.get(found[1], found[1])
    start, end = bounds.get(operator, (least, after))
    return _Bound(start, end, bool(before), is_not=operator == "!=")


_SAME: Final = {"=>": ">=", "=<": "<=", "~>": "~"}
_FIRST: Final = Version.made(0, 0, 0, "0")


def _numbers(found: re.Match[str]) -> list[int]:
    """Return the numbers that are given, up to the first that may be anything."""
    numbers: list[int] = []
    for each in (found[2], found[3], found[4]):
        if each is None or not each.isdecimal():
            break
        numbers.append(int(each))
    return numbers


def _after(version: Version) -> Version:
    """Return the first that comes after a version."""
    return version._replace(before=(*version.before, (version.is_release, 0, "")))


def _next(numbers: list[int], place: int) -> Version | None:
    """Return where those end whose first numbers, as many as *place*, are these; None for nowhere."""
    if not place:
        return None
    major, minor, patch = [*numbers[: place - 1], numbers[place - 1] + 1, 0, 0][:3]
    return Version.made(major, minor, patch, "0")
