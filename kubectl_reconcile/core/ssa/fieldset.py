"""Sets of fields, in the spelling of ``managedFields[].fieldsV1`` (KEP-555).

Vocabulary: a *path element* is ``f:name`` (a field), ``k:{"name":"web"}`` (the list item with
these keys), ``v:"x"`` (the item of a set) or ``i:0`` (an index). A *member* is a path in the
set; that its children are members doesn't make a path one. The wire form is a tree of path
elements in which a leaf is a member and an inner node is one if it holds ``.``; a `FieldSet`
*is* such a tree, so reading the server's costs nothing.

Rules: the algebra is structured-merge-diff's. `difference` takes away members and leaves their
children (``{a.b} - {a} = {a.b}``), `recursive_difference` takes the children too.

Pure: sets are never mutated after they were handed out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, Self, TypeAlias

from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.ssa.values import number

Tree: TypeAlias = dict[str, Any]
"""A node of the wire form: path element -> node. ``{}`` is a member without children."""

_UNSAFE = re.compile("[<>&\u2028\u2029\b\f]")


def spell(value: Any) -> str:
    """Return a scalar as the server spells it inside a path element (Go's JSON, HTML-safe)."""
    if isinstance(value, str):
        return encode_basestring(value) if _UNSAFE.search(value) is None else _spell_unsafe(value)
    if isinstance(value, float):
        plain: int | float = number(value)
        return str(plain) if isinstance(plain, int) else _spell_float(value)
    return json.dumps(value, separators=(",", ":"))


def _spell_unsafe(value: str) -> str:
    safe = (f"\\u{ord(char):04x}" if _UNSAFE.match(char) else encode_basestring(char)[1:-1] for char in value)
    return f'"{"".join(safe)}"'


def _spell_float(value: float) -> str:
    if 1e-6 <= abs(value) < 1e21:
        return format(value, "f") if "e" in repr(value) else repr(value)
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{'-' if exponent.startswith('-') else '+'}{exponent.lstrip('+-0')}"


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """Return the path element of the list item with these *keys*: ``k:{"name":"web"}``."""
    return "k:{" + ",".join(f"{encode_basestring(name)}:{spell(value)}" for name, value in sorted(keys)) + "}"


@lru_cache(maxsize=16384, typed=True)
def keyed_element(names: tuple[str, ...], *values: Any) -> str:
    """Return the path element of the item with these scalar key *values*; a None stands for an absent key."""
    return key_element((name, value) for name, value in zip(names, values, strict=True) if value is not None)


def value_element(value: Any) -> str:
    """Return the path element of the item *value* of a set: ``v:"x"``."""
    return "v:" + spell(value)


@lru_cache(maxsize=16384)
def canonical_element(element: str) -> str | None:
    """Return *element* in the server's spelling; None for a kind of element that nobody knows.

    Raises:
        ValueError: the body of the element is malformed.
    """
    kind, body = element[:2], element[2:]
    if kind == "f:":
        return element
    if kind == "k:":
        return key_element(json.loads(body).items())
    if kind == "v:":
        return value_element(json.loads(body))
    return f"i:{int(body)}" if kind == "i:" else None


class FieldSet:
    """An immutable set of field paths; prints one path per line, compares by its members."""

    __slots__ = ("_tree",)

    def __init__(self, tree: Tree | None = None) -> None:
        """Take *tree*, which must be canonical and is never mutated."""
        self._tree: Tree = tree if tree is not None else {}

    @classmethod
    def of_wire(cls, fields_v1: Mapping[str, Any]) -> Self:
        """Return the set that ``fieldsV1`` says, whatever order and spelling it has.

        Raises:
            ValueError: a path element is malformed, or what should be a map of them is none.
        """
        try:
            return cls(_read(fields_v1) or {})
        except AttributeError:  # asking each of many thousand nodes for its type would cost more
            raise ValueError("fieldsV1 holds something else than maps") from None

    @classmethod
    def of(cls, paths: Iterable[Iterable[str]]) -> Self:
        """Return the set of these *paths*."""
        tree: Tree = {}
        for path in paths:
            insert(tree, tuple(path))
        return cls(tree)

    @property
    def tree(self) -> Tree:
        """The wire form, unsorted. Treat it as frozen."""
        return self._tree

    def to_wire(self) -> Tree:
        """Return ``fieldsV1`` exactly as the server writes it, in its order."""
        return _sorted(self._tree)

    def __iter__(self) -> Iterator[FieldPath]:
        return _paths(self._tree, ())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self._tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self._tree == other._tree

    def __hash__(self) -> int:
        return hash(frozenset(self))

    def __contains__(self, path: Iterable[str]) -> bool:
        node: Tree | None = self._tree
        elements = tuple(path)
        for element in elements:
            node = node.get(element) if node else None
            if node is None:
                return False
        return bool(elements) and is_member(node)

    def covers(self, path: Iterable[str]) -> bool:
        """Return whether *path* or any path above it is a member."""
        node = self._tree
        for element in path:
            found = node.get(element)
            if found is None:
                return False
            if is_member(found) and not children(found):
                return True
            node = found
        return is_member(node)

    def under(self, path: Iterable[str]) -> FieldSet:
        """Return the members below *path*, with that prefix cut off."""
        node = self._tree
        for element in path:
            found = node.get(element)
            if found is None:
                return FieldSet()
            node = found
        return FieldSet(children(node))

    def leaves(self) -> FieldSet:
        """Return the members that have no members below them."""
        return FieldSet(_leaves(self._tree))

    def union(self, other: FieldSet) -> FieldSet:
        """Return the paths that are in either set."""
        return FieldSet(_union(self._tree, other._tree))

    def intersection(self, other: FieldSet) -> FieldSet:
        """Return the paths that are in both sets."""
        return FieldSet(_intersection(self._tree, other._tree))

    def difference(self, other: FieldSet) -> FieldSet:
        """Return the paths that aren't in *other*; a path outlives the removal of its parent."""
        return FieldSet(_difference(self._tree, other._tree, recursive=False))

    def recursive_difference(self, other: FieldSet) -> FieldSet:
        """Return the paths that aren't in *other* nor below one of its members."""
        return FieldSet(_difference(self._tree, other._tree, recursive=True))

    __or__ = union
    __and__ = intersection
    __sub__ = difference

    def __str__(self) -> str:
        return "\n".join(str(path) for path in self)

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(str(path) for path in self)})"


