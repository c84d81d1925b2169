"""The children of a CR: what its module wants, compared with what is there; its actions and its status.

Children go through the same three-way merge as members, under the module's own field manager.
Where a child is itself a CR with a module, that one is asked too, so a plan shows the whole tree
even of objects that don't exist yet. A child that comes *after* others waits until those are as they
should be and healthy; a later pass writes it.

An object that has a child's name is taken over only if it has no controller and carries the child's
labels, or has been the module's before. Any other one is left alone, and said to be in the way.

Pure: modules are pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import MODULE_LABEL, PAUSED, MemberOptions
from kubectl_reconcile.core.health.health import AWAITING
from kubectl_reconcile.core.health.judge import health
from kubectl_reconcile.core.module.action_journal import ActionJournal, is_approved, ref_of
from kubectl_reconcile.core.module.adoption import adopt_child
from kubectl_reconcile.core.module.api import UnloadedModule
from kubectl_reconcile.core.module.outcome import Action, Outcome, kept_status, key_of
from kubectl_reconcile.core.objects import (
    Condition,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    controller_of,
    has_condition,
    labels_of,
    mapping_of,
    merge_conditions,
    number_of,
)
from kubectl_reconcile.core.planning.builder import NO_RULES, PlanBuilder, unreadable
from kubectl_reconcile.core.planning.endings.kept import free, freed, to_be_freed, unwanted
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.module_call import (
    BY_DAEMON,
    Parent,
    ask,
    children_of,
    fault,
    is_recalled,
)
from kubectl_reconcile.core.planning.plan import Change, Contention, Gate, Op, StatusWrite
from kubectl_reconcile.core.planning.snapshot import Stored
from kubectl_reconcile.core.resources.sync import CONTENDED

ADD_FINALIZER = "keep-until-cleaned-up"
REMOVE_FINALIZER = "let-go"
ENGINE_VERBS = frozenset({ADD_FINALIZER, REMOVE_FINALIZER})
"""Actions of the engine itself, on the CR."""

_MAX_DEPTH = 8


_FINALIZER, _CHILDREN, _ACTIONS = 1, 2, 3


def reconcile(builder: PlanBuilder, parent: Parent) -> None:
    """Plan what the parent's module wants: children, those of children that are CRs, actions, and status."""
    if parent.depth >= _MAX_DEPTH:
        fault(builder, parent, f"modules nest more than {_MAX_DEPTH} deep", "break the cycle")
        return
    if isinstance(parent.module, UnloadedModule):
        fault(builder, parent, parent.module.why, parent.module.hint)
        return
    if MemberOptions.of(parent.cr).paused:
        _paused(builder, parent)
        return
    if parent.is_going and _goes_by_itself(builder, parent):
        return
    owned = children_of(builder.inputs.live, parent.cr)
    outcome = ask(builder, parent, owned)
    if is_recalled(builder, parent):
        parent = replace(parent, waits=parent.waits or BY_DAEMON)
    if outcome is not None:
        _carry_out(builder, parent, owned, outcome)


def preview_finalize(builder: PlanBuilder, parent: Parent) -> None:
    """Show what a module makes and does first for a CR that this very plan deletes: children that aren't there yet, and actions."""
    if parent.module.finalize is None or parent.is_going or MemberOptions.of(parent.cr).abandoned:
        return
    going = {**parent.cr, "metadata": {**parent.cr["metadata"], "deletionTimestamp": builder.inputs.now}}
    parent = replace(parent, cr=going, waits=f"the deletion of {parent.ref}")
    outcome = ask(builder, parent, children_of(builder.inputs.live, parent.cr))
    if outcome is not None:
        family = _ChildrenPlan(builder, parent, outcome)
        for child in outcome.children:
            adopted = adopt_child(child, parent.cr, parent.module)
            if builder.live(ObjectRef.of(adopted)) is None and family.may_have(child):
                family.add(adopted)
        _actions(builder, parent, outcome.actions)


def _goes_by_itself(builder: PlanBuilder, parent: Parent) -> bool:
    """Tell whether a CR that is being deleted needs nothing from its module (any more)."""
    module = parent.module
    if module.finalize is None or module.finalizer not in (parent.cr["metadata"].get("finalizers") or ()):
        return True
    if not MemberOptions.of(parent.cr).abandoned:
        return False
    bound = to_be_freed(parent, children_of(builder.inputs.live, parent.cr))
    free(builder, parent, bound, (), parent.place(_CHILDREN))
    if bound:
        return True
    _engine_action(
        builder, parent, REMOVE_FINALIZER, "allow its deletion without cleaning up outside, as its annotation says", 1
    )
    return True


