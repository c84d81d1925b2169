"""Changing single fields in a file of manifests, and nothing else: comments, order, quotes and layout stay.

The file is read and written by a round-trip parser, once as it is and once edited. What differs between the two
is the edit; it is merged into the file's own text, so that lines which the parser would have laid out otherwise
stay as they are. The result is read again the way Kubernetes reads it: every object must be as it was, but for
the fields that were asked for. Where that isn't possible (an alias stands for two places at once), the edit is
refused.

Pure: text in, text out; inputs are never mutated.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, ScalarString

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.manifests.parse import Parsed, parse
from kubectl_reconcile.core.manifests.scalars import resolve
from kubectl_reconcile.core.objects import FieldPath, Manifest, ObjectRef, errors_among
from kubectl_reconcile.core.ssa.fieldset import canonical_element
from kubectl_reconcile.core.ssa.schema import ListType, Type
from kubectl_reconcile.core.ssa.typed import ABSENT, element_of
from kubectl_reconcile.core.ssa.values import same

_UNFOLDED = 1 << 20
"""No line is that long, so none is folded."""


class EditError(Exception):
    """A file that can't be edited so; the message says which and why."""


class Edit(Struct, frozen=True):
    """One field of one object and the value it gets; ABSENT removes it. *type* is the object's schema.

    With *creates*, items of lists above it that aren't there are made, with nothing but what identifies them.
    """

    ref: ObjectRef
    path: FieldPath
    value: Any
    type: Type
    creates: bool = False


def edited(data: bytes, path: str, edits: Sequence[Edit], namespace: str) -> bytes:
    """Return the file *data*, called *path*, with *edits* made. Objects that name no namespace are in *namespace*.

    Raises:
        EditError: an object or the place of a field isn't there, or the file can't be edited without touching more.
    """
    text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")
    wanted = [made(each.manifest, edits, namespace) for each in parse(data, path).manifests]
    form = _JsonFile.of(text) if text.lstrip().startswith("{") else _YamlFile.of(text)
    try:
        documents = form.load(text)
        before = form.dump(documents)
        for edit in edits:
            _put(_object_in(documents, edit.ref, namespace), edit)
        after = form.dump(documents)
    except (YAMLError, ValueError) as error:
        raise EditError(f"{path}: it can't be edited: {error}") from None
    for candidate in (_merged(before, text, after), after):
        if _holds(parse(candidate.encode(), path), wanted):
            return candidate.encode()
    raise EditError(f"{path}: the field can't be changed without changing other fields; edit it by hand")


def restated(data: bytes, path: str, steps: Sequence[int | str], value: Any) -> bytes:
    """Return the file *data*, called *path*, with *value* at *steps*, names and indexes, of its first document; ABSENT removes it.

    The index after the last item of a list appends one.

    Raises:
        EditError: the place isn't there, or the file can't be edited without touching more.
    """
    text = data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")
    found, _ = yaml_reader.read(data, "any.yaml")
    if not found:
        raise EditError(f"{path}: it can't be read")
    wanted = _unshared(found[0].tree)
    form = _YamlFile.of(text)
    try:
        documents = form.load(text)
        before = form.dump(documents)
        _restate(wanted, steps, value, lambda _, new: new)
        _restate(documents[0], steps, value, _like)
        after = form.dump(documents)
    except (YAMLError, ValueError, LookupError, TypeError) as error:
        raise EditError(f"{path}: it can't be edited: {error}") from None
    for candidate in (_merged(before, text, after), after):
        again, problems = yaml_reader.read(candidate.encode(), "any.yaml")
        if again and not errors_among(problems) and same(again[0].tree, wanted) and len(again) == len(found):
            return candidate.encode()
    raise EditError(f"{path}: it can't be changed without changing other fields; edit it by hand")


def _restate(tree: Any, steps: Sequence[int | str], value: Any, like: Callable[[Any, Any], Any]) -> None:
    *above, last = steps
    for step in above:
        tree = tree[step]
    if value is ABSENT:
        del tree[last]
    elif isinstance(tree, list) and last == len(tree):
        tree.append(like(None, value))
    else:
        before = tree.get(last) if isinstance(tree, Mapping) else tree[last]
        tree[last] = like(before, value)


def dumped(tree: Any) -> bytes:
    """Return *tree* as YAML, in the quotes that it needs."""
    return _YamlFile().dump([_like(None, tree)]).encode()


