"""Waits until the members that a sync wrote, or found unwell, are well.

How they are is learnt from what the server answers to writes, and from what the plan was made of: a set that is well costs no
request. Where a daemon follows a Sync this is the daemon's work, and its status tells.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.health import Health, HealthStatus
from kubectl_reconcile.core.health.silence import Expected, expected_of
from kubectl_reconcile.core.health.summary import member_health
from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.flow_control import FlowControl
from kubectl_reconcile.engine.apply.health_wait import HealthWait

_AT_ONCE = 16


class MembersHealth(Struct):
    """Which members of a set aren't well, as *rules* judge."""

    rules: HealthRules
    _unwell: set[ObjectRef] = field(default_factory=set)
    _silent: set[ObjectRef] = field(default_factory=set)
    _spoken: set[GroupKind] = field(default_factory=set)

    def learn(self, live: Manifest) -> None:
        """Take in a live object that was written."""
        ref = ObjectRef.of(live)
        _keep(self._unwell, ref, if_=self._judge(live, Expected.NOT_KNOWN).status.holds_up)
        _keep(self._silent, ref, if_=not live.get("status"))
        if live.get("status"):
            self._spoken.add(ref.group_kind)

    def found(self, made: Plan) -> None:
        """Take in what wasn't well before, as a plan tells it; what is written is learnt of later."""
        self._unwell.update(one.ref for one in made.unhealthy)

    async def until_well(
        self,
        client: Client,
        made: Plan,
        *,
        timeout_s: float,
        told: Callable[[ObjectRef, str], None],
        tend: Callable[[Manifest], Awaitable[None]] | None = None,
    ) -> list[str]:
        """Return what isn't well by the end of the wait, one sentence each, with the pod that is to blame.

        *tend* does what a custom resource needs meanwhile that no daemon follows: its status reports what its module made.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        kinds = {each.ref: each.kind for each in made.changes if each.kind is not None and each.op is not Op.DELETE}
        unwell = self._unwell | {ref for ref in self._silent & kinds.keys() if self._is_to_speak(kinds[ref])}
        waited = [(ref, kinds[ref]) for ref in sorted(unwell & kinds.keys())]
        end_s = time.monotonic() + timeout_s
        waiting = HealthWait(
            client, FlowControl(), self.rules, end_s, stopped=lambda: False, told=told, tend=tend, judge=self._judge,
            spoken=self._spoken,
        )  # fmt: skip
        return [each for each in await _each(waiting, waited) if each]

    def _is_to_speak(self, kind: Kind) -> bool:
        return expected_of(kind.gvk.group_kind, has_status=kind.has_status, spoken=self._spoken) is Expected.SURE

    def _judge(self, live: Manifest | None, expected: Expected) -> Health:
        if live is None:
            return Health(HealthStatus.NOT_FOUND, "it is gone")
        return member_health(self.rules, live, expected=expected, now=now_text())


def _keep(among: set[ObjectRef], ref: ObjectRef, *, if_: bool) -> None:
    among.add(ref) if if_ else among.discard(ref)


async def _each(waiting: HealthWait, waited: Iterable[tuple[ObjectRef, Kind]]) -> list[str]:
    """Return a sentence for each object, empty for those that are well in the end."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(ref: ObjectRef, kind: Kind) -> str:
        async with slots:
            why = await waiting.until_healthy(ref, kind)
            return f"{ref}: {why}" if why else ""

    return await asyncio.gather(*(one(ref, kind) for ref, kind in waited))
