"""A plan in the making: what has been found so far, and the judgement that members and children share.

Pure.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import HookPoint, MemberOptions
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import (
    GroupVersionKind,
    Manifest,
    ObjectRef,
    Problem,
    labels_of,
)
from kubectl_reconcile.core.planning.endings.cascade import Listing
from kubectl_reconcile.core.planning.hold import Hold, Marked, hash_of
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import Kind, Phase
from kubectl_reconcile.core.planning.order import BACKENDS, Key, Place, Stage, Steps, is_behind, key_of, services_of
from kubectl_reconcile.core.planning.plan import (
    Change,
    Contention,
    Gate,
    Op,
    Outcomes,
    Plan,
    Provenance,
    Schedule,
    StatusWrite,
    Unobserved,
    set_id_of,
)
from kubectl_reconcile.core.planning.snapshot import Stored, members_in
from kubectl_reconcile.core.redaction import redacted, without
from kubectl_reconcile.core.rendering.uses import texts_of
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom, IgnoreRule
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, FieldConflict, Merge, MergeError, Verdict, three_way

HOOK_STAGES: Mapping[str, Stage] = {HookPoint.PRE_SYNC: Stage.BEFORE, HookPoint.POST_SYNC: Stage.AFTER}
"""When hooks run that don't wait for a failure."""


class OutcomesSoFar(Struct):
    """What modules have said so far; *requeues_s* are the times after which they want to be asked again, *is_urgent* whether somebody waits for that."""

    statuses: list[StatusWrite] = field(default_factory=list)
    requeues_s: list[float] = field(default_factory=list)
    unobserved: dict[ObjectRef, Unobserved] = field(default_factory=dict)
    is_urgent: bool = False

    def total(self, observed: Mapping[ObjectRef, Observation]) -> Outcomes:
        """Return all of it; *observed* is what modules were told."""
        requeue_s = min(self.requeues_s, default=None)
        return Outcomes(tuple(self.statuses), requeue_s, observed, self.unobserved, self.is_urgent)


class WhenWritten(Struct):
    """When members are written: their *places*, which *stages* some have before or after the others, and what they *need*.

    *grounds* tells that a namespace or kind is missing that Git asks for, for which all else of it waits. *index* is the wave of each place, once
    all places are known.
    """

    places: dict[ObjectRef, Place] = field(default_factory=dict)
    stages: dict[ObjectRef, Stage] = field(default_factory=dict)
    needs: dict[ObjectRef, tuple[ObjectRef, ...]] = field(default_factory=dict)
    grounds: bool = False
    index: Mapping[Key, int] = field(default_factory=dict)


class Settled(Struct, frozen=True):
    """A member that an earlier build found as it should be: where it stands, what is told of it, and the *number* of its manifest."""

    key: Key
    change: Change
    number: int


def in_order(change: Change) -> tuple[int, ObjectRef]:
    """Return what changes are sorted by in a plan."""
    return change.gate.wave, change.ref


def merged(ordered: Sequence[Change], more: Sequence[Change]) -> list[Change]:
    """Return all of them in order. The first are in order already, so where there are few more it costs what these cost."""
    if len(more) * _FEW > len(ordered):
        return sorted(chain(ordered, more), key=in_order)
    found = list(ordered)
    for each in more:
        insort(found, each, key=in_order)
    return found


_FEW: Final = 64
"""So many times more must be in order already for it to pay to put the others in between, one by one."""


class Standing(Struct):
    """The members that this build needn't look at, since an earlier one did; *others* are the manifests that are left.

    *numbers* tell which member a manifest is, *ordered* is what is told of them all, in order, *keys* are their places and how many are
    at each, and *waves* where these were in that build. *kinds* are theirs, and may be those of members that are gone.
    """

    others: Sequence[Located]
    members: dict[ObjectRef, Settled] = field(default_factory=dict)
    numbers: dict[int, ObjectRef] = field(default_factory=dict)
    ordered: list[Change] = field(default_factory=list)
    keys: Counter[Key] = field(default_factory=Counter)
    waves: Mapping[Key, int] = field(default_factory=dict)
    kinds: Mapping[GroupVersionKind, Kind] = field(default_factory=dict)

    def let_go(self, gone: Collection[int]) -> list[ObjectRef]:
        """Have the members of these manifests looked at; return which they are."""
        left = [self.members.pop(self.numbers.pop(number)) for number in gone]
        self.keys.subtract(each.key for each in left)
        self.keys = +self.keys
        if len(left) * _FEW > len(self.ordered):
            self.ordered = [each for each in self.ordered if each.ref in self.members]
        else:
            for each in left:
                del self.ordered[bisect_left(self.ordered, in_order(each.change), key=in_order)]
        return [each.change.ref for each in left]

    def move(self, index: Mapping[Key, int]) -> None:
        """Put them into the waves where their places are now."""
        if all(index[key] == self.waves[key] for key in self.keys):
            return
        self.members = {
            ref: Settled(each.key, each.change.in_wave(index[each.key]), each.number)
            for ref, each in self.members.items()
        }
        self.ordered = sorted((each.change for each in self.members.values()), key=in_order)
        self.waves = {key: index[key] for key in self.keys}


