"""Sees one pod through its life: asks what is to be done, does it, and reports.

All that a worker knows it can learn again: runs from the runtime, counts and last states from the pod's status. So a nodelet that was
killed finds its pods as they are, and starts nothing twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kubectl_reconcile.sandbox.pods.api import RefusedError
from kubectl_reconcile.sandbox.pods.decisions import status
from kubectl_reconcile.sandbox.pods.decisions.lifecycle import PodDecision, PodStep, StepKind, decide, grace_s
from kubectl_reconcile.sandbox.pods.decisions.reported import deadline_s, later_of, now
from kubectl_reconcile.sandbox.pods.decisions.resolve import ConfigError, Pod, containers
from kubectl_reconcile.sandbox.pods.decisions.status import PodFact
from kubectl_reconcile.sandbox.pods.events import PodEvents
from kubectl_reconcile.sandbox.pods.pod_containers import PodContainers
from kubectl_reconcile.sandbox.pods.pod_folder import PodFolder, Surroundings
from kubectl_reconcile.sandbox.runtime.channel import CallError

_LOG = logging.getLogger(__name__)
_RETRY_S = 1.0
_FAULT_S = 10.0
_REFRESH_S = 5.0
_OVER = {"Succeeded", "Failed"}


class PodWorker:
    """One pod."""

    def __init__(self, pod: Pod, place: Surroundings, known: Mapping[str, Any] | None) -> None:
        self._pod = pod
        self._place = place
        self._folder = PodFolder(pod, place)
        self._events = PodEvents(pod, place)
        self._wake = asyncio.Event()
        self._containers = PodContainers(self._folder, place, known, self._wake.set, self._events.say)
        self._published: dict[str, Any] = {}
        self._task = asyncio.create_task(self._live())

    @property
    def pod(self) -> Pod:
        """The pod as it was last seen."""
        return self._pod

    @property
    def folder(self) -> PodFolder:
        """What the pod has of this machine."""
        return self._folder

    @property
    def containers(self) -> PodContainers:
        """Its containers."""
        return self._containers

    # -- what is heard -------------------------------------------------------------------------------------------------

    def see_pod(self, pod: Pod) -> None:
        """Hear that the pod has changed."""
        self._take(pod)
        self._wake.set()

    def _take(self, pod: Pod) -> None:
        self._pod = self._folder.pod = later_of(self._pod, pod)

    def see_runs(self, known: Mapping[str, Any] | None) -> None:
        """Hear how the runtime has its containers now; None if it doesn't know the pod."""
        self._containers.see(known)

    # -- the life ------------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        refresh = asyncio.create_task(self._refresh())
        try:
            while True:
                self._wake.clear()
                try:
                    if "deletionTimestamp" in self._pod["metadata"]:
                        await self._end()
                        return
                    again_s = await self._step()
                except (RefusedError, CallError, OSError) as error:
                    _LOG.warning("%s: %s", self._label, error)
                    again_s = time.time() + _RETRY_S
                except Exception:  # noqa: BLE001 - a fault of ours, or an odd pod: it can still be fixed, and deleted
                    _LOG.exception("%s: something is wrong with this pod", self._label)
                    again_s = time.time() + _FAULT_S
                await self._sleep(again_s)
        finally:
            refresh.cancel()
            self._containers.stop_probing(end=True)

    async def abandon(self) -> None:
        """End whatever runs at once, since the pod is gone."""
        self._task.cancel()
        await asyncio.wait({self._task})
        await self._clean()

    async def _sleep(self, again_s: float | None) -> None:
        timeout = None if again_s is None else max(0.0, again_s - time.time())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), timeout)

    async def _step(self) -> float | None:
        """Do what is due, report, and return when to look again."""
        if self._pod.get("status", {}).get("phase") in _OVER:
            await self._clean(keep_folder=True)
            return None
        decision = decide(self._pod, self._containers.facts(), time.time())
        late_s = deadline_s(self._pod)
        if late_s is not None and late_s <= time.time():
            decision = self._failed_for_ever()
        if decision.phase not in _OVER and (problem := await self._containers.prepare()):
            self._events.say("Warning", "FailedMount", problem)
            await self._publish(decision)
            return time.time() + _RETRY_S
        for step in decision.steps:
            await self._containers.do(step)
        await self._publish(decision)
        due = [one for one in (decision.again_s, late_s, *self._containers.retries_s) if one is not None]
        return min(due, default=None)

    def _failed_for_ever(self) -> PodDecision:
        running = self._containers.running
        kills = tuple(PodStep(StepKind.KILL, name, reason="the pod was active for too long") for name in running)
        return PodDecision("Running" if running else "Failed", kills, initialized=True)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """End the pod as its deletion asks for, and let it go."""
        self._containers.stop_probing()
        grace = grace_s(self._pod)
        inits = self._pod["spec"].get("initContainers", ())
        sidecars = {one["name"] for one in inits if one.get("restartPolicy") == "Always"}
        for group in (set(self._containers.running) - sidecars, set(self._containers.running) & sidecars):
            await asyncio.gather(*(self._containers.kill(name, grace) for name in group))
        over = self._pod.get("status", {}).get("phase") in _OVER
        if not over:
            with contextlib.suppress(RefusedError):
                decision = decide(self._pod, self._containers.facts(), time.time())
                await self._publish(replace(decision, waiting={}), ended=True)
        await self._clean()
        await self._let_go()

    async def _let_go(self) -> None:
        meta = self._pod["metadata"]
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        while True:
            try:
                await self._place.api.request("DELETE", self._path, body)
            except RefusedError as error:
                if error.status in {404, 409}:
                    return
                await asyncio.sleep(_RETRY_S)
            else:
                return

    async def _clean(self, *, keep_folder: bool = False) -> None:
        with contextlib.suppress(CallError, OSError):
            await self._place.runtime.call("remove", uid=self._folder.uid, tmpfs=self._folder.in_memory())
        if not keep_folder:
            await asyncio.to_thread(shutil.rmtree, self._folder.path, ignore_errors=True)

    # -- what is told --------------------------------------------------------------------------------------------------

    @property
    def _label(self) -> str:
        return f"{self._pod['metadata']['namespace']}/{self._pod['metadata']['name']}"

    @property
    def _path(self) -> str:
        meta = self._pod["metadata"]
        return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"

    async def _publish(self, decision: PodDecision, *, ended: bool = False) -> None:
        fact = PodFact(
            phase=self._phase(decision, ended=ended),
            ip=self._containers.ip,
            initialized=decision.initialized,
            containers={one["name"]: self._containers.fact(one["name"], decision) for one in containers(self._pod)},
        )
        late_s = deadline_s(self._pod)
        if fact.phase == "Failed" and late_s is not None and late_s <= time.time():
            fact = replace(fact, reason="DeadlineExceeded", message="Pod was active for longer than its deadline")
        wanted = status.status(self._pod, fact, now())
        if wanted == self._published:
            return
        body = {"metadata": {"uid": self._folder.uid}, "status": wanted}
        try:
            self._take(await self._place.api.patch(f"{self._path}/status", body))
        except RefusedError as error:
            if error.status not in {404, 409}:
                raise
        self._published = wanted

    def _phase(self, decision: PodDecision, *, ended: bool) -> str:
        if not ended:
            return decision.phase
        runs = self._containers.runs
        codes = [runs[one["name"]]["exitCode"] for one in self._pod["spec"]["containers"] if one["name"] in runs]
        if not codes:
            return decision.phase
        return "Failed" if any(codes) else "Succeeded"

    async def _refresh(self) -> None:
        """Bring what volumes hold up to date every few seconds."""
        while True:
            await asyncio.sleep(_REFRESH_S)
            if self._containers.ip:
                try:
                    await self._folder.refresh()
                except (RefusedError, ConfigError, OSError) as error:
                    _LOG.info("%s: the content of its volumes isn't updated: %s", self._label, error)