def _carry_out(builder: PlanBuilder, parent: Parent, owned: Sequence[Stored], outcome: Outcome) -> None:
    module = parent.module
    if (
        module.finalize
        and not parent.is_going
        and module.finalizer not in (parent.cr["metadata"].get("finalizers") or ())
    ):
        _engine_action(
            builder, parent, ADD_FINALIZER, "keep it, once deleted, until its module has cleaned up", _FINALIZER
        )
    family = _ChildrenPlan(builder, parent, outcome)
    wanted = [
        adopt_child(child, parent.cr, module, released=module.holds(parent.cr, child))
        for child in outcome.children
        if family.may_have(child)
    ]
    for child in wanted:
        family.add(child)
    bound = to_be_freed(parent, owned)
    going = () if outcome.keep_children else tuple(unwanted(builder, parent, owned, bound, outcome.dropped))
    pruned = tuple(_prune(builder, parent, going, wanted, outcome.graces))
    planned = {*family.refs, *(each.ref for each in pruned)}
    free(builder, parent, bound, planned, parent.place(_CHILDREN))
    idle, asked = _actions(builder, parent, outcome.actions)
    if parent.is_going:
        gone = not pruned and not bound and not family.pending and idle
        if outcome.finalized and gone and all(each.ref in family.refs for each in owned if _is_ours(each, parent)):
            _engine_action(
                builder,
                parent,
                REMOVE_FINALIZER,
                "allow its deletion: its module has cleaned up",
                len(outcome.actions) + _ACTIONS,
            )
    settled = set(builder.settled)
    contentions = [
        each
        for ref in sorted(family.refs)
        for each in builder.inputs.memory.contentions.get(ref, ())
        if each not in settled
    ]
    said = (*outcome.conditions, *_awaiting(parent, asked))
    outcome = replace(outcome, conditions=said)
    _status(builder, parent, outcome, settled=not family.pending, trouble=family.trouble, contentions=contentions)


# --- children -----------------------------------------------------------------------------------


class _ChildrenPlan(Struct):
    """The children of one CR as they are planned, one after the other.

    *unsettled* says of each child what others must wait for, nothing where it is as it should be.
    """

    builder: PlanBuilder
    parent: Parent
    outcome: Outcome
    refs: set[ObjectRef] = field(default_factory=set)
    unsettled: dict[str, str] = field(default_factory=dict)
    pending: bool = False
    trouble: str = ""

    def may_have(self, child: Manifest) -> bool:
        """Tell whether a child is one of this CR's reach, and make a problem of one that isn't.

        A module's rights hold in all namespaces. Whoever writes a CR makes the module use them, and must not reach further by that
        than the CR's own namespace. Only a CR that is cluster-scoped has children beyond.
        """
        place, kind = self.parent.ref.namespace, self.builder.kinds.get(GroupVersionKind.of(child))
        asked = child["metadata"].get("namespace") or place
        why = ""
        if place and kind is not None and not kind.namespaced:
            why = "which is cluster-scoped; only a cluster-scoped custom resource may have such children"
        elif asked != place and place:
            why = f"in namespace {asked}, not in its custom resource's own"
        if why:
            ref = ObjectRef.of(child)
            fault(
                self.builder,
                self.parent,
                f"module {self.parent.module.name} wants {ref}, {why}",
                "it isn't written; the module must be fixed",
            )
            self._note(child, f"{ref}: {why}", trouble=True)
        return not why

    def add(self, child: Manifest) -> None:
        """Plan one child, and those of a child that is itself a CR."""
        builder, parent = self.builder, self.parent
        gvk, ref = GroupVersionKind.of(child), ObjectRef.of(child)
        kind, live = builder.kinds.get(gvk), builder.live(ref)
        self.refs.add(ref)
        if kind is None:
            hint = "install its CRD"
            fault(
                builder, parent, f"module {parent.module.name} wants {ref}, a kind that the cluster doesn't know", hint
            )
            self._note(child, f"{ref}: the cluster doesn't know its kind", trouble=True)
            return
        change = self._change(child, kind, ref, live)
        builder.add(change, parent.place(_CHILDREN))
        self._settle(child, change, live)
        module = builder.inputs.modules.by_kind.get(gvk)
        if module is not None and not change.gate.blocked and change.op is not Op.DELETE:
            after = change.after if change.after is not None else live
            reconcile(
                builder,
                Parent(
                    module,
                    kind,
                    ref,
                    after or child,
                    live,
                    parent.place(_CHILDREN),
                    parent.depth + 1,
                    change.gate.waits,
                ),
            )

    def _change(self, child: Manifest, kind: Kind, ref: ObjectRef, live: Manifest | None) -> Change:
        outcome, parent = self.outcome, self.parent
        if why := self.builder.inputs.lookups.unreadable.get(ref):
            return Change(ref, Op.UNCHANGED, kind, provenance=parent.wants, gate=unreadable(why))
        if live is not None and key_of(child) in outcome.untouched:
            return freed(self.builder, parent, ref, live) or Change(ref, Op.UNCHANGED, kind, provenance=parent.wants)
        change = self.builder.judge(ref, kind, child, live, rules=NO_RULES, provenance=parent.wants)
        if live is not None and (why := _not_ours(live, child, parent)):
            return replace(change, op=Op.UPDATE).gated(blocked=why)
        if change.op is Op.UPDATE and not change.unsure and ref.kind in outcome.recreated:
            stored = self.builder.inputs.live.stored(ref)
            change = self._deletion(stored) if stored else change
        if change.op is Op.UNCHANGED:
            return change
        before = (self.unsettled.get(key, "") for key in outcome.after.get(key_of(child), ()))
        return change.gated(waits=parent.waits or next((why for why in before if why), ""))

    def _deletion(self, stored: Stored) -> Change:
        parent = self.parent
        return self.builder.deletion(stored).attributed(owner=parent.ref, manager=parent.module.manager)

    def _settle(self, child: Manifest, change: Change, live: Manifest | None) -> None:
        if change.gate.blocked:
            self._note(child, f"{change.ref}: {change.gate.blocked}", trouble=True)
        elif change.gate.waits:
            self._note(child, f"{change.ref}, which itself waits")
        elif change.op is not Op.UNCHANGED and not change.unsure:
            self._note(child, f"{change.ref}, which must be {_PAST[change.op]} first")
        else:
            verdict = health(live)
            self.unsettled[key_of(child)] = "" if not verdict.status.holds_up else f"{change.ref} ({verdict})"

    def _note(self, child: Manifest, why: str, *, trouble: bool = False) -> None:
        self.unsettled[key_of(child)] = why
        self.pending = True
        if trouble and not self.trouble:
            self.trouble = why