def made(manifest: Manifest, edits: Sequence[Edit], namespace: str) -> Manifest:
    """Return what a manifest is to be once its edits are made."""
    ours = [edit for edit in edits if _is(manifest, edit.ref, namespace)]
    if not ours:
        return manifest
    tree: dict[str, Any] = _unshared(manifest)
    for edit in ours:
        _put(tree, edit)
    return tree


def _unshared(tree: Any) -> Any:
    """Return a copy of *tree* in which nothing stands for two places, as an alias does."""
    if isinstance(tree, Mapping):
        return {name: _unshared(value) for name, value in tree.items()}
    return [_unshared(item) for item in tree] if isinstance(tree, list | tuple) else tree


def _holds(found: Parsed, wanted: Sequence[Manifest]) -> bool:
    manifests = [each.manifest for each in found.manifests]
    return (
        not errors_among(found.problems)
        and len(manifests) == len(wanted)
        and all(same(one, other) for one, other in zip(manifests, wanted, strict=True))
    )


def _is(manifest: Any, ref: ObjectRef, namespace: str) -> bool:
    if not isinstance(manifest, Mapping) or not manifest.get("kind") or not manifest.get("apiVersion"):
        return False
    found = ObjectRef.of(manifest)
    return ref in {found, found._replace(namespace=found.namespace or namespace)}


def _object_in(documents: Sequence[Any], ref: ObjectRef, namespace: str) -> Any:
    for tree in _objects(documents):
        if _is(tree, ref, namespace):
            return tree
    raise EditError(f"{ref} isn't in the file")


def _objects(documents: Sequence[Any]) -> Iterator[Any]:
    for tree in documents:
        yield tree
        if isinstance(tree, Mapping) and isinstance(tree.get("items"), list):
            yield from _objects(tree["items"])


# --- one field --------------------------------------------------------------------------------------------------------


def _put(tree: Any, edit: Edit) -> None:
    """Give the field of *edit* its value, in place."""
    *parents, last = edit.path
    of: Type | None = edit.type
    for number, element in enumerate(parents, start=1):
        tree, of = _below(tree, element, of, edit, is_map=element_is_field(edit.path[number]))
    if element_is_field(last):
        name = last[2:]
        if edit.value is ABSENT:
            tree.pop(name, None)
        else:
            tree[name] = _like(tree.get(name), edit.value)
        return
    at = _index(tree, last, of)
    if edit.value is ABSENT:
        if at is not None:
            del tree[at]
    elif at is None:
        tree.append(_like(None, edit.value))
    else:
        tree[at] = _like(tree[at], edit.value)


def element_is_field(element: str) -> bool:
    """Tell whether a path's element names a field, and not an item of a list."""
    return element.startswith("f:")


def _below(tree: Any, element: str, of: Type | None, edit: Edit, *, is_map: bool) -> tuple[Any, Type | None]:
    if element_is_field(element):
        name = element[2:]
        below = of.map.type_at(name) if of is not None and of.map is not None else None
        if name not in tree:
            tree[name] = {} if is_map or not edit.creates else []
        return tree[name], below
    item = _index(tree, element, of)
    if item is None and edit.creates and element.startswith("k:"):
        tree.append(json.loads(element[2:]))
        item = len(tree) - 1
    if item is None:
        raise EditError(f"{edit.ref}: {edit.path} isn't in the file")
    return tree[item], of.list.item if of is not None and of.list is not None else None


def _index(items: Any, element: str, of: Type | None) -> int | None:
    """Return where in a list the item stands that a path's element names; None where there is none."""
    if element.startswith("i:"):
        return int(element[2:])
    if of is None or of.list is None:
        return None
    wanted, kind = canonical_element(element), of.list
    return next((at for at, item in enumerate(items) if _element(item, kind) == wanted), None)


def _element(item: Any, kind: ListType) -> str:
    return element_of(dict(item) if isinstance(item, Mapping) else item, kind)


