"""Reading JSON text as kubectl does: values one after the other, into plain trees.

Pure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, NoReturn

from msgspec import Struct

from kubectl_reconcile.core.manifests.limits import MAX_DEPTH, MAX_WEIGHT, EndOfReadingError, too_deep, too_heavy
from kubectl_reconcile.core.manifests.scalars import number_of_server


class Document(Struct, frozen=True):
    """One document of a file: its tree, its number in the file from 0, the line of its first key, and its weight (as of ``MAX_WEIGHT``)."""

    tree: Any
    number: int
    line: int
    weight: int = 0


class DuplicateKeyError(Exception):
    """A key that an object has twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise DuplicateKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return tree


def _refuse_constant(name: str) -> NoReturn:
    raise EndOfReadingError(0, f"{name} is not a JSON number", "quote it if it is text")


def _json_number(text: str) -> int | float:
    return number_of_server(float(text))


def _json_integer(text: str) -> int | float:
    return number_of_server(int(text) if len(text) <= 20 else float(text))


_JSON = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_json_number, parse_int=_json_integer
)
_JSON_SPACE = re.compile(r"[ \t\r\n]*")


def documents(text: str) -> list[Document]:
    """Return the JSON values that *text* has one after the other; all or none.

    Raises:
        json.JSONDecodeError: it isn't JSON.
        DuplicateKeyError: an object has a key twice.
        EndOfReadingError: it can't be read to its end.
    """
    found: list[Document] = []
    at = _JSON_SPACE.match(text).end()  # type: ignore[union-attr]  # matches nothing at the least
    while at < len(text):
        line = text.count("\n", 0, at) + 1
        try:
            tree, end = _JSON.raw_decode(text, at)
        except RecursionError:
            raise too_deep(line) from None
        except OverflowError as error:
            raise EndOfReadingError(line, str(error)) from None
        found.append(Document(tree, len(found), line, _weight_of(tree, line) + (end - at >> 5)))
        at = _JSON_SPACE.match(text, end).end()  # type: ignore[union-attr]
    return found


def _weight_of(tree: Any, line: int) -> int:
    """Return how many nodes there are; refuse what is too deep or heavy, and half a surrogate pair, which no UTF-8 can hold."""
    weight, level, depth = 0, [tree], 0
    while level:
        if (depth := depth + 1) > MAX_DEPTH and any(isinstance(node, dict | list) for node in level):
            raise too_deep(line)
        if (weight := weight + len(level)) > MAX_WEIGHT:
            raise too_heavy(line)
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node.values())
                _check_text("".join(node), line)
            elif isinstance(node, list):
                below.extend(node)
            elif isinstance(node, str):
                _check_text(node, line)
        level = below
    return weight


def _check_text(text: str, line: int) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise EndOfReadingError(
            line, f"{half} is half of a surrogate pair", "write both halves, or the character itself"
        ) from None