_PAST = {Op.CREATE: "created", Op.UPDATE: "updated", Op.REPLACE: "replaced", Op.DELETE: "deleted"}


def _not_ours(live: Manifest, child: Manifest, parent: Parent) -> str:
    """Return why a live object that has a child's name may not be touched, or nothing."""
    controller = controller_of(live)
    if controller is not None:
        return "" if controller.get("uid") == parent.uid else _controlled_by(controller, parent)
    if labels_of(child).items() <= labels_of(live).items():
        return ""
    if any(entry.get("manager") == parent.module.manager for entry in live["metadata"].get("managedFields") or ()):
        return ""
    return f"it exists, but doesn't belong to {parent.ref}; delete it, or give it the label {MODULE_LABEL} and the other labels of this child"


def _controlled_by(controller: Manifest, parent: Parent) -> str:
    return f"it is controlled by {controller.get('kind')} {controller.get('name')}, not by {parent.ref}"


def _is_ours(each: Stored, parent: Parent) -> bool:
    return labels_of(each.manifest()).get(MODULE_LABEL) == parent.module.name


def _prune(
    builder: PlanBuilder,
    parent: Parent,
    owned: Sequence[Stored],
    wanted: Sequence[Manifest],
    graces: Mapping[str, int],
) -> Iterator[Stored]:
    """Delete children that the module made and no longer wants; yield them, and those that are going already."""
    asked = {ObjectRef.of(child) for child in wanted}
    for each in owned:
        if each.ref in asked or not _is_ours(each, parent):
            continue
        yield each
        manifest = each.manifest()
        if not manifest["metadata"].get("deletionTimestamp"):
            change = builder.deletion(each).attributed(owner=parent.ref, manager=parent.module.manager)
            change = change.gated(waits=parent.waits, grace_s=graces.get(key_of(manifest)))
            builder.add(change, parent.place(_CHILDREN))
            builder.cascade(each, parent.place(_CHILDREN))


# --- actions ------------------------------------------------------------------------------------


def _actions(builder: PlanBuilder, parent: Parent, actions: Sequence[Action]) -> tuple[bool, Action | None]:
    """Plan the actions that haven't run, each after the one before; tell whether there is none, and which waits for a person."""
    journal, waits = ActionJournal.of(parent.cr), parent.waits
    due = [action for action in actions if not journal.bars(action)]
    asked: Action | None = None
    for at, action in enumerate(due):
        held = not waits and not is_approved(action, parent.cr)
        _act(builder, parent, action, parent.place(_ACTIONS + at), held=held, waits=waits)
        if held:
            asked, waits = action, f"{action.key}, which needs approval"
    return not due, asked


