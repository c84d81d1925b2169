"""What stands where: reading, leaving out and comparing parts of objects under a schema, for people and policies.

Vocabulary: a *path* is a tuple of path elements, as in a `FieldSet`. A *difference* is the topmost
place where two objects differ, which is what people want to see; structured-merge-diff's
`typed.compare` lists every field instead, since owners own fields.

Pure: inputs are never mutated; results share what didn't change with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kubectl_reconcile.core.ssa.fieldset import FieldSet, Tree, canonical_element, children, is_member
from kubectl_reconcile.core.ssa.schema import ListType, MapType, Type
from kubectl_reconcile.core.ssa.typed import ABSENT, Path, element_of, elements_of, shape
from kubectl_reconcile.core.ssa.values import same

# --- differences ---------------------------------------------------------------------------------


class Difference(Struct, frozen=True):
    """The topmost place where two objects differ; ABSENT on one side where it was added or removed."""

    path: Path
    before: Any
    after: Any


def differences(lhs: Any, rhs: Any, of: Type, path: Path = ()) -> Iterator[Difference]:
    """Yield where *rhs* differs from *lhs*: leaves, whole added or removed parts, and reordered lists."""
    if lhs is not ABSENT and rhs is not ABSENT:
        if isinstance(lhs, dict) and isinstance(rhs, dict) and of.map is not None and not of.map.atomic:
            yield from _map_differences(lhs, rhs, of.map, path)
            return
        if isinstance(lhs, list) and isinstance(rhs, list) and of.list is not None and not of.list.atomic:
            yield from _list_differences(lhs, rhs, of.list, path)
            return
        if same(lhs, rhs):
            return
    yield Difference(path, lhs, rhs)


def _map_differences(lhs: Mapping[str, Any], rhs: Mapping[str, Any], of: MapType, path: Path) -> Iterator[Difference]:
    for name in [*lhs, *(name for name in rhs if name not in lhs)]:
        where = (*path, f"f:{name}")
        kind = of.type_at(name)
        left, right = lhs.get(name, ABSENT), rhs.get(name, ABSENT)
        if kind is not None:
            yield from differences(left, right, kind, where)
        elif left is ABSENT or right is ABSENT or not same(left, right):
            yield Difference(where, left, right)


def _list_differences(lhs: list[Any], rhs: list[Any], of: ListType, path: Path) -> Iterator[Difference]:
    old, new = elements_of(lhs, of), elements_of(rhs, of)
    if len(set(old)) < len(old) or len(set(new)) < len(new):
        if not same(lhs, rhs):
            yield Difference(path, lhs, rhs)
        return
    before, after = dict(zip(old, lhs, strict=True)), dict(zip(new, rhs, strict=True))
    for element in [*old, *(element for element in new if element not in before)]:
        yield from differences(before.get(element, ABSENT), after.get(element, ABSENT), of.item, (*path, element))
    if [element for element in old if element in after] != [element for element in new if element in before]:
        yield Difference(path, lhs, rhs)


def struct_field_at(path: Path, of: Type) -> Type | None:
    """Return the type at *path* if its last step is a declared field, None if it is an item or a map's key."""
    below: Type | None = of
    declared = False
    for element in path:
        if below is None:
            return None
        if element.startswith("f:") and below.map is not None:
            declared = element[2:] in below.map.names
            below = below.map.type_at(element[2:])
        else:
            declared = False
            below = below.list.item if below.list is not None else None
    return below if declared else None


def value_at(tree: Any, path: Path, of: Type) -> Any:
    """Return what stands at *path* in *tree*, ABSENT if nothing does."""
    for element in path:
        kind, body = element[:2], element[2:]
        if kind == "f:" and isinstance(tree, dict) and of.map is not None:
            below = of.map.type_at(body)
            tree = tree.get(body, ABSENT)
        elif kind in {"k:", "v:"} and isinstance(tree, list) and of.list is not None and not of.list.atomic:
            below, wanted, items = of.list.item, canonical_element(element), of.list
            tree = next((item for item in tree if element_of(item, items) == wanted), ABSENT)
        else:
            return ABSENT
        if tree is ABSENT or below is None:
            return tree
        of = below
    return tree


