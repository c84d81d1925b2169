"""Which Syncs wait for which, and whether one waits for itself.

Vocabulary: a Sync's *gate* opens for a new revision or spec once all that ``spec.dependsOn`` names was Ready; it is *ready* after
that. A Sync that waits for health is ready only once its members are, and these may be Syncs; a Sync that is another's
member becomes what it is to be only after that one's gate has opened.

A Sync is another's member where that one's source asks for it, and it carries the other's mark: either alone anybody can write.

Pure: it is informed of Syncs as they come and go, and of what their sources ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import pairwise
from typing import TypeAlias, TypeVar

from msgspec import Struct, field

from kubectl_reconcile.core.objects import Manifest, ObjectRef, labels_of
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.sync import Sync

K = TypeVar("K")


class _Moment(Enum):
    GATE = "gate"
    READY = "ready"


_Step: TypeAlias = tuple[_Moment, ObjectRef]


class _Known(Struct, frozen=True):
    """What of a Sync decides who waits for whom; *above* is the set whose member it says it is."""

    depends_on: tuple[ObjectRef, ...]
    waits_for_health: bool
    set_id: str
    above: str


class DependencyGraph(Struct):
    """All Syncs that are known, and who of them waits for whom."""

    _known: dict[ObjectRef, _Known] = field(default_factory=dict)
    _by_set: dict[str, ObjectRef] = field(default_factory=dict)
    _asked: dict[ObjectRef, frozenset[ObjectRef]] = field(default_factory=dict)
    _waiting: dict[ObjectRef, set[ObjectRef]] = field(default_factory=dict)

    def came(self, live: Manifest) -> None:
        """Note a Sync as it is; one that can't be meant as it is written waits for nobody."""
        ref = ObjectRef.of(live)
        self.went(ref)
        try:
            sync = Sync.of(live)
        except SyncSpecError:
            return
        above = labels_of(live).get(PART_OF, "")
        names = tuple(each.ref for each in sync.depends_on)
        self._known[ref] = _Known(names, sync.waits_for_health, set_id_of(sync), above)
        self._by_set[set_id_of(sync)] = ref
        for each in names:
            self._waiting.setdefault(each, set()).add(ref)

    def went(self, ref: ObjectRef) -> None:
        """Forget a Sync."""
        known = self._known.pop(ref, None)
        if known is None:
            return
        self._by_set.pop(known.set_id, None)
        for each in known.depends_on:
            _discard(self._waiting, each, ref)

    def asks_for(self, ref: ObjectRef, syncs: Iterable[ObjectRef]) -> None:
        """Note for which other Syncs the source of one asks; for none where it isn't followed any more."""
        if found := frozenset(syncs):
            self._asked[ref] = found
        else:
            self._asked.pop(ref, None)

    def waiting_for(self, ref: ObjectRef) -> list[ObjectRef]:
        """Return the Syncs that depend on *ref*."""
        return sorted(self._waiting.get(ref, ()))

    def cycle(self, ref: ObjectRef) -> str:
        """Return by way of whom a Sync waits for itself, as a sentence; empty where it doesn't."""
        start = (_Moment.GATE, ref)
        came_from: dict[_Step, _Step] = {}
        queue = [start]
        while queue:
            step = queue.pop(0)
            for after in self._next(step):
                if after == start:
                    return f"waits for itself: {self._told(start, step, came_from)}"
                if after not in came_from:
                    came_from[after] = step
                    queue.append(after)
        return ""

    def _next(self, step: _Step) -> Iterator[_Step]:
        """Yield what must come before."""
        moment, ref = step
        known = self._known.get(ref)
        if known is None:
            return
        if moment is _Moment.READY:
            yield (_Moment.GATE, ref)
            if known.waits_for_health:
                yield from (
                    (_Moment.READY, each) for each in sorted(self._asked.get(ref, ())) if self._is_member(each, ref)
                )
            return
        yield from ((_Moment.READY, each) for each in known.depends_on)
        above = self._by_set.get(known.above)
        if above is not None and self._is_member(ref, above):
            yield (_Moment.GATE, above)

    def _is_member(self, ref: ObjectRef, above: ObjectRef) -> bool:
        """Tell whether a Sync is a member of the one *above*, which asks for it."""
        known, parent = self._known.get(ref), self._known.get(above)
        is_marked = known is not None and parent is not None and known.above == parent.set_id
        return is_marked and ref in self._asked.get(above, ())

    @staticmethod
    def _told(start: _Step, last: _Step, came_from: dict[_Step, _Step]) -> str:
        """Return the way from *start* round to itself, in words."""
        way = [start, last]
        while way[-1] != start:
            way.append(came_from[way[-1]])
        way.reverse()
        told = [
            f"{_RELATIONS[here[0], there[0]]} {_name(there)}"
            for here, there in pairwise(way)
            if (here[0], there[0]) in _RELATIONS
        ]
        return f"{_name(start)} {', which '.join(told)}"


def _discard(index: dict[K, set[ObjectRef]], key: K, ref: ObjectRef) -> None:
    there = index.get(key, set())
    there.discard(ref)
    if not there:
        index.pop(key, None)


_RELATIONS = {
    (_Moment.GATE, _Moment.READY): "depends on",
    (_Moment.READY, _Moment.READY): "has the member",
    (_Moment.GATE, _Moment.GATE): "is a member of",
}


def _name(step: _Step) -> str:
    return f"Sync {step[1].namespace}/{step[1].name}"
