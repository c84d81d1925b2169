"""Reading YAML and JSON text the way Kubernetes reads it, into plain JSON trees.

A *document* is one JSON tree with the line where it starts. Scalars resolve as in kubectl (YAML
1.1 in go-yaml's reading): ``yes`` and ``on`` are true, ``017`` and ``0o17`` are 15, ``1_000`` is
1000, ``1e3`` is 1000, dates and ``1:30`` stay text. Numbers end as the API server holds them: a
whole number within 64 bits is an integer, any other a float. ``<<`` merges in document order.

Stricter than kubectl where kubectl guesses: a duplicate key, a key that isn't text (kubectl turns
``y:`` into ``"true":``), an infinite number and an own tag (``!foo``) are problems.

Input is hostile until proven otherwise. Nothing in it names a class or a file, and what it may
cost is capped: ``MAX_BYTES`` of text, ``MAX_DEPTH`` of nesting, ``MAX_WEIGHT`` once aliases are
written out (so no alias bomb), ``MAX_PROBLEMS`` reported. A syntax error, or a cap, ends the
reading of a file there; any other problem costs its own document only.

Pure: bytes in, values out. Trees may share parts where the text used aliases; treat them as frozen.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs don't re-export it

from kubectl_reconcile.core.objects import Problem

MAX_BYTES = 10 * 1024 * 1024
"""Largest file that is read at all. An API server takes no object beyond 3 MiB."""

MAX_DEPTH = 200
"""Deepest nesting of maps and lists. The deepest CRD schemas in the wild stay below 100."""

MAX_WEIGHT = 500_000
"""Most nodes of a file with its aliases written out; 32 characters of text weigh as much as a node."""

MAX_PROBLEMS = 100
"""Most problems reported of one file."""

Place: TypeAlias = tuple[int | str, ...]
"""Where something stands in a file: the number of its document from 0, then keys and indexes."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its tree, its number in the file from 0, and the line of its first key."""

    tree: Any
    number: int
    line: int


class _EndOfReadingError(Exception):
    """Nothing after this point of the file can be read."""

    def __init__(self, line: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.hint = line, message, hint


def read(data: bytes, path: str) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """Return the documents of a file in order, and everything wrong with it.

    Empty documents are left out. A document with a problem is left out too. Where the file
    can't be read to its end, the documents before that point are returned with the problem.
    """
    documents: list[Document] = []
    problems: list[Problem] = []
    try:
        data = _text(data)
        documents.extend(_documents(data, path, problems))
    except _EndOfReadingError as end:
        problems.append(Problem(path, end.line, end.message, end.hint))
    except RecursionError:  # the caller stands deep already
        problems.append(Problem(path, 0, "nested too deeply"))
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [Problem(path, 0, f"more than {MAX_PROBLEMS} problems; the rest isn't shown")]
    return tuple(documents), tuple(problems)


def lines(data: bytes, places: set[Place]) -> Mapping[Place, int]:
    """Return the line of each of *places* in a file that was read before; those not found are left out."""
    found: dict[Place, int] = {}
    with contextlib.suppress(_EndOfReadingError, yaml.YAMLError, RecursionError):  # what was found up to there stands
        _LineFinder(_text(data), places, found).run()
    return found


def shown(value: object) -> str:
    """Return *value* as a message may show it: quoted, clipped, free of control characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    clipped = text if len(text) <= 60 else f"{text[:57]}..."
    safe = "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in clipped)
    return f'"{safe}"' if isinstance(value, str) else safe


# ---------------------------------------------------------------------------------------- text


def _text(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        size, cap = len(data) / 1024 / 1024, MAX_BYTES // 1024 // 1024
        raise _EndOfReadingError(0, f"the file has {size:.1f} MiB; at most {cap} MiB are read", "split it")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _EndOfReadingError(1, "the file is UTF-16, not UTF-8", "save it as UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith(b"version https://git-lfs.github.com/"):
        raise _EndOfReadingError(
            1, "a Git LFS pointer; the file itself isn't in the repository", "keep manifests out of LFS"
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _EndOfReadingError(line, f"byte 0x{data[error.start]:02x} is not UTF-8", "save it as UTF-8") from None
    return data


def _documents(data: bytes, path: str, problems: list[Problem]) -> Iterator[Document]:
    """Read JSON where it starts like JSON, as kubectl does, and YAML otherwise."""
    if data.lstrip()[:1] == b"{" or path.lower().endswith(".json"):
        try:
            yield from _json_documents(data.decode())
        except json.JSONDecodeError as error:
            if path.lower().endswith(".json"):
                raise _EndOfReadingError(error.lineno, f"not valid JSON: {error.msg}") from None
        except _DuplicateKeyError as error:  # the other reader knows lines
            before = len(problems)
            yield from _YamlReader(data, path, problems).documents()
            if len(problems) == before:
                raise _EndOfReadingError(0, f"key {shown(error.key)} appears twice in one object", "keep one") from None
            return
        else:
            return
    yield from _YamlReader(data, path, problems).documents()


# ---------------------------------------------------------------------------------------- JSON


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise _DuplicateKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return tree


def _refuse_constant(name: str) -> NoReturn:
    raise _EndOfReadingError(0, f"{name} is not a JSON number", "quote it if it is text")


def _json_number(text: str) -> int | float:
    return number_of_server(float(text))


def _json_integer(text: str) -> int | float:
    return number_of_server(int(text) if len(text) <= 20 else float(text))


_JSON = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_json_number, parse_int=_json_integer
)
_JSON_SPACE = re.compile(r"[ \t\r\n]*")


def _json_documents(text: str) -> list[Document]:
    """Return the JSON values that *text* has one after the other; all or none."""
    documents: list[Document] = []
    at = _JSON_SPACE.match(text).end()  # type: ignore[union-attr]  # matches nothing at the least
    while at < len(text):
        line = text.count("\n", 0, at) + 1
        try:
            tree, end = _JSON.raw_decode(text, at)
        except RecursionError:
            raise _too_deep(line) from None
        except OverflowError as error:
            raise _EndOfReadingError(line, str(error)) from None
        _check_tree(tree, line)
        documents.append(Document(tree, len(documents), line))
        at = _JSON_SPACE.match(text, end).end()  # type: ignore[union-attr]
    return documents


def _check_tree(tree: Any, line: int) -> None:
    """Refuse what is too deep or heavy, and half a surrogate pair, which no UTF-8 can hold."""
    weight, level, depth = 0, [tree], 0
    while level:
        if (depth := depth + 1) > MAX_DEPTH and any(isinstance(node, dict | list) for node in level):
            raise _too_deep(line)
        if (weight := weight + len(level)) > MAX_WEIGHT:
            raise _too_heavy(line)
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


def _check_text(text: str, line: int) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise _EndOfReadingError(line, f"{half} is half a character", "write both halves, or the character") from None


def _too_deep(line: int) -> _EndOfReadingError:
    return _EndOfReadingError(line, f"nested deeper than {MAX_DEPTH} levels")


def _too_heavy(line: int) -> _EndOfReadingError:
    return _EndOfReadingError(
        line,
        f"larger than {MAX_WEIGHT:,} values once its aliases are written out",
        "split the file, or use fewer aliases",
    )


# ------------------------------------------------------------------------------------- scalars

_INTEGER = re.compile(r"([-+]?)(?:0[bB]([01]+)|0[oO]?([0-7]+)|0[xX]([0-9a-fA-F]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_STRAY_UNDERSCORE = re.compile(r"(?<![0-9])_|_(?![0-9])")
_STARTS_NUMBER = frozenset("+-.0123456789")

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{f"{sign}{word}": math.inf for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_NO_WORD = object()


def resolve(text: str) -> Any:
    """Return what a plain YAML scalar means to Kubernetes: null, a boolean, a number, or text.

    Infinity and not-a-number come back as such; no JSON can hold them.
    """
    word = _WORDS.get(text, _NO_WORD)
    if word is not _NO_WORD:
        return word
    return _number(text) if text[0] in _STARTS_NUMBER else text


def _number(text: str) -> int | float | str:
    bare = text.replace("_", "")
    match = _INTEGER.fullmatch(bare)
    if match:
        integer = _integer(match)
        if integer is not None:
            return integer
    if _FLOAT.fullmatch(bare) and not (text[0] == "." and _STRAY_UNDERSCORE.search(text)):
        number = float(bare)
        return text if math.isinf(number) else number
    return text


def _integer(match: re.Match[str]) -> int | None:
    """Return the integer, or None beyond 64 bits: signed for all, unsigned for those without a sign."""
    sign, *digits = match.groups()
    which = next(index for index, group in enumerate(digits) if group is not None)
    if len(digits[which]) > 64:
        return None
    value = int(sign + digits[which], (2, 8, 16, 10)[which])
    return value if -(2**63) <= value < (2**63 if sign else 2**64) else None


def number_of_server(value: float) -> int | float:
    """Return *value* as the API server holds it: whole numbers within 64 bits as integers, others as floats.

    Raises:
        OverflowError: a float cannot hold it.
    """
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else float(value)
    if math.isinf(value):
        raise OverflowError("a number is too large for 64 bits")
    if not value.is_integer():
        return value
    whole = int(Decimal(repr(value)))  # the digits that a JSON encoder writes, not all that the float has
    return whole if -(2**63) <= whole < 2**63 else value


# ---------------------------------------------------------------------------------------- YAML

_TAG = "tag:yaml.org,2002:"
_TYPED: dict[str, tuple[type, ...]] = {
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}bool": (bool,),
    f"{_TAG}null": (type(None),),
}
_AS_WRITTEN = frozenset((f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}merge"))
_PLAIN_MAP = frozenset((None, f"{_TAG}map"))
_PLAIN_LIST = frozenset((None, f"{_TAG}seq"))
_QUOTE = "quote it"
_MERGE = object()
_LAYOUT_HINT = "check the indentation; quote text that has ': ' or ' #' or starts with one of @ ` % * & ! [ {"


class _YamlReader:
    """Builds trees from libyaml's events; one use."""

    __slots__ = ("_anchors", "_data", "_depth", "_next", "_path", "_problems", "_weight")

    def __init__(self, data: bytes, path: str, problems: list[Problem]) -> None:
        self._next: Callable[[], Any] = CParser(data).get_event
        self._data, self._path, self._problems = data, path, problems
        self._anchors: dict[str, tuple[Any, int] | None] = {}  # None while its node is still being read
        self._weight = self._depth = 0

    def documents(self) -> Iterator[Document]:
        try:
            yield from self._documents()
        except yaml.YAMLError as error:
            raise self._syntax(error) from None

    def _documents(self) -> Iterator[Document]:
        number = 0
        self._next()
        while (event := self._next()).__class__ is yaml.DocumentStartEvent:
            self._anchors = {}
            before = len(self._problems)
            event = self._next()
            tree = self._node(event)
            self._next()
            if tree is not None and len(self._problems) == before:
                yield Document(tree, number, event.start_mark.line + 1)
            if len(self._problems) > MAX_PROBLEMS:
                return
            number += 1

    def _node(self, event: Any) -> Any:
        kind = event.__class__
        if kind is yaml.AliasEvent:
            return self._alias(event)
        anchor, before = event.anchor, self._weight
        if anchor is not None:
            self._anchors[anchor] = None
        self._weight += 1
        if self._weight > MAX_WEIGHT:
            raise _too_heavy(event.start_mark.line + 1)
        if kind is yaml.ScalarEvent:
            tree = self._scalar(event)
        else:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise _too_deep(event.start_mark.line + 1)
            tree = self._mapping(event) if kind is yaml.MappingStartEvent else self._sequence(event)
            self._depth -= 1
        if anchor is not None:
            self._anchors[anchor] = (tree, self._weight - before)
        return tree

    def _mapping(self, start: Any) -> dict[str, Any]:
        if start.tag not in _PLAIN_MAP:
            self._refuse_tag(start)
        tree: dict[str, Any] = {}
        seen: dict[str, Any] = {}
        following = self._next
        while (event := following()).__class__ is not yaml.MappingEndEvent:
            key = self._key(event)
            if key is _MERGE:
                self._merge(tree, following())
                continue
            value = self._node(following())
            if key in seen:
                first = seen[key].start_mark.line + 1
                self._problem(event, f"key {shown(key)} is already on line {first}", "keep one of them")
            seen[key] = event
            tree[key] = value
        return tree

    def _sequence(self, start: Any) -> list[Any]:
        if start.tag not in _PLAIN_LIST:
            self._refuse_tag(start)
        tree = []
        following, node = self._next, self._node
        while (event := following()).__class__ is not yaml.SequenceEndEvent:
            tree.append(node(event))
        return tree

    def _key(self, event: Any) -> Any:
        """Return the text of a key, ``_MERGE``, or for a key that can't be one a stand-in and a problem."""
        if event.__class__ is yaml.ScalarEvent and event.tag is None and event.anchor is None:
            text: str = event.value
            self._weight += len(text) >> 5
            if not event.implicit[0]:
                return text
            if text == "<<":
                return _MERGE
            if text and text[0] not in _STARTS_NUMBER and text not in _WORDS:
                return text
        key = self._node(event)
        if isinstance(key, str):
            return key
        kinds = {
            bool: "a boolean",
            int: "a number",
            float: "a number",
            type(None): "null",
            list: "a list",
            dict: "a map",
        }
        written = getattr(event, "value", "")
        what = f"key {written} is {kinds[type(key)]}" if written else f"a key is {kinds[type(key)]}"
        hint = f'quote it: "{written}"' if written else self._guess(event.start_mark.line, "keys are text")
        self._problem(event, f"{what}, not text", hint)
        return written or "?"

    def _merge(self, tree: dict[str, Any], event: Any) -> None:
        value = self._node(event)
        maps = value if isinstance(value, list) else [value]
        if not all(isinstance(each, dict) for each in maps):
            self._problem(event, "<< takes a map or a list of maps", "write it after the key: <<: *anchor")
            return
        for each in reversed(maps):
            tree.update(each)

    def _alias(self, event: Any) -> Any:
        name = event.anchor
        if name not in self._anchors:
            self._problem(event, f"alias *{name} has no anchor &{name} before it in this document", "")
            return None
        known = self._anchors[name]
        if known is None:
            self._problem(event, f"anchor &{name} contains itself", "")
            return None
        tree, weight = known
        self._weight += weight
        if self._weight > MAX_WEIGHT:
            raise _too_heavy(event.start_mark.line + 1)
        return tree

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        self._weight += len(text) >> 5
        tag = event.tag
        if tag is None:
            if not event.implicit[0]:
                return text
            value = resolve(text)
        elif tag in _AS_WRITTEN:
            return text
        else:
            value = self._tagged(event, tag, text)
        if value.__class__ is float or value.__class__ is int:
            return self._finite(event, value)
        return value

    def _finite(self, event: Any, value: float) -> int | float:
        if value.__class__ is float and not math.isfinite(value):
            self._problem(event, f"{event.value} is not a JSON number", "quote it if it is text")
            return 0
        return number_of_server(value)

    def _tagged(self, event: Any, tag: str, text: str) -> Any:
        if tag == f"{_TAG}binary":
            return self._binary(event, text)
        types = _TYPED.get(tag)
        if types is None:
            self._refuse_tag(event)
            return text
        value = resolve(text)
        if type(value) not in types:
            self._problem(
                event, f"{shown(text)} is no {tag.removeprefix(_TAG)}", f"remove the tag !!{tag.removeprefix(_TAG)}"
            )
        return value

    def _binary(self, event: Any, text: str) -> str:
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            hint = "in a Secret, put the base64 text under data without a tag"
            self._problem(event, "!!binary must be the base64 of UTF-8 text", hint)
            return ""

    def _refuse_tag(self, event: Any) -> None:
        tag = event.tag.replace(_TAG, "!!") if event.tag.startswith(_TAG) else event.tag
        self._problem(event, f"tag {shown(tag)[1:-1]} has no meaning in a manifest", "remove the tag")

    def _problem(self, event: Any, message: str, hint: str) -> None:
        if len(self._problems) <= MAX_PROBLEMS:
            self._problems.append(Problem(self._path, event.start_mark.line + 1, _printable(message), _printable(hint)))

    def _syntax(self, error: yaml.YAMLError) -> _EndOfReadingError:
        mark = getattr(error, "problem_mark", None)
        if mark is None:  # a character that YAML forbids; libyaml says at which byte
            line = self._data.count(b"\n", 0, getattr(error, "position", 0)) + 1
            reason = str(getattr(error, "reason", error)).lower()
            return _EndOfReadingError(
                line, f"not valid YAML: {reason}", "remove the character, or write it as an escape"
            )
        said = [part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part]
        return _EndOfReadingError(
            mark.line + 1, f"not valid YAML: {_printable(', '.join(said))}", self._guess(mark.line)
        )

    def _guess(self, line: int, otherwise: str = _LAYOUT_HINT) -> str:
        """Return what most often stands behind unreadable YAML on *line*, counted from 0."""
        rows = self._data.splitlines()
        row = rows[line] if line < len(rows) else b""
        if any(each.startswith((b"<<<<<<< ", b">>>>>>> ")) for each in rows):
            return "it has the marks of an unresolved merge conflict"
        if re.search(rb"\{\{.*\}\}", b"\n".join(rows[max(0, line - 1) : line + 1])):
            return "it looks like a template; render it first, or list the file in .reconcileignore"
        if b"\t" in row[: len(row) - len(row.lstrip())]:
            return "indent with spaces, not tabs"
        return otherwise


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


# --------------------------------------------------------------------------------------- lines


class _LineFinder:
    """Finds the lines of places in a second pass, so the first need not remember them all."""

    def __init__(self, data: bytes, wanted: set[Place], found: dict[Place, int]) -> None:
        self._next: Callable[[], Any] = CParser(data).get_event
        self._wanted, self._found = wanted, found

    def run(self) -> None:
        number = 0
        self._next()
        while self._next().__class__ is yaml.DocumentStartEvent:
            self._node(self._next(), (number,), None)
            self._next()
            number += 1

    def _node(self, event: Any, place: Place, key: Any) -> None:
        if place in self._wanted:
            self._found[place] = (key or event).start_mark.line + 1
        if len(place) > MAX_DEPTH:
            raise _too_deep(event.start_mark.line + 1)
        kind = event.__class__
        if kind is yaml.MappingStartEvent:
            while (name := self._next()).__class__ is not yaml.MappingEndEvent:
                if name.__class__ is not yaml.ScalarEvent:
                    self._node(name, (*place, ""), None)
                self._node(self._next(), (*place, getattr(name, "value", "")), name)
        elif kind is yaml.SequenceStartEvent:
            index = 0
            while (item := self._next()).__class__ is not yaml.SequenceEndEvent:
                self._node(item, (*place, index), None)
                index += 1
