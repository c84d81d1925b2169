"""The only writer.

Takes a plan and makes it so: wave after wave, the objects of one wave concurrently, each by
server-side apply, each deletion guarded by uid and resource version. A wave that brings CRDs
ends when they are Established; a barrier is passed when what came before is healthy.

Rules:

- What a plan doesn't say isn't written.
- A failed object stops only what depends on it; ``core.apply.dependents`` decides what that is.
- A *provisional* run creates only what isn't there yet, by the server's own judgement: nobody looked before.
- Asked to stop, it finishes the requests under way and starts no other, so that a plan can be
  cut at any point and simply planned again.
- What a server says of a Secret is told without its values.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, Conflict, Fenced, Forbidden, NotFound
from kubectl_reconcile.core.apply.dependents import RunProgress, is_followed_up
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.objects import Manifest, ObjectRef, condition_of
from kubectl_reconcile.core.planning.kinds import CRD, Kind
from kubectl_reconcile.core.planning.plan import Change, Op, Plan, Provenance, StatusWrite
from kubectl_reconcile.engine.apply.flow_control import MOST, FlowControl, Pacing
from kubectl_reconcile.engine.apply.health_wait import HealthWait
from kubectl_reconcile.engine.apply.object_writer import ObjectWriter, write_status

_ESTABLISHED_S = 30.0
_GONE_S = 60.0


class Step(Struct, frozen=True):
    """A wave that begins: the *number*-th *of* so many, with so many *objects*; *waiting* for these first."""

    number: int
    of: int
    objects: int
    waiting: tuple[ObjectRef, ...] = ()


class Hooks(Struct):
    """What the writer tells others while it works: each step, each result, each live object it learned of.

    *waiting* is told at each look at an object that isn't healthy (or gone) yet, with what it lacks, and with
    nothing once the wait for it is over.
    """

    result: Callable[[Result], None] = lambda _result: None
    wrote: Callable[[Manifest], None] = lambda _live: None
    deleted: Callable[[ObjectRef, str], None] = lambda _ref, _uid: None
    step: Callable[[Step], None] = lambda _step: None
    waiting: Callable[[ObjectRef, str], None] = lambda _ref, _why: None


class Signal(Protocol):
    """What a writer looks at before each write."""

    def is_set(self) -> bool:
        """Tell whether it is time to stop."""


class Writer(Struct):
    """Writes plans to one cluster. *stopping* ends a run early and cleanly.

    *rules* say what healthy is, *timeout_s* how long a run may wait for it in all. An *atomic* run
    stops at the first failure. *act* runs what modules do outside; *tend* does what a custom resource needs that a
    later wave waits for, where no daemon manages it. Who makes *provisional* runs makes another one at
    once: where all was created, a first status is left to that, since it would be old before it was written.
    *members* writes what belongs to the set, where that isn't *client*, too.
    """

    client: Client
    hooks: Hooks = field(default_factory=Hooks)
    stopping: Signal = field(default_factory=asyncio.Event)
    pace: Pacing = field(default_factory=FlowControl)
    rules: HealthRules = field(default_factory=HealthRules)
    timeout_s: float = 300.0
    atomic: bool = False
    provisional: bool = False
    act: Callable[[Change], Awaitable[Manifest | None]] | None = None
    tend: Callable[[Manifest], Awaitable[None]] | None = None
    members: Client | None = None

    async def run(self, plan: Plan) -> list[Result]:
        """Make *plan* so, and return how each change ended, in the order of the plan."""
        return await _Run(self, plan).all()


class _Run:
    """One plan being written. What a failure stops and what a wave waits for is decided by *progress*."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        self._writer = writer
        self._hooks = writer.hooks
        self._plan = plan
        self._turns = asyncio.Semaphore(MOST)  # what waits for its turn can still be skipped
        self._progress = RunProgress(plan, writer.atomic)
        deadline_s = time.monotonic() + writer.timeout_s
        self._watcher = HealthWait(
            writer.client, writer.pace, writer.rules, deadline_s, writer.stopping.is_set, writer.hooks.waiting,
            writer.tend,
        )  # fmt: skip
        self._objects = ObjectWriter(
            writer.client, writer.pace, writer.provisional, writer.act, self._until_replaced, writer.hooks.wrote,
            writer.hooks.deleted,
        )  # fmt: skip
        self._members = replace(self._objects, client=writer.members or writer.client)

    async def all(self) -> list[Result]:
        results = [self._left_alone(change) for change in self._plan.changes if change.gate.blocked]
        waves, last = list(self._plan.waves()), -1
        await self._hooks_before()
        for number, wave in enumerate(waves, 1):
            reason = await self._enter(Step(number, len(waves), len(wave)), last, wave)
            last = wave[0].gate.wave
            done = await self._wave(wave, reason)
            self._progress.finish_wave(done)
            results += [*done, *await self._established(done), *await self._hooks_done(done)]
        superseded = self._writer.provisional and is_followed_up(results)
        told = (status for status in self._plan.outcomes.statuses if not (superseded and status.is_first))
        await asyncio.gather(*map(self._status, told))
        return results + await self._fallbacks(results)

    def _left_alone(self, change: Change) -> Result:
        self._progress.fail(change.ref, change.gate.blocked)
        return self._told(Result(change, ResultState.FAILED, change.gate.blocked, wrote=False))

    def _told(self, result: Result) -> Result:
        self._hooks.result(result)
        return result

    async def _wave(self, wave: Sequence[Change], reason: str) -> list[Result]:
        """Write the changes of one wave, and return how each ended, in their order.

        Few workers for many changes, since ten thousand tasks take more room than what they do; but what waits for
        something else has a task of its own and holds up nobody.
        """
        done: dict[int, Result] = {}
        free = iter([(at, change) for at, change in enumerate(wave) if not change.gate.needs])
        bound = [iter([(at, change)]) for at, change in enumerate(wave) if change.gate.needs]

        async def work(some: Iterator[tuple[int, Change]]) -> None:
            for at, change in some:
                done[at] = await self._one(change, reason)

        await asyncio.gather(*(work(free) for _ in range(min(MOST, len(wave)))), *map(work, bound))
        return [done[at] for at in range(len(wave))]

    # --- one change -------------------------------------------------------------------------------

    async def _one(self, change: Change, reason: str) -> Result:
        reason = reason or self._reason_to_skip(change) or await self._wait_for_needs(change)
        async with self._turns:
            return await self._begun(change, reason or self._reason_to_skip(change))

    def _reason_to_skip(self, change: Change) -> str:
        stopped = self._writer.stopping.is_set()
        return "stopped before its turn" if stopped else self._progress.reason_to_skip(change)

    async def _begun(self, change: Change, reason: str) -> Result:
        """Write one change whose turn has come, unless there is a *reason* to skip it."""
        if reason:
            self._progress.fail(change.ref, reason)
            return self._told(Result(change, ResultState.SKIPPED, reason, wrote=False))
        started = time.perf_counter()
        try:
            live = await (self._objects if change.is_child else self._members).write(change)
        except ApiError as error:
            why = change.told(str(error))
            denied = isinstance(error, Forbidden) and error.denial is not None
            self._progress.refuse(change, why, denied=denied)
            taken = self._writer.provisional and isinstance(error, AlreadyExists)
            state = ResultState.TAKEN if taken else ResultState.FAILED
            return self._told(Result(change, state, why, _ms_since(started), wrote=False, denied=denied))
        self._learn(change, live)
        kept = _without_owners(live)
        return self._told(Result(change, ResultState.SUCCEEDED, "", _ms_since(started), kept, _changed(change, live)))

    def _learn(self, change: Change, live: Manifest | None) -> None:
        if live is not None:
            self._watcher.learn(live)
            if change.op is not Op.ACT:
                self._objects.uids[change.ref] = live["metadata"]["uid"]
            self._hooks.wrote(live)
        elif change.before is not None:
            self._hooks.deleted(change.ref, change.before["metadata"]["uid"])

    # --- waiting ----------------------------------------------------------------------------------------

    async def _enter(self, step: Step, last: int, wave: Sequence[Change]) -> str:
        """Wait for what must come before a wave; return why the wave can't be written, if it can't."""
        entry = self._progress.entry(wave, last)
        self._hooks.step(Step(step.number, step.of, step.objects, entry.pending))
        if not entry.is_barrier or self._progress.halted:
            return self._progress.halted
        wait = self._gone if entry.deletes else self._fit
        return self._progress.refusal(entry, await asyncio.gather(*map(wait, entry.pending)))

    async def _wait_for_needs(self, change: Change) -> str:
        """Return why something that a change depends on isn't there, or for a deletion isn't gone."""
        for target in change.gate.needs:
            why = await (self._gone(target) if change.op is Op.DELETE else self._fit(target))
            if why:
                return f"it waits for {target}: {why}"
        return ""

    async def _fit(self, ref: ObjectRef) -> str:
        """Wait until an object is healthy; return why it isn't. What nobody doubts isn't asked for."""
        change, result = self._progress.in_doubt(ref), self._progress.done.get(ref)
        if change is None or change.kind is None:
            return self._progress.failed.get(ref, "")
        why = await self._watcher.until_healthy(ref, change.kind, result.live if result else None)
        self._progress.judge(ref, why)
        return why

    async def _gone(self, ref: ObjectRef) -> str:
        going = self._progress.going(ref)
        if going is None or going.live is None or going.change.kind is None:
            return ""
        return await self._watcher.until_gone(ref, going.change.kind, going.live["metadata"]["uid"])

    async def _until_replaced(self, ref: ObjectRef, kind: Kind, uid: str) -> str:
        """Wait for the end of what is recreated, even if this run is told to stop: its successor is due."""
        writer, deadline_s = self._writer, min(self._watcher.deadline_s, time.monotonic() + _GONE_S)
        watcher = HealthWait(writer.client, writer.pace, writer.rules, deadline_s, lambda: False)
        return await watcher.until_gone(ref, kind, uid)

    async def _hooks_before(self) -> None:
        """Wait for hooks that an earlier sync started; what they guard isn't written if they failed."""
        hooks = self._progress.hooks_awaited()
        self._progress.halt(zip(hooks, await asyncio.gather(*map(self._fit, hooks)), strict=True))

    async def _hooks_done(self, done: Sequence[Result]) -> list[Result]:
        """Wait until the hooks of a finished wave have run; return those that failed."""
        jobs = [each for each in done if each.change.gate.hook and each.state is ResultState.SUCCEEDED]
        faults = await asyncio.gather(*(self._fit(each.change.ref) for each in jobs))
        failed = [(each, why) for each, why in zip(jobs, faults, strict=True) if why]
        for each, why in failed:
            self._progress.fail_hook(each.change, why)
        return [
            self._told(Result(each.change, ResultState.FAILED, why, each.duration_ms, each.live))
            for each, why in failed
        ]

    async def _established(self, done: Sequence[Result]) -> list[Result]:
        """Wait until the CRDs of a finished wave are served; what stays unready fails."""
        crds = [each for each in done if each.change.ref.group_kind == CRD and _applied(each)]
        failures = await asyncio.gather(*(self._wait_established(each) for each in crds))
        return [failure for failure in failures if failure]

    async def _wait_established(self, result: Result) -> Result | None:
        change, crd = result.change, result.live or {}
        deadline = time.monotonic() + _ESTABLISHED_S
        while (condition_of(crd, "Established") or {}).get("status") != "True":
            names = condition_of(crd, "NamesAccepted") or {}
            if names.get("status") == "False" or time.monotonic() > deadline:
                why = names.get("message") or f"not Established after {_ESTABLISHED_S:.0f} s"
                self._progress.fail(change.ref, why)
                return self._told(Result(change, ResultState.FAILED, why, result.duration_ms, crd))
            await asyncio.sleep(0.05)
            if change.kind:
                crd = await self._objects.get(change.kind.path("", change.ref.name))
        self._objects.learn_kinds(crd)
        return None

    # --- afterwards ---------------------------------------------------------------------------------------

    async def _fallbacks(self, results: Sequence[Result]) -> list[Result]:
        """Start the hooks that are meant for a sync that failed."""
        if self._writer.stopping.is_set():
            return []
        hooks = self._progress.fallbacks(results)
        self._progress.forgive()
        return list(await asyncio.gather(*(self._one(change, "") for change in hooks)))

    async def _status(self, status: StatusWrite) -> None:
        """Write the status of a CR. One that is gone meanwhile needs none."""
        writer = self._writer
        if writer.stopping.is_set() or status.ref in self._progress.failed:
            return
        try:
            live = await write_status(
                writer.client, status.kind, status.after, manager=status.manager, uid=status.uid,
                version=status.version, pace=writer.pace,
            )  # fmt: skip
        except (NotFound, Conflict, Fenced):
            return
        except ApiError as error:
            change = Change(status.ref, Op.UPDATE, status.kind, provenance=Provenance(manager=status.manager))
            self._told(Result(change, ResultState.FAILED, f"its status couldn't be written: {error}", wrote=False))
            return
        self._hooks.wrote(live)


def _applied(result: Result) -> bool:
    return result.state is ResultState.SUCCEEDED and result.change.op is not Op.DELETE


def _without_owners(live: Manifest | None) -> Manifest | None:
    """Return what is kept of an answer until all is written: the record of owners takes most of the room."""
    if live is None:
        return None
    return {**live, "metadata": {name: value for name, value in live["metadata"].items() if name != "managedFields"}}


def _changed(change: Change, live: Manifest | None) -> bool:
    """Tell whether the server had something to do: an apply that changes nothing keeps the version."""
    before: Mapping[str, Any] = (change.before or {}).get("metadata") or {}
    return live is None or live["metadata"].get("resourceVersion") != before.get("resourceVersion")


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
