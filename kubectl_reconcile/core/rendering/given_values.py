"""Values of a chart as a person gives them on a command line: those of files, and single ones in Helm's syntax of ``--set``. Others are put together likewise.

``a.b=1,list[0].name=web,names={x,y}`` sets three values; a backslash before a dot, a comma, a bracket or an equals sign makes it part of a name or a value. ``true``,
``false``, ``null`` and whole numbers are what they look like, all else is text. Later ones win, and maps are merged.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

_LONGEST_LIST: Final = 1000
"""As many entries an index may make."""

_PART: Final = re.compile(r"(?:[^\\.\[\]]|\\.)+|\[\d+\]|\.", re.DOTALL)
_WHOLE: Final = re.compile(r"[+-]?[1-9][0-9]{0,17}|0")
_WORDS: Final = {"true": True, "false": False, "null": None}

_Step: TypeAlias = str | int


class GivenValueError(ValueError):
    """What was given can't be meant so."""


def merged(files: Iterable[Mapping[str, Any]], sets: Iterable[str]) -> dict[str, Any]:
    """Return the values of *files*, the last of which wins, and over them what is *set*.

    Raises:
        GivenValueError: what is set can't be meant so.
    """
    found: dict[str, Any] = {}
    for values in files:
        found = over(found, values)
    for text in sets:
        for name, value in _pairs(text):
            found = _put(found, _steps(name), value, name)
    return found


def over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return two maps as one, in which what is *above* wins; a null stays, for it takes away what the chart has there."""
    return {
        **below,
        **{
            name: over(known, value) if isinstance(known := below.get(name), Mapping) and isinstance(value, Mapping) else value
            for name, value in above.items()
        },
    }  # fmt: skip


def placed(values: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Return *values* with another one at the place that *name* says.

    Raises:
        GivenValueError: it says none.
    """
    found: dict[str, Any] = _put(values, _steps(name), value, name)
    return found


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    for pair in _split(text, ","):
        name, *rest = _split(pair, "=", most=1)
        if not name or not rest:
            raise GivenValueError(f"{pair[:80]!r} isn't NAME=VALUE")
        yield name, _value(rest[0])


def _split(text: str, mark: str, *, most: int = 0) -> list[str]:
    """Return the parts of a text between marks that no backslash stands before, and that aren't in braces."""
    parts: list[str] = []
    begin, depth, skip = 0, 0, False
    for index, each in enumerate(text):
        if skip:
            skip = False
        elif each == "\\":
            skip = True
        elif each in "{}":
            depth += 1 if each == "{" else -1
        elif each == mark and depth <= 0 and not (most and len(parts) == most):
            parts.append(text[begin:index])
            begin = index + 1
    return [*parts, text[begin:]]


def _value(text: str) -> Any:
    if text.startswith("{") and text.endswith("}"):
        inner = text[1:-1]
        return [_scalar(each) for each in _split(inner, ",")] if inner else []
    return _scalar(text)


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    return int(text) if _WHOLE.fullmatch(text) else _plain(text)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _steps(name: str) -> Sequence[_Step]:
    parts = _PART.findall(name)
    steps: list[_Step] = [int(part[1:-1]) if part.startswith("[") else _plain(part) for part in parts if part != "."]
    if "".join(parts) != name or not steps or isinstance(steps[0], int) or "." in {parts[0], parts[-1]}:
        raise GivenValueError(f"{name[:80]!r} isn't a name of a value, such as image.tag or hosts[0].name")
    return steps


def _put(tree: Any, steps: Sequence[_Step], value: Any, name: str) -> Any:
    if not steps:
        return value
    step, *below = steps
    if isinstance(step, str):
        known = tree if isinstance(tree, Mapping) else {}
        return {**known, step: _put(known.get(step), below, value, name)}
    if step >= _LONGEST_LIST:
        raise GivenValueError(f"{name[:80]!r}: a list may have up to {_LONGEST_LIST} entries")
    entries = list(tree) if isinstance(tree, list) else []
    entries += [None] * (step + 1 - len(entries))
    entries[step] = _put(entries[step], below, value, name)
    return entries
