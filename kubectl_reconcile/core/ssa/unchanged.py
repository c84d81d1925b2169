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
    want, have = desired["metadata"], live["metadata"]
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
    """Follow a granular map: every stated field unchanged, and exactly *owned* of them stated.

    Theory. Server-side apply (KEP-555; structured-merge-diff's merge/update.go) changes nothing if two things hold.
    Values: whatever we state is live already, so merging adds nothing. Ownership: the fields that we state are
    just those that our entry lists, so that nothing is pruned (we own none that we don't state) and nothing is
    gained. Three trees are walked at once: *want* leads; *live* answers for values; *node*, our part of
    ``fieldsV1``, for ownership. The second half of "just those" is a count: each stated name is taken off *owned*,
    the number of names in *node*, so that 0 at the end says that no name there went unstated; a set would have to be
    made for each map. A node says of itself that it is owned by ``"."``: items and undeclared keys are ({".": {}, …}),
    declared fields with something below aren't (typed/tofieldset.go), and so the rule differs by *declared*.
    The shape of a value picks the branch; each gives an example of what it refuses.
    """
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
        # Not ours yet, or a null, whose meaning depends on the schema: {"a": "x"} before our first apply.
        if below is None or value is None:
            return False
        shape = type(value)
        if shape is dict:
            inner = kind.map
            if inner is None or type(have) is not dict:
                return False
            # An atomic map is one value with one owner: a selector {"app": "a"} where live says {"app": "a", "b": "c"}.
            if inner.atomic:
                if below or not same(value, have):
                    return False
            # An empty map is a leaf: {} where live has {"k": "v"}, which somebody else put there.
            elif not value:
                if below or have:
                    return False
            # A granular map: the same walk below it. labels {"a": "1"} where live says {"a": "2"}.
            elif ("." in below) is declared or not _is_unchanged_map(
                value, have, below, inner, len(below) - (not declared)
            ):
                return False
        elif shape is list:
            items = kind.list
            # An empty list is stored by some kinds and dropped by others: args [], which is a matter for a closer look.
            if items is None or not value or type(have) is not list:
                return False
            # An atomic list is one value: command ["a", "b"] where live says ["b", "a"].
            if items.atomic:
                if below or not same(value, have):
                    return False
            # A set or list map: items by their keys. ports [80] where live says [443].
            elif not declared or not _is_unchanged_list(value, have, below, items):
                return False
        # A scalar is a leaf: "x" where fieldsV1 has something below it, or the schema wants a map.
        elif below or not kind.scalar:
            return False
        # Another text may be the same value, respelled as the kind stores it: cpu "1000m" where live says "1".
        elif value != have:
            if kind.form is None or stored(value, kind.form) != have:
                return False
        # Python says that 1 == True; the server doesn't: suspend true where live says 1.
        elif (shape is bool or type(have) is bool) and value is not have:
            return False
    return owned == 0  # else we own a name here that isn't stated any more, and it has to go


def _is_unchanged_list(  # noqa: PLR0911 - see the module
    want: list[Any], live: list[Any], node: Tree, of: ListType
) -> bool:
    """Follow a set or list map: our items unchanged and in their order, and no others owned."""
    elements = _elements(want, of)
    # All of the items are ours, and none is there twice, which the server refuses: names ["a", "a"], though live says so too.
    if elements is None or not len(elements) == len(set(elements)) == len(node):
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
