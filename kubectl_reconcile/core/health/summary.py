"""The health of a set: the verdicts of its members counted, the worst of them named.

Vocabulary: an object *ails* while its verdict isn't that all is as it should be; it *holds up* its set unless the verdict says
that nothing more is to be expected of it (unknown, suspended). The *cause* of an ailment is what lies below the object, such
as a pod that crashes. What a member owns, and what that owns, is *below* it: a member is no better than what is below it.

A tally is kept up verdict by verdict, so that a member that changes costs the look at that member alone.

Pure: time is an argument, RFC 3339.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.health.cel_rules import LIMITS, HealthRules
from kubectl_reconcile.core.health.health import Health, HealthStatus, spec_of
from kubectl_reconcile.core.health.silence import EXPECTED, Expected
from kubectl_reconcile.core.objects import (
    API_GROUP,
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    condition_of,
    map_at,
    maps_in,
    metadata_of,
)

MOST_NAMED: Final = 10
_SENTENCE: Final = 512
_SYNC: Final = GroupKind(API_GROUP, "Sync")
_JOB: Final = GroupKind("batch", "Job")

_GRAVITY: Final = (
    HealthStatus.FAILED,
    HealthStatus.NOT_FOUND,
    HealthStatus.IN_PROGRESS,
    HealthStatus.TERMINATING,
    HealthStatus.UNKNOWN,
)
"""Verdicts that are named, the gravest first."""

_HOLD_UP: Final = frozenset(_GRAVITY) - {HealthStatus.UNKNOWN}


def member_health(
    rules: HealthRules, live: Manifest, *, expected: Expected = Expected.NOT_KNOWN, now: str = ""
) -> Health:
    """Return the verdict that counts for the set of which *live* is a member; *expected* and *now* are as for `health`.

    It is what the rules say of the object itself. One that only limits what others do (a budget, a quota) holds nobody up while it
    is in progress, since it is those others that are short, and they are judged themselves. A claim has to be bound, and a
    Job to complete: that it has begun tells nobody whether its work is done. A Sync that nobody has looked at yet is in progress, and one
    that is suspended waits for a person.
    """
    kind = GroupVersionKind.of(live).group_kind
    if kind == _SYNC and (said := _sync_health(live)) is not None:
        return said
    found = rules.passes(live) if kind == _JOB else rules.judge(live, expected=expected, now=now)
    return _of_a_set(live, found)


def health_below(
    rules: HealthRules, live: Manifest, *, expected: Expected = Expected.NOT_KNOWN, now: str = ""
) -> Health:
    """Return the verdict that counts for the member that *live* belongs to; *expected* and *now* are as for `health`.

    It is that of a member, but for a Job: whether it has to complete, its owner knows. One that is being deleted is wanted no more.
    """
    found = _of_a_set(live, rules.judge(live, expected=expected, now=now))
    return replace(found, status=HealthStatus.CURRENT) if found.status is HealthStatus.TERMINATING else found


def _of_a_set(live: Manifest, found: Health) -> Health:
    is_about_others = found.status is HealthStatus.IN_PROGRESS and GroupVersionKind.of(live).group_kind in LIMITS
    return replace(found, status=HealthStatus.CURRENT) if is_about_others else found


def worst_of(own: Health, below: Mapping[ObjectRef, Health]) -> Health:
    """Return the health of an object by its own and by that of what is *below* it: the worse, which names what it is about.

    What is suspended, or is being deleted, is waited for no more, whatever is below it.
    """
    if not below or own.status in {HealthStatus.SUSPENDED, HealthStatus.TERMINATING}:
        return own
    first = min(below, key=lambda ref: (_GRAVITY.index(below[ref].status), ref))
    if own.status in _GRAVITY and _GRAVITY.index(own.status) <= _GRAVITY.index(below[first].status):
        return own if str(first) in own.message else replace(own, message=_joined(own.message, first, below[first]))
    return replace(own, status=below[first].status, message=_joined("", first, below[first]))


def _joined(before: str, ref: ObjectRef, found: Health) -> str:
    sentence = f"{ref}: {found.message or found.status}"
    return f"{before}; {sentence}" if before else sentence


def _sync_health(live: Manifest) -> Health | None:
    """Return how a Sync among the members is, where it doesn't say so itself."""
    spec = spec_of(live)
    if metadata_of(live).get("deletionTimestamp") or not spec.get("source"):
        return None
    if spec.get("suspend") is True:
        return Health(HealthStatus.SUSPENDED, "suspended")
    return None if condition_of(live, "Ready") else Health(HealthStatus.IN_PROGRESS, "no daemon has processed it yet")


class Ailment(Struct, frozen=True):
    """One object that ails, why, and since when."""

    ref: ObjectRef
    status: HealthStatus
    why: str
    since: str

    def entry(self) -> dict[str, str]:
        """Return it as a status tells it."""
        return {"object": str(self.ref), "health": str(self.status), "message": self.why, "since": self.since}


