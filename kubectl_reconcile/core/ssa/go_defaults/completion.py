"""An object as people should see it predicted: with the defaults of Go code that the live object shows.

Filled in is only what live has just so: whatever the table says, a value that live doesn't have is never made up.

Pure: inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.core.ssa.go_defaults.table import (
    DEFAULTS,
    DROPPED_ZEROS,
    DROPPED_ZEROS_OF,
    GROWN,
    HELD_BY_VALUE,
    LABELLED_AS_PODS,
    WRITTEN_BY_SERVER,
)
from kubectl_reconcile.core.ssa.schema import ListType, MapType, Type
from kubectl_reconcile.core.ssa.typed import element_of
from kubectl_reconcile.core.ssa.values import is_zero, same


def completed(wanted: Any, live: Any, of: Type | None) -> Any:
    """Return *wanted* with what the server's Go code makes of it by the table, as far as *live* shows just that.

    Filled in are fields that *wanted* lacks, or has at a zero that says nothing, and that *live* has at their default; zero values that
    Go doesn't store and *live* doesn't have are left out; what the server alone writes is as in *live*. Everything
    else is as it was.
    """
    return _completed(wanted, live, of)


def _completed(wanted: Any, live: Any, of: Type | None, place: str = "") -> Any:
    if of is None:
        return wanted
    if isinstance(wanted, dict) and isinstance(live, dict) and of.map is not None:
        return _completed_map(wanted, live, of, of.map, place)
    if isinstance(wanted, list) and isinstance(live, list) and of.list is not None:
        item, partners = of.list.item, _partners(wanted, live, of.list)
        return [_completed(one, other, item, place) for one, other in zip(wanted, partners, strict=True)]
    return wanted


def _completed_map(
    wanted: dict[str, Any], live: dict[str, Any], of: Type, fields: MapType, place: str
) -> dict[str, Any]:
    place = place or of.definition
    defaults = {**DEFAULTS.get(of.definition, {}), **DEFAULTS.get(place, {})}
    out: dict[str, Any] = {}
    for name, value in wanted.items():
        declared = name in fields.names
        if name not in live:
            dropped = declared and (name in DROPPED_ZEROS or (of.definition, name) in DROPPED_ZEROS_OF)
            if not (dropped and is_zero(value) and not isinstance(value, dict | list)):
                out[name] = value
        elif (
            declared
            and name in defaults
            and _is_absent_to_go(value, of.definition, name)
            and _is_default(defaults[name], live[name], wanted)
        ):
            out[name] = live[name]
        else:
            out[name] = _completed(value, live[name], fields.type_at(name), f"{place}.{name}")
    for name, default in defaults.items():
        if name not in out and name in live and _is_default(default, live[name], wanted):
            out[name] = live[name]
    for name, value in live.items():
        grown = GROWN.get(f"{place}.{name}")
        if grown is not None and _is_default(grown, value, out):
            out[name] = value
    for path in WRITTEN_BY_SERVER.get(of.definition, ()):
        out = _with_live(out, live, path)
    return _labelled_as_pods(out, live) if of.definition in LABELLED_AS_PODS else out


def _is_absent_to_go(value: Any, definition: str, name: str) -> bool:
    """Tell whether Go can't tell *value* from a field that isn't there: most numbers and booleans with a default are pointers, whose zero says something."""
    is_counted = isinstance(value, int | float)
    return is_zero(value) and (not is_counted or (definition, name) in HELD_BY_VALUE)


def _with_live(wanted: Any, live: Any, path: tuple[str, ...]) -> Any:
    """Return *wanted* with what *live* has at *path*, where it has something."""
    if not path:
        return live
    if not isinstance(live, dict) or path[0] not in live or not isinstance(wanted, dict | None):
        return wanted
    below = (wanted or {}).get(path[0])
    became = _with_live(below, live[path[0]], path[1:])
    return wanted if became is below else {**(wanted or {}), path[0]: became}


def _labelled_as_pods(wanted: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """Return an object without labels with those of its pods, where the server has given it those."""
    given, pods = _labels_at(live), _labels_at(live, "spec", "template")
    if not given or given != pods or _labels_at(wanted):
        return wanted
    return {**wanted, "metadata": {**(wanted.get("metadata") or {}), "labels": given}}


def _labels_at(tree: Any, *place: str) -> Any:
    for name in (*place, "metadata", "labels"):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _is_default(default: Any, value: Any, within: Mapping[str, Any]) -> bool:
    return same(default(within) if callable(default) else default, value)


def _partners(wanted: list[Any], live: list[Any], of: ListType) -> list[Any]:
    """Return for each item of *wanted* the one of *live* that it is compared with; None where there is none."""
    if of.atomic:
        return live if len(live) == len(wanted) else [None] * len(wanted)
    found = {element_of(item, of): item for item in live}
    return [found.get(element_of(item, of)) for item in wanted]
