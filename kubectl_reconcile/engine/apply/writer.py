"""The only writer.

Takes a plan and makes it so: wave after wave, the objects of one wave concurrently, each by
server-side apply, each deletion guarded by uid and resource version. A wave that brings CRDs
ends when they are Established; a barrier is passed when what came before is healthy.

Rules:

- What a plan doesn't say isn't written.
- A failed object stops only what depends on it: objects in its namespace, of its kind, owned by it,
  those that name it, and later waves. A hook that fails before a sync stops all of it.
- A *provisional* run creates only what isn't there yet, by the server's own judgement: nobody looked before.
- What is replaced is kept in memory, and put back if its successor is refused.
- Overload, lost races and outages are waited out, within bounds.
- Asked to stop, it finishes the requests under way and starts no other, so that a plan can be
  cut at any point and simply planned again.
- What a server says of a Secret is told without its values.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, BadRequest, Conflict, Fenced, Invalid, NotFound
from kubectl_reconcile.core.annotations import MODULE_LABEL, HookPoint, MemberOptions
from kubectl_reconcile.core.apply.replace import as_restored
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.module.adoption import with_owner_uid
from kubectl_reconcile.core.objects import Manifest, ObjectRef, condition_of, labels_of
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, Kind, Phase, kinds_of_crd
from kubectl_reconcile.core.planning.order import Barrier
from kubectl_reconcile.core.planning.plan import Change, Op, Plan, Provenance, StatusWrite
from kubectl_reconcile.core.redaction import redacted
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.ssa.csa_upgrade import rebased
from kubectl_reconcile.engine.apply.flow_control import MOST, FlowControl, patiently
from kubectl_reconcile.engine.apply.guarded import Guard, judged_as
from kubectl_reconcile.engine.apply.health_wait import HealthWait

_RACES = 6
_ESTABLISHED_S = 30.0
_FRESH_S = 10.0
_GONE_S = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """A wave that begins: the *number*-th *of* so many, with so many *objects*; *waiting* for these first."""

    number: int
    of: int
    objects: int
    waiting: tuple[ObjectRef, ...] = ()


@dataclass(slots=True)
class Hooks:
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


@dataclass(slots=True)
class Writer:
    """Writes plans to one cluster. *stopping* ends a run early and cleanly.

    *rules* say what healthy is, *timeout_s* how long a run may wait for it in all. An *atomic* run
    stops at the first failure. *act* runs what modules do outside; *tend* does what a custom resource needs that a
    later wave waits for, where no daemon looks after it. Who makes *provisional* runs makes another one at
    once: where all was created, a first status is left to that, since it would be old before it was written.
    """

    client: Client
    hooks: Hooks = field(default_factory=Hooks)
    stopping: Signal = field(default_factory=asyncio.Event)
    pace: FlowControl = field(default_factory=FlowControl)
    rules: HealthRules = field(default_factory=HealthRules)
    timeout_s: float = 300.0
    atomic: bool = False
    provisional: bool = False
    act: Callable[[Change], Awaitable[Manifest | None]] | None = None
    tend: Callable[[Manifest], Awaitable[None]] | None = None

    async def run(self, plan: Plan) -> list[Result]:
        """Make *plan* so, and return how each change ended, in the order of the plan."""
        return await _Run(self, plan).all()


class _Run:
    """One plan being written: what went wrong so far decides what is skipped."""

    def __init__(self, writer: Writer, plan: Plan) -> None:
        self._writer = writer
        self._client = writer.client
        self._plan = plan
        self._pace = writer.pace
        self._turns = asyncio.Semaphore(MOST)  # what waits for its turn can still be skipped
        self._failed: dict[ObjectRef, str] = {}
        self._lost_kinds: set[str] = set()
        self._lost_namespaces: set[str] = set()
        self._stuck: set[ObjectRef] = set()
        self._uids: dict[ObjectRef, str] = {}
        self._new_kinds: dict[tuple[str, str], float] = {}
        self._done: dict[ObjectRef, Result] = {}
        self._healthy: set[ObjectRef] = set()
        self._halted = ""
        deadline_s = time.monotonic() + writer.timeout_s
        self._watcher = HealthWait(
            writer.client, writer.pace, writer.rules, deadline_s, writer.stopping.is_set, writer.hooks.waiting,
            writer.tend,
        )  # fmt: skip

    async def all(self) -> list[Result]:
        results = [self._left_alone(change) for change in self._plan.changes if change.gate.blocked]
        waves = list(self._plan.waves())
        await self._hooks_before(bool(waves))
        last = -1
        for number, wave in enumerate(waves, 1):
            reason = await self._enter(Step(number, len(waves), len(wave)), last, wave)
            last = wave[0].gate.wave
            done = await self._wave(wave, reason)
            self._done.update((each.change.ref, each) for each in done if each.state is ResultState.SUCCEEDED)
            results += done
            results += await self._established(done)
            results += await self._hooks_done(done)
        superseded = self._is_followed_up(results)
        told = (status for status in self._plan.outcomes.statuses if not (superseded and status.is_first))
        await asyncio.gather(*map(self._status, told))
        return results + await self._fallbacks(results)

    def _left_alone(self, change: Change) -> Result:
        self._fail(change.ref, change.gate.blocked)
        return self._told(Result(change, ResultState.FAILED, change.gate.blocked, wrote=False))

    def _fail(self, ref: ObjectRef, why: str) -> None:
        self._failed[ref] = why
        if ref.group_kind == NAMESPACE:
            self._lost_namespaces.add(ref.name)
        elif ref.group_kind == CRD:
            self._lost_kinds.add(ref.name)

    def _told(self, result: Result) -> Result:
        self._writer.hooks.result(result)
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

    async def _begun(self, change: Change, reason: str) -> Result:
        """Write one change whose turn has come, unless there is a *reason* to skip it."""
        if reason:
            self._fail(change.ref, reason)
            return self._told(Result(change, ResultState.SKIPPED, reason, wrote=False))
        started = time.perf_counter()
        try:
            live = await self._write(change)
        except ApiError as error:
            why = redacted(str(error), change.intent, change.before)
            self._fail(change.ref, why)
            if change.action and change.provenance.owner:
                self._stuck.add(change.provenance.owner)
            state = (
                ResultState.TAKEN
                if self._writer.provisional and isinstance(error, AlreadyExists)
                else ResultState.FAILED
            )
            return self._told(Result(change, state, why, _ms_since(started), wrote=False))
        self._learn(change, live)
        kept = _without_owners(live)
        return self._told(Result(change, ResultState.SUCCEEDED, "", _ms_since(started), kept, _changed(change, live)))

    def _reason_to_skip(self, change: Change) -> str:
        if self._writer.stopping.is_set():
            return "stopped before its turn"
        if self._halted:
            return self._halted
        if not self._failed:
            return ""
        if self._writer.atomic:
            ref, _ = next(iter(self._failed.items()))
            return f"the Sync is atomic, and {ref} failed"
        return self._lost_ground(change)

    def _lost_ground(self, change: Change) -> str:
        """Return which failed object a change depends on."""
        if change.action and change.provenance.owner in self._stuck:
            return "an action before it failed"
        if change.provenance.owner in self._failed:
            return f"its owner {change.provenance.owner} failed"
        if lost := next((target for target in change.gate.needs if target in self._failed), None):
            return f"it depends on {lost}, which failed"
        crd = f"{change.kind.plural}.{change.ref.group}" if change.kind else ""
        if change.op is Op.DELETE:
            return ""
        if change.ref.namespace in self._lost_namespaces:
            return f"its namespace {change.ref.namespace} failed"
        return f"its CRD {crd} failed" if crd in self._lost_kinds else ""

    async def _wait_for_needs(self, change: Change) -> str:
        """Return why something that a change depends on isn't there, or for a deletion isn't gone."""
        for target in change.gate.needs:
            why = await (self._gone(target) if change.op is Op.DELETE else self._fit(target))
            if why:
                return f"it waits for {target}: {why}"
        return ""

    async def _write(self, change: Change) -> Manifest | None:
        if change.op is Op.ACT and self._writer.act is not None:
            return await self._writer.act(change)
        if change.op is Op.DELETE:
            return await self._delete(change)
        if change.kind is None or change.intent is None:
            raise ApiError(f"{change.ref}: the plan has no body for it")
        if change.op is Op.REPLACE:
            return await self._replace(change)
        if change.takeover:
            await self._take_over(change, change.kind.path(change.ref.namespace, change.ref.name))
        return await self._apply(change, change.kind)

    async def _take_over(self, change: Change, path: str) -> None:
        """Hand the fields of others over to us; a controller that writes a status meanwhile is no reason to give up."""
        patch = change.takeover

        async def attempt() -> Manifest:
            nonlocal patch
            try:
                return await self._client.patch(path, [dict(step) for step in patch])
            except Conflict:
                patch = rebased(change.takeover, change.before or {}, await self._client.get(path)) or patch
                raise

        await self._ask(attempt)

    async def _apply(self, change: Change, kind: Kind) -> Manifest:
        path, body = kind.path(change.ref.namespace, change.ref.name), self._body(change)
        if self._writer.provisional and change.op is Op.CREATE:
            made: Manifest = await self._ask(lambda: self._made(change, path, body))
            return made
        # For a moment a new kind isn't served, or not yet with its new fields.
        since_s = self._new_kinds.get((kind.gvk.group, kind.plural))
        fresh = since_s is not None and time.monotonic() - since_s < _FRESH_S
        passing = (NotFound, BadRequest, Invalid) if fresh else ()
        judged = None if change.op in {Op.CREATE, Op.REPLACE} else change.before
        guard, manager, force = Guard(self._client, path, judged), change.provenance.manager, change.gate.force
        live: Manifest = await self._ask(lambda: guard.apply(body, manager=manager, force=force), also=passing)
        return live

    async def _made(self, change: Change, path: str, body: Manifest) -> Manifest:
        """Apply an object that isn't there.

        Raises:
            AlreadyExists: it is.
        """
        try:
            return await self._client.apply(
                path, judged_as(None, body), manager=change.provenance.manager, force=change.gate.force
            )
        except Conflict as error:
            raise AlreadyExists(str(error), status=error.status, reason=error.reason) from error

    async def _ask(self, attempt: Callable[[], Any], also: tuple[type[ApiError], ...] = ()) -> Any:
        return await patiently(attempt, also=also, pace=self._pace)

    def _body(self, change: Change) -> Manifest:
        """Return the body to send; an owner that this very run made lends its uid."""
        body = change.intent or {}
        uid = self._uids.get(change.provenance.owner, "") if change.provenance.owner else ""
        return with_owner_uid(body, uid) if uid else body

    def _learn(self, change: Change, live: Manifest | None) -> None:
        if live is not None:
            if change.op is not Op.ACT:
                self._uids[change.ref] = live["metadata"]["uid"]
            self._writer.hooks.wrote(live)
        elif change.before is not None:
            self._writer.hooks.deleted(change.ref, change.before["metadata"]["uid"])

    # --- deleting and replacing --------------------------------------------------------------------

    async def _delete(self, change: Change) -> Manifest | None:
        """Delete what was planned and nothing else; return it while finalizers keep it, None once it is gone.

        The resource version moves with every status update, so a lost race is looked at again:
        the same object, still marked as ours, may go.
        """
        before = change.before or {}
        uid, version = before["metadata"]["uid"], before["metadata"]["resourceVersion"]
        if change.kind is None:
            raise ApiError(f"{change.ref}: its kind is no longer served, so it can't be deleted")
        path = change.kind.path(change.ref.namespace, change.ref.name)
        for _ in range(_RACES):
            try:
                async with self._pace:
                    answer = await self._client.delete(path, uid=uid, resource_version=version)
            except NotFound:
                return None
            except Conflict:
                live = await self._still_ours(path, uid, before)
                if live is None:
                    return None
                version = live["metadata"]["resourceVersion"]
            except ApiError as error:
                if error.status not in {0, 429} and error.status < 500:
                    raise
                # Whether it was done is unknown; looking tells, and outlasts the outage.
                live = await self._still_ours(path, uid, before)
                if live is None or live["metadata"].get("deletionTimestamp"):
                    return live
                version = live["metadata"]["resourceVersion"]
            else:
                return None if answer.get("kind") == "Status" else answer
        raise Conflict(f"{change.ref} keeps changing; it is deleted in the next sync", status=409)

    async def _still_ours(self, path: str, uid: str, before: Manifest) -> Manifest | None:
        """Return the live object if it is the planned one and still marked as it was, else None."""
        try:
            live: Manifest = await self._ask(lambda: self._client.get(path))
        except NotFound:
            return None
        if live["metadata"]["uid"] != uid:
            return None
        same = all(labels_of(live).get(mark) == labels_of(before).get(mark) for mark in (PART_OF, MODULE_LABEL))
        if not same or (MemberOptions.of(live).kept and not MemberOptions.of(before).kept):
            raise Conflict("somebody changed its membership meanwhile; it is left alone", status=409)
        return live

    async def _replace(self, change: Change) -> Manifest:
        """Delete an object and create it anew; put the old one back if the new one is refused."""
        before, kind = change.before or {}, change.kind
        if kind is None:
            raise ApiError(f"{change.ref}: its kind is no longer served")
        await self._delete(change)
        watcher = HealthWait(
            self._client, self._pace, self._writer.rules,
            min(self._watcher.deadline_s, time.monotonic() + _GONE_S), lambda: False,
        )  # fmt: skip
        if why := await watcher.until_gone(change.ref, kind, before["metadata"]["uid"]):
            raise ApiError(f"it was deleted to be made anew, but {why}; it is made anew once it is gone")
        self._writer.hooks.deleted(change.ref, before["metadata"]["uid"])
        try:
            return await self._apply(change, kind)
        except ApiError as error:
            note = "" if change.gate.hook else await self._restored(change, kind, before)
            raise ApiError(f"{error}{note}", status=error.status, reason=error.reason) from error

    async def _restored(self, change: Change, kind: Kind, before: Manifest) -> str:
        """Put a deleted object back; return a note on how that went."""
        try:
            live = await self._ask(lambda: self._client.create(kind.path(change.ref.namespace), as_restored(before)))
        except AlreadyExists:
            return "; somebody else made it anew meanwhile"
        except ApiError as error:
            return f"; the old object could not be put back: {error}"
        self._writer.hooks.wrote(live)
        return "; the old object was put back"

    # --- waiting ----------------------------------------------------------------------------------------

    async def _enter(self, step: Step, last: int, wave: Sequence[Change]) -> str:
        """Wait for what must come before a wave; return why the wave can't be written, if it can't."""
        number = wave[0].gate.wave
        barrier = max((kind for at, kind in self._plan.schedule.barriers.items() if last < at <= number), default=None)
        pending = [] if barrier is None else list(self._pending(number, barrier, deleting=_only_deletes(wave)))
        self._writer.hooks.step(Step(step.number, step.of, step.objects, tuple(pending)))
        if barrier is None or self._halted:
            return self._halted
        if _only_deletes(wave):
            return _first("waits for", zip(pending, await asyncio.gather(*map(self._gone, pending)), strict=True))
        faults = _first("waits for", zip(pending, await asyncio.gather(*map(self._fit, pending)), strict=True))
        return faults or (self._failure_before(number) if barrier is Barrier.ALL else "")

    def _pending(self, number: int, barrier: Barrier, *, deleting: bool) -> Iterable[ObjectRef]:
        """Return what was written, or is unhealthy since before, and comes before a wave."""
        for ref, result in self._done.items():
            change = result.change
            backend = change.kind is not None and change.kind.phase in {Phase.WORKLOAD, Phase.CUSTOM}
            if (
                change.op is not Op.ACT
                and (change.op is Op.DELETE) is deleting
                and (deleting or barrier is Barrier.ALL or backend)
            ):
                yield ref
        if not deleting and barrier is Barrier.ALL:
            yield from (change.ref for change in self._plan.schedule.awaited if change.gate.wave < number)

    def _failure_before(self, number: int) -> str:
        """Return why a later wave must wait for another sync: something before it failed."""
        for change in self._plan.changes:
            if change.gate.wave >= number:
                return ""
            if change.ref in self._failed:
                return f"an earlier wave failed: {change.ref}: {self._failed[change.ref]}"
        return ""

    async def _fit(self, ref: ObjectRef) -> str:
        """Wait until an object is healthy; return why it isn't. What nobody doubts isn't asked for."""
        if ref in self._healthy:
            return ""
        if ref in self._failed:
            return self._failed[ref]
        result = self._done.get(ref)
        change = (
            result.change if result else next((each for each in self._plan.schedule.awaited if each.ref == ref), None)
        )
        if change is None or change.kind is None or change.op is Op.DELETE:
            return ""
        why = await self._watcher.until_healthy(ref, change.kind, result.live if result else None)
        if why:
            self._fail(ref, why)
        else:
            self._healthy.add(ref)
        return why

    async def _gone(self, ref: ObjectRef) -> str:
        result = self._done.get(ref)
        if result is None or result.live is None or result.change.kind is None:
            return ""
        return await self._watcher.until_gone(ref, result.change.kind, result.live["metadata"]["uid"])

    async def _hooks_before(self, something: bool) -> None:  # noqa: FBT001 - whether there is something to write
        """Wait for hooks that an earlier sync started; what they guard isn't written if they failed."""
        hooks = [
            change.ref for change in self._plan.schedule.awaited if something and change.gate.hook == HookPoint.PRE_SYNC
        ]
        faults = await asyncio.gather(*map(self._fit, hooks))
        self._halted = _first("waits for the hook", zip(hooks, faults, strict=True))

    async def _hooks_done(self, done: Sequence[Result]) -> list[Result]:
        """Wait until the hooks of a finished wave have run; return those that failed."""
        jobs = [each for each in done if each.change.gate.hook and each.state is ResultState.SUCCEEDED]
        faults = await asyncio.gather(*(self._fit(each.change.ref) for each in jobs))
        failed = [(each, why) for each, why in zip(jobs, faults, strict=True) if why]
        for each, why in failed:
            if each.change.gate.hook == HookPoint.PRE_SYNC:
                self._halted = f"the hook {each.change.ref} failed: {why}"
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
                self._fail(change.ref, why)
                return self._told(Result(change, ResultState.FAILED, why, result.duration_ms, crd))
            await asyncio.sleep(0.05)
            if change.kind:
                path = change.kind.path("", change.ref.name)
                crd = await self._ask(lambda: self._client.get(path))  # noqa: B023 - awaited in this very round
        now = time.monotonic()
        self._new_kinds.update(((gvk.group, kind.plural), now) for gvk, kind in kinds_of_crd(crd).items())
        return None

    # --- afterwards ---------------------------------------------------------------------------------------

    def _is_followed_up(self, results: Sequence[Result]) -> bool:
        """Tell whether another run comes at once, so that a first status from before this one would be of no use.

        A later one may hold what a module goes on from, and so may a first one where more was done than create.
        """
        states = {each.state for each in results}
        written = states == {ResultState.SUCCEEDED} and all(each.change.op is Op.CREATE for each in results)
        return self._writer.provisional and (ResultState.TAKEN in states or written)

    async def _fallbacks(self, results: Sequence[Result]) -> list[Result]:
        """Start the hooks that are meant for a sync that failed."""
        if self._writer.stopping.is_set() or all(each.state is ResultState.SUCCEEDED for each in results):
            return []
        self._halted = ""
        hooks = [
            change for change in self._plan.schedule.fallbacks if change.ref.namespace not in self._lost_namespaces
        ]
        self._failed.clear()
        return list(await asyncio.gather(*(self._one(change, "") for change in hooks if not change.gate.blocked)))

    async def _status(self, status: StatusWrite) -> None:
        """Write the status of a CR. One that is gone meanwhile needs none."""
        if self._writer.stopping.is_set() or status.ref in self._failed:
            return
        try:
            live = await write_status(
                self._client, status.kind, status.after, manager=status.manager, uid=status.uid,
                version=status.version, pace=self._pace,
            )  # fmt: skip
        except (NotFound, Conflict, Fenced):
            return
        except ApiError as error:
            change = Change(status.ref, Op.UPDATE, status.kind, provenance=Provenance(manager=status.manager))
            self._told(Result(change, ResultState.FAILED, f"its status could not be written: {error}", wrote=False))
            return
        self._writer.hooks.wrote(live)


