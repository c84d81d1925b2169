"""Fields that two controllers keep overwriting: noticed by their rate, and left to the other one for a while.

Vocabulary: a *round* is one time that we give a field the very value that we had given it before, so
somebody must have overwritten it; that one is the *rival*. Many rounds within a window are a *contention*, and a contention brings
a *back-off*: the field is left out of what we send, as an ignore rule would, and all else goes on. The *item* is the Sync
or the CR whose pass writes the object.

A back-off ends when the field is as we want it without our doing, when a person says so, when something else is pushed, and by itself
after five minutes: then the field is written again, and a single further round by the *same* rival brings the next
back-off, twice as long. Whoever else overwrites it begins from the beginning, so that nobody's flips make another's back-off longer.
Marks by which we know our own objects are never left to anybody.

Pure: time is an argument, in seconds of a clock that only goes forward.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import PREFIX
from kubectl_reconcile.core.module.schedules import later
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Contention, Contentions, Op
from kubectl_reconcile.core.retry import CONTENTION
from kubectl_reconcile.core.ssa.merge import FieldChange

ROUNDS = 10
"""So many rounds within the window are a contention: more than a person makes by hand."""

WINDOW_S = 600.0

_MOST = 20_000
_MARKS = (PREFIX, "applyset.kubernetes.io/", "app.kubernetes.io/instance")

_Place: TypeAlias = tuple[ObjectRef, FieldPath]


class _Rounds(Struct):
    """When one field was given the same value, and by whom it was overwritten last."""

    value: str
    times_s: deque[float] = field(default_factory=lambda: deque(maxlen=ROUNDS))

    def within(self, now_s: float) -> int:
        return sum(1 for at_s in self.times_s if now_s - at_s <= WINDOW_S)


class _BackedOff(Struct, frozen=True):
    contention: Contention
    item: ObjectRef
    until_s: float
    times: int
    """How many back-offs in a row, for the same rival, this one makes."""


class ContentionBegun(Struct, frozen=True):
    """A field is left to somebody else from now on."""

    contention: Contention


class ContentionSettled(Struct, frozen=True):
    """A field that was left to somebody else is as we want it."""

    contention: Contention


class ContentionTracker(Struct):
    """All contentions of one daemon. Informed of what is about to be written and of what was, it says what to leave."""

    _rounds: dict[_Place, _Rounds] = field(default_factory=dict)
    _now: dict[_Place, _BackedOff] = field(default_factory=dict)
    _over: dict[_Place, _BackedOff] = field(default_factory=dict)
    _revisions: dict[ObjectRef, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._now)

    # What happens -----------------------------------------------------------------------------

    def wrote(self, change: Change, now_s: float) -> None:
        """Take note of an update that was written."""
        if change.op is not Op.UPDATE:
            return
        for each in filter(_may_be_left, change.fields):
            place, value = (change.ref, each.path), _digest(each.after)
            rounds = self._rounds.get(place)
            if rounds is None or rounds.value != value:
                rounds = self._rounds[place] = _Rounds(value)
            rounds.times_s.append(now_s)
        if len(self._rounds) > _MOST:
            self._rounds = {place: rounds for place, rounds in self._rounds.items() if rounds.within(now_s)}

    def begin(self, item: ObjectRef, changes: Iterable[Change], *, now_s: float, now: str) -> list[Contention]:
        """Return the contentions that show in *changes*, which are about to be written; from now on they are left alone."""
        begun = []
        for change in changes:
            for each in change.fields if change.op is Op.UPDATE and change.writes else ():
                place = change.ref, each.path
                times = self._times(place, each, now_s)
                if not times or place in self._now:
                    continue
                before = self._over.pop(place, None)
                goes_on = before is not None and before.contention.manager == each.manager
                in_a_row = before.times + 1 if before and goes_on else 1
                length_s = CONTENTION.pause_s(in_a_row)
                contention = Contention(change.ref, each.path, each.manager, times, now, later(now, length_s))
                self._now[place] = _BackedOff(contention, item, now_s + length_s, in_a_row)
                begun.append(contention)
        return begun

    def _times(self, place: _Place, each: FieldChange, now_s: float) -> int:
        """Return how many rounds make a field contended, none if it isn't."""
        rounds = self._rounds.get(place)
        if rounds is None or rounds.value != _digest(each.after):
            return 0
        before, times = self._over.get(place), rounds.within(now_s)
        if before and now_s - before.until_s <= WINDOW_S:
            since = sum(1 for at_s in rounds.times_s if at_s >= before.until_s)
            return times if since >= (1 if before.contention.manager == each.manager else ROUNDS) else 0
        return times if times >= ROUNDS else 0

    def settle(self, contentions: Iterable[Contention]) -> None:
        """End contention over fields that are as we want them without our doing."""
        for contention in contentions:
            self._now.pop((contention.ref, contention.path), None)
            self._rounds.pop((contention.ref, contention.path), None)

    def resume(self, item: ObjectRef) -> list[Contention]:
        """End the contention of *item*, since a person says so; return the contentions."""
        ended = [place for place, each in self._now.items() if each.item == item]
        for place in ended:
            self._rounds.pop(place, None)
        return [self._now.pop(place).contention for place in ended]

    def pushed(self, item: ObjectRef, revision: str) -> list[Contention]:
        """End the contention of *item* where its source is at another *revision* than it was; return the contentions."""
        before, self._revisions[item] = self._revisions.get(item, revision), revision
        return self.resume(item) if before != revision else []

    def lapse(self, item: ObjectRef, now_s: float) -> list[Contention]:
        """End those contentions of *item* that have lasted long enough; return the contentions, to be tried again."""
        ended = [place for place, each in self._now.items() if each.item == item and each.until_s <= now_s]
        self._over = {place: each for place, each in self._over.items() if now_s - each.until_s <= WINDOW_S}
        self._over.update((place, self._now.pop(place)) for place in ended)
        return [self._over[place].contention for place in ended]

    def forget(self, item: ObjectRef) -> None:
        """Drop what is known of an item that is gone, or is somebody else's now."""
        for place in [place for place, each in self._now.items() if each.item == item]:
            del self._now[place]
        self._revisions.pop(item, None)

    # What follows from it -----------------------------------------------------------------------

    def contentions(self) -> Contentions:
        """Return the contended fields by object."""
        found: dict[ObjectRef, list[Contention]] = defaultdict(list)
        for (ref, _), each in sorted(self._now.items()):
            found[ref].append(each.contention)
        return {ref: tuple(contentions) for ref, contentions in found.items()}

    def of(self, item: ObjectRef) -> list[Contention]:
        """Return the contentions of one item."""
        return [each.contention for _, each in sorted(self._now.items()) if each.item == item]

    def contended_items(self) -> frozenset[ObjectRef]:
        """Return whoever has contentions."""
        return frozenset(each.item for each in self._now.values())

    def due_s(self, item: ObjectRef) -> float | None:
        """Return when the first back-off of *item* ends by itself, None where it has none."""
        return min((each.until_s for each in self._now.values() if each.item == item), default=None)


def _may_be_left(each: FieldChange) -> bool:
    """Tell whether a field may be left to others: what marks our own objects, and what holds marks, may not."""
    names = [element[2:] for element in each.path]
    if not names or names[0] != "metadata":
        return bool(names)
    return len(names) > 2 and names[1] in {"labels", "annotations"} and not names[2].startswith(_MARKS)


def _digest(value: object) -> str:
    """Return what stands for a value, which may be a secret, in comparisons."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
