"""Which instances there are to be, and how many of them have a row before it is acknowledged.

A *quorum* says of whom a primary waits for how many. It counts members, not names: *members* are all instances, whoever is the primary. A row that was
acknowledged is on *least* + 1 of them, so that any group of more than the others has it: R + W > N.

A quorum counts from when it is noted, before the server is told, and until the next one is known to hold: what was acknowledged meanwhile, was by one of these.

Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kubectl_reconcile.module_api import Context, maps_in
from kubectl_reconcile_operators.postgres.situation import DatabaseState, Instance
from kubectl_reconcile_operators.postgres.spec import COMMIT, MyDatabaseSpec, loose_commit_in

SLOTS = 100
"""Slots are numbered below this."""
_QUORUMS_MAX = 8
_ON_ITS_OWN_DISK = frozenset({"local", "remote_write"})
"""Values of ``synchronous_commit`` by which the primary itself has a row on its disk before it is acknowledged."""
_SLOT = re.compile(r"[a-z0-9][-a-z0-9]{0,62}")
"""What an instance may be called: a status is anybody's word, and this becomes part of a server's file."""


def members(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> list[str]:
    """Return the slots that there are to be, the primary first: those that there are, then new ones. One whose volume was set aside is none.

    No fewer than rows are acknowledged by, as long as what the spec asks for in that makes no sense.
    """
    there = {*s.instances, *s.volumes} - {*s.kept}
    is_refused = bool(quorum_refused(spec)[0])
    count = max(spec.replicas, len(quorums(s)[-1].members)) if is_refused else spec.replicas
    known = sorted(there, key=lambda slot: (slot != s.named_primary, ctx.number_of(slot)))
    free = (slot for slot in (ctx.name(str(at)) for at in range(SLOTS)) if slot not in there and slot not in s.kept)
    return [*known[:count], *islice(free, max(count - len(known), 0))]


@dataclass(frozen=True, slots=True)
class Quorum:
    """How many others of the members have a row before it is acknowledged; none, and nobody waits for anybody."""

    members: tuple[str, ...] = ()
    least: int = 0

    def setting(self, primary: str) -> str:
        """Return what a primary is told: ``synchronous_standby_names``. One that isn't a member waits for one more."""
        names = ", ".join(f'"{each}"' for each in self.members if each != primary)
        return f"ANY {self.least + (primary not in self.members)} ({names})" if self.least else ""

    def is_met_by(self, there: Iterable[str]) -> bool:
        """Tell whether these have, together, every row that was acknowledged."""
        return self.least > 0 and len({*there} & {*self.members}) > len(self.members) - 1 - self.least

    def told(self) -> dict[str, Any]:
        """Return it as a status keeps it."""
        return {"members": list(self.members), "min": self.least}


ASYNCHRONOUS = Quorum()


def quorums(s: DatabaseState) -> tuple[Quorum, ...]:
    """Return the quorums by any of which rows may have been acknowledged that not all have; the last one is the one that is to hold."""
    noted = tuple(map(_quorum, maps_in(s.synchronous.get("quorums"))))[-_QUORUMS_MAX:] or (ASYNCHRONOUS,)
    return noted[-1:] if confirmation(s) in s.outage.done else noted


def confirmation(s: DatabaseState) -> str:
    """Return the key of the action that finds the last quorum to hold, which is another one each time that a quorum is noted."""
    occasion = " ".join(str(s.synchronous.get(each)) for each in ("since", "revision", "quorums"))
    return f"confirm-quorum-{hashlib.sha256(occasion.encode()).hexdigest()[:10]}"


def with_another(before: tuple[Quorum, ...], *more: Quorum) -> tuple[Quorum, ...]:
    """Return quorums with others that count besides, the last of these the one that is to hold. Of too many it isn't known any more what they mean together."""
    found = (*(each for each in before if each not in more), *more)
    return found if len(found) <= _QUORUMS_MAX else (ASYNCHRONOUS, more[-1])


def quorum_wanted(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> Quorum:
    """Return the quorum that is to hold: of as many as before, where what the spec asks for can't be, by those that there are now."""
    wish, there = spec.synchronous, sorted(members(spec, s, ctx), key=ctx.number_of)
    if wish is None:
        return ASYNCHRONOUS
    if quorum_refused(spec)[0]:
        least = quorums(s)[-1].least
        return Quorum(tuple(there), least) if least else ASYNCHRONOUS
    following = sum(s.streams(s.instances[each]) for each in there if each in s.instances)
    least = wish.min if wish.mode == "Required" else min(wish.min, following)
    return Quorum(tuple(there), least) if least else ASYNCHRONOUS


def quorum_refused(spec: MyDatabaseSpec) -> tuple[str, str]:
    """Return why what the spec asks for can't be, as a word and a sentence, empty where it can."""
    wish, others = spec.synchronous, spec.replicas - 1
    if wish is None or wish.min <= others:
        return "", ""
    return "SynchronousRefused", (
        f".spec.synchronous.min: {wish.min} is more than the {others} that follow the primary where .spec.replicas is {spec.replicas}; both stay as they were"
        f" (hint: set .spec.replicas to {wish.min + 1}, or min to less)"
    )  # fmt: skip


def is_loosely_acknowledged(spec: MyDatabaseSpec, s: DatabaseState) -> bool:
    """Tell whether rows may be acknowledged now that no replica has on its disk, though replicas are waited for: by what the spec says, or what is still set on the primary."""
    told = s.primary.settings if s.primary else {}
    return spec.synchronous is not None and bool(spec.loose_commit or loose_commit_in(told))


def commit_refused(spec: MyDatabaseSpec) -> tuple[str, str]:
    """Return why a value of ``synchronous_commit`` isn't set, as a word and a sentence, empty where it is."""
    if not (spec.is_lossless and spec.loose_commit):
        return "", ""
    return "CommitRefused", (
        f".spec.parameters[{COMMIT}]: {spec.loose_commit} acknowledges rows that no replica has on its disk yet, and .spec.synchronous.mode Required is that none of these is lost; it isn't set"
        " (hint: remove it, or set .spec.synchronous.mode to Preferred)"
    )  # fmt: skip


def commit_told(spec: MyDatabaseSpec) -> str:
    """Return what a value of ``synchronous_commit`` that is set may lose, empty where it loses nothing."""
    value = spec.loose_commit
    if not value or spec.is_lossless or (spec.synchronous is None and value.lower() in _ON_ITS_OWN_DISK):
        return ""
    when = "when the primary is lost" if value.lower() in _ON_ITS_OWN_DISK else "when the primary crashes"
    return f".spec.parameters[{COMMIT}] is {value}: rows that were acknowledged may be lost {when}"


def has_every_row(spec: MyDatabaseSpec, s: DatabaseState) -> bool:
    """Tell whether the standbys that answer have, together, every row that was acknowledged. One that still receives doesn't count: it isn't unplugged."""
    if spec.loose_commit:
        return False
    there = [each.slot for each in s.ordered if _counts(each)]
    return all(each.is_met_by(there) for each in quorums(s))


def _counts(instance: Instance) -> bool:
    return (
        instance.stands_by
        and instance.reached is not None
        and not instance.is_going
        and not instance.answer.get("receives")
    )


def _quorum(told: Any) -> Quorum:
    there, least = told.get("members"), told.get("min")
    is_one = isinstance(there, list) and isinstance(least, int) and len(there) <= SLOTS
    is_one = is_one and all(isinstance(each, str) and _SLOT.fullmatch(each) for each in there)
    return Quorum(tuple(there), least) if is_one and 0 < least < len(there) else ASYNCHRONOUS
