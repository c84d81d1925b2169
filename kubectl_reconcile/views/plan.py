"""A plan as a document: versioned, unchanged objects counted and not listed.

Structural deltas take a library that is slow to import: import this page only where a document is asked for.

Pure: plans in, documents out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from deepdiff import DeepDiff
from msgspec import UNSET, Meta, UnsetType

from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.objects import API_GROUP, Manifest
from kubectl_reconcile.core.planning.outlook.rollouts import rollout_of
from kubectl_reconcile.core.planning.plan import Change, Nested, Op, Plan, fingerprint
from kubectl_reconcile.core.rendering.uses import names_at
from kubectl_reconcile.core.scan.outlook import PlannedFinding, PlanScan
from kubectl_reconcile.core.ssa.csa_upgrade import taken_from
from kubectl_reconcile.core.ssa.merge import FieldChange, FieldConflict
from kubectl_reconcile.views.changes import PlanView, counts_of, in_order, without_noise
from kubectl_reconcile.views.document import Count, Document, ObjectName, SyncName, about, among, given

_FINGERPRINT = "Digest of this change: from which state to which."
_BEFORE = "The live object; null if it doesn't exist. Values of Secrets are masked."
_AFTER = "The object as it will be; null if it is deleted."
_Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class PlanPart(Document, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A part of a plan, to which later versions may add fields."""


class ProblemDocument(PlanPart, frozen=True, kw_only=True):
    """What is wrong in the source, or with an object."""

    path: Annotated[str, about("The file; empty where there is none.")]
    line: Annotated[int, about("The line in it, from 1; 0 where none is known.")]
    severity: Annotated[str, among(("error", "warning"), "A warning doesn't stop anything.")]
    message: Annotated[str, about("What is wrong.")]
    hint: Annotated[str, about("What to do about it; empty where nothing is known.")]


class ObservedDocument(PlanPart, frozen=True, kw_only=True):
    """What a module observed for a custom resource of the plan."""

    object: Annotated[ObjectName, about("The custom resource.")]
    facts: Annotated[Mapping[str, Any], about("Without secrets; empty where nothing could be observed.")]
    error: Annotated[str, about("Why nothing could be observed, else empty.")]
    as_of: Annotated[str | UnsetType, about("If pods couldn't be reached: when the daemon recorded these facts.")] = (
        UNSET
    )


class UnwellDocument(PlanPart, frozen=True, kw_only=True):
    """An object that isn't healthy before the sync."""

    object: Annotated[ObjectName, about("The object.")]
    health: Annotated[str, among((each.value for each in HealthStatus), "The verdict, in the words of kstatus.")]
    message: Annotated[str, about("The reason for the verdict.")]


class HoldDocument(PlanPart, frozen=True, kw_only=True):
    """What waits for approval."""

    reason: Annotated[str, about("Which limit or rule holds them, in one word.")]
    message: Annotated[str, about("The same as a sentence.")]
    objects: Annotated[list[ObjectName], about("The objects that are held.")]
    along: Annotated[list[ObjectName], about("Objects that are deleted along with them.")]
    asked: Annotated[list[ObjectName] | UnsetType, about("Objects among these that the source still asks for.")] = UNSET


class FindingDocument(Document, frozen=True, kw_only=True):
    """A weakness that a scan finds."""

    object: Annotated[ObjectName, about("The object that has the weakness.")]
    check: Annotated[str, about("Which check found it.")]
    severity: Annotated[str, among(("high", "medium", "low"), "How serious it is.")]
    path: Annotated[str, about('The field: `.spec.containers[name="web"].image`.')]
    message: Annotated[str, about("What the field must be.")]
    place: Annotated[str | UnsetType, about("Where the field comes from: file:line, or the name of a module.")] = UNSET


class ScanDocument(PlanPart, frozen=True, kw_only=True):
    """Security findings that the changes add, and those that they fix."""

    profile: Annotated[str, among(("baseline", "restricted"), "How strict the scan is.")]
    checkups: Annotated[
        list[str] | UnsetType,
        about("The Checkups that were asked, each with its namespace; the profile is the strictest of theirs."),
    ] = UNSET
    new: Annotated[list[FindingDocument], about("Findings that the changes add.")]
    fixed: Annotated[list[FindingDocument], about("Findings that the changes fix.")]


