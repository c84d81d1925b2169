"""Merging one value into another under a schema: structured-merge-diff's typed/merge.go.

Vocabulary: *lhs* is what was there, *rhs* what comes, `ABSENT` is no value at all (see `typed`).

Pure: inputs are never mutated; results share what didn't change with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_reconcile.core.ssa.schema import ListType, MapType, Type
from kubectl_reconcile.core.ssa.typed import ABSENT, elements_of, shape


def merge(lhs: Any, rhs: Any, of: Type) -> Any:
    """Return *lhs* with *rhs* merged into it: nothing is removed, leaves of *rhs* win."""
    fits = shape(lhs if rhs is ABSENT else rhs, of)
    if fits == "map" and of.map is not None:
        return _merge_maps(lhs, rhs, of.map)
    if fits == "list" and of.list is not None:
        return _merge_lists(lhs, rhs, of.list)
    return _keep(lhs, rhs)


def _keep(lhs: Any, rhs: Any) -> Any:
    return lhs if rhs is ABSENT else rhs


def _merge_maps(lhs: Any, rhs: Any, of: MapType) -> Any:
    left = lhs if isinstance(lhs, dict) else {}
    right = rhs if isinstance(rhs, dict) else {}
    if of.atomic or not (left or right):
        return _keep(lhs, rhs)
    out: dict[str, Any] = {}
    for name in [*left, *(name for name in right if name not in left)]:
        kind = of.type_at(name)
        if kind is None:
            merged = _keep(left.get(name, ABSENT), right.get(name, ABSENT))
        else:
            merged = merge(left.get(name, ABSENT), right.get(name, ABSENT), kind)
        if merged is not ABSENT:
            out[name] = merged
    return out or ABSENT


def _merge_lists(lhs: Any, rhs: Any, of: ListType) -> Any:
    left = lhs if isinstance(lhs, list) else []
    right = rhs if isinstance(rhs, list) else []
    if of.atomic or not (left or right):
        return _keep(lhs, rhs)
    return list(_merged_items(left, right, of)) or ABSENT


def _merged_items(left: list[Any], right: list[Any], of: ListType) -> Iterator[Any]:
    """Yield the merged items in the server's order: structured-merge-diff's ``visitListItems`` (typed/merge.go).

    Theory. Items are known by their keys, not by their places, so two orders have to be made one. Two wishes
    can't both be met: *right* states an order, and an item of *left* alone wants to stay where it stood. The
    rule: items of *right* come in the order of *right*, always. An item of *left* alone stands after the items
    that it followed in *left*, and before the next *shared* one (an item of both). So the two lists are walked
    at once, as in a merge sort, and *awaited* is the shared item whose turn is next in the order of *right*:
    shared items of *left* that aren't awaited are passed over, since *right* will bring them when it is time.

    In the examples capitals are in both lists, ``left + right -> merged``; duplicates in *left* are never
    merged but replaced as a whole (there is no telling which of them was meant), duplicates in *right* are refused
    by `validate` before.
    """
    left_elements, right_elements = elements_of(left, of), elements_of(right, of)
    before = {
        element: item if left_elements.count(element) == 1 else None
        for element, item in zip(left_elements, left, strict=True)
    }
    coming = dict(zip(right_elements, right, strict=True))
    shared = iter([element for element in right_elements if element in before])
    awaited = next(shared, None)
    done: set[str] = set()
    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        if at_left < len(left) and at_right < len(right):
            element = left_elements[at_left]
            # Both stand at the same item: merge the two. [A b] + [A c]: A is merged with A, and the next shared one is awaited.
            if element == right_elements[at_right]:
                done.add(element)
                yield from _item(before.get(element), coming[element], of)
                at_left, at_right = at_left + 1, at_right + 1
                awaited = next(shared, None)
                continue
            # A shared item too early: pass over it. [A B] + [B A] -> [B A]: at A, while B is awaited.
            if element in coming and awaited is not None and awaited != element:
                at_left += 1
                continue
        if at_left < len(left):
            element = left_elements[at_left]
            # An item of left alone: it keeps its place. [a B] + [B] -> [a B]. Duplicates each stay as they are.
            if element not in coming:
                yield from _item(left[at_left], ABSENT, of)
                at_left += 1
                continue
            # A shared item that right has brought already: leave it behind. [A A] + [A] -> [A], merged once.
            if element in done:
                at_left += 1
        # An item of right that left has no place for, or not here: it comes now. [B] + [a B] -> [a B].
        if at_right < len(right):
            element = right_elements[at_right]
            done.add(element)
            yield from _item(before.get(element), coming[element], of)
            at_right += 1
            if awaited == element:
                awaited = next(shared, None)


def _item(lhs: Any, rhs: Any, of: ListType) -> Iterator[Any]:
    merged = merge(lhs, rhs, of.item)
    if merged is not ABSENT:
        yield merged
