"""When each object is written, and what it waits for.

Vocabulary: an object's *place* is (wave, phase, depth): the wave that its annotation names, the
phase of its kind, and how far it stands behind what it depends on. A *stage* is a part of a sync:
hooks before, writes, deletions, hooks after. Stages, waves and phases follow each other; within
a place all objects are written together. Deletions run through the places backwards.

A *barrier* is a place that is entered only once what came before is healthy: another wave, another stage. Between
phases nobody waits, because nothing there can block for good: a claim stays unbound until the pod that uses it is
made. Only a webhook or an aggregated API waits for the workloads behind its own Service: until those answer, it may have
the server refuse everything.

Pure: tuples and graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, labels_of

Place: TypeAlias = tuple[int, ...]
"""Wave, phase, depth."""

Key: TypeAlias = tuple[int, ...]
"""A stage, then a place, in the order of the work; places of deletions are negated."""


class Stage(IntEnum):
    """The parts of a sync, one after the other."""

    BEFORE = 0
    """Hooks that must succeed before anything is written."""
    WRITE = 1
    """What Git asks for, and what modules make of it."""
    DELETE = 2
    """What nobody asks for any more."""
    AFTER = 3
    """Hooks that run once everything is there and healthy."""


# --- who comes after whom -----------------------------------------------------------------------


def cycles_in(needs: Mapping[ObjectRef, Iterable[ObjectRef]]) -> Iterator[tuple[ObjectRef, ...]]:
    """Yield every cycle, each object once, the first again at the end; a cycle broken apart yields no other."""
    left = {ref: set(targets) for ref, targets in needs.items()}
    while left:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # graphlib names each before the one that waits for it; people read it the other way round.
            cycle = tuple(reversed(error.args[1]))
            start = cycle.index(min(cycle))
            yield (*cycle[start:-1], *cycle[:start], cycle[start])
            left = {ref: targets for ref, targets in left.items() if ref not in set(cycle)}
        else:
            return


def arranged(
    places: Mapping[ObjectRef, Place], needs: Mapping[ObjectRef, Iterable[ObjectRef]]
) -> dict[ObjectRef, Place]:
    """Return the places of the objects that *needs* names, each behind what it needs. There must be no cycle."""
    found: dict[ObjectRef, Place] = {}
    for ref in TopologicalSorter(needs).static_order():
        if ref in places:
            behind = (found[target] for target in needs.get(ref, ()) if target in found)
            found[ref] = max([places[ref], *((*place[:-1], place[-1] + 1) for place in behind)])
    return found


# --- stages ---------------------------------------------------------------------------------------


def key_of(stage: Stage, place: Place) -> Key:
    """Return where a change stands among all others."""
    return (stage, *(-part for part in place)) if stage is Stage.DELETE else (stage, *place)


def place_at(key: Key) -> Place:
    """Return the place of a change that stands there."""
    return tuple(-part for part in key[1:]) if key[0] == Stage.DELETE else key[1:]


class Steps(Struct, frozen=True):
    """All places of a plan in order, and which of them are barriers. An index counts the places."""

    index: Mapping[Key, int]
    barriers: frozenset[int]

    @classmethod
    def of(cls, keys: Iterable[Key]) -> Steps:
        """Put *keys* in order."""
        ordered = sorted(set(keys))
        barriers = frozenset(at for at in range(1, len(ordered)) if _is_barrier(ordered[at - 1], ordered[at]))
        return cls({key: at for at, key in enumerate(ordered)}, barriers)


def _is_barrier(before: Key, after: Key) -> bool:
    if after[0] != before[0]:
        return after[0] != Stage.DELETE or before[0] == Stage.BEFORE
    return after[1] != before[1]


def in_reverse(needs: Mapping[ObjectRef, Sequence[ObjectRef]]) -> dict[ObjectRef, tuple[ObjectRef, ...]]:
    """Return for each object those that need it: they are deleted first."""
    found: dict[ObjectRef, list[ObjectRef]] = {}
    for ref, targets in needs.items():
        for target in targets:
            found.setdefault(target, []).append(ref)
    return {ref: tuple(sorted(refs)) for ref, refs in found.items()}


# --- what answers for the server ------------------------------------------------------------------

BACKENDS: Final = frozenset(
    {GroupKind("apps", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")}
    | {GroupKind("", "Pod")}
)
"""Kinds whose pods can answer requests."""


def services_of(manifest: Manifest) -> frozenset[ObjectRef]:
    """Return the Services that the server asks because of a webhook configuration or an aggregated API."""
    hooks = ((webhook.get("clientConfig") or {}).get("service") for webhook in manifest.get("webhooks") or ())
    asked = ((manifest.get("spec") or {}).get("service"), *hooks)
    return frozenset(
        ObjectRef("", "Service", each["namespace"], each["name"])
        for each in asked
        if isinstance(each, Mapping) and each.get("namespace") and each.get("name")
    )


def is_behind(workload: Manifest, service: Manifest) -> bool:
    """Tell whether the pods of *workload* answer for *service*, which is in the same namespace."""
    selector = (service.get("spec") or {}).get("selector") or {}
    template = workload if workload.get("kind") == "Pod" else (workload.get("spec") or {}).get("template") or {}
    return bool(selector) and selector.items() <= labels_of({"metadata": template.get("metadata") or {}}).items()
