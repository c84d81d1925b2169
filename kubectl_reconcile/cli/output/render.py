"""A plan as people and programs read it: unified diffs, one line a change, names, JSON.

Objects come in the order in which they are written, each followed by what modules make of it. An object
that stays as it is costs a count and nothing else, so ten thousand of them show at once.

What a diff leaves out: fields that only the server writes (``status``, uid, versions), ``managedFields``
unless asked for, and the values of Secrets unless asked for.

Pure: plans in, lines out; the time is an argument. Lines are made safe where they are written.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import shorten
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.cli.output.ages import age_of
from kubectl_reconcile.cli.output.data.yamltext import dump
from kubectl_reconcile.cli.output.masking import masked
from kubectl_reconcile.cli.output.terminal import Line, Span, Tone, line
from kubectl_reconcile.core.apply import causes
from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.objects import Manifest, ObjectRef, place_of, warnings_among
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.endings.updates import lets_go
from kubectl_reconcile.core.planning.outlook.charts import moved_chart
from kubectl_reconcile.core.planning.outlook.rollouts import rollout_of
from kubectl_reconcile.core.planning.outlook.variables import variables_of
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.scan.outlook import PlanScan
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.core.ssa.ownership import handover_of

_CONTEXT = 3
_PATHS_SHOWN = 4
_REFS_SHOWN = 10
_EXACT_LINES = 5000
_LONGEST_REASON = 240
_SERVER_WRITES = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "deletionGracePeriodSeconds"}
)
_TO = {
    Op.CREATE: "to create",
    Op.UPDATE: "to update",
    Op.REPLACE: "to replace",
    Op.DELETE: "to delete",
    Op.ACT: "to act on",
}
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


# --- the diff ---------------------------------------------------------------------------------------------------------


def diff(plan: Plan, view: PlanView) -> Iterator[Line]:
    """Yield a unified diff of every object that changes."""
    for change, _ in in_order(plan):
        yield from _one(view.of(change), plan, view)


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


def _one(change: Change, plan: Plan, view: PlanView) -> Iterator[Line]:
    if change.gate.cascade:
        yield line(f"# {change.ref}: deleted along with {change.provenance.owner}", Tone.ASIDE)
        return
    notes = list(notes_on(change, plan, view.now))
    hunks = list(hunks_of(*sides(change, view)))
    if not hunks and not notes:
        notes = [("only fields that aren't shown here differ", Tone.ASIDE)]
    name = "" if hunks else f"{change.ref}: "  # what heads the hunks names it anyway
    yield from (line(f"# {name}{text}", tone) for text, tone in notes)
    if hunks:
        old, new = labels(change, plan)
        yield line(f"--- {old}", Tone.TITLE)
        yield line(f"+++ {new}", Tone.TITLE)
        yield from hunks


def sides(change: Change, view: PlanView) -> tuple[list[str], list[str]]:
    """Return the lines of an object before and after; none of one that stays as it is."""
    if change.op is Op.UNCHANGED:
        return [], []
    return yaml_of(change.before, view), yaml_of(change.after, view)


def labels(change: Change, plan: Plan) -> tuple[str, str]:
    """Return what to call the old and the new state of a change."""
    module = change.module
    origin = module or ("file" if is_worktree(plan) else "git")
    where = f" ({_where(change, plan)})" if change.provenance.file and change.op is not Op.DELETE else ""
    old = "/dev/null" if change.before is None else f"live/{change.ref}"
    new = "/dev/null" if change.after is None else f"{origin}/{change.ref}{where}"
    return old, new


def _where(change: Change, plan: Plan) -> str:
    place = place_of(change.provenance.file, change.provenance.line)
    return place if is_worktree(plan) or not plan.revision else f"{place}, {plan.revision[:7]}"


def is_worktree(plan: Plan) -> bool:
    """Tell whether a plan is made from a folder."""
    return plan.revision.startswith("worktree")


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


# --- why --------------------------------------------------------------------------------------------------------------

_Note = tuple[str, Tone]


def notes_on(change: Change, plan: Plan, now: str) -> Iterator[_Note]:
    """Yield what there is to say of a change besides its lines: who wants it, why, and what stands in its way."""
    yield from _in_the_way(change)
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
    place = "the file" if is_worktree(plan) else f"Git ({commit_of(field)})" if field.commit else "Git"
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


# --- unified hunks ----------------------------------------------------------------------------------------------------


def hunks_of(old: list[str], new: list[str]) -> Iterator[Line]:
    """Yield the hunks that turn *old* into *new*.

    Where both begin and end alike isn't looked at twice: long objects mostly differ in one place.
    """
    if old == new:
        return
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    start, stop = max(head - _CONTEXT, 0), max(tail - _CONTEXT, 0)
    a, b = old[start : len(old) - stop], new[start : len(new) - stop]
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=len(a) + len(b) > _EXACT_LINES)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        yield line(f"@@ -{_range(first[1], last[2], start)} +{_range(first[3], last[4], start)} @@", Tone.PLACE)
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from (line(f" {text}") for text in a[i:j])
            else:
                yield from (line(f"-{text}", Tone.REMOVED) for text in a[i:j])
                yield from (line(f"+{text}", Tone.ADDED) for text in b[k:m])


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _range(start: int, stop: int, offset: int) -> str:
    length = stop - start
    beginning = start + offset + (1 if length else 0)
    return str(beginning) if length == 1 else f"{beginning},{length}"


# --- shorter forms ----------------------------------------------------------------------------------------------------


def overview(plan: Plan, view: PlanView) -> Iterator[Line]:
    """Yield one line for each object that changes: what, which, and why in brief."""
    for change, depth in in_order(plan):
        yield from _overview_line(change, depth, plan, view)


def _overview_line(change: Change, depth: int, plan: Plan, view: PlanView) -> Iterator[Line]:
    word, why = verdict(change), reason(change, plan, view)
    head = (Span(f"{word.text:<8}", word.tone), Span(f"{'  ' * depth}{change.ref}"))
    yield (*head, Span(f"  {why}", Tone.ASIDE)) if why else head


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


def names(plan: Plan) -> Iterator[Line]:
    """Yield what changes, as kubectl's ``-o name`` writes it: ``deployment.apps/web``."""
    return (line(name_of(change.ref)) for change, _ in in_order(plan))