class ConflictDocument(PlanPart, frozen=True, kw_only=True):
    """A field that another manager owns, with another value."""

    path: Annotated[str, about("The field.")]
    manager: Annotated[str, about("Its owner.")]
    live: Annotated[Any, about("Its value in the cluster.")]
    desired: Annotated[Any, about("What is asked for.")]


class ActionDocument(PlanPart, frozen=True, kw_only=True):
    """What a module wants done outside of the cluster's objects."""

    key: Annotated[str, about("What approves it.")]
    verb: Annotated[str, about("What it does, in a word.")]
    summary: Annotated[str, about("What it does, in words.")]
    parameters: Annotated[Any, about("What it is done with.")]
    precondition: Annotated[Any, about("What must be so when it is done.")]
    needs_approval: Annotated[bool, about("It waits for a person.")]


class ChangedFieldDocument(PlanPart, frozen=True, kw_only=True):
    """A field that changes, and why."""

    variables: Annotated[list[str] | UnsetType, about("Names of the variables whose values are in the field.")] = UNSET
    path: Annotated[str, about("The field: `.spec.replicas`.")]
    op: Annotated[str, among(("add", "replace", "remove"), "What happens to it.")]
    reason: Annotated[
        str,
        among(
            ("git", "drift", "both", "adopt"),
            "Changed in Git, in the cluster, in both, or part of an object that is adopted.",
        ),
    ]
    before: Annotated[Any, about("Its value now.")] = UNSET
    after: Annotated[Any, about("Its value then.")] = UNSET
    manager: Annotated[str | UnsetType, about("The field manager that changed it in the cluster.")] = UNSET
    time: Annotated[str | UnsetType, about("When it did.")] = UNSET
    commit: Annotated[str | UnsetType, about("The commit that changed it in Git.")] = UNSET
    author: Annotated[str | UnsetType, about("The author of the commit.")] = UNSET
    origin: Annotated[str | UnsetType, about("What rendered it.")] = UNSET


class ChangeDocument(PlanPart, frozen=True, kw_only=True):
    """What happens to one object."""

    op: Annotated[
        str, among((each.value for each in Op), "What happens to the object; `act` is an action of a module.")
    ]
    object: Annotated[ObjectName, about("The object.")]
    fingerprint: Annotated[_Digest | UnsetType, about(_FINGERPRINT)] = UNSET
    api_version: Annotated[str | UnsetType, about("The version that it is written in.")] = UNSET
    owner: Annotated[ObjectName | UnsetType, about("The custom resource whose module wants the object.")] = UNSET
    module: Annotated[str | UnsetType, about("The module that wants it.")] = UNSET
    file: Annotated[str | UnsetType, about("The file that it comes from.")] = UNSET
    line: Annotated[int | UnsetType, about("The line in it, from 1.")] = UNSET
    wave: Annotated[Count | UnsetType, about("Objects of one wave are written together.")] = UNSET
    hook: Annotated[
        str | UnsetType, among(("pre-sync", "post-sync", "sync-fail"), "When it runs, if it is a hook.")
    ] = UNSET
    fields: Annotated[Sequence[ChangedFieldDocument] | UnsetType, about("The fields that change, and why.")] = UNSET
    variables: Annotated[list[str] | UnsetType, about("Names of all variables whose values are in the object.")] = UNSET
    conflicts: Annotated[
        list[ConflictDocument] | UnsetType, about("Fields that another manager owns, with another value.")
    ] = UNSET
    taken_over_from: Annotated[list[str] | UnsetType, about("The field managers whose fields become ours.")] = UNSET
    before: Annotated[Mapping[str, Any] | UnsetType | None, about(_BEFORE)] = UNSET
    after: Annotated[Mapping[str, Any] | UnsetType | None, about(_AFTER)] = UNSET
    delta: Annotated[
        Mapping[str, Any] | UnsetType,
        about("The difference between before and after, as DeepDiff writes it; values of Secrets are masked."),
    ] = UNSET
    rollout: Annotated[
        str | UnsetType,
        about("What happens to running pods: how many are replaced, and how many may be unavailable meanwhile."),
    ] = UNSET
    unsure: Annotated[bool | UnsetType, about("The server may find nothing to change.")] = UNSET
    cascade: Annotated[bool | UnsetType, about("It is deleted along with its owner.")] = UNSET
    waits: Annotated[str | UnsetType, about("What must be healthy first.")] = UNSET
    action: Annotated[ActionDocument | UnsetType, about("What is done, of an action.")] = UNSET
    held: Annotated[bool | UnsetType, about("A person must approve it first.")] = UNSET
    belongs_to: Annotated[str | UnsetType, about("Another Sync or ApplySet that the object belongs to.")] = UNSET
    blocked: Annotated[str | UnsetType, about("Why it can't be done. A sync leaves it out.")] = UNSET
    denied: Annotated[
        str | UnsetType,
        about(
            "Which right the Sync's account lacks to do it, as far as whoever previewed may ask; the hash doesn't cover it."
        ),
    ] = UNSET
    remarks: Annotated[
        list[str] | UnsetType,
        about(
            "In a nested plan: that the server hasn't checked it, or that values of somebody else's object aren't shown."
        ),
    ] = UNSET