def is_member(node: Tree | None) -> bool:
    """Return whether the path that led to *node* is in the set."""
    return node is not None and (not node or "." in node)


def children(node: Tree) -> Tree:
    """Return *node* without its own membership."""
    return {element: child for element, child in node.items() if element != "."} if "." in node else node


def node_of(below: Tree, *, member: bool) -> Tree | None:
    """Return the node with these children; None if it isn't a member and has none."""
    if not below:
        return {} if member else None
    return {".": {}, **below} if member else below


def insert(tree: Tree, path: tuple[str, ...]) -> None:
    """Add *path* to a tree that is still being built."""
    node = tree
    for depth, element in enumerate(path, 1):
        found = node.get(element)
        if depth == len(path):
            if found is None:
                node[element] = {}
            elif found:
                found["."] = {}
        elif found is None:
            node[element] = _chain(path[depth:])
            return
        else:
            if not found:
                found["."] = {}
            node = found


def _chain(path: tuple[str, ...]) -> Tree:
    node: Tree = {}
    for element in reversed(path):
        node = {element: node}
    return node


def order_of(element: str) -> tuple[Any, ...]:
    """Return the sort key of a path element: fields, keys, values, indexes, as the server sorts them."""
    kind, body = element[:2], element[2:]
    if kind == "f:":
        return (0, body)
    if kind == "k:":
        return (1, [(name, _order_of_value(value)) for name, value in sorted(json.loads(body).items())])
    if kind == "v:":
        return (2, _order_of_value(json.loads(body)))
    return (3, int(body))


def _order_of_value(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, spell(value))


def _read(wire: Mapping[str, Any]) -> Tree | None:
    """Return the canonical node of *wire*; None where an inner node has no known children."""
    tree: Tree = {}
    for element, below in wire.items():
        if element == ".":
            continue
        name = canonical_element(element)
        if name is None:
            continue
        found = _read(below)
        node = node_of(found or {}, member="." in below or not found)
        tree[name] = _union(tree[name], node or {}) if name in tree else (node or {})
    return tree or None


def _sorted(tree: Tree) -> Tree:
    ordered: Tree = {".": {}} if "." in tree else {}
    for element in sorted(children(tree), key=order_of):
        ordered[element] = _sorted(tree[element])
    return ordered


def _paths(tree: Tree, prefix: tuple[str, ...]) -> Iterator[FieldPath]:
    for element in sorted(children(tree), key=order_of):
        node, path = tree[element], (*prefix, element)
        if is_member(node):
            yield FieldPath(path)
        yield from _paths(node, path)


def _leaves(tree: Tree) -> Tree:
    return {element: _leaves(node) for element, node in tree.items() if element != "."}


def _union(one: Tree, other: Tree) -> Tree:
    below = dict(children(one))
    for element, node in children(other).items():
        found = below.get(element)
        if found is None:
            below[element] = node
        else:
            joined = _union(children(found), children(node))
            below[element] = node_of(joined, member=is_member(found) or is_member(node)) or {}
    return below


def _intersection(one: Tree, other: Tree) -> Tree:
    below: Tree = {}
    for element, node in one.items():
        found = other.get(element) if element != "." else None
        if found is not None:
            both = node_of(_intersection(node, found), member=is_member(node) and is_member(found))
            if both is not None:
                below[element] = both
    return below


def _difference(one: Tree, other: Tree, *, recursive: bool) -> Tree:
    below: Tree = {}
    for element, node in one.items():
        if element == ".":
            continue
        found = other.get(element)
        if found is None:
            below[element] = node
        elif not (recursive and is_member(found)):
            left = node_of(
                _difference(node, found, recursive=recursive), member=is_member(node) and not is_member(found)
            )
            if left is not None:
                below[element] = left
    return below