def _like(before: Any, value: Any) -> Any:
    """Return *value* as it is to be written: in the quotes that stood there, or in some where it needs them."""
    if isinstance(value, Mapping):
        return {str(name): _like(None, below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [_like(None, below) for below in value]
    if not isinstance(value, str):
        return value
    if "\n" in value:
        return LiteralScalarString(value)
    if isinstance(before, ScalarString) and not isinstance(before, LiteralScalarString):
        return type(before)(value)
    return value if resolve(value) == value and isinstance(resolve(value), str) else DoubleQuotedScalarString(value)


# --- how files are written --------------------------------------------------------------------------------------------


class _Sink:
    """What a dumper writes to."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, part: bytes) -> None:
        self.parts.append(part)


class _YamlFile(Struct, frozen=True):
    """YAML, indented as the file is: maps by *mapping*, items' content by *sequence*, their dashes by *offset*."""

    mapping: int = 2
    sequence: int = 2
    offset: int = 0

    @classmethod
    def of(cls, text: str) -> _YamlFile:
        """Return the form of *text*: of each indentation the commonest."""
        seen: dict[str, Counter[int]] = {"mapping": Counter(), "sequence": Counter(), "offset": Counter()}
        try:
            for tree in cls().load(text):
                _look_at(tree, seen)
        except YAMLError:
            return cls()
        found = {name: counter.most_common(1)[0][0] for name, counter in seen.items() if counter}
        return cls(**found)

    def _parser(self) -> YAML:
        parser = YAML()
        parser.preserve_quotes = True
        parser.width = _UNFOLDED
        parser.brace_single_entry_mapping_in_flow_sequence = True
        parser.indent(mapping=self.mapping, sequence=self.sequence, offset=self.offset)
        return parser

    def load(self, text: str) -> list[Any]:
        return list(self._parser().load_all(text))

    def dump(self, documents: Sequence[Any]) -> str:
        sink = _Sink()
        self._parser().dump_all(documents, sink)
        return b"".join(sink.parts).decode()


def _look_at(tree: Any, seen: Mapping[str, Counter[int]]) -> None:
    """Count the indentations below *tree*."""
    if isinstance(tree, CommentedSeq):
        for item in tree:
            _look_at(item, seen)
    if not isinstance(tree, CommentedMap) or tree.fa.flow_style():
        return
    for value in tree.values():
        if not isinstance(value, CommentedMap | CommentedSeq) or value.fa.flow_style():
            continue
        if isinstance(value, CommentedMap) and value:
            seen["mapping"][value.lc.col - tree.lc.col] += 1
        elif isinstance(value, CommentedSeq) and value:
            seen["offset"][value.lc.col - tree.lc.col] += 1
            seen["sequence"][value.lc.data[0][1] - tree.lc.col if value.lc.data else 2] += 1
        _look_at(value, seen)


class _JsonFile(Struct, frozen=True):
    """JSON, indented as the file is; *indent* None is all on one line."""

    indent: int | None

    @classmethod
    def of(cls, text: str) -> _JsonFile:
        """Return the form of *text*."""
        second = next((line for line in text.splitlines()[1:] if line.strip()), None)
        return cls(None if second is None else len(second) - len(second.lstrip()))

    def load(self, text: str) -> list[Any]:
        decoder, at, found = json.JSONDecoder(), 0, []
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            tree, at = decoder.raw_decode(text, at)
            found.append(tree)
        return found

    def dump(self, documents: Sequence[Any]) -> str:
        return "".join(f"{json.dumps(each, indent=self.indent, ensure_ascii=False)}\n" for each in documents)


# --- merging text -----------------------------------------------------------------------------------------------------

_Lines: TypeAlias = list[str]


def _merged(base: str, ours: str, theirs: str) -> str:
    """Return *ours* with what *theirs* changed of *base*; where both changed the same lines, theirs counts."""
    lines, own, new = base.splitlines(keepends=True), ours.splitlines(keepends=True), theirs.splitlines(keepends=True)
    place = _places(lines, own)
    out: _Lines = []
    at = 0
    for tag, i, j, k, m in difflib.SequenceMatcher(None, lines, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        start, stop = place(i, True), place(j, False)
        out += own[at : max(start, at)]
        out += new[k:m]
        at = max(stop, at)
    return "".join([*out, *own[at:]])


def _places(base: _Lines, own: _Lines) -> Callable[[int, bool], int]:
    """Return what finds, for a line of *base*, the line of *own* where the same begins."""
    codes = difflib.SequenceMatcher(None, base, own, autojunk=False).get_opcodes()

    def place(line: int, begins: bool) -> int:  # noqa: FBT001 - which side of a place that was laid out otherwise
        for tag, i, j, k, m in codes:
            if i <= line <= j and (line < j or not begins or j == len(base)):
                if tag == "equal":
                    return k + line - i
                if j - i == m - k:
                    return k + line - i  # laid out otherwise, line by line
                return k if begins else m
        return len(own)

    return place