class WholeChangeDocument(ChangeDocument, frozen=True, kw_only=True):
    """What happens to one object, and what it is before and after."""

    fingerprint: Annotated[_Digest, about(_FINGERPRINT)]
    before: Annotated[Mapping[str, Any] | None, about(_BEFORE)]
    after: Annotated[Mapping[str, Any] | None, about(_AFTER)]


class PlanDocument(PlanPart, frozen=True, kw_only=True):
    """What a sync would do."""

    api_version: Literal["reconcile.dev/v1alpha1"]
    kind: Literal["Plan"]
    sync: Annotated[SyncName | None, about("The Sync that the objects belong to; null for a preview outside any Sync.")]
    revision: Annotated[str, about("The commit, or `worktree-` and a digest for a folder.")]
    base: Annotated[
        str | UnsetType, about("With --base: the commit that it is compared with, instead of the cluster.")
    ] = UNSET
    hash: Annotated[_Digest, about("Covers the Sync, the revision and all changes, hidden values included.")]
    confirmed: Annotated[bool, about("Whether the server tried every change by a dry run.")]
    partial: Annotated[bool, about("Whether only some objects were selected, so that there may be other changes.")]
    approval: Annotated[str, about("The hash that approves the held changes; empty if nothing is held.")]
    summary: Annotated[dict[str, Count], about("How many objects, by what happens to them.")]
    changes: Annotated[
        Sequence[ChangeDocument],
        about("In the order in which they are carried out. Unchanged objects aren't listed."),
    ]
    problems: Annotated[list[ProblemDocument], about("What is wrong in the source, or with an object.")]
    observed: Annotated[
        list[ObservedDocument],
        about("What modules observed outside of the cluster's objects, for the custom resources of the plan."),
    ]
    unhealthy: Annotated[
        list[UnwellDocument],
        about("Objects that aren't healthy before the sync, and why. The hash doesn't cover them."),
    ]
    holds: Annotated[
        list[HoldDocument], about("Deletions, replacements, updates that delete, and actions that wait for approval.")
    ]
    scan: Annotated[
        ScanDocument | UnsetType,
        about(
            "With --scan, or with a Checkup in a namespace that changes: the security findings that the changes add, and those that they fix."
        ),
    ] = UNSET


class WholePlanDocument(PlanDocument, frozen=True, kw_only=True):
    """What a sync would do, with the objects before and after."""

    changes: Annotated[
        Sequence[WholeChangeDocument],
        about("In the order in which they are carried out. Unchanged objects aren't listed."),
    ]


