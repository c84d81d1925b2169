"""What there is to say of each change of a plan, for whoever shows it: in which order, what happens, why, and the lines before and after.

Objects come in the order in which they are written, each followed by what modules make of it. Fields that only the server writes
(``status``, uid, versions) are left out, ``managedFields`` unless asked for, and the values of Secrets unless asked for.

Pure: plans in, words and lines out; the time is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.endings.updates import lets_go
from kubectl_reconcile.core.planning.outlook.origins import moved_chart, variables_of
from kubectl_reconcile.core.planning.outlook.rollouts import rollout_of
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.revisions import is_folder, is_packed
from kubectl_reconcile.core.scan.outlook import PlanScan
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.core.ssa.ownership import handover_of
from kubectl_reconcile.views.ages import age_of
from kubectl_reconcile.views.masking import masked
from kubectl_reconcile.views.text import Span, Tone
from kubectl_reconcile.views.yamltext import dump

_PATHS_SHOWN = 4
_SERVER_WRITES = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "deletionGracePeriodSeconds"}
)
_TONES = {
    Op.CREATE: Tone.ADDED,
    Op.UPDATE: Tone.WARNING,
    Op.REPLACE: Tone.WARNING,
    Op.DELETE: Tone.REMOVED,
    Op.ACT: Tone.WARNING,
}


class PlanView(Struct, frozen=True):
    """What of a plan to show. *now* is RFC 3339; ages count back from it. *scan* says which findings to show, if any."""

    now: str
    show_secrets: bool = False
    show_managed_fields: bool = False
    scan: PlanScan | None = None

    def of(self, change: Change) -> Change:
        """Return *change* as this view may show it."""
        return change if self.show_secrets else masked(change)


def in_order(plan: Plan) -> Iterator[tuple[Change, int]]:
    """Yield what a plan changes, each followed by what follows from it, with its depth."""
    shown = [change for change in plan.changes if change.op is not Op.UNCHANGED or change.gate.blocked]
    refs = {change.ref for change in shown}
    below: dict[ObjectRef, list[Change]] = {}
    for change in shown:
        if (
            change.provenance.owner is not None
            and change.provenance.owner in refs
            and change.provenance.owner != change.ref
        ):
            below.setdefault(change.provenance.owner, []).append(change)
    under = {id(change) for changes in below.values() for change in changes}
    yield from _tree((change for change in shown if id(change) not in under), below, 0)
    for changes in tuple(below.values()):  # owners that own each other: odd, but nothing may go unseen
        yield from ((change, 1) for change in changes)


def _tree(changes: Iterable[Change], below: dict[ObjectRef, list[Change]], depth: int) -> Iterator[tuple[Change, int]]:
    for change in changes:
        yield change, depth
        yield from _tree(below.pop(change.ref, ()), below, depth + 1)


def sides(change: Change, view: PlanView) -> tuple[list[str], list[str]]:
    """Return the lines of an object before and after; none of one that stays as it is."""
    if change.op is Op.UNCHANGED:
        return [], []
    return yaml_of(change.before, view), yaml_of(change.after, view)


def is_worktree(plan: Plan) -> bool:
    """Tell whether a plan is made from a folder."""
    return is_folder(plan.revision)


def origin_of(plan: Plan) -> str:
    """Return what a plan is made from, in a word: ``file``, ``git``, or ``source`` where that is neither."""
    return "file" if is_worktree(plan) else "source" if is_packed(plan.revision) else "git"


def yaml_of(manifest: Manifest | None, view: PlanView) -> list[str]:
    """Return the lines of an object that a diff compares; none where there is no object."""
    return [] if manifest is None else dump(without_noise(manifest, view))


def without_noise(manifest: Manifest, view: PlanView) -> dict[str, Any]:
    """Return an object without the fields that only the server writes."""
    metadata = manifest.get("metadata")
    tree = {key: value for key, value in manifest.items() if key != "status"}
    if isinstance(metadata, Mapping):
        hidden = _SERVER_WRITES if view.show_managed_fields else _SERVER_WRITES | {"managedFields"}
        tree["metadata"] = {key: value for key, value in metadata.items() if key not in hidden}
    return tree


def verdict(change: Change) -> Span:
    """Return in a word what happens to an object."""
    word = (
        "blocked"
        if change.gate.blocked
        else "refused"
        if change.gate.denied
        else "held"
        if change.gate.held
        else "waits"
        if change.gate.waits
        else change.op.value
    )
    return Span(word, Tone.BAD if change.gate.blocked or change.gate.denied else _TONES.get(change.op, Tone.PLAIN))


def reason(change: Change, plan: Plan, view: PlanView) -> str:
    """Return on one line why an object changes."""
    if change.gate.cascade:
        return f"along with {change.provenance.owner}"
    return "; ".join(text for text, _ in notes_on(change, plan, view.now) if not text.startswith(("by ", "held")))


def counts_of(plan: Plan) -> Counter[str]:
    """Count changes by what happens to them; those that don't count as ``held``, ``blocked`` or ``refused`` alone."""
    return Counter(_what_happens(change) for change in plan.changes)


def _what_happens(change: Change) -> str:
    gate = change.gate
    return "blocked" if gate.blocked else "refused" if gate.denied else "held" if gate.held else change.op


# --- why --------------------------------------------------------------------------------------------------------------

_Note = tuple[str, Tone]


