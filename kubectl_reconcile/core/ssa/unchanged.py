"""The hot path: would applying *desired* change nothing at all? One walk, no allocation.

An apply changes nothing if the fields that *desired* states are exactly those that our entry in
managedFields says we own, and live holds the same value at each of them. So the walk follows
three trees at once: desired, live, and the entry's ``fieldsV1`` as it came from the wire.

Rules: a yes is final, a no only means "look closely" (`merge.three_way` does). Whatever is
unusual (a null, a duplicate, an empty list, a container that changed its kind) is a no. This is
the one place where speed comes before beauty: loops are spelled out, since a call costs more
than a branch.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from kubectl_reconcile.core.ssa.fieldset import Tree, keyed_element, value_element
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.schema import ListType, MapType, Schema
from kubectl_reconcile.core.ssa.values import same, stored

_TYPE_AND_METADATA: Final = frozenset({"apiVersion", "kind", "metadata"})
_UNOWNED_METADATA: Final = frozenset(element[2:] for element in STRIPPED.tree["f:metadata"] if element != ".")
_NOTHING: Tree = {}


def is_unchanged(desired: Mapping[str, Any], live: Mapping[str, Any], fields_v1: Tree, schema: Schema) -> bool:
    """Return True only if applying *desired* again changes neither values nor our ownership.

    *desired* must hold nothing that the server ignores; *fields_v1* is what we own by now.
    """
    root = schema.root.map
    metadata = root.type_at("metadata") if root is not None else None
    if root is None or metadata is None or metadata.map is None:
        return False
    if live["apiVersion"] != desired["apiVersion"] or live["kind"] != desired["kind"]:
        return False
    want, have = desired.get("metadata", _NOTHING), live["metadata"]
    below = fields_v1.get("f:metadata", _NOTHING)
    rest = len(fields_v1) - ("f:metadata" in fields_v1)
    return _is_unchanged_map(want, have, below, metadata.map, len(below), _UNOWNED_METADATA) and _is_unchanged_map(
        desired, live, fields_v1, root, rest, _TYPE_AND_METADATA
    )


def _is_unchanged_map(  # noqa: C901, PLR0911, PLR0912 - see the module
    want: Mapping[str, Any],
    live: Mapping[str, Any],
    node: Tree,
    of: MapType,
    owned: int,
    skip: Collection[str] = (),
) -> bool:
    """Follow a granular map: every stated field unchanged, and exactly *owned* of them stated."""
    known, names = of.known, of.names
    for name, value in want.items():
        if name in skip:
            continue
        owned -= 1
        declared = name in names
        if declared:
            field = known[name]
            kind, element = field.type, field.element
        else:
            other = of.other
            if other is None:
                return False
            kind, element = other, "f:" + name
        below = node.get(element)
        have = live.get(name)
        if below is None or have is None or value is None:
            return False
        shape = type(value)
        if shape is dict:
            inner = kind.map
            if inner is None or type(have) is not dict:
                return False
            if inner.atomic:
                if below or not same(value, have):
                    return False
            elif not value:
                if below or have:
                    return False
            elif ("." in below) is declared or not _is_unchanged_map(
                value, have, below, inner, len(below) - (not declared)
            ):
                return False
        elif shape is list:
            items = kind.list
            if items is None or not value or type(have) is not list:
                return False
            if items.atomic:
                if below or not same(value, have):
                    return False
            elif not declared or "." in below or not _is_unchanged_list(value, have, below, items):
                return False
        elif below or not kind.scalar:
            return False
        elif value != have:
            if kind.form is None or stored(value, kind.form) != have:
                return False
        elif (shape is bool or type(have) is bool) and value is not have:
            return False
    return owned == 0


def _is_unchanged_list(  # noqa: PLR0911 - see the module
    want: list[Any], live: list[Any], node: Tree, of: ListType
) -> bool:
    """Follow a set or list map: our items unchanged and in their order, and no others owned."""
    elements = _elements(want, of)
    if elements is None or len(set(elements)) != len(node):
        return False
    pairs = _paired(elements, live, of)
    if pairs is None:
        return False
    inner = of.item.map if of.keys else None
    for element, item, have in zip(elements, want, pairs, strict=True):
        below = node.get(element)
        if below is None:
            return False
        if inner is None:
            if below or of.keys:
                return False
        elif inner.atomic:
            if below or not same(item, have):
                return False
        elif "." not in below or not _is_unchanged_map(item, have, below, inner, len(below) - 1):
            return False
    return True


def _elements(items: list[Any], of: ListType) -> list[str] | None:
    """Return the path elements of *items*; None if one is unusual."""
    if not of.keys:
        return [_value_element(item) for item in items] if all(type(item) in _SCALARS for item in items) else None
    if any(type(item) is not dict for item in items):
        return None
    if len(of.keys) == 1:
        name = of.keys[0]
        found = [item.get(name) for item in items]
        if all(type(value) is str for value in found):
            return [keyed_element(of.keys, value) for value in found]
    return [_keyed_element(item, of) for item in items]


_SCALARS: Final = frozenset({str, int, float, bool})


@lru_cache(maxsize=8192, typed=True)
def _value_element(value: Any) -> str:
    return value_element(value)


def _keyed_element(item: Mapping[str, Any], of: ListType) -> str:
    values = [item.get(name) for name in of.keys]
    if None in values:
        values = [of.key_default(name) if value is None else value for name, value in zip(of.keys, values, strict=True)]
    if any(type(value) not in _SCALARS for value in values if value is not None):
        return ""
    return keyed_element(of.keys, *values)


def _paired(elements: list[str], live: list[Any], of: ListType) -> list[Any] | None:
    """Return the live items of *elements*, if they are there, once each and in this order."""
    found = _elements(live, of)
    if found == elements:
        return live
    if found is None or len(set(found)) < len(found):
        return None
    places = {element: index for index, element in enumerate(found)}
    order = [places.get(element, -1) for element in elements]
    if -1 in order or order != sorted(order):
        return None
    return [live[index] for index in order]
