"""A plan laid out in other ways than as unified diffs: a tree, a table, side by side, a list of fields.

Each is a function of a plan, a view and, where it needs one, a width in columns; without a width nothing is cut
and nothing wraps. All of it is legible without colour: what a tone says is said by a word or a sign too.

Pure: plans in, lines out.
"""

from __future__ import annotations

import difflib
import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from kubectl_reconcile.cli.output import render
from kubectl_reconcile.cli.output.terminal import table
from kubectl_reconcile.core.objects import place_of
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from kubectl_reconcile.views import changes
from kubectl_reconcile.views.ages import age_of
from kubectl_reconcile.views.changes import PlanView
from kubectl_reconcile.views.text import Line, Span, Tone, clean, line

_CONTEXT = 3
_UNLIMITED = 160
"""How wide two columns are where no screen says it."""
_SHOWN = 60
"""How much of a value a list of fields shows."""


# --- the tree ---------------------------------------------------------------------------------------------------------


def tree(plan: Plan, view: PlanView, width: int | None = None) -> Iterator[Line]:
    """Yield what changes as a tree: the Sync, its objects, and below each what follows from it."""
    name = f"{plan.sync.namespace}/{plan.sync.name}" if plan.sync is not None else ""
    revision = short_of(plan.revision)
    yield (Span(f"Sync {name}" if name else "no Sync", Tone.TITLE), Span(f"  {revision}", Tone.ASIDE))
    nodes = list(changes.in_order(plan))
    depths = [depth for _, depth in nodes]
    for at, (change, depth) in enumerate(nodes):
        rails = "".join("│  " if _goes_on(depths, at, level) else "   " for level in range(depth))
        branch = "├─ " if _goes_on(depths, at, depth) else "└─ "
        word, why = changes.verdict(change), changes.reason(change, plan, view)
        head = (Span(f"{rails}{branch}"), word, Span(f" {change.ref}"))
        yield _cut((*head, Span(f"  {why}", Tone.ASIDE)) if why else head, width)


def _goes_on(depths: Sequence[int], at: int, level: int) -> bool:
    """Tell whether another node of *level* follows under the same parent."""
    below = next((depth for depth in depths[at + 1 :] if depth <= level), -1)
    return below == level


def _cut(one: Line, width: int | None) -> Line:
    """Return a line whose last span, if it is an aside, is cut so that the line fits and something of it is left."""
    *head, last = one
    if width is None:
        return one
    room = width - sum(columns(clean(span.text)) for span in head)
    text = clean(last.text)
    if columns(text) <= room:
        return one
    return (*head, Span(f"{text[: room - 1]}…", last.tone)) if room > 8 and last.tone is Tone.ASIDE else one


def summary(plan: Plan, view: PlanView, width: int | None = None) -> Iterator[Line]:
    """Yield one line for each object that changes, no longer than the screen is wide."""
    return (_cut(one, width) for one in render.overview(plan, view))


# --- the table --------------------------------------------------------------------------------------------------------


def wide(plan: Plan, view: PlanView) -> list[Line]:
    """Return a table of what changes, one object a row, with where it is asked for and why it changes."""
    rows = [_row(change, plan, view) for change, _ in changes.in_order(plan)]
    return table(["OP", "KIND", "NAMESPACE", "NAME", "WAVE", "FIELDS", "FROM", "WHY"], rows) if rows else []


def _row(change: Change, plan: Plan, view: PlanView) -> list[Span]:
    place = place_of(change.provenance.file, change.provenance.line)
    return [
        changes.verdict(change),
        Span(str(change.ref.group_kind)),
        Span(change.ref.namespace or "-"),
        Span(change.ref.name),
        Span(str(change.gate.wave)),
        Span(str(len(change.fields)) if change.fields else "-"),
        Span(change.module or place or "-"),
        Span(changes.reason(change, plan, view)),
    ]


# --- fields and reasons -----------------------------------------------------------------------------------------------


def reasons(plan: Plan, view: PlanView, width: int | None = None) -> Iterator[Line]:
    """Yield each object that changes, and below it each field with its values and why it changes."""
    for change, _ in changes.in_order(plan):
        shown = view.of(change)
        where = (
            f"  {place_of(shown.provenance.file, shown.provenance.line)}"
            if shown.provenance.line and shown.op is not Op.DELETE
            else ""
        )
        yield (changes.verdict(shown), Span(f" {shown.ref}", Tone.TITLE), Span(where, Tone.ASIDE))
        if not shown.fields and (why := changes.reason(shown, plan, view)):
            yield line(f"  {why}", Tone.ASIDE)
        for field in () if shown.op is Op.CREATE else shown.fields:
            yield from _field(field, shown, plan, view, width)