def name_of(ref: ObjectRef) -> str:
    """Return a reference as kubectl's ``-o name`` writes it."""
    return f"{str(ref.group_kind).lower()}/{ref.name}"


def summary(plan: Plan) -> Line:
    """Return the count of everything: ``3 to create, 1 to update, 996 unchanged``."""
    counts = counts_of(plan)
    pending = [f"{counts[op]} {words}" for op, words in _TO.items() if counts[op]]
    extras = [f"{counts[word]} {word}" for word in ("held", "blocked", "refused") if counts[word]]
    problems = _counted(len(plan.errors), "problem") if plan.errors else ""
    warned = len(plan.problems) - len(plan.errors)
    left = sum(change.provenance.left for change in plan.changes)
    parts = [
        *(pending or ([] if extras or problems else ["no changes"])),
        *extras,
        f"{counts[Op.UNCHANGED]} unchanged",
        f"{_counted(left, 'field')} left to others (spec.ignore)" if left else "",
        problems,
        _counted(warned, "warning") if warned else "",
        f"{len(plan.unhealthy)} unhealthy" if plan.unhealthy else "",
    ]
    bad, text = counts["blocked"] or counts["refused"] or problems, ", ".join(filter(None, parts))
    return line(text, Tone.BAD if bad else Tone.WARNING if pending or extras or plan.unhealthy else Tone.GOOD)


def counts_of(plan: Plan) -> Counter[str]:
    """Count changes by what happens to them; those that don't count as ``held``, ``blocked`` or ``refused`` alone."""
    return Counter(_what_happens(change) for change in plan.changes)


