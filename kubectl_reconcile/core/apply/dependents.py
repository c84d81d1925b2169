"""What a failure stops, and what a wave waits for: how far a run has come, and what that means for what is left.

Rules:

- A failed object stops only what depends on it: objects in its namespace, of its kind, owned by it, those that name it,
  and later waves. Deletions go on where the namespace or the kind failed.
- A hook that fails before a sync *halts* all of it; an *atomic* run stops at the first failure.
- A barrier is passed when what was written before it is healthy, and what was unhealthy before the run and comes before it.
  Deletions wait for deletions alone: until these are gone.
- Of what nobody doubts, nobody is asked.

Pure: it is told what happened, and says what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from kubectl_reconcile.core.annotations import HookPoint
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE
from kubectl_reconcile.core.planning.plan import Change, Op, Plan


class Entry(Struct, frozen=True):
    """What is waited for before a wave: *pending* must be healthy, or where the wave only *deletes*, gone."""

    wave: int
    is_barrier: bool
    pending: tuple[ObjectRef, ...]
    deletes: bool


class RunProgress(Struct):
    """How far a run of *plan* has come.

    *failed* says why, by object; *done* is what succeeded in waves that are over, *healthy* what was waited for and is fine.
    *stuck* are CRs of which an action failed. *halted* says why nothing more is written at all.
    """

    plan: Plan
    atomic: bool = False
    failed: dict[ObjectRef, str] = field(default_factory=dict)
    done: dict[ObjectRef, Result] = field(default_factory=dict)
    healthy: set[ObjectRef] = field(default_factory=set)
    stuck: set[ObjectRef] = field(default_factory=set)
    halted: str = ""
    _lost_kinds: set[str] = field(default_factory=set)
    _lost_namespaces: set[str] = field(default_factory=set)

    # --- what happened ------------------------------------------------------------------------------

    def fail(self, ref: ObjectRef, why: str) -> None:
        """Note that an object isn't as it should be, and with it what stands on it."""
        self.failed[ref] = why
        if ref.group_kind == NAMESPACE:
            self._lost_namespaces.add(ref.name)
        elif ref.group_kind == CRD:
            self._lost_kinds.add(ref.name)

    def refuse(self, change: Change, why: str, *, denied: bool = False) -> None:
        """Note that a change was tried and refused. A deletion for which a right is missing (*denied*) stops no other."""
        if denied and change.op is Op.DELETE and not change.is_child:
            return
        self.fail(change.ref, why)
        if change.action and change.provenance.owner:
            self.stuck.add(change.provenance.owner)

    def finish_wave(self, results: Iterable[Result]) -> None:
        """Note how the changes of a wave ended."""
        self.done.update((each.change.ref, each) for each in results if each.state is ResultState.SUCCEEDED)

    def judge(self, ref: ObjectRef, why: str) -> None:
        """Note how the wait for an object's health ended; *why* says what it lacks, nothing where it is fine."""
        if why:
            self.fail(ref, why)
        else:
            self.healthy.add(ref)

    def halt(self, faults: Iterable[tuple[ObjectRef, str]]) -> None:
        """Stop everything if a hook of an earlier sync, which must complete first, didn't."""
        self.halted = first_of("waits for the hook", faults) or self.halted

    def fail_hook(self, hook: Change, why: str) -> None:
        """Note that a hook of this run failed: before a sync that stops everything."""
        if hook.gate.hook == HookPoint.PRE_SYNC:
            self.halted = f"the hook {hook.ref} failed: {why}"

    def forgive(self) -> None:
        """Forget what failed: what is meant for a sync that failed isn't stopped by it."""
        self.halted = ""
        self.failed.clear()

    # --- what follows for a change ------------------------------------------------------------------

    def reason_to_skip(self, change: Change) -> str:
        """Return why a change isn't tried; empty where nothing speaks against it."""
        if self.halted:
            return self.halted
        if not self.failed:
            return ""
        if self.atomic:
            return f"the Sync is atomic, and {next(iter(self.failed))} failed"
        return self._lost_ground(change)

    def _lost_ground(self, change: Change) -> str:
        """Return which failed object a change depends on."""
        owner = change.provenance.owner
        if change.action and owner in self.stuck:
            return "an action before it failed"
        if owner in self.failed:
            return f"its owner {owner} failed"
        if lost := next((target for target in change.gate.needs if target in self.failed), None):
            return f"it depends on {lost}, which failed"
        if change.op is Op.DELETE:
            return ""
        if change.ref.namespace in self._lost_namespaces:
            return f"its namespace {change.ref.namespace} failed"
        crd = f"{change.kind.plural}.{change.ref.group}" if change.kind else ""
        return f"its CRD {crd} failed" if crd in self._lost_kinds else ""

    # --- what follows for a wave ----------------------------------------------------------------------

    def entry(self, wave: Sequence[Change], last: int) -> Entry:
        """Return what is waited for before *wave*, when the wave numbered *last* was the one before."""
        number, deletes = wave[0].gate.wave, all(change.op is Op.DELETE for change in wave)
        is_barrier = any(last < at <= number for at in self.plan.schedule.barriers)
        pending = tuple(self._pending(number, deletes=deletes)) if is_barrier else ()
        return Entry(number, is_barrier, pending, deletes)

    def _pending(self, number: int, *, deletes: bool) -> Iterator[ObjectRef]:
        for ref, result in self.done.items():
            op = result.change.op
            if op is not Op.ACT and (op is Op.DELETE) is deletes:
                yield ref
        if not deletes:
            yield from (change.ref for change in self.plan.schedule.awaited if change.gate.wave < number)

    def refusal(self, entry: Entry, faults: Sequence[str]) -> str:
        """Return why a wave isn't written, by what each of what it waited for lacks; empty where it may begin."""
        found = first_of("waits for", zip(entry.pending, faults, strict=True))
        return found if found or entry.deletes else self._failure_before(entry.wave)

    def _failure_before(self, number: int) -> str:
        """Return why a later wave must wait for another sync: something before it failed."""
        earlier = (change.ref for change in self.plan.changes if change.gate.wave < number)
        lost = next((ref for ref in earlier if ref in self.failed), None)
        return f"an earlier wave failed: {lost}: {self.failed[lost]}" if lost else ""

    # --- what is waited for ---------------------------------------------------------------------------

    def in_doubt(self, ref: ObjectRef) -> Change | None:
        """Return the change of an object that must be looked at before anything relies on it, None where nobody doubts it."""
        if ref in self.healthy or ref in self.failed or ref == self.plan.sync:  # itself it can't wait for
            return None
        if result := self.done.get(ref):
            change: Change | None = result.change
        else:
            change = next((each for each in self.plan.schedule.awaited if each.ref == ref), None)
        return None if change is None or change.kind is None or change.op is Op.DELETE else change

    def going(self, ref: ObjectRef) -> Result | None:
        """Return the deletion of an object that finalizers keep, None where it isn't there any more."""
        result = self.done.get(ref)
        is_going = result is not None and result.change.op is Op.DELETE
        return result if result and is_going and result.live is not None and result.change.kind else None

    def hooks_awaited(self) -> tuple[ObjectRef, ...]:
        """Return the hooks that an earlier sync started and that must have completed before anything is written."""
        if not any(change.writes for change in self.plan.acting()):
            return ()
        return tuple(change.ref for change in self.plan.schedule.awaited if change.gate.hook == HookPoint.PRE_SYNC)

    # --- afterwards -------------------------------------------------------------------------------------

    def fallbacks(self, results: Iterable[Result]) -> list[Change]:
        """Return the hooks that are meant for a sync that failed, if it did."""
        if all(each.state is ResultState.SUCCEEDED or each.is_left for each in results):
            return []
        hooks = (change for change in self.plan.schedule.fallbacks if not change.gate.blocked)
        return [change for change in hooks if change.ref.namespace not in self._lost_namespaces]


def is_followed_up(results: Sequence[Result]) -> bool:
    """Tell whether another run comes at once after a provisional one, so that a first status would be old before it was written.

    A later status may hold what a module goes on from, and so may a first one where more was done than create.
    """
    states = {each.state for each in results}
    created = states == {ResultState.SUCCEEDED} and all(each.change.op is Op.CREATE for each in results)
    return ResultState.TAKEN in states or created


def first_of(word: str, faults: Iterable[tuple[ObjectRef, str]]) -> str:
    """Return the first fault as a sentence, and how many more there are; empty where there is none."""
    found = [f"{word} {ref}: {why}" for ref, why in faults if why]
    return f"{found[0]}{f' (and {len(found) - 1} more)' if len(found) > 1 else ''}" if found else ""