def _field(field: FieldChange, change: Change, plan: Plan, view: PlanView, width: int | None) -> Iterator[Line]:
    path = Span(f"  {field.path}", Tone.PLACE)
    values = (
        Span("  "),
        Span(value_text(field.before), Tone.REMOVED),
        Span(" → "),
        Span(value_text(field.after), Tone.ADDED),
    )
    why = Span(f"  {_reason(field, change, plan, view.now)}", Tone.ASIDE)
    whole = (path, *values, why)
    if width is None or sum(columns(clean(span.text)) for span in whole) <= width:
        yield whole
        return
    yield (path,)
    yield (Span("  "), *values)
    yield (Span("  "), why)


def value_text(value: Any) -> str:
    """Return a field's value on one line, cut where it is long."""
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _reason(field: FieldChange, change: Change, plan: Plan, now: str) -> str:
    """Return why a field changes, and where what is rendered has it from."""
    return _why(field, change, plan, now) + (f", from {field.origin}" if field.origin else "")


def _why(field: FieldChange, change: Change, plan: Plan, now: str) -> str:
    drift = " ".join(part for part in ("drift", _by(field.manager), age_of(field.time, now)) if part)
    match field.reason:
        case Reason.DRIFT:
            return drift
        case Reason.BOTH:
            return f"{_source(field, change, plan)}, and {drift}"
        case Reason.ADOPT:
            return " ".join(part for part in ("taken over", f"from {field.manager}" if field.manager else "") if part)
        case _:
            return _source(field, change, plan)


def _source(field: FieldChange, change: Change, plan: Plan) -> str:
    """Return who wants a field so: a module, a commit, a file."""
    if module := change.module:
        return f"wanted by {module}"
    if changes.is_worktree(plan):
        return "the file"
    return f"{changes.origin_of(plan)} {changes.commit_of(field) or short_of(plan.revision)}"


def _by(manager: str) -> str:
    return f"by {manager}" if manager else ""


# --- side by side -----------------------------------------------------------------------------------------------------


def side_by_side(plan: Plan, view: PlanView, width: int | None = None) -> Iterator[Line]:
    """Yield each object that changes in two columns: as it is, and as it will be.

    Between them stands ``|`` where a line changes, ``<`` where it goes, ``>`` where it comes. What is too
    long for its column goes on below.
    """
    half = max(((width or _UNLIMITED) - 3) // 2, 20)
    for change, _ in changes.in_order(plan):
        shown = view.of(change)
        old, new = changes.sides(shown, view)
        notes = list(changes.notes_on(shown, plan, view.now))
        if shown.gate.cascade:
            old, new, notes = [], [], [(f"deleted along with {shown.provenance.owner}", Tone.ASIDE)]
        yield (changes.verdict(shown), Span(f" {shown.ref}", Tone.TITLE))
        yield from (line(f"# {text}", tone) for text, tone in notes)
        yield from _pairs(old, new, half)


def _pairs(old: Sequence[str], new: Sequence[str], half: int) -> Iterator[Line]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield line("…", Tone.PLACE)
        for tag, i, j, k, m in group:
            for left, right in zip_longest(old[i:j], new[k:m]):
                yield from _beside(left, right, tag, half)


def _beside(left: str | None, right: str | None, tag: str, half: int) -> Iterator[Line]:
    sign = " " if tag == "equal" else "<" if right is None else ">" if left is None else "|"
    tones = (Tone.PLAIN, Tone.PLAIN) if tag == "equal" else (Tone.REMOVED, Tone.ADDED)
    for first, second in zip_longest(_folded(left, half), _folded(right, half), fillvalue=""):
        padded = first + " " * (half - columns(first))
        yield (Span(padded, tones[0]), Span(f" {sign} "), Span(second, tones[1]))


def _folded(text: str | None, width: int) -> Iterable[str]:
    """Return *text* in pieces that fit into *width* columns."""
    pieces, piece, used = [], "", 0
    for character in clean(text or "").replace("\t", " "):
        wide_by = columns(character)
        if used + wide_by > width:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + character, used + wide_by
    return [*pieces, piece]


def columns(text: str) -> int:
    """Return how many columns of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )
