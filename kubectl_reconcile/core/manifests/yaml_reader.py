"""Reading YAML and JSON text the way Kubernetes reads it, into plain JSON trees.

A *document* is one JSON tree with the line where it starts. Scalars resolve as in kubectl (YAML
1.1 in go-yaml's reading): ``yes`` and ``on`` are true, ``017`` and ``0o17`` are 15, ``1_000`` is
1000, ``1e3`` is 1000, dates and ``1:30`` stay text. Numbers end as the API server holds them: a
whole number within 64 bits is an integer, any other a float. ``<<`` merges in document order.

Keys that aren't text become the text that kubectl makes of them (``y:`` is ``"true":``, ``0x10:`` is ``"16":``),
with a warning. Stricter than kubectl where kubectl guesses: a duplicate key, an infinite number and an own
tag (``!foo``) are problems.

Input is hostile until proven otherwise. Nothing in it names a class or a file, and what it may
cost is capped: ``MAX_BYTES`` of text, ``MAX_DEPTH`` of nesting, ``MAX_WEIGHT`` once aliases are
written out (so no alias bomb), ``MAX_PROBLEMS`` reported. A cap ends the reading of a file there;
any other problem costs its own document only, a syntax error mostly so (see ``broken_yaml``).

Pure: bytes in, values out. Trees may share parts where the text used aliases; treat them as frozen.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs don't re-export it

from kubectl_reconcile.core.manifests import json_reader
from kubectl_reconcile.core.manifests.broken_yaml import MOST_BROKEN, echoed, likely_cause, rest_after, syntax_error
from kubectl_reconcile.core.manifests.json_reader import Document
from kubectl_reconcile.core.manifests.limits import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_PROBLEMS,
    MAX_WEIGHT,
    EndOfReadingError,
    too_deep,
    too_heavy,
)
from kubectl_reconcile.core.manifests.scalars import (
    STARTS_NUMBER,
    WORDS,
    key_text,
    number_of_server,
    printable,
    resolve,
    shown,
)
from kubectl_reconcile.core.objects import Problem, Severity

Place: TypeAlias = tuple[int | str, ...]
"""Where something stands in a file: the number of its document from 0, then keys and indexes."""


def read(data: bytes, path: str, *, most_bytes: int = MAX_BYTES) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """Return the documents of a file in order, and everything wrong with it.

    Empty documents are left out. A document with a problem is left out too. Where the file
    can't be read to its end, the documents before that point are returned with the problem.
    """
    documents: list[Document] = []
    problems: list[Problem] = []
    try:
        data = _text(data, most_bytes)
        documents.extend(_documents(data, path, problems))
    except EndOfReadingError as end:
        problems.append(Problem(path, end.line, end.message, end.hint))
    except RecursionError:  # the caller stands deep already
        problems.append(Problem(path, 0, "nested too deeply"))
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [Problem(path, 0, f"more than {MAX_PROBLEMS} problems; the rest isn't shown")]
    return tuple(documents), tuple(problems)


def lines(data: bytes, places: set[Place]) -> Mapping[Place, int]:
    """Return the line of each of *places* in a file that was read before; those not found are left out."""
    found: dict[Place, int] = {}
    with contextlib.suppress(EndOfReadingError, yaml.YAMLError, RecursionError):  # what was found up to there stands
        _LineFinder(_text(data, len(data)), places, found).run()
    return found


# ---------------------------------------------------------------------------------------- text


def _text(data: bytes, most_bytes: int) -> bytes:
    if len(data) > most_bytes:
        size, cap = len(data) / 1024 / 1024, most_bytes // 1024 // 1024
        raise EndOfReadingError(0, f"the file has {size:.1f} MiB; at most {cap} MiB are read", "split it")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise EndOfReadingError(1, "the file is UTF-16, not UTF-8", "save it as UTF-8")
    data = data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith(b"version https://git-lfs.github.com/"):
        raise EndOfReadingError(
            1, "a Git LFS pointer; the file itself isn't in the repository", "keep manifests out of LFS"
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EndOfReadingError(line, f"byte 0x{data[error.start]:02x} is not UTF-8", "save it as UTF-8") from None
    return data


def _documents(data: bytes, path: str, problems: list[Problem]) -> Iterator[Document]:
    """Read JSON where it starts like JSON, as kubectl does, and YAML otherwise."""
    if data.lstrip()[:1] == b"{" or path.lower().endswith(".json"):
        try:
            yield from json_reader.documents(data.decode())
        except json.JSONDecodeError as error:
            if path.lower().endswith(".json"):
                raise EndOfReadingError(error.lineno, f"not valid JSON: {error.msg}") from None
        except json_reader.DuplicateKeyError as error:  # the other reader knows lines
            before = len(problems)
            yield from _YamlReader(data, path, problems).documents()
            if len(problems) == before:
                key = echoed(data, shown(error.key))
                raise EndOfReadingError(0, f"key {key} appears twice in one object", "keep one") from None
            return
        else:
            return
    yield from _YamlReader(data, path, problems).documents()


# ---------------------------------------------------------------------------------------- YAML

_TAG = "tag:yaml.org,2002:"
_TYPED: dict[str, tuple[type, ...]] = {
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}bool": (bool,),
    f"{_TAG}null": (type(None),),
}
_MERGE_TAG = f"{_TAG}merge"
_AS_WRITTEN = frozenset((f"{_TAG}str", f"{_TAG}timestamp", _MERGE_TAG))
_PLAIN_MAP = frozenset((None, f"{_TAG}map"))
_PLAIN_LIST = frozenset((None, f"{_TAG}seq"))
_QUOTE = "quote it"
_MERGE = object()


def _last_line(event: Any) -> int:
    line: int = event.end_mark.line
    return line


class _YamlReader:
    """Builds trees from libyaml's events; one use."""

    __slots__ = (
        "_anchors", "_broken", "_data", "_depth", "_errors", "_guessed", "_next", "_number", "_path", "_problems", "_start", "_weight",
    )  # fmt: skip

    def __init__(self, data: bytes, path: str, problems: list[Problem]) -> None:
        self._next: Callable[[], Any] = CParser(data).get_event
        self._data, self._path, self._problems = data, path, problems
        self._anchors: dict[str, tuple[Any, int] | None] = {}  # None while its node is still being read
        self._weight = self._depth = self._errors = self._number = self._broken = 0
        self._start = -1  # the line at which the document begins
        self._guessed: list[tuple[Any, str]] = []  # keys of the document that aren't text, and what they are read as

    def documents(self) -> Iterator[Document]:
        while len(self._problems) <= MAX_PROBLEMS:
            try:
                return (yield from self._documents())
            except yaml.YAMLError as error:
                end, rest = syntax_error(self._data, error), rest_after(self._data, self._start, error)
            self._broken += 1
            if not rest or self._broken > MOST_BROKEN:
                raise end
            self._problems.append(Problem(self._path, end.line, end.message, end.hint))
            self._next = CParser(rest).get_event
            self._depth = 0
            self._number += 1
        return None

    def _documents(self) -> Iterator[Document]:
        self._next()
        while (event := self._next()).__class__ is yaml.DocumentStartEvent:
            self._start = _last_line(event)
            self._anchors, self._guessed = {}, []
            before, lighter = self._errors, self._weight
            event = self._next()
            tree = self._node(event)
            self._next()
            if tree is not None and self._errors == before:
                self._tell_of_keys()
                yield Document(tree, self._number, event.start_mark.line + 1, self._weight - lighter)
            if len(self._problems) > MAX_PROBLEMS:
                return
            self._number += 1

    def _node(self, event: Any) -> Any:
        kind = event.__class__
        if kind is yaml.AliasEvent:
            return self._alias(event)
        anchor, before = event.anchor, self._weight
        if anchor is not None:
            self._anchors[anchor] = None
        self._weight += 1
        if self._weight > MAX_WEIGHT:
            raise too_heavy(event.start_mark.line + 1)
        if kind is yaml.ScalarEvent:
            tree = self._scalar(event)
        else:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise too_deep(event.start_mark.line + 1)
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
                self._problem(
                    event, f"key {echoed(self._data, shown(key), event)} is already on line {first}", "keep one of them"
                )
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
        if event.__class__ is yaml.ScalarEvent:
            text: str = event.value
            self._weight += len(text) >> 5
            if text == "<<" and (event.tag == _MERGE_TAG or (event.tag is None and event.implicit[0])):
                return _MERGE
            if event.tag is None and event.anchor is None:
                if not event.implicit[0]:
                    return text
                if text and text[0] not in STARTS_NUMBER and text not in WORDS:
                    return text
        key = self._scalar_key(event) if event.__class__ is yaml.ScalarEvent else self._node(event)
        if isinstance(key, str):
            return key
        if (made := key_text(key)) is not None:
            self._guessed.append((event, made))
            return made
        return self._refused_key(event, key)

    def _scalar_key(self, event: Any) -> Any:
        """Return what a key means, numbers as they are written: which text kubectl makes of one hangs on its type."""
        key = self._value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = (key, 1)
        return key

    def _refused_key(self, event: Any, key: Any) -> str:
        kinds = {
            bool: "a boolean",
            int: "a number",
            float: "a number",
            type(None): "null",
            list: "a list",
            dict: "a map",
        }
        written = echoed(self._data, getattr(event, "value", ""), event)
        what = f"key {written} is {kinds[type(key)]}" if written else f"a key is {kinds[type(key)]}"
        hint = f'quote it: "{written}"' if written else likely_cause(self._data, event.start_mark.line, "keys are text")
        self._problem(event, f"{what}, not text", hint)
        return written or "?"

    def _tell_of_keys(self) -> None:
        """Warn of keys that aren't text, once for each document, unless there is enough to tell already."""
        if not self._guessed or len(self._problems) >= MAX_PROBLEMS // 2:
            return
        event, made = self._guessed[0]
        more = f", and {len(self._guessed) - 1} more keys aren't text" if len(self._guessed) > 1 else ""
        written = echoed(self._data, printable(getattr(event, "value", "") or made), event)
        said = f"key {written} isn't text and is read as {echoed(self._data, shown(made), event)}, as kubectl reads it{more}"
        hint = f'quote it: "{written}"'
        self._problems.append(Problem(self._path, event.start_mark.line + 1, said, hint, Severity.WARNING))

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
            name = echoed(self._data, name, event)
            said = f"alias *{name} has no anchor &{name} before it in this document"
            self._problem(event, said, "quote it if it is text")
            return None
        known = self._anchors[name]
        if known is None:
            self._problem(event, f"anchor &{echoed(self._data, name, event)} contains itself", "")
            return None
        tree, weight = known
        self._weight += weight
        if self._weight > MAX_WEIGHT:
            raise too_heavy(event.start_mark.line + 1)
        return tree

    def _scalar(self, event: Any) -> Any:
        self._weight += len(event.value) >> 5
        value = self._value(event)
        if value.__class__ is float or value.__class__ is int:
            return self._finite(event, value)
        return value

    def _value(self, event: Any) -> Any:
        """Return what a scalar means, with infinities and without the number that the server would make of it."""
        text: str = event.value
        tag = event.tag
        if tag is None:
            return resolve(text) if event.implicit[0] else text
        return text if tag in _AS_WRITTEN else self._tagged(event, tag, text)

    def _finite(self, event: Any, value: float) -> int | float:
        if value.__class__ is float and not math.isfinite(value):
            self._problem(
                event, f"{echoed(self._data, event.value, event)} is not a JSON number", "quote it if it is text"
            )
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
                event,
                f"{echoed(self._data, shown(text), event)} is no {tag.removeprefix(_TAG)}",
                f"remove the tag !!{tag.removeprefix(_TAG)}",
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
        self._problem(
            event,
            f"tag {echoed(self._data, shown(tag)[1:-1], event)} has no meaning in a manifest",
            "remove the tag, or quote it if it is text",
        )

    def _problem(self, event: Any, message: str, hint: str) -> None:
        """Note a problem of the document.

        Raises:
            EndOfReadingError: there are more than are shown. To find one more may take a look at the whole file.
        """
        self._errors += 1
        line = event.start_mark.line + 1
        self._problems.append(Problem(self._path, line, printable(message), printable(hint)))
        if len(self._problems) > MAX_PROBLEMS:
            raise EndOfReadingError(line, "it has too many problems")


# --------------------------------------------------------------------------------------- lines


class _LineFinder:
    """Finds the lines of places in a second pass, so the first need not remember them all; passes over what that did."""

    def __init__(self, data: bytes, wanted: set[Place], found: dict[Place, int]) -> None:
        self._next: Callable[[], Any] = CParser(data).get_event
        self._data, self._wanted, self._found = data, wanted, found
        self._number, self._start = 0, -1

    def run(self) -> None:
        for _ in range(MOST_BROKEN + 1):
            try:
                return self._documents()
            except yaml.YAMLError as error:
                self._next = CParser(rest_after(self._data, self._start, error)).get_event
                self._number += 1
        return None

    def _documents(self) -> None:
        self._next()
        while (event := self._next()).__class__ is yaml.DocumentStartEvent:
            self._start = _last_line(event)
            self._node(self._next(), (self._number,), None)
            self._next()
            self._number += 1

    def _node(self, event: Any, place: Place, key: Any) -> None:
        if place in self._wanted:
            self._found[place] = (key or event).start_mark.line + 1
        if len(place) > MAX_DEPTH:
            raise too_deep(event.start_mark.line + 1)
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