class EndingsSoFar(Struct):
    """What waits for a person because of what ends with it, and what must be listed to know more, so far."""

    holds: list[Hold] = field(default_factory=list)
    lacking: set[Listing] = field(default_factory=set)


class PlanBuilder(Struct):
    """What one build has found so far; *kinds* grows by those that the revision brings along.

    *spared* is what must stay though no usable manifest asks for it. What an earlier build has settled is *standing*.
    """

    inputs: Inputs
    standing: Standing
    set_id: str = ""
    marks: str = ""
    kinds: dict[GroupVersionKind, Kind] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    changes: list[tuple[Key, Change]] = field(default_factory=list)
    fallbacks: list[Change] = field(default_factory=list)
    when: WhenWritten = field(default_factory=WhenWritten)
    outcomes: OutcomesSoFar = field(default_factory=OutcomesSoFar)
    spared: set[ObjectRef] = field(default_factory=set)
    verdicts: dict[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    settled: list[Contention] = field(default_factory=list)
    ends: EndingsSoFar = field(default_factory=EndingsSoFar)

    @classmethod
    def of(cls, inputs: Inputs) -> PlanBuilder:
        """Begin a build."""
        sync, set_id = inputs.sync, set_id_of(inputs.sync)
        marks = (
            sync.default_namespace,
            sync.conflicts,
            sync.ignore,
            set_id if inputs.grouped else "",
            sync.field_manager,
            sync.take_over,
        )
        return cls(
            inputs, Standing(inputs.desired), set_id, hash_of(repr(marks)), dict(inputs.kinds), list(inputs.problems)
        )

    def members(self) -> list[Stored]:
        """Return the live members of the set."""
        return members_in(self.inputs.live, self.set_id, self.inputs.coverage.places)

    def live(self, ref: ObjectRef) -> Manifest | None:
        """Return the live object, parsed, or None."""
        stored = self.inputs.live.stored(ref)
        return stored.manifest() if stored else None

    def spare(self, wrong: Mapping[ObjectRef, Problem]) -> None:
        """Leave objects alone for what is wrong with each."""
        self.problems += wrong.values()
        self.spared.update(wrong)

    def judge(
        self,
        ref: ObjectRef,
        kind: Kind,
        desired: Manifest,
        live: Manifest | None,
        *,
        rules: Sync,
        provenance: Provenance,
        base: Manifest | None = None,
        policy: ConflictPolicy | None = None,
        adopting: bool | None = None,
    ) -> Change:
        """Return the change that the three-way merge of one object asks for, under the *rules* of a Sync.

        *policy* is the object's own word on conflicts; without it, that of the Sync counts. *adopting* tells that the
        live object isn't a member yet; without it, that nobody has applied it as this manager.
        """
        policy = policy or rules.conflicts
        ignores = self._ignores(rules, ref, desired)
        merged = functools.partial(
            three_way,
            desired=desired,
            live=live,
            schema=kind.schema,
            manager=provenance.manager,
            base=base,
            policy=policy,
            take_over=rules.take_over,
            adopting=adopting,
        )
        try:
            contentions = self._contests(ref, merged, ignores)
            merge = merged(ignores=(*ignores, *(IgnoreRule.at(contention.path) for contention in contentions)))
        except MergeError as error:
            reason = without(redacted(str(error), desired, live), texts_of(provenance.uses))
            return Change(ref, Op.UNCHANGED, kind, live, live, provenance=provenance, gate=Gate(blocked=reason))
        provenance = replace(provenance, left=len(merge.left)) if merge.left else provenance
        if merge.verdict is Verdict.SAME:
            labels = labels_of(desired)
            return Change(ref, Op.UNCHANGED, kind, conflicts=merge.conflicts, labels=labels, provenance=provenance)
        return Change(
            ref,
            Op.UPDATE if live is not None else Op.CREATE,
            kind,
            before=live,
            after=merge.merged,
            intent=merge.intent,
            fields=merge.changes,
            conflicts=merge.conflicts,
            unsure=merge.verdict is Verdict.UNSURE,
            takeover=merge.takeover,
            provenance=provenance,
            gate=Gate(
                blocked=_blocked(live, merge.conflicts, policy),
                force=policy is not ConflictPolicy.FAIL,
            ),
        )

    def _ignores(self, rules: Sync, ref: ObjectRef, desired: Manifest) -> Sequence[IgnoreRule]:
        """Return the rules that are about an object. What Git itself changed isn't known before all that can be is *informed*: until then nothing is drift."""
        labels = labels_of(desired) if rules.ignore else {}
        return [
            each
            for each in rules.ignore
            if each.means(ref, labels) and (each.of is IgnoreFrom.ALWAYS or self.inputs.memory.informed)
        ]

    def _contests(
        self, ref: ObjectRef, merged: Callable[..., Merge], ignores: Sequence[IgnoreRule]
    ) -> list[Contention]:
        """Return the contended fields of an object that are still not as they should be; the others are settled."""
        known = self.inputs.memory.contentions.get(ref, ())
        open_ = {change.path for change in merged(ignores=ignores).changes} if known else frozenset()
        self.settled += (contention for contention in known if contention.path not in open_)
        return [contention for contention in known if contention.path in open_]

    def deletion(self, each: Stored) -> Change:
        """Return the deletion of a live object."""
        manifest = each.manifest()
        return Change(
            each.ref,
            Op.DELETE,
            self.kinds.get(GroupVersionKind.of(manifest)) or self._kind_of(each.ref),
            before=manifest,
            provenance=Provenance(MemberOptions.of(manifest).source),
        )

    def _kind_of(self, ref: ObjectRef) -> Kind | None:
        return next((kind for gvk, kind in self.kinds.items() if gvk.group_kind == ref.group_kind), None)

    def phase(self, ref: ObjectRef) -> int:
        """Return when objects of this kind are written."""
        kind = self._kind_of(ref)
        return kind.phase if kind else 0

    def add(self, change: Change, place: Place, *, deleting: bool = False) -> None:
        """Take up a change that is made at *place*, or for a deletion at its mirror image."""
        usual = HOOK_STAGES.get(change.gate.hook, Stage.WRITE)
        stage = Stage.DELETE if deleting else self.when.stages.get(change.ref, usual)
        self.changes.append((key_of(stage, place), change))

    def cascade(self, owner: Stored, place: tuple[int, ...]) -> None:
        """Show what the garbage collector will take along with *owner*, each once: owners may be in a ring."""
        shown, queue = {owner.ref}, deque([(owner, place)])
        while queue:
            carrier, above = queue.popleft()
            below = (*above[:-1], above[-1] + 1)
            for child in self.inputs.live.owned_by(carrier.uid):
                if child.ref not in shown:
                    shown.add(child.ref)
                    change = self.deletion(child).attributed(owner=carrier.ref).gated(cascade=True)
                    self.add(change, below, deleting=True)
                    queue.append((child, below))

    def add_cascade(self, ref: ObjectRef, manifest: Manifest, carrier: ObjectRef, place: Place, *, held: bool) -> None:
        """Show what goes along with *carrier*, which is deleted at *place* unless it is *held*."""
        below = (*place[:-1], place[-1] + 1)
        gate, provenance = Gate(held=held, cascade=True), Provenance(owner=carrier)
        change = Change(ref, Op.DELETE, self._kind_of(ref), before=manifest, provenance=provenance, gate=gate)
        self.add(change, below, deleting=True)

    def finish(
        self, holds: Sequence[Hold] = (), marked: Marked | None = None, lacking: frozenset[Listing] = frozenset()
    ) -> Plan:
        """Return the plan. *lacking* is what must be listed before it is all known."""
        inputs = self.inputs
        self._wait_for_backends()
        self._inherit_uses()
        steps = Steps.of(chain((key for key, _ in self.changes), self.standing.keys))
        self.when.index = steps.index
        self.standing.move(steps.index)
        changes = tuple(
            merged(self.standing.ordered, [change.in_wave(steps.index[key]) for key, change in self.changes])
        )
        return Plan(
            sync=inputs.sync.ref if inputs.sync.name else None,
            revision=inputs.revision.sha,
            changes=changes,
            problems=tuple(dict.fromkeys(self.problems)),
            holds=(*self.ends.holds, *holds),
            marked=marked or Marked(),
            lacking=lacking | self.ends.lacking,
            outcomes=self.outcomes.total(inputs.modules.observed),
            schedule=self._schedule(changes, steps.barriers),
            verdicts=self.verdicts,
            settled=tuple(self.settled),
            digest=inputs.digest if inputs.whole else "",
            commit=inputs.revision.commit,
        )

    def _inherit_uses(self) -> None:
        """Have what modules make of an object with secret values hide these as well."""
        secret = {
            change.ref: tuple(use for use in change.provenance.uses if use.secret)
            for _, change in self.changes if change.provenance.uses
        }  # fmt: skip
        for at, (key, change) in enumerate(self.changes) if any(secret.values()) else ():
            owner = change.provenance.owner
            if owner is not None and (uses := secret.get(owner)):
                self.changes[at] = key, change.attributed(uses=uses)
                secret[change.ref] = uses

    def _wait_for_backends(self) -> None:
        """Let webhooks and aggregated APIs wait for the workloads behind their own Services.

        What exists already waits only for workloads that are written with it: it may be what keeps others from starting.
        """
        for at, (key, change) in enumerate(self.changes):
            if change.kind is None or change.kind.phase is not Phase.ADMISSION or not change.writes or not change.after:
                continue
            services = services_of(change.after)
            if needs := tuple(self._backends(services, every=change.op is Op.CREATE)) if services else ():
                self.changes[at] = key, change.gated(needs=(*change.gate.needs, *needs))

    def _backends(self, services: Collection[ObjectRef], *, every: bool) -> Iterator[ObjectRef]:
        """Yield the workloads behind *services* that are written, or *every* one that stays."""
        standing = (each.change for each in self.standing.members.values())
        stays = chain(standing, (change for _, change in self.changes if change.op is not Op.DELETE))
        there = {change.ref: change for change in stays}
        asked = [(ref.namespace, found) for ref in services if (found := self._as_written(ref, there.get(ref)))]
        for ref, change in there.items():
            if ref.group_kind in BACKENDS and (every or change.writes):
                workload = self._as_written(ref, change)
                if workload and any(
                    place == ref.namespace and is_behind(workload, service) for place, service in asked
                ):
                    yield ref

    def _as_written(self, ref: ObjectRef, change: Change | None) -> Manifest | None:
        return change.after if change is not None and change.after is not None else self.live(ref)

    def _schedule(self, changes: Sequence[Change], barriers: frozenset[int]) -> Schedule:
        """Return what is waited for; a part of a source waits for nothing, since the rest of it isn't looked at."""
        fallbacks = tuple(self.fallbacks)
        if not self.inputs.whole:
            return Schedule(fallbacks=fallbacks)
        return Schedule(barriers, tuple(self._awaited(changes, barriers)), fallbacks)

    def _awaited(self, changes: Sequence[Change], barriers: frozenset[int]) -> Iterator[Change]:
        """Yield the unchanged objects that something to be written must wait for: those not healthy yet."""
        writes = [change for change in changes if change.writes]
        last = max((change.gate.wave for change in writes), default=-1)
        barrier = max((at for at in barriers if at <= last), default=0)
        named = {ref for change in writes for ref in change.gate.needs}
        for change in changes if barrier or named else ():
            if change.is_quiet and (change.gate.wave < barrier or change.ref in named):
                live = self.live(change.ref)
                if live is not None and self._holds_up(change, live):
                    yield change

    def _holds_up(self, change: Change, live: Manifest) -> bool:
        """Tell whether an object keeps others waiting; a Sync among its own members can't wait for itself."""
        if change.ref == self.inputs.sync.ref:
            return False
        return self.inputs.sync.health.passes(live, hook=bool(change.gate.hook)).status.holds_up


NO_RULES: Final = Sync(name="", namespace="")
"""What is judged by no Sync's rules: children follow their module, whatever a Sync says of its members."""
BEING_DELETED: Final = "it is being deleted; it will be recreated once it is gone"


def is_going(live: Manifest) -> bool:
    """Tell whether somebody has deleted a live object, and something holds it still."""
    return bool(live["metadata"].get("deletionTimestamp"))


def unreadable(why: str) -> Gate:
    """Return the gate of an object that can't be looked at: nobody knows whether it exists, so nothing is said of it."""
    return Gate(blocked=f"it can't be read: {why}")


def _blocked(live: Manifest | None, conflicts: Sequence[FieldConflict], policy: ConflictPolicy) -> str:
    if live is not None and is_going(live):
        return BEING_DELETED
    if conflicts and policy is ConflictPolicy.FAIL:
        return "; ".join(f"{conflict.path} belongs to {conflict.manager}" for conflict in conflicts)
    return ""
