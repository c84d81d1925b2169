"""A world of plain values around the state machine: a repository, a cluster, a queue and a clock, each a dictionary or a number.

It carries instructions out as a daemon does, with the real plans, results, reports and statuses of ``core``; nothing in it
decides anything that ``pass_state`` decides.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from kubectl_reconcile.core.annotations import APPROVED_PLAN, SYNC_REQUESTED_AT
from kubectl_reconcile.core.apply.results import Result, ResultState, report_of
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.pass_state import PassState, step
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.hold import Hold, is_approved
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.resources.status import ConditionReason, sync_status
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason

SHOP = ObjectRef(SYNC.group, SYNC.kind, "shop", "shop")
BASE = ObjectRef(SYNC.group, SYNC.kind, "shop", "base")
COLOUR = FieldPath.fields("data", "colour")
INTERVAL_S = 600.0


def ref(name):
    return ObjectRef("", "ConfigMap", "shop", name)


@dataclass(frozen=True)
class Desired:
    """What the repository asked for when it was read."""

    revision: str = ""
    path: str = ""
    files: dict[str, str] = field(default_factory=dict)


@dataclass
class World:
    """What is so, whoever looks: what Git asks for, what the cluster holds, and the Sync."""

    git: dict[str, str] = field(default_factory=lambda: {"a": "red", "b": "red"})
    live: dict[str, str] = field(default_factory=dict)
    applied: dict[str, str] = field(default_factory=dict)
    pushes: int = 1
    policy: str = "Correct"
    generation: int = 1
    path: str = "shop"
    suspend: bool = False
    requested_at: str = ""
    approved: str = ""
    is_guarded: bool = False
    is_source_up: bool = True
    is_dependency_ready: bool = True
    refused: set[str] = field(default_factory=set)
    status: dict = field(default_factory=dict)

    @property
    def revision(self):
        return f"{self.pushes:07d}"

    def sync(self):
        annotations = {SYNC_REQUESTED_AT: self.requested_at, APPROVED_PLAN: self.approved}
        source = {"git": {"url": "https://git.example.com/shop", "interval": f"{INTERVAL_S:.0f}s"}, "path": self.path}
        spec = {"source": source, "drift": self.policy, "suspend": self.suspend, "dependsOn": [{"name": "base"}]}
        metadata = {"name": "shop", "namespace": "shop", "generation": self.generation, "annotations": annotations}
        return Sync.of({"metadata": metadata, "spec": spec})

    def desired(self):
        """Return what the repository asks for now."""
        return Desired(self.revision, self.path, dict(self.git))

    def change(self, desired, name):
        wanted, there = desired.files.get(name), self.live.get(name)
        if wanted == there:
            return Change(ref(name), Op.UNCHANGED)
        if wanted is None:
            return Change(ref(name), Op.DELETE)
        intent = {"data": {"colour": wanted}}
        if there is None:
            return Change(ref(name), Op.CREATE, intent=intent)
        base = self.applied.get(name)
        reason = Reason.DRIFT if base == wanted else Reason.GIT if base == there else Reason.BOTH
        fields = (FieldChange(COLOUR, "replace", there, wanted, reason, "by-hand"),)
        return Change(ref(name), Op.UPDATE, intent=intent, fields=fields)

    def plan(self, desired, refs=None, left=frozenset()):
        names = {each.name for each in refs} if refs is not None else desired.files.keys() | self.live.keys()
        changes = [self.change(desired, name) for name in sorted(names)]
        changes = [
            Change(each.ref, Op.UNCHANGED) if each.op is Op.UPDATE and each.ref.name in left else each
            for each in changes
        ]
        deletes = tuple(each.ref for each in changes if each.op is Op.DELETE)
        if refs is not None:
            changes = [each for each in changes if each.op is not Op.DELETE]
        elif deletes and self.is_guarded and not is_approved(self.sync(), deletes):
            changes = [each.gated(held=True) if each.op is Op.DELETE else each for each in changes]
            hold = Hold("deletes", "more than allowed", deletes)
            return Plan(SHOP, desired.revision, tuple(changes), holds=(hold,))
        return Plan(SHOP, desired.revision, tuple(changes))

    def write(self, made):
        results = []
        for change in made.changes:
            name = change.ref.name
            if not change.writes:
                continue
            if name in self.refused:
                results.append(Result(change, ResultState.FAILED, "refused"))
                continue
            if change.op is Op.DELETE:
                self.live.pop(name, None)
            else:
                self.live[name] = self.applied[name] = change.intent["data"]["colour"]
            results.append(Result(change, ResultState.SUCCEEDED))
        return results


@dataclass
class Replica:
    """One daemon's view of the Sync: its state, and when its turn is. *done* are the instructions of each turn so far.

    What a source answers is as of when it is asked, and comes *reading_s* later.
    """

    world: World
    now_s: float = 0.0
    state: PassState = field(default_factory=PassState)
    due_s: float | None = None
    is_asked: bool = False
    desired: Desired = field(default_factory=Desired)
    newest: Desired = field(default_factory=Desired)
    reading_s: float = 0.0
    answer: tuple[float, on.Event] | None = None
    changed: set = field(default_factory=set)
    is_owner: bool = True
    failures: int = 0
    done: list[list] = field(default_factory=list)
    meanwhile: list = field(default_factory=list)
    fault: str = ""
    is_contended: bool = False
    has_lapsed: bool = False

    # What happens ---------------------------------------------------------------------------

    def add(self, priority, after_s=0.0):
        due_s = self.now_s + after_s
        self.due_s = due_s if self.due_s is None else min(self.due_s, due_s)
        self.is_asked |= priority is Priority.ASKED

    def notify(self, happened):
        """Hand over what happens between turns, or in the middle of one."""
        instructions = self._step(happened)
        for each in instructions:
            if isinstance(each, on.ForgetFailures):
                self.failures = 0
                continue
            assert isinstance(each, on.LookAgain), f"{happened} between turns led to {each}"
            self.add(each.priority, each.after_s)

    def touched(self, name):
        """Tell of a member that somebody changed, as a watch does."""
        if self.state.sync is not None and self.is_owner:
            self.changed.add(ref(name))
            self.add(Priority.DRIFT, 0.02)

    def run(self, seconds):
        """Have all turns that come within so many seconds."""
        end_s = self.now_s + seconds
        while self.due_s is not None and self.due_s <= end_s:
            self.now_s = max(self.now_s, self.due_s)
            self.turn()
        self.now_s = end_s

    # A turn ---------------------------------------------------------------------------------

    def turn(self):
        asked, self.is_asked, self.due_s = self.is_asked, False, None
        self.done.append([])
        if not self.is_owner:
            return
        sync = self.world.sync()
        waits = bool(sync.requested_at) and sync.requested_at != self.world.status.get("lastHandledSyncAt")
        changed, self.changed = frozenset(self.changed), set()
        if changed:
            assert not self._step(on.ObjectsChanged(changed))
        if self.answer is not None and self.answer[0] <= self.now_s:
            (_, answer), self.answer = self.answer, None
            self.drive(answer)
            waits = bool(sync.requested_at) and sync.requested_at != self.world.status.get("lastHandledSyncAt")
        elif self.answer is not None:
            self.add(Priority.POLL, self.answer[0] - self.now_s)
        self.drive(on.TurnCame(sync, self.facts(), is_asked=asked or waits))
        if not self.state.source.is_reading:
            self.answer = None  # it isn't needed any more

    def drive(self, happened):
        """Carry out what follows from an event, and from its results."""
        events = [happened]
        while events:
            for instruction in self._step(events.pop(0)):
                self.done[-1].append(instruction)
                result = self.carry_out(instruction)
                events += [result] if result is not None else []
                while self.meanwhile and result is not None:
                    self.meanwhile.pop()()

    @property
    def left(self):
        """The objects that are left to somebody else for a while."""
        return frozenset({"a"} if self.is_contended else ())

    def facts(self):
        waits = "" if self.world.is_dependency_ready else "waits for Sync shop/base to be Ready"
        lapsed, self.has_lapsed = self.has_lapsed, False
        return on.ClusterFacts(waits, is_contended=self.is_contended, has_lapsed=lapsed)

    def carry_out(self, instruction):
        match instruction:
            case on.ReadSource():
                self.answer = self.now_s + self.reading_s, self.read()
                self.add(Priority.PUSH, self.reading_s)
            case on.CheckMembers():
                return on.MembersChecked(are_there=True)
            case on.PlanSet():
                self.desired = self.newest
                members = frozenset(map(ref, self.desired.files))
                return on.PlanMade(
                    self.world.plan(self.desired, left=self.left),
                    members,
                    self.world.status.get("lastAppliedRevision", ""),
                )
            case on.PlanObjects():
                return on.PlanMade(self.world.plan(self.desired, instruction.refs, self.left))
            case on.ApplySet() | on.ApplyObjects():
                return self.apply(instruction)
            case on.Retry():
                self.failures += 1
                delay_s = min(2.0**self.failures, instruction.cap_s)
                self.add(instruction.priority, delay_s)
                return on.RetryScheduled(instruction, delay_s)
            case on.ForgetFailures():
                self.failures = 0
            case on.LookAgain():
                self.add(instruction.priority, instruction.after_s)
            case on.Tell():
                self.world.status = sync_status(
                    self.world.status, instruction.report,
                    generation=self.world.generation, requested_at=instruction.answers, now=f"{self.now_s}",
                )  # fmt: skip
        return None

    def read(self):
        """Return what the source says now."""
        if not self.world.is_source_up:
            return on.SourceFailed("no route to host")
        is_news, self.newest = self.world.desired() != self.newest, self.world.desired()
        return on.SourceRead(is_news)

    def apply(self, instruction):
        fault, self.fault = self.fault, ""
        if fault == "interrupted":
            return on.PassInterrupted()
        if fault == "failed":
            return on.PassFailed(ConditionReason.CLUSTER, "no answer")
        results = self.world.write(instruction.plan)
        written = tuple(each.change for each in results if each.state is ResultState.SUCCEEDED)
        report = report_of(instruction.plan, results)
        missing = frozenset({"shop"} if self.world.refused else ())
        return on.Applied(report, written, has_failed=len(written) < len(results), missing_namespaces=missing)

    def _step(self, happened):
        self.state, instructions = step(self.state, happened, self.now_s)
        self.state.validate()
        return instructions

    def fresh(self):
        """Return another daemon, which knows nothing, on the same world as it is now."""
        return Replica(copy.deepcopy(self.world), now_s=self.now_s, due_s=self.now_s)
