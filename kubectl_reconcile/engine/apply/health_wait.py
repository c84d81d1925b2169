"""Waits until objects are healthy, or gone, and says what holds them up: down to the pod and its reason.

A wait ends early where it can't end well: a Job that failed, a rollout past its progress deadline, a pod
of the newest template that keeps crashing or whose image can't be pulled. A pod gets some seconds
for that: many crash once because something they need starts a little later. So does a custom resource that says it failed.
What an object's silence means ``core.health.silence`` says.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, NotFound
from kubectl_reconcile.core.annotations import HOOK
from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.judge import Expected, Health, HealthStatus, health
from kubectl_reconcile.core.health.silence import expected_of
from kubectl_reconcile.core.health.workload_rules import removes_itself
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef, annotations_of
from kubectl_reconcile.core.planning.kinds import WORKLOADS, Kind
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.broken_pods import Pods
from kubectl_reconcile.engine.apply.flow_control import Pacing, patiently

_FIRST_POLL_S = 0.1
_SLOWEST_POLL_S = 2.0
_PODS_EVERY_S = 1.0
_PATIENCE_S = 10.0


class HealthWait(Struct):
    """Waits for objects of one cluster until *deadline_s* on the monotonic clock, or until *stopped* says so.

    *told* hears what an object still lacks at each look, and an empty text once the wait for it is over;
    *tend* is asked to do what can be done for it meanwhile. *judge* says how an object is, where that isn't whether a later wave may start.
    *spoken* are kinds of which an object has a status.
    """

    client: Client
    pace: Pacing
    rules: HealthRules
    deadline_s: float
    stopped: Callable[[], bool]
    told: Callable[[ObjectRef, str], None] = lambda _ref, _why: None
    tend: Callable[[Manifest], Awaitable[None]] | None = None
    judge: Callable[[Manifest | None, Expected], Health] | None = None
    spoken: set[GroupKind] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        """Tell whether there is no time left."""
        return self.stopped() or time.monotonic() > self.deadline_s

    async def until_healthy(self, ref: ObjectRef, kind: Kind, live: Manifest | None = None) -> str:
        """Return why an object isn't healthy by the end of the wait; empty once it is."""
        try:
            return await self._until_healthy(ref, kind, live)
        finally:
            self.told(ref, "")

    async def _until_healthy(self, ref: ObjectRef, kind: Kind, live: Manifest | None) -> str:
        poll_s, broken = _FIRST_POLL_S, _Broken(self)
        path, seen = kind.path(ref.namespace, ref.name), live
        while True:
            live = live or await self._get(path)
            if live is None and seen is not None and removes_itself(seen):
                return ""  # it has ended, as far as anybody can tell any more
            seen = live
            found = self._verdict(kind, live)
            if not found.status.holds_up:
                return ""
            why = found.message or str(found.status)
            if broken.is_final(kind, found.status):
                return await broken.explained(ref, live, why)
            if pod := await broken.for_good(ref, live):
                return f"{why}; {pod}"
            if self.is_over:
                late = "stopped waiting for it" if self.stopped() else "not healthy in time"
                return await broken.explained(ref, live, f"{late}: {why}")
            self.told(ref, why)
            if self.tend is not None and live is not None and kind.custom:
                await self.tend(live)
            await asyncio.sleep(poll_s)
            poll_s, live = min(poll_s * 1.5, _SLOWEST_POLL_S), None

    def learn(self, live: Manifest) -> None:
        """Take in that an object has a status, which is to be expected of others of its kind from now on."""
        if live.get("status"):
            self.spoken.add(GroupVersionKind.of(live).group_kind)

    def _verdict(self, kind: Kind, live: Manifest | None) -> Health:
        self.learn(live or {})
        expected = expected_of(kind.gvk.group_kind, has_status=kind.has_status, spoken=self.spoken)
        if self.judge is not None:
            return self.judge(live, expected)
        return self.rules.passes(live, hook=HOOK in annotations_of(live or {}), expected=expected, now=now_text())

    async def until_gone(self, ref: ObjectRef, kind: Kind, uid: str) -> str:
        """Return what keeps a deleted object by the end of the wait; empty once it is gone."""
        try:
            return await self._until_gone(ref, kind, uid)
        finally:
            self.told(ref, "")

    async def _until_gone(self, ref: ObjectRef, kind: Kind, uid: str) -> str:
        path, poll_s = kind.path(ref.namespace, ref.name), _FIRST_POLL_S / 2
        while True:
            live = await self._get(path)
            if live is None or live["metadata"].get("uid") != uid:
                return ""
            if self.is_over:
                return f"it still exists: {health(live).message}"
            self.told(ref, "not gone yet")
            await asyncio.sleep(poll_s)
            poll_s = min(poll_s * 1.5, _SLOWEST_POLL_S)

    async def _get(self, path: str) -> Manifest | None:
        try:
            found: Manifest = await patiently(lambda: self.client.get(path), pace=self.pace)
        except NotFound:
            return None
        return found


class _Broken:
    """Looks for pods that won't come up, of one object."""

    def __init__(self, watcher: HealthWait) -> None:
        self._watcher = watcher
        self._looked_s = 0.0
        self._failed_s: float | None = None
        self._since_s: float | None = None

    def is_final(self, kind: Kind, status: HealthStatus) -> bool:
        """Tell whether an object won't get healthy any more.

        What a controller says of a custom resource has to last for a while: it tries again, and it may speak of the spec as it was before.
        """
        if status is not HealthStatus.FAILED:
            self._failed_s = None
            return status is HealthStatus.NOT_FOUND
        now = time.monotonic()
        self._failed_s = now if self._failed_s is None else self._failed_s
        return not kind.custom or now - self._failed_s >= _PATIENCE_S

    async def for_good(self, ref: ObjectRef, live: Manifest | None) -> str:
        """Return which pod is broken and why, once it has been for a while; empty before."""
        now = time.monotonic()
        if live is None or ref.group_kind not in WORKLOADS or now - self._looked_s < _PODS_EVERY_S:
            return ""
        self._looked_s = now
        found = await self._pod(ref, live)
        if not found:
            self._since_s = None
            return ""
        self._since_s = now if self._since_s is None else self._since_s
        return found if now - self._since_s >= _PATIENCE_S else ""

    async def explained(self, ref: ObjectRef, live: Manifest | None, why: str) -> str:
        """Return *why* with the pod that is to blame, if there is one."""
        pod = await self._pod(ref, live) if live is not None and ref.group_kind in WORKLOADS else ""
        return f"{why}; {pod}" if pod else why

    async def _pod(self, ref: ObjectRef, live: Manifest) -> str:
        try:
            return await Pods(self._watcher.client).to_blame(ref, live, among=(HealthStatus.FAILED,))
        except ApiError:
            return ""  # who may not look at pods still learns what the object says