class HealthSummary(Struct, frozen=True):
    """How a set is: verdicts counted, the worst named, worst first.

    *is_awaited* tells that being Ready takes being healthy. *unsteady* is why a set that is healthy doesn't count as such yet,
    empty where it does. *fault* is what is wrong with a rule of the user's, as of one member.
    """

    counts: Mapping[HealthStatus, int]
    worst: tuple[Ailment, ...] = ()
    is_awaited: bool = True
    unsteady: str = ""
    fault: str = ""

    @property
    def is_healthy(self) -> bool:
        """Tell whether no member holds the set up, for long enough."""
        return self.is_sound and not self.unsteady

    @property
    def is_sound(self) -> bool:
        """Tell whether no member holds the set up now."""
        return not any(self.counts.get(each) for each in _HOLD_UP)

    @property
    def has_failed(self) -> bool:
        """Tell whether some member won't get there by itself."""
        return bool(self.counts.get(HealthStatus.FAILED))

    @property
    def reason(self) -> str:
        """How it is, in a word for conditions: Healthy, Failed or InProgress."""
        if self.is_healthy:
            return "Healthy"
        return str(HealthStatus.FAILED if self.has_failed else HealthStatus.IN_PROGRESS)

    @property
    def sentence(self) -> str:
        """How it is, for people: what ails most, and how many besides, and which rule is wrong."""
        return f"{self._verdict}; {self.fault}" if self.fault else self._verdict

    @property
    def _verdict(self) -> str:
        total = sum(self.counts.values())
        if self.is_sound:
            return self.unsteady or f"{total} object{'' if total == 1 else 's'}, none unhealthy"
        others = sum(self.counts.get(each, 0) for each in _HOLD_UP) - 1
        first = self.worst[0]
        return f"{first.ref}: {first.why or first.status}{f' (and {others} more)' if others else ''}"

    def told(self) -> dict[str, Any]:
        """Return ``status.health``: a bounded size, whatever the set. Zeros are left out but one: the server takes no empty map."""
        counts = {str(each): self.counts[each] for each in sorted(self.counts) if self.counts[each]}
        return {"counts": counts or {str(HealthStatus.CURRENT): 0}, "unhealthy": [each.entry() for each in self.worst]}