def notes_on(change: Change, plan: Plan, now: str) -> Iterator[_Note]:
    """Yield what there is to say of a change besides its lines: who wants it, why, and what stands in its way."""
    yield from _in_the_way(change)
    yield from ((text, Tone.WARNING) for text in plan.remarks.get(change.ref, ()))
    if module := change.module:
        yield f"by {module} for {change.provenance.owner}", Tone.ASIDE
    if change.op is Op.REPLACE:
        yield _why_recreated(change), Tone.WARNING
    if rollout := rollout_of(change):
        yield rollout, Tone.WARNING
    if change.unsure:
        yield "the server may find nothing to change", Tone.ASIDE
    if change.op in {Op.UPDATE, Op.REPLACE}:
        yield from ((text, Tone.ASIDE) for text in _reasons(change, plan, now))
    yield from ((text, Tone.ASIDE) for text in (*moved_chart(change), *variables_of(change)))
    if change.op is Op.UPDATE:
        yield from ((text, Tone.ASIDE) for text in _handed_over(change))
    yield from ((text, Tone.WARNING) for text in _conflicts(change))


def _why_recreated(change: Change) -> str:
    if lets_go(change):
        return "let go and recreated: somebody has deleted it, and its finalizer is no longer asked for"
    return "deleted and recreated, because a changed field is immutable"


_DONE: Final = {Op.ACT: "run", Op.DELETE: "deleted", Op.REPLACE: "replaced", Op.UPDATE: "updated"}


def _in_the_way(change: Change) -> Iterator[_Note]:
    if change.gate.blocked:
        yield f"blocked: {change.gate.blocked}", Tone.BAD
    if change.gate.denied:
        yield f"would be refused: {change.gate.denied}", Tone.BAD
    if change.action:
        yield change.action.summary, Tone.WARNING
    if change.gate.held:
        yield f"held: not {_DONE.get(change.op, 'done')} until somebody approves", Tone.WARNING
    if change.gate.waits:
        yield f"waits for {change.gate.waits}", Tone.ASIDE
    if (foreign := change.provenance.foreign) and not change.gate.blocked:
        yield f"belongs to {foreign}, and only that Sync writes it (--name previews it as that Sync)", Tone.WARNING


def _reasons(change: Change, plan: Plan, now: str) -> Iterator[str]:
    """Yield one sentence for each reason: drift first, because it is news."""
    by_why: dict[str, list[FieldChange]] = {}
    for field in sorted(change.fields, key=lambda field: (field.reason is Reason.GIT, field.reason)):
        by_why.setdefault(_why(field, change, plan, now), []).append(field)
    for why, fields in by_why.items():
        yield f"{first_few((field.path for field in fields), _PATHS_SHOWN)} {why}"


def _handed_over(change: Change) -> Iterator[str]:
    """Yield whose fields become ours; where no value changes, also which fields change hands, for else nothing would say why."""
    if change.before is None or change.intent is None or change.kind is None:
        return
    try:
        manager, schema = change.provenance.manager, change.kind.schema
        handed = handover_of(change.before, change.intent, schema, manager, change.takeover)
    except (ValueError, KeyError, TypeError, AttributeError):  # what live says of its owners is anybody's
        yield "its owners change"
        return
    if handed.taken_from:
        yield f"takes over what {', '.join(handed.taken_from)} owned"
    elif not change.fields and not change.conflicts and not change.unsure:
        if handed.gained:
            yield f"{first_few(handed.gained, _PATHS_SHOWN)} become ours, with the same value"
        if handed.given_up:
            yield f"{first_few(handed.given_up, _PATHS_SHOWN)} are no longer ours, and still belong to others"
        if not handed.gained and not handed.given_up:
            yield "only the owners of its fields change"


def _why(field: FieldChange, change: Change, plan: Plan, now: str) -> str:
    module = change.module
    origin = {"git": "Git"}.get(origin_of(plan)) or f"the {origin_of(plan)}"
    place = f"Git ({commit_of(field)})" if field.commit else origin
    source = f"wanted by {module}" if module else f"changed in {place}"
    who = " ".join(part for part in (field.manager, age_of(field.time, now)) if part)
    drift = f"drifted in the cluster{f' ({who})' if who else ''}"
    match field.reason:
        case Reason.DRIFT:
            return drift
        case Reason.BOTH:
            return f"{source}, and {drift}"
        case Reason.ADOPT:
            return f"taken over{f' from {field.manager}' if field.manager else ''}"
        case _:
            return source


def commit_of(field: FieldChange) -> str:
    """Return the commit that asks for a field, and its author; empty where that isn't known."""
    return f"{field.commit[:7]} by {field.author}" if field.author else field.commit[:7]


def _conflicts(change: Change) -> Iterator[str]:
    taken = {field.path for field in change.fields}
    told = {(field.path, field.manager) for field in change.fields if field.reason in {Reason.DRIFT, Reason.BOTH}}
    news = (conflict for conflict in change.conflicts if (conflict.path, conflict.manager) not in told)
    ordered = sorted(news, key=lambda conflict: (conflict.manager, conflict.path not in taken))
    for (manager, left), group in groupby(ordered, lambda conflict: (conflict.manager, conflict.path not in taken)):
        paths = first_few((conflict.path for conflict in group), _PATHS_SHOWN)
        yield f"{paths} {'left to' if left else 'overrides'} {manager}"
