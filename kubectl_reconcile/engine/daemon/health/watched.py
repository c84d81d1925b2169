"""What is known of the health of one Sync's members, and when it is told or looked at next."""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.health.second_looks import SecondLooks
from kubectl_reconcile.core.health.summary import HealthTally, Steadiness
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.sync import Sync

FIRST_PODS_S: Final = 2.0
"""After how long the pods of a workload that ails are looked at first."""


class PodLook(Struct):
    """When the pods of a member are listed next, and how long the pause after that is."""

    at_s: float
    pause_s: float = FIRST_PODS_S


class WatchedMembers(Struct):
    """One Sync's members. *told_s* is when its status was written last, *told* the word of it; *is_news* that it isn't up to date.

    *places* are the namespaces that the Sync writes to, *is_whole* tells that all members were judged once. *missing* are members that
    somebody deleted and that are left so.
    """

    sync: Sync
    places: frozenset[str]
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
