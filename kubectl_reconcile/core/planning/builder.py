"""A plan in the making: what has been found so far, and the judgement that members and children share.

Pure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kubectl_reconcile.core.health.kstatus import HealthStatus
from kubectl_reconcile.core.objects import (
    FIELD_MANAGER,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    Problem,
    annotations_of,
    labels_of,
)
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.order import Barrier, Key, Place, Stage, Steps, key_of
from kubectl_reconcile.core.planning.plan import (
    Change,
    Contention,
    Hold,
    Inputs,
    Op,
    Plan,
    StatusWrite,
    Unobserved,
    approval_of_all,
    hash_of,
    set_id_of,
)
from kubectl_reconcile.core.planning.snapshot import Stored
from kubectl_reconcile.core.redaction import redacted
from kubectl_reconcile.core.resources import applyset
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, FieldConflict, Merge, MergeError, Verdict, three_way

HOOK_STAGES = {"pre-sync": Stage.BEFORE, "post-sync": Stage.AFTER}
"""When hooks run that don't wait for a failure."""


@dataclass(slots=True)
class PlanBuilder:
    """What one build has found so far; *kinds* grows by those that the revision brings along.

    *spared* is what must stay though no usable manifest asks for it; *places* says when each
    member is written, and *needs* what it waits for.
    """

    inputs: Inputs
    set_id: str = ""
    marks: str = ""
    kinds: dict[GroupVersionKind, Kind] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    changes: list[tuple[Key, Change]] = field(default_factory=list)
    fallbacks: list[Change] = field(default_factory=list)
    places: dict[ObjectRef, Place] = field(default_factory=dict)
    needs: dict[ObjectRef, tuple[ObjectRef, ...]] = field(default_factory=dict)
    members: int = 0
    statuses: list[StatusWrite] = field(default_factory=list)
    requeues_s: list[float] = field(default_factory=list)
    spared: set[ObjectRef] = field(default_factory=set)
    verdicts: dict[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    unobserved: dict[ObjectRef, Unobserved] = field(default_factory=dict)
    settled: list[Contention] = field(default_factory=list)

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
        )
        return cls(inputs, set_id, hash_of(repr(marks)), dict(inputs.kinds), list(inputs.problems))

    def live(self, ref: ObjectRef) -> Manifest | None:
        """Return the live object, parsed, or None."""
        stored = self.inputs.live.stored(ref)
        return stored.manifest() if stored else None

    def judge(
        self,
        ref: ObjectRef,
        kind: Kind,
        desired: Manifest,
        live: Manifest | None,
        *,
        rules: Sync,
        base: Manifest | None = None,
        manager: str = FIELD_MANAGER,
    ) -> Change:
        """Return the change that the three-way merge of one object asks for, under the *rules* of a Sync."""
        merged = functools.partial(
            three_way,
            desired=desired,
            live=live,
            schema=kind.schema,
            manager=manager,
            base=base,
            policy=rules.conflicts,
        )
        try:
            contentions = self._contests(ref, merged, rules)
            merge = merged(ignores=(*rules.ignore, *(IgnoreRule.at(contention.path) for contention in contentions)))
        except MergeError as error:
            reason = redacted(str(error), desired, live)
            return Change(ref, Op.UNCHANGED, kind, live, live, manager=manager, blocked=reason)
        if merge.verdict is Verdict.SAME:
            return Change(
                ref, Op.UNCHANGED, kind, conflicts=merge.conflicts, manager=manager, labels=labels_of(desired)
            )
        return Change(
            ref,
            Op.UPDATE if live is not None else Op.CREATE,
            kind,
            before=live,
            after=merge.merged,
            intent=merge.intent,
            fields=merge.changes,
            conflicts=merge.conflicts,
            manager=manager,
            force=rules.conflicts is not ConflictPolicy.FAIL,
            unsure=merge.verdict is Verdict.UNSURE,
            takeover=merge.takeover,
            blocked=_blocked(live, merge.conflicts, rules.conflicts),
        )

    def _contests(self, ref: ObjectRef, merged: Callable[..., Merge], rules: Sync) -> list[Contention]:
        """Return the contended fields of an object that are still not as they should be; the others are settled."""
        known = self.inputs.contentions.get(ref, ())
        open_ = {change.path for change in merged(ignores=rules.ignore).changes} if known else frozenset()
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
            file=annotations_of(manifest).get(applyset.SOURCE, ""),
        )

    def _kind_of(self, ref: ObjectRef) -> Kind | None:
        return next((kind for gvk, kind in self.kinds.items() if gvk.group_kind == ref.group_kind), None)

    def phase(self, ref: ObjectRef) -> int:
        """Return when objects of this kind are written."""
        kind = self._kind_of(ref)
        return kind.phase if kind else 0

    def add(self, change: Change, place: Place, *, deleting: bool = False) -> None:
        """Take up a change that is made at *place*, or for a deletion at its mirror image."""
        stage = Stage.DELETE if deleting else HOOK_STAGES.get(change.hook, Stage.WRITE)
        self.changes.append((key_of(stage, place), change))

    def cascade(self, owner: Stored, place: tuple[int, ...]) -> None:
        """Show what the garbage collector will take along with *owner*."""
        below = (*place[:-1], place[-1] + 1)
        for child in self.inputs.live.owned_by(owner.uid):
            self.add(replace(self.deletion(child), owner=owner.ref, cascade=True), below, deleting=True)
            self.cascade(child, below)

    def finish(self, holds: Sequence[Hold] = ()) -> Plan:
        """Return the plan."""
        inputs = self.inputs
        steps = Steps.of(key for key, _ in self.changes)
        for key, change in self.changes:
            # Nobody has seen these changes yet, and there may be ten thousand: copies would cost more than all else.
            object.__setattr__(change, "wave", steps.index[key])
        changes = tuple(sorted((change for _, change in self.changes), key=lambda change: (change.wave, change.ref)))
        sync = inputs.sync.ref if inputs.sync.name else None
        return Plan(
            sync=sync,
            revision=inputs.revision.sha,
            changes=changes,
            problems=tuple(self.problems),
            holds=tuple(holds),
            statuses=tuple(self.statuses),
            requeue_after_s=min(self.requeues_s, default=None),
            approval=approval_of_all(holds),
            verdicts=self.verdicts,
            observed=inputs.observed,
            unobserved=self.unobserved,
            members=self.members,
            barriers=steps.barriers if inputs.whole else {},
            awaited=tuple(self._awaited(changes, steps.barriers)) if inputs.whole else (),
            fallbacks=tuple(self.fallbacks),
            settled=tuple(self.settled),
        )

    def _awaited(self, changes: Sequence[Change], barriers: Mapping[int, Barrier]) -> Iterator[Change]:
        """Yield the unchanged objects that something to be written must wait for: those not healthy yet."""
        last = max((change.wave for change in changes if change.writes), default=-1)
        barrier = max((at for at, kind in barriers.items() if at <= last and kind is Barrier.ALL), default=0)
        named = {ref for change in changes if change.writes for ref in change.needs}
        for change in changes if barrier or named else ():
            if change.op is Op.UNCHANGED and not change.blocked and (change.wave < barrier or change.ref in named):
                live = self.live(change.ref)
                if self.inputs.sync.health.passes(live).status is not HealthStatus.CURRENT:
                    yield change


def _blocked(live: Manifest | None, conflicts: Sequence[FieldConflict], policy: ConflictPolicy) -> str:
    if live is not None and live["metadata"].get("deletionTimestamp"):
        return "it is being deleted; it will be made anew once it is gone"
    if conflicts and policy is ConflictPolicy.FAIL:
        return "; ".join(f"{conflict.path} belongs to {conflict.manager}" for conflict in conflicts)
    return ""