def _awaiting(parent: Parent, asked: Action | None) -> Iterator[Condition]:
    """Yield the condition that says what a person has to approve, and how; where there was something, that it is no more."""
    ref = parent.ref
    if asked is not None:
        place = f" -n {ref.namespace}" if ref.namespace else ""
        how = f"kubectl reconcile approve {str(ref.group_kind).lower()}/{ref.name}{place}"
        yield Condition(AWAITING, "True", "ActionHeld", f"{asked.summary} ({asked.key}) waits for approval: {how}")
    elif parent.live is not None and has_condition(parent.live, AWAITING):
        yield Condition(AWAITING, "False", "NothingHeld")


def _engine_action(builder: PlanBuilder, parent: Parent, verb: str, summary: str, steps: int) -> None:
    _act(builder, parent, Action(verb, verb, summary), parent.place(steps), held=False, waits=parent.waits)


def _act(
    builder: PlanBuilder, parent: Parent, action: Action, place: tuple[int, ...], *, held: bool, waits: str
) -> None:
    builder.add(
        Change(
            ref_of(action, parent.ref),
            Op.ACT,
            parent.kind,
            action=action,
            provenance=parent.wants,
            gate=Gate(held=held, waits=waits),
        ),
        place,
    )


# --- status -------------------------------------------------------------------------------------


def _paused(builder: PlanBuilder, parent: Parent) -> None:
    """Say that the CR is paused; all else of its status stays."""
    paused = Condition("Paused", "True", "ByAnnotation", f"{PAUSED} is true; nothing is changed")
    _status(
        builder, parent, Outcome(status=kept_status(parent.live or {}), conditions=(paused,)), settled=False, trouble=""
    )


def _status(
    builder: PlanBuilder,
    parent: Parent,
    outcome: Outcome,
    *,
    settled: bool,
    trouble: str,
    contentions: Sequence[Contention] = (),
) -> None:
    """Plan the CR's status. Until its children are *settled* it doesn't claim to speak of the newest spec."""
    if outcome.requeue_after_s is not None:
        builder.outcomes.requeues_s.append(outcome.requeue_after_s)
    builder.outcomes.is_urgent |= outcome.urgent
    if parent.live is None or not parent.kind.has_status or parent.waits == BY_DAEMON:
        return
    before = mapping_of(parent.live.get("status"))
    newest = parent.live["metadata"].get("generation", 0)
    seen = number_of(before.get("observedGeneration")) or 0
    generation = newest if settled or outcome.keep_children else seen
    conditions = merge_conditions(
        before.get("conditions"),
        (*outcome.conditions, *_kept_by_engine(parent.live, outcome, trouble), *_contended(parent.live, contentions)),
        generation=generation,
        now=builder.inputs.now,
    )
    status = {**outcome.status, "observedGeneration": generation, "conditions": conditions}
    if status != before:
        gvk, ref = parent.kind.gvk, parent.ref
        metadata = {"name": ref.name} | ({"namespace": ref.namespace} if ref.namespace else {})
        body = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "status": status}
        builder.outcomes.statuses.append(
            StatusWrite(
                ref,
                parent.kind,
                body,
                parent.module.manager,
                parent.uid,
                is_first=not before,
                version=str(parent.live["metadata"].get("resourceVersion") or ""),
            )
        )


def _kept_by_engine(live: Manifest, outcome: Outcome, trouble: str) -> Iterator[Condition]:
    """Yield the conditions that the engine keeps, where there is or was a reason for them."""
    said = {condition.type for condition in outcome.conditions}
    if trouble and "Stalled" not in said:
        yield Condition("Stalled", "True", "ChildInTheWay", trouble)
    for type_ in ("Stalled", "Paused"):
        if type_ not in said and not (trouble and type_ == "Stalled") and has_condition(live, type_):
            yield Condition(type_, "False", "AsExpected")


def _contended(live: Manifest, contentions: Sequence[Contention]) -> Iterator[Condition]:
    """Yield the condition that names fields of children which are left to others, where some are or were."""
    if contentions:
        yield Condition(CONTENDED, "True", "BackedOff", "; ".join(map(str, contentions)))
    elif has_condition(live, CONTENDED):
        yield Condition(CONTENDED, "False", "AsExpected")
