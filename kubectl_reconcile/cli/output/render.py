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
from collections.abc import Iterator, Sequence
from textwrap import shorten

from kubectl_reconcile.core.apply import causes
from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.objects import ObjectRef, place_of, warnings_among
from kubectl_reconcile.core.planning.plan import Change, Nested, Op, Plan
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.views.changes import (
    PlanView,
    counts_of,
    in_order,
    is_worktree,
    notes_on,
    origin_of,
    reason,
    sides,
    verdict,
)
from kubectl_reconcile.views.text import Line, Span, Tone, line

_CONTEXT = 3
_REFS_SHOWN = 10
_EXACT_LINES = 5000
_LONGEST_REASON = 240
_TO = {
    Op.CREATE: "to create",
    Op.UPDATE: "to update",
    Op.REPLACE: "to replace",
    Op.DELETE: "to delete",
    Op.ACT: "to act on",
}


# --- the diff ---------------------------------------------------------------------------------------------------------


def diff(plan: Plan, view: PlanView) -> Iterator[Line]:
    """Yield a unified diff of every object that changes."""
    for change, _ in in_order(plan):
        yield from _one(view.of(change), plan, view)


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


def labels(change: Change, plan: Plan) -> tuple[str, str]:
    """Return what to call the old and the new state of a change."""
    module = change.module
    origin = module or origin_of(plan)
    where = f" ({_where(change, plan)})" if change.provenance.file and change.op is not Op.DELETE else ""
    old = "/dev/null" if change.before is None else f"{short_of(plan.base) or 'live'}/{change.ref}"
    new = "/dev/null" if change.after is None else f"{origin}/{change.ref}{where}"
    return old, new


def _where(change: Change, plan: Plan) -> str:
    place = place_of(change.provenance.file, change.provenance.line)
    return place if is_worktree(plan) or not plan.revision else f"{place}, {short_of(plan.revision)}"


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


def summary_below(plan: Plan) -> Iterator[Line]:
    """Yield on a line what else happens, by Syncs that the plan changes; nothing where it changes none."""
    if not plan.nested:
        return
    planned = [each.plan for each in plan.nested if each.plan]
    counts = Counter[str]()
    for each in planned:
        counts.update(counts_of(each))
    pending = [f"{counts[op]} {words}" for op, words in _TO.items() if counts[op]]
    extras = [f"{counts[word]} {word}" for word in ("held", "blocked", "refused") if counts[word]]
    problems = sum(len(each.errors) for each in planned)
    parts = [*pending, *extras, *([_counted(problems, "problem")] if problems else [])] or ["no changes"]
    bad = counts["blocked"] or counts["refused"] or problems
    which = f"through {_counted(len(plan.nested), 'Sync')}"
    yield line(f"{which}: {', '.join(parts)}", Tone.BAD if bad else Tone.WARNING if pending or extras else Tone.GOOD)


def title_of(each: Nested) -> Line:
    """Return what heads a nested plan: which Sync, what happens to it, and why."""
    head = Span(f"{'  ' * each.depth}Sync {each.sync.namespace}/{each.sync.name}", Tone.TITLE)
    told = said_of(each)
    return (head, Span(f"  {told}", Tone.ASIDE)) if told else (head,)


def said_of(each: Nested) -> str:
    """Return what happens to a nested Sync and why, in words; empty where nothing is known of that."""
    words = {Op.CREATE: "new", Op.DELETE: "deleted", Op.REPLACE: "recreated", Op.UNCHANGED: "its files change"}
    what = words.get(each.op, "")
    stays = "nothing else changes" if each.plan is not None and each.plan.is_clean else ""
    return "; ".join(filter(None, [what, *each.why, each.not_planned, stays]))


def attention_below(plan: Plan) -> Iterator[Line]:
    """Yield what a person has to see to in nested plans, each with its Sync."""
    for each in plan.nested:
        if each.plan is None:
            continue
        for one in attention_of(each.plan):
            yield (Span(f"Sync {each.sync.namespace}/{each.sync.name}: ", one[0].tone), *one)


def attention_of(nested: Plan) -> Iterator[Line]:
    """Yield what a person has to see to in a nested plan. What is held in it can't be approved yet: nothing is, before its Sync is as it will be."""
    yield from (*_refusals(nested), *_problems(nested), *holds(nested))


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
    yield from _refusals(plan)
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


def _refusals(plan: Plan) -> Iterator[Line]:
    blocked = (Refusal.of(change, change.gate.blocked) for change in plan.changes if change.gate.blocked)
    yield from (line(text, Tone.BAD) for text in causes.of_refusals(blocked))
    denied = (Refusal.of(change, change.gate.denied) for change in plan.changes if change.gate.denied)
    yield from (line(text, Tone.BAD) for text in causes.of_refusals(denied))


def _problems(plan: Plan) -> Iterator[Line]:
    yield from (line(text, Tone.BAD) for text in causes.of_problems(plan.errors))
    warnings = causes.of_problems(warnings_among(plan.problems))
    yield from (line(f"warning: {text}", Tone.WARNING) for text in warnings)


def problems_and_holds(plan: Plan) -> Iterator[Line]:
    """Yield what no writing could bring about: problems in the source, and deletions that are held."""
    yield from _problems(plan)
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