class NestedDocument(PlanPart, frozen=True, kw_only=True):
    """A Sync that a plan creates, changes or removes, and what it would do then."""

    sync: Annotated[SyncName, about("The Sync.")]
    above: Annotated[list[SyncName], about("The nested Syncs that contain it, from the top down.")]
    op: Annotated[
        str, among(("create", "update", "replace", "delete", "unchanged"), "What happens to the Sync itself.")
    ]
    why: Annotated[list[str], about("What of it changes: `chart web 1.2.3 → 1.3.0`, `spec.source.path`.")]
    not_planned: Annotated[str | UnsetType, about("Why there is no plan; of one that goes: what goes with it.")] = UNSET


class WholeNestedDocument(NestedDocument, frozen=True, kw_only=True):
    """A Sync that a plan creates, changes or removes, and its own plan under its new spec."""

    plan: Annotated[WholePlanDocument | UnsetType, about("Its own plan, made as its account.")] = UNSET


class PlanFileDocument(WholePlanDocument, frozen=True, kw_only=True):
    """What a sync would do, as written by `kubectl reconcile diff -o json` and read by `kubectl reconcile sync --plan`."""

    nested: Annotated[
        list[WholeNestedDocument] | UnsetType,
        about("The plans of Syncs that change, each followed by those nested in it. The hash covers them."),
    ] = UNSET


def document(plan: Plan, view: PlanView) -> PlanFileDocument:
    """Return a plan, versioned, with those that are nested in it. Unchanged objects are counted, not listed."""
    nested = [WholeNestedDocument(plan=_whole(each.plan, view), **nested_head_of(each)) for each in plan.nested]
    return PlanFileDocument(changes=list(changes_of(plan, view)), nested=given(nested), **head_of(plan, view))


def _whole(plan: Plan | None, view: PlanView) -> WholePlanDocument | UnsetType:
    if plan is None:
        return UNSET
    return WholePlanDocument(changes=list(changes_of(plan, view)), **head_of(plan, view))


def nested_head_of(each: Nested) -> dict[str, Any]:
    """Return the fields of the document of a nested Sync besides its plan."""
    return {
        "sync": SyncName.of(each.sync),
        "above": list(map(SyncName.of, each.above)),
        "op": each.op.value,
        "why": list(each.why),
        "not_planned": given(each.not_planned),
    }


def changes_of(plan: Plan, view: PlanView) -> Iterator[WholeChangeDocument]:
    """Yield what happens to each object that changes, in the order in which it is shown."""
    return (
        _change(view.of(change), view, fingerprint(change), plan.remarks.get(change.ref, ()))
        for change, _ in in_order(plan)
    )


def head_of(plan: Plan, view: PlanView) -> dict[str, Any]:
    """Return the fields of a plan's document besides its changes."""
    return {
        "api_version": f"{API_GROUP}/v1alpha1",
        "kind": "Plan",
        "sync": SyncName.of(plan.sync),
        "revision": plan.revision,
        "base": given(plan.base),
        "hash": plan.hash,
        "confirmed": plan.confirmed,
        "partial": plan.partial,
        "approval": plan.approval,
        "summary": {str(what): count for what, count in sorted(counts_of(plan).items())},
        "problems": [
            ProblemDocument(
                path=one.path, line=one.line, severity=one.severity.value, message=one.message, hint=one.hint
            )
            for one in plan.problems
        ],
        "observed": [
            ObservedDocument(object=ObjectName.of(ref), facts=seen.facts, error=seen.error, as_of=given(seen.as_of))
            for ref, seen in sorted(plan.outcomes.observed.items())
        ],
        "unhealthy": [
            UnwellDocument(object=ObjectName.of(one.ref), health=one.health.status.value, message=one.health.message)
            for one in plan.unhealthy
        ],
        "holds": [
            HoldDocument(
                reason=hold.reason,
                message=hold.message,
                objects=list(map(ObjectName.of, hold.refs)),
                along=list(map(ObjectName.of, hold.along)),
                asked=given(list(map(ObjectName.of, hold.asked))),
            )
            for hold in plan.holds
        ],
        "scan": scan_of(plan, view.scan) if view.scan else UNSET,
    }