def _what_happens(change: Change) -> str:
    gate = change.gate
    return "blocked" if gate.blocked else "refused" if gate.denied else "held" if gate.held else change.op


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def unhealthy(plan: Plan) -> Iterator[Line]:
    """Yield which objects aren't well before the sync, and why."""
    for one in plan.unhealthy[:_REFS_SHOWN]:
        yield line(f"unhealthy now: {shorten(str(one), _LONGEST_REASON, placeholder=' …')}", Tone.WARNING)
    if (more := len(plan.unhealthy) - _REFS_SHOWN) > 0:
        yield line(f"unhealthy now: {more} more", Tone.WARNING)


# --- what stands in the way -------------------------------------------------------------------------------------------


def attention(plan: Plan) -> Iterator[Line]:
    """Yield what a person has to see to: problems in the source, refused objects, held deletions."""
    blocked = (Refusal.of(change, change.gate.blocked) for change in plan.changes if change.gate.blocked)
    yield from (line(text, Tone.BAD) for text in causes.of_refusals(blocked))
    denied = (Refusal.of(change, change.gate.denied) for change in plan.changes if change.gate.denied)
    yield from (line(text, Tone.BAD) for text in causes.of_refusals(denied))
    yield from problems_and_holds(plan)
    owners = sorted(
        {
            change.provenance.owner
            for change in plan.changes
            if change.action and change.gate.held and change.provenance.owner
        }
    )
    for owner in owners:
        place = f" -n {owner.namespace}" if owner.namespace else ""
        yield line(
            f"to let the actions of {owner} run: kubectl reconcile approve {name_of(owner)}{place}", Tone.WARNING
        )


def problems_and_holds(plan: Plan) -> Iterator[Line]:
    """Yield what no writing could bring about: problems in the source, and deletions that are held."""
    yield from (line(text, Tone.BAD) for text in causes.of_problems(plan.errors))
    warnings = causes.of_problems(warnings_among(plan.problems))
    yield from (line(f"warning: {text}", Tone.WARNING) for text in warnings)
    yield from holds(plan)
    if plan.holds and plan.sync is not None:
        yield line(f"to approve them: {approve_command(plan)}", Tone.WARNING)


def ending(plan: Plan) -> Iterator[Line]:
    """Yield each object that ends if *plan* is carried out now, also along with another, a line each."""
    for change in plan.acting():
        gate = change.gate
        if change.op not in {Op.DELETE, Op.REPLACE} or gate.held or gate.blocked or gate.waits:
            continue
        along = f", along with {change.provenance.owner}" if gate.cascade else ""
        yield line(f"{change.op.value:<8} {change.ref}{along}", Tone.REMOVED)


def holds(plan: Plan) -> Iterator[Line]:
    """Yield which deletions wait for a person, and why."""
    for hold in plan.holds:
        yield line(f"held ({hold.reason}): {hold.message}", Tone.WARNING)
        yield from (line(f"  {ref}", Tone.WARNING) for ref in hold.refs[:_REFS_SHOWN])
        if len(hold.refs) > _REFS_SHOWN:
            yield line(f"  and {len(hold.refs) - _REFS_SHOWN} more", Tone.WARNING)
        if hold.along:
            yield line(f"  with {_counted(len(hold.along), 'object')} that would be deleted, too:", Tone.WARNING)
            yield from (line(f"    {ref}", Tone.WARNING) for ref in hold.along[:_REFS_SHOWN])
        if len(hold.along) > _REFS_SHOWN:
            yield line(f"    and {len(hold.along) - _REFS_SHOWN} more", Tone.WARNING)


def approve_command(plan: Plan) -> str:
    """Return the command that lets the held deletions of *plan* through."""
    sync = plan.sync
    target = f"{sync.name} -n {sync.namespace}" if sync is not None else "SYNC"
    return f"kubectl reconcile approve {target} --plan-hash {plan.approval}"
