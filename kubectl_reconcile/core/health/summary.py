"""The health of a set: the verdicts of its members counted, the worst of them named.

Vocabulary: an object *ails* while its verdict isn't that all is as it should be; it *holds up* its set unless the verdict says
that nothing more is to be expected of it (unknown, suspended). The *cause* of an ailment is what lies below the object, such
as a pod that crashes.

A tally is kept up verdict by verdict, so that a member that changes costs the look at that member alone.

Pure: time is an argument, RFC 3339.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.verdict import Health, HealthStatus, spec_of
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
_CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
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


def member_health(rules: HealthRules, live: Manifest) -> Health:
    """Return the verdict that counts for the set of which *live* is a member.

    It is what the rules say of the object itself. One that only limits what others do (a budget, a quota) holds nobody up while it
    is in progress, since it is those others that are short, and they are judged themselves. A claim has to be bound, and a
    Job to complete: that it has begun tells nobody whether its work is done. A Sync that nobody has looked at yet is in progress, and one
    that is suspended waits for a person.
    """
    kind = GroupVersionKind.of(live).group_kind
    if kind == _SYNC and (said := _sync_health(live)) is not None:
        return said
    found = rules.passes(live) if kind == _JOB else rules.judge(live)
    if found.status is not HealthStatus.IN_PROGRESS or kind == _CLAIM:
        return found
    return Health(HealthStatus.CURRENT, found.message) if _only_limits(rules, live) else found


def _sync_health(live: Manifest) -> Health | None:
    """Return how a Sync among the members is, where it doesn't say so itself."""
    spec = spec_of(live)
    if metadata_of(live).get("deletionTimestamp") or not spec.get("source"):
        return None
    if spec.get("suspend") is True:
        return Health(HealthStatus.SUSPENDED, "suspended")
    return None if condition_of(live, "Ready") else Health(HealthStatus.IN_PROGRESS, "no daemon has looked at it yet")


def _only_limits(rules: HealthRules, live: Manifest) -> bool:
    return rules.passes(live).status is HealthStatus.CURRENT


@dataclass(frozen=True, slots=True)
class Ailment:
    """One object that ails, why, and since when."""

    ref: ObjectRef
    status: HealthStatus
    why: str
    since: str

    def entry(self) -> dict[str, str]:
        """Return it as a status tells it."""
        return {"object": str(self.ref), "health": str(self.status), "message": self.why, "since": self.since}


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """How a set is: verdicts counted, the worst named, worst first.

    *is_awaited* tells that being Ready takes being healthy. *unsteady* is why a set that is healthy doesn't count as such yet,
    empty where it does.
    """

    counts: Mapping[HealthStatus, int]
    worst: tuple[Ailment, ...] = ()
    is_awaited: bool = True
    unsteady: str = ""

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
        """How it is, for people: what ails most, and how many besides."""
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


@dataclass(slots=True)
class HealthTally:
    """The verdicts of one set's members. *remembered* is since when objects ailed by an earlier tally, by object and verdict."""

    remembered: Mapping[tuple[str, str], str] = field(default_factory=dict)
    _verdicts: dict[ObjectRef, HealthStatus] = field(default_factory=dict)
    _ailing: dict[ObjectRef, Ailment] = field(default_factory=dict)
    _causes: dict[ObjectRef, str] = field(default_factory=dict)
    counts: Counter[HealthStatus] = field(default_factory=Counter)

    @staticmethod
    def since(status: Mapping[str, Any]) -> dict[tuple[str, str], str]:
        """Return since when objects have ailed, as the status of a Sync tells it."""
        told = maps_in(map_at(status, "health").get("unhealthy"))
        return {(str(each.get("object")), str(each.get("health"))): str(each.get("since")) for each in told}

    def note(self, ref: ObjectRef, found: Health | None, now: str) -> bool:
        """Take in the verdict on a member, None where it is gone; tell whether there is news."""
        before, status = self._verdicts.get(ref), found.status if found else None
        if before is not status:
            self._count(ref, before, status)
        if found is None or status not in _GRAVITY:
            self._causes.pop(ref, None)
            return self._ailing.pop(ref, None) is not None or before is not status
        known = self._ailing.get(ref)
        since = known.since if known and before is status else self.remembered.get((str(ref), str(status)), now)
        ailment = Ailment(ref, found.status, found.message[:_SENTENCE], since)
        self._ailing[ref] = ailment
        return ailment != known

    def _count(self, ref: ObjectRef, before: HealthStatus | None, after: HealthStatus | None) -> None:
        if before is not None:
            self.counts[before] -= 1
        if after is None:
            del self._verdicts[ref]
            return
        self._verdicts[ref] = after
        self.counts[after] += 1

    def blame(self, ref: ObjectRef, cause: str) -> bool:
        """Note what below an object makes it ail, empty where nothing is known to; tell whether that is news."""
        if ref not in self._ailing or self._causes.get(ref, "") == cause:
            return False
        self._causes[ref] = cause
        return True

    def worst(self) -> list[Ailment]:
        """Return what ails most: the gravest first, of these what has ailed longest."""
        return heapq.nsmallest(MOST_NAMED, self._ailing.values(), key=_gravity)

    def summary(self, *, is_awaited: bool = True) -> HealthSummary:
        """Return how the set is now."""
        named = tuple(self._with_cause(each) for each in self.worst())
        return HealthSummary({each: count for each, count in self.counts.items() if count}, named, is_awaited)

    def _with_cause(self, ailment: Ailment) -> Ailment:
        cause = self._causes.get(ailment.ref)
        if not cause:
            return ailment
        why = f"{ailment.why}; {cause}" if ailment.why else cause
        return Ailment(ailment.ref, ailment.status, why[:_SENTENCE], ailment.since)

    def __len__(self) -> int:
        return len(self._verdicts)


def _gravity(ailment: Ailment) -> tuple[int, str, ObjectRef]:
    return _GRAVITY.index(ailment.status), ailment.since, ailment.ref


# --- sets that are healthy now and then --------------------------------------------------------------------------------------

_FREE_FALLS: Final = 3
_FALLS_WITHIN_S: Final = 600.0
_LONGEST_HOLD_S: Final = 60.0


@dataclass(slots=True)
class Steadiness:
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