async def write_status(
    client: Client,
    kind: Kind,
    body: Manifest,
    *,
    manager: str,
    uid: str = "",
    version: str = "",
    pace: FlowControl | None = None,
) -> Manifest:
    """Apply a status, and return the object as the server now holds it.

    With *uid*, an object of the same name that was made anew since is left alone (Conflict). With *version* too, what was seen
    there is told to the server behind a fence.
    """
    metadata: dict[str, Any] = dict(body["metadata"]) | ({"uid": uid} if uid else {})
    path = kind.path(metadata.get("namespace", ""), metadata["name"], "status")
    seen = {"metadata": {"uid": uid, "resourceVersion": version}} if uid and version else None
    guard = Guard(client, path, seen, same=True)

    async def apply() -> Manifest:
        told = {**body, "metadata": metadata}
        if seen is None:
            return await client.apply(path, told, manager=manager, force=True)
        return await guard.apply(told, manager=manager, force=True)

    live: Manifest = await patiently(apply, pace=pace)
    return live


def _only_deletes(wave: Sequence[Change]) -> bool:
    return all(change.op is Op.DELETE for change in wave)


def _first(word: str, faults: Iterable[tuple[ObjectRef, str]]) -> str:
    """Return the first fault as a sentence, and how many more there are."""
    found = [f"{word} {ref}: {why}" for ref, why in faults if why]
    return f"{found[0]}{f' (and {len(found) - 1} more)' if len(found) > 1 else ''}" if found else ""


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