def scan_of(plan: Plan, scan: PlanScan) -> ScanDocument:
    """Return what *plan* adds to a scan and what it fixes."""
    found, scope = scan.outlook(plan.changes), scan.scope
    return ScanDocument(
        profile=scope.strictest.value,
        checkups=given(scope.names),
        new=[_finding(each) for each in found.new],
        fixed=[_finding(each) for each in found.fixed],
    )


def _finding(each: PlannedFinding) -> FindingDocument:
    finding = each.finding
    return FindingDocument(
        object=ObjectName.of(finding.ref),
        check=finding.check,
        severity=finding.severity.value,
        path=finding.path,
        message=finding.demand,
        place=given(each.place),
    )


def _change(change: Change, view: PlanView, digest: str, remarks: Sequence[str]) -> WholeChangeDocument:
    gate, source = change.gate, change.provenance
    return WholeChangeDocument(
        op=change.op.value,
        object=ObjectName.of(change.ref),
        fingerprint=digest,
        api_version=given(change.kind.gvk.api_version if change.kind else ""),
        owner=UNSET if source.owner is None else ObjectName.of(source.owner),
        module=given(change.module),
        file=given(source.file),
        line=given(max(source.line, 0)),
        wave=given(gate.wave),
        hook=given(gate.hook),
        fields=given([_field(field, change) for field in change.fields]),
        variables=given(sorted({name for use in source.uses for name in use.names})),
        conflicts=given([_conflict(conflict) for conflict in change.conflicts]),
        taken_over_from=given(list(taken_from(change.before or {"metadata": {}}, change.takeover))),
        before=None if change.before is None else _tidy(change.before, view),
        after=None if change.after is None else _tidy(change.after, view),
        delta=given(_delta(change, view)),
        rollout=given(rollout_of(change)),
        unsure=given(change.unsure),
        cascade=given(gate.cascade),
        waits=given(gate.waits),
        action=_action(change),
        held=given(gate.held),
        belongs_to=given(source.foreign),
        blocked=given(gate.blocked),
        denied=given(gate.denied),
        remarks=given(list(remarks)),
    )


def _delta(change: Change, view: PlanView) -> dict[str, Any]:
    """Return what is structurally different between before and after, as DeepDiff spells it."""
    if change.before is None or change.after is None or change.op is Op.UNCHANGED:
        return {}
    before, after = without_noise(change.before, view), without_noise(change.after, view)
    found: dict[str, Any] = json.loads(DeepDiff(before, after, verbose_level=2).to_json())
    return found


def _action(change: Change) -> ActionDocument | UnsetType:
    action = change.action
    if action is None:
        return UNSET
    return ActionDocument(
        key=action.key,
        verb=action.verb,
        summary=action.summary,
        parameters=action.parameters,
        precondition=action.precondition,
        needs_approval=action.needs_approval,
    )


def _tidy(manifest: Manifest, view: PlanView) -> Manifest:
    if view.show_managed_fields or not isinstance(manifest.get("metadata"), Mapping):
        return manifest
    return {
        **manifest,
        "metadata": {key: value for key, value in manifest["metadata"].items() if key != "managedFields"},
    }


def _field(field: FieldChange, change: Change) -> ChangedFieldDocument:
    tree = change.after if change.after is not None else change.intent
    return ChangedFieldDocument(
        variables=given(list(names_at(change.provenance.uses, field.path, tree))),
        path=str(field.path),
        op=str(field.op),
        reason=field.reason.value,
        before=_said(field.before),
        after=_said(field.after),
        manager=given(field.manager),
        time=given(field.time),
        commit=given(field.commit),
        author=given(field.author),
        origin=given(field.origin),
    )


def _said(value: Any) -> Any:
    return UNSET if value is None or value == "" else value


def _conflict(conflict: FieldConflict) -> ConflictDocument:
    return ConflictDocument(
        path=str(conflict.path), manager=conflict.manager, live=conflict.live, desired=conflict.desired
    )
