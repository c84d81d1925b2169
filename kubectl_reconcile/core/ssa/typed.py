"""Operations on values under a schema: the ``typed`` package of structured-merge-diff, rule by rule.

Vocabulary: a *leaf* is what has one owner: a scalar, an atomic list or map, an empty container
facing another. *lhs* is what was there, *rhs* what comes. `ABSENT` is no value at all, which
differs from null (None): null is a value that somebody stated.

Rules, each where structured-merge-diff has it: `validate` (typed/validate.go), `fields_of`
(tofieldset.go), `compare` (compare.go), `remove` (remove.go); merge.go is `typed_merge`.

Pure: inputs are never mutated; results share what didn't change with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from msgspec import Struct, field

from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.ssa.fieldset import (
    FieldSet,
    Tree,
    children,
    insert,
    is_member,
    key_element,
    keyed_element,
    node_of,
    value_element,
)
from kubectl_reconcile.core.ssa.schema import ListType, MapType, Type
from kubectl_reconcile.core.ssa.values import same


class _Absent(Enum):
    """No value at all."""

    ABSENT = "absent"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent.ABSENT

Path = tuple[str, ...]


def none_for_absent(value: Any) -> Any:
    """Return *value* as JSON has it: null where there is none."""
    return None if value is ABSENT else value


class MergeError(ValueError):
    """A desired object that the server must refuse; *path* says where, *message* what is wrong there."""

    def __init__(self, path: Path, message: str) -> None:
        """Say that what stands at *path* is wrong."""
        self.path = FieldPath(path)
        self.message = message
        super().__init__(f"{self.path}: {message}")


# --- which of the possible types a value has ---------------------------------------------------


def shape(value: Any, of: Type) -> str:
    """Return as what *value* is treated: ``scalar``, ``list`` or ``map``; null takes what the type offers first."""
    if isinstance(value, list) and of.list is not None:
        return "list"
    if of.scalar and not isinstance(value, _NO_SCALARS):
        return "scalar"
    if of.map is not None:
        return "map"
    return "scalar" if of.scalar else "list"


_NO_SCALARS: Final = (dict, list, _Absent, type(None))


# --- list items and their path elements -----------------------------------------------------------


def element_of(item: Any, of: ListType) -> str:
    """Return the path element of an item of a set or list map, its absent keys filled with their defaults.

    Raises:
        ValueError: the item can't be addressed: null, no keys at all, a container in a set.
    """
    if of.keys:
        return _keyed_element(item, of)
    if isinstance(item, dict | list) or item is None:
        raise ValueError("a set holds only scalars")
    return value_element(item)


def _keyed_element(item: Any, of: ListType) -> str:
    if not isinstance(item, dict):
        raise ValueError(f"an item must be an object with {', '.join(of.keys)}")  # noqa: TRY004 - of JSON, not of Python
    values = [item[name] if name in item else of.key_default(name) for name in of.keys]
    if all(type(value) in _SCALARS or name not in item for name, value in zip(of.keys, values, strict=True)):
        if not any(value is not None for value in values):
            raise ValueError(f"an item needs {' or '.join(of.keys)}")
        return keyed_element(of.keys, *values)
    found = zip(of.keys, values, strict=True)  # a null or a container as a key: nonsense, but it has a spelling
    return key_element((name, value) for name, value in found if value is not None or name in item)


def elements_of(items: list[Any], of: ListType) -> list[str]:
    """Return the path elements of all *items*, duplicates included."""
    return [element_of(item, of) for item in items]


_SCALARS: Final = frozenset({str, int, float, bool})


# --- validate -------------------------------------------------------------------------------------


def validate(value: Any, of: Type, path: Path = ()) -> None:
    """Check an applied object as the server does before it merges.

    Raises:
        MergeError: a field that the schema doesn't know, a value of the wrong type, a duplicate
            in a set or list map, or an item that can't be addressed.
    """
    if value is None:
        return
    fits = shape(value, of)
    if fits == "map" and of.map is not None:
        _validate_map(value, of.map, path)
    elif fits == "list" and of.list is not None:
        _validate_list(value, of.list, path)
    else:
        _validate_scalar(value, of.scalar, path)


def _validate_map(value: Any, of: MapType, path: Path) -> None:
    if not isinstance(value, dict):
        raise MergeError(path, f"expected an object, not {_kind(value)}")
    for name, below in value.items():
        where = (*path, f"f:{name}")
        kind = of.type_at(name)
        if kind is None:
            raise MergeError(where, "no such field in the schema")
        validate(below, kind, where)


def _validate_list(value: Any, of: ListType, path: Path) -> None:
    if not isinstance(value, list):
        raise MergeError(path, f"expected a list, not {_kind(value)}")
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if not of.atomic:
            try:
                element = element_of(item, of)
            except ValueError as problem:
                raise MergeError((*path, f"i:{index}"), str(problem)) from None
            if element in seen:
                raise MergeError((*path, element), "two items with the same key")
            seen.add(element)
        validate(item, of.item, (*path, element))


def _validate_scalar(value: Any, scalar: str, path: Path) -> None:
    fits = {
        "numeric": isinstance(value, int | float) and not isinstance(value, bool),
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "untyped": not isinstance(value, dict | list),
    }
    if not fits[scalar]:
        wanted = {"numeric": "a number", "string": "a string", "boolean": "true or false", "untyped": "a scalar"}
        raise MergeError(path, f"expected {wanted[scalar]}, not {_kind(value)}")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    names = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), "null")


# --- the fields of an object --------------------------------------------------------------------


def fields_of(value: Any, of: Type) -> FieldSet:
    """Return every leaf and list item that *value* states."""
    node = _fields(value, of)
    return FieldSet(children(node) if node else {})


def _fields(value: Any, of: Type) -> Tree | None:
    """Return the node for *value*; None if nothing at or below it is stated."""
    fits = shape(value, of)
    if fits == "map" and of.map is not None:
        if of.map.atomic:
            return {}
        return node_of(_map_fields(value, of.map), member=False) if isinstance(value, dict) else None
    if fits == "list" and of.list is not None:
        if of.list.atomic:
            return {}
        return node_of(_list_fields(value, of.list), member=False) if isinstance(value, list) else None
    return {}


def _map_fields(value: Mapping[str, Any], of: MapType) -> Tree:
    tree: Tree = {}
    for name, below in value.items():
        declared = of.field(name)
        kind = declared.type if declared is not None else of.other
        node = _fields(below, kind) if kind is not None else None
        member = below is None or below == {} or declared is None or is_member(node)
        found = node_of(children(node) if node else {}, member=member)
        if found is not None:
            tree[f"f:{name}"] = found
    return tree


def _list_fields(items: list[Any], of: ListType) -> Tree:
    elements = elements_of(items, of)
    tree: Tree = {}
    for element, item in zip(elements, items, strict=True):
        if elements.count(element) > 1:
            tree[element] = {}
        else:
            node = _fields(item, of.item)
            tree[element] = node_of(children(node) if node else {}, member=True) or {}
    return tree


# --- compare ------------------------------------------------------------------------------------


class Comparison(Struct):
    """What *rhs* did to *lhs*: the fields it removed, modified and added."""

    removed: Tree = field(default_factory=dict)
    modified: Tree = field(default_factory=dict)
    added: Tree = field(default_factory=dict)

    @property
    def changed(self) -> FieldSet:
        """The fields with a new value."""
        return FieldSet(self.modified) | FieldSet(self.added)


def compare(lhs: Any, rhs: Any, of: Type) -> Comparison:
    """Return the fields in which *rhs* differs from *lhs*."""
    found = Comparison()
    _compare(lhs, rhs, of, (), found)
    return found


def _compare(lhs: Any, rhs: Any, of: Type, path: Path, found: Comparison) -> None:
    if rhs is ABSENT:
        in_leaf = _compare_as(shape(lhs, of), lhs, rhs, of, path, found)
    elif lhs is ABSENT or shape(lhs, of) == shape(rhs, of):
        in_leaf = _compare_as(shape(rhs, of), lhs, rhs, of, path, found)
    else:
        _compare_as(shape(lhs, of), lhs, rhs, of, path, found)
        in_leaf = _compare_as(shape(rhs, of), lhs, rhs, of, path, found)
    if not in_leaf and path:
        if lhs is ABSENT:
            insert(found.added, path)
        elif rhs is ABSENT:
            insert(found.removed, path)


def _compare_as(fits: str, lhs: Any, rhs: Any, of: Type, path: Path, found: Comparison) -> bool:
    """Compare as one shape; return whether that was a leaf."""
    if fits == "map" and of.map is not None:
        left, right = (side if isinstance(side, dict) else {} for side in (lhs, rhs))
        if not of.map.atomic and (left or right):
            for name in [*left, *(name for name in right if name not in left)]:
                kind = of.map.type_at(name)
                if kind is not None:
                    _compare(left.get(name, ABSENT), right.get(name, ABSENT), kind, (*path, f"f:{name}"), found)
            return False
    elif fits == "list" and of.list is not None:
        before, after = (side if isinstance(side, list) else [] for side in (lhs, rhs))
        if not of.list.atomic and (before or after):
            _compare_items(before, after, of.list, path, found)
            return False
    _compare_leaf(lhs, rhs, path, found)
    return True


def _compare_leaf(lhs: Any, rhs: Any, path: Path, found: Comparison) -> None:
    if not path:
        return
    if lhs is ABSENT:
        insert(found.added, path)
    elif rhs is ABSENT:
        insert(found.removed, path)
    elif not same(lhs, rhs):
        insert(found.modified, path)


def _compare_items(left: list[Any], right: list[Any], of: ListType, path: Path, found: Comparison) -> None:
    before, after = _grouped(left, of), _grouped(right, of)
    for element in [*before, *(element for element in after if element not in before)]:
        old, new = before.get(element, []), after.get(element, [])
        where = (*path, element)
        if len(old) <= 1 and len(new) <= 1:
            _compare(old[0] if old else ABSENT, new[0] if new else ABSENT, of.item, where, found)
        elif len(old) > 1 and len(new) > 1:
            if not same(old, new):
                insert(found.modified, where)
        elif len(old) > 1:
            if new:
                _compare(ABSENT, new[0], of.item, where, found)
            insert(found.removed, where)
        else:
            if old:
                _compare(old[0], ABSENT, of.item, where, found)
            insert(found.added, where)


def _grouped(items: list[Any], of: ListType) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(element_of(item, of), []).append(item)
    return groups


# --- remove -----------------------------------------------------------------------------


def remove(value: Any, fields: FieldSet, of: Type) -> Any:
    """Return *value* without *fields*; a container that loses its last item becomes null."""
    return _removed(value, fields.tree, of)


def _removed(value: Any, tree: Tree, of: Type) -> Any:
    fits = shape(value, of)
    if fits == "map" and of.map is not None:
        if not value or not isinstance(value, dict) or of.map.atomic:
            return None
        return _removed_map(value, tree, of.map)
    if fits == "list" and of.list is not None:
        if not value or not isinstance(value, list) or of.list.atomic:
            return None
        return _removed_list(value, tree, of.list)
    return value


def _removed_map(value: Mapping[str, Any], tree: Tree, of: MapType) -> dict[str, Any] | None:
    out: dict[str, Any] = {}
    for name, below in value.items():
        node = tree.get(f"f:{name}")
        if node is None:
            out[name] = below
        elif not is_member(node):
            kind = of.type_at(name)
            out[name] = _removed(below, node, kind) if kind is not None else below
    return out or None


def _removed_list(value: list[Any], tree: Tree, of: ListType) -> list[Any] | None:
    out: list[Any] = []
    for item in value:
        node = tree.get(element_of(item, of))
        if node is None:
            out.append(item)
        elif not is_member(node):
            out.append(_removed(item, node, of.item))
    return out or None