class HealthTally(Struct):
    """The verdicts of one set's members. *remembered* is since when objects ailed by an earlier tally, by object and verdict.

    *spoken* are the kinds of which some member has a status, as far as it was told of them.
    """

    remembered: Mapping[tuple[str, str], str] = field(default_factory=dict)
    counts: Counter[HealthStatus] = field(default_factory=Counter)
    spoken: set[GroupKind] = field(default_factory=set)
    _verdicts: dict[ObjectRef, HealthStatus] = field(default_factory=dict)
    _ailing: dict[ObjectRef, Ailment] = field(default_factory=dict)
    _worst: list[Ailment] | None = None
    _causes: dict[ObjectRef, str] = field(default_factory=dict)
    _silent: dict[GroupKind, set[ObjectRef]] = field(default_factory=dict)
    _below: dict[ObjectRef, dict[ObjectRef, Health]] = field(default_factory=dict)
    _faults: dict[ObjectRef, str] = field(default_factory=dict)

    @staticmethod
    def since(status: Mapping[str, Any]) -> dict[tuple[str, str], str]:
        """Return since when objects have ailed, as the status of a Sync tells it."""
        told = maps_in(map_at(status, "health").get("unhealthy"))
        return {(str(each.get("object")), str(each.get("health"))): str(each.get("since")) for each in told}

    def note(self, ref: ObjectRef, own: Health | None, now: str) -> bool:
        """Take in the verdict on a member by itself, None where it is gone; tell whether there is news."""
        is_fault_news = self._note_fault(ref, own)
        return self._note(ref, own, now) or is_fault_news

    def _note_fault(self, ref: ObjectRef, own: Health | None) -> bool:
        before = self._faults.pop(ref, "")
        if own is not None and own.fault:
            self._faults[ref] = own.fault
        return before != (own.fault if own else "")

    def _note(self, ref: ObjectRef, own: Health | None, now: str) -> bool:
        self._note_silence(ref, own)
        if own is None:
            self._below.pop(ref, None)
        found = worst_of(own, self._below.get(ref, {})) if own else None
        before, status = self._verdicts.get(ref), found.status if found else None
        if before is not status:
            self._count(ref, before, status)
        if found is None or status not in _GRAVITY:
            self._causes.pop(ref, None)
            return self._cured(ref) or before is not status
        known = self._ailing.get(ref)
        since = known.since if known and before is status else self.remembered.get((str(ref), str(status)), now)
        ailment = Ailment(ref, found.status, found.message[:_SENTENCE], since)
        if ailment == known:
            return False
        self._ailing[ref], self._worst = ailment, None
        return True

    def _cured(self, ref: ObjectRef) -> bool:
        if self._ailing.pop(ref, None) is None:
            return False
        self._worst = None
        return True

    def _count(self, ref: ObjectRef, before: HealthStatus | None, after: HealthStatus | None) -> None:
        if before is not None:
            self.counts[before] -= 1
        if after is None:
            del self._verdicts[ref]
            return
        self._verdicts[ref] = after
        self.counts[after] += 1

    def _note_silence(self, ref: ObjectRef, own: Health | None) -> None:
        if own is not None and own.is_silent:
            self._silent.setdefault(ref.group_kind, set()).add(ref)
        elif ref.group_kind in self._silent:
            self._silent[ref.group_kind].discard(ref)

    def note_spoken(self, kind: GroupKind, now: str) -> bool:
        """Note that a member of a kind has a status, which is to be expected of the others from now on; tell whether there is news."""
        if kind in self.spoken:
            return False
        self.spoken.add(kind)
        waiting = tuple(self._silent.get(kind, ()))
        for ref in waiting:
            self.note(ref, EXPECTED, now)
        return bool(waiting)

    def note_below(self, member: ObjectRef, ref: ObjectRef, found: Health | None) -> bool:
        """Take in the verdict on what is below a member, None where it is gone; tell whether the member is to be judged again."""
        ailing = self._below.get(member, {})
        before = ailing.pop(ref, None)
        if found is not None and found.status.holds_up:
            self._below[member] = {**ailing, ref: found}
            return before is None or (before.status, before.message) != (found.status, found.message)
        if before is not None and not ailing:
            del self._below[member]
        return before is not None

    def below(self, member: ObjectRef) -> list[ObjectRef]:
        """Return what ails below a member, the gravest first."""
        known = self._below.get(member, {})
        return sorted(known, key=lambda ref: (_GRAVITY.index(known[ref].status), ref))

    def blame(self, ref: ObjectRef, cause: str) -> bool:
        """Note what below an object makes it ail, empty where nothing is known to; tell whether that is news."""
        if ref not in self._ailing or self._causes.get(ref, "") == cause:
            return False
        self._causes[ref] = cause
        return True

    def worst(self) -> list[Ailment]:
        """Return what ails most: the gravest first, of these what has ailed longest."""
        if self._worst is None:
            self._worst = heapq.nsmallest(MOST_NAMED, self._ailing.values(), key=_gravity)
        return self._worst

    def summary(self, *, is_awaited: bool = True) -> HealthSummary:
        """Return how the set is now."""
        named = tuple(self._with_cause(each) for each in self.worst())
        counts = {each: count for each, count in self.counts.items() if count}
        first = next(iter(self._faults.items()), None)
        return HealthSummary(counts, named, is_awaited, fault=f"{first[0]}: {first[1]}"[:_SENTENCE] if first else "")

    def _with_cause(self, ailment: Ailment) -> Ailment:
        cause = self._causes.get(ailment.ref)
        if not cause:
            return ailment
        why = f"{ailment.why}; {cause}" if ailment.why else cause
        return Ailment(ailment.ref, ailment.status, why[:_SENTENCE], ailment.since)

    def refs(self) -> Collection[ObjectRef]:
        """Return which objects are counted."""
        return self._verdicts.keys()

    def __len__(self) -> int:
        return len(self._verdicts)


def _gravity(ailment: Ailment) -> tuple[int, str, ObjectRef]:
    return _GRAVITY.index(ailment.status), ailment.since, ailment.ref


# --- sets that are healthy now and then --------------------------------------------------------------------------------------

_FREE_FALLS: Final = 3
_FALLS_WITHIN_S: Final = 600.0
_LONGEST_HOLD_S: Final = 60.0


class Steadiness(Struct):
    """How long a set must have been healthy to count as such: at once, unless it fell ill again and again.

    After three falls within ten minutes it has to be healthy for a second, then two, four, up to a minute, so that whoever waits
    for it, and whoever reads events, isn't told of every swing. An illness is told at once.
    """

    _falls_s: list[float] = field(default_factory=list)
    _is_well: bool = True
    _well_since_s: float = 0.0
    _told_well: bool = True

    def left_s(self, *, is_sound: bool, now_s: float) -> float:
        """Take in how the set is; return for how long a healthy one doesn't count as such yet, 0 where it does."""
        if is_sound and not self._is_well:
            self._well_since_s = now_s
        self._is_well = is_sound
        if not is_sound:
            if self._told_well:
                self._falls_s = [each for each in self._falls_s if now_s - each < _FALLS_WITHIN_S] + [now_s]
            self._told_well = False
            return 0.0
        left = 0.0 if self._told_well else max(self._well_since_s + self._hold_s(now_s) - now_s, 0.0)
        self._told_well = left <= 0.0
        return left

    def falls(self) -> int:
        """Return how often the set fell ill of late."""
        return len(self._falls_s)

    def forgive(self) -> None:
        """Forget earlier falls: what is applied now is something else."""
        self._falls_s = []

    def _hold_s(self, now_s: float) -> float:
        recent = sum(1 for each in self._falls_s if now_s - each < _FALLS_WITHIN_S)
        return 0.0 if recent <= _FREE_FALLS else float(min(2 ** min(recent - _FREE_FALLS - 1, 6), _LONGEST_HOLD_S))
