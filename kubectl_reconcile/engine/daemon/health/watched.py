"""What is known of the health of one Sync's members, and when it is told or looked at next."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec import Struct, field

from kubectl_reconcile.core.health.second_looks import SecondLooks
from kubectl_reconcile.core.health.summary import HealthTally, Steadiness
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.sync import Sync


class PodLook(Struct):
    """When the pods of a member are listed next, and how often they were."""

    at_s: float
    times: int = 0


class MemberClaims(Struct):
    """Of what carries a Sync's mark, what may be its member.

    *asked* is what its source asks for; None where no plan has shown that: then it is what is in the namespaces that the Sync writes to, *places*,
    and wasn't told as *unasked* before.
    """

    places: frozenset[str]
    asked: Mapping[ObjectRef, object] | None = None
    unasked: frozenset[str] = frozenset()

    def may_be(self, ref: ObjectRef) -> bool:
        """Tell whether what carries the mark may be a member."""
        if self.asked is not None:
            return ref in self.asked
        return ref.namespace in self.places and str(ref) not in self.unasked


class WatchedMembers(Struct):
    """One Sync's members. *told_s* is when its status was written last, *told* the word of it; *is_news* that it isn't up to date.

    *claims* tell what is a member, *is_whole* tells that all members were judged once. *missing* are members that
    somebody deleted and that are left so.
    """

    sync: Sync
    claims: MemberClaims
    tally: HealthTally
    steady: Steadiness = field(default_factory=Steadiness)
    looks: dict[ObjectRef, PodLook] = field(default_factory=dict)
    again: SecondLooks = field(default_factory=SecondLooks)
    missing: frozenset[ObjectRef] = frozenset()
    is_whole: bool = False
    told: str = ""
    told_s: float = 0.0
    is_news: bool = False
    steady_at_s: float | None = None
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Tell nothing any more."""
        if self.timer is not None:
            self.timer.cancel()
        if self.task is not None:
            self.task.cancel()