def leaves_of(value: Any, of: Type, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every leaf of an object with its path: scalars, atomic and empty containers."""
    if isinstance(value, dict) and value and of.map is not None and not of.map.atomic:
        for name, below in value.items():
            kind = of.map.type_at(name)
            where = (*path, f"f:{name}")
            if kind is None:
                yield where, below
            else:
                yield from leaves_of(below, kind, where)
    elif isinstance(value, list) and value and of.list is not None and not of.list.atomic:
        for item in value:
            yield from leaves_of(item, of.list.item, (*path, element_of(item, of.list)))
    else:
        yield path, value


# --- parts -----------------------------------------------------------------------------------------


def left_out(value: Any, fields: FieldSet, of: Type) -> Any:
    """Return *value* as if *fields* had never been stated; ABSENT if nothing is left.

    Containers go with their last item, and a list item keeps its keys as long as it has anything.
    """
    return _left_out(value, fields.tree, of)


def _left_out(value: Any, tree: Tree, of: Type) -> Any:
    if isinstance(value, dict) and value and of.map is not None:
        out: Any = {
            name: left
            for name, below in value.items()
            if (left := _entry_left(name, below, tree, of.map)) is not ABSENT
        }
    elif isinstance(value, list) and value and of.list is not None and not of.list.atomic:
        out = [left for item in value if (left := _item_left(item, tree, of.list)) is not ABSENT]
    else:
        return value
    return out or ABSENT


def _entry_left(name: str, value: Any, tree: Tree, of: MapType) -> Any:
    node, kind = tree.get(f"f:{name}"), of.type_at(name)
    if node is None or kind is None:
        return value
    return ABSENT if is_member(node) else _left_out(value, node, kind)


def _item_left(item: Any, tree: Tree, of: ListType) -> Any:
    node = tree.get(element_of(item, of))
    if node is None:
        return item
    left = ABSENT if is_member(node) else _left_out(item, node, of.item)
    return {**{name: item[name] for name in of.keys if name in item}, **left} if isinstance(left, dict) else left


def extract(value: Any, fields: FieldSet, of: Type) -> Any:
    """Return only what *fields* names in *value*, list items with their keys; ABSENT if that is nothing.

    A container that is named itself stays, empty where nothing of what is named below it is there.
    """
    return _extracted(value, fields.tree, of)


def _extracted(value: Any, tree: Tree, of: Type) -> Any:
    if value in ({}, []):
        return value
    fits = shape(value, of)
    if fits == "map" and of.map is not None and isinstance(value, dict) and not of.map.atomic:
        return _extracted_map(value, tree, of.map)
    if fits == "list" and of.list is not None and isinstance(value, list) and not of.list.atomic:
        return _extracted_list(value, tree, of.list)
    return value


def _extracted_map(value: Mapping[str, Any], tree: Tree, of: MapType) -> Any:
    out: dict[str, Any] = {}
    for name, below in value.items():
        node = tree.get(f"f:{name}")
        if node is None:
            continue
        kind = of.type_at(name)
        found = below if kind is None or not children(node) else _extracted(below, node, kind)
        if found is ABSENT and is_member(node):
            found = type(below)()
        if found is not ABSENT:
            out[name] = found
    return out or ABSENT


def _extracted_list(value: list[Any], tree: Tree, of: ListType) -> Any:
    out: list[Any] = []
    for item in value:
        node = tree.get(element_of(item, of))
        if node is None:
            continue
        if not isinstance(item, dict) or (of.item.map is not None and of.item.map.atomic):
            out.append(item)
            continue
        keys = {name: item[name] for name in of.keys if name in item}
        found = _extracted(item, node, of.item) if children(node) else ABSENT
        out.append({**keys, **(found if isinstance(found, dict) else {})})
    return out or ABSENT
