"""A plan as Markdown, for a comment on a pull request: what would happen if it were merged.

A headline with the counts, a table of the objects, problems and held deletions, and each diff folded away; then the same for each Sync that changes. A
comment has a largest size, so diffs that don't fit are left out, and the comment says how many. It begins
with an invisible mark that names the Sync, by which a pipeline finds the comment to write over.

What comes from manifests and servers is text here, never markup: a name can't close a table or a fold, start a
link, or call somebody.

Pure: plans in, lines out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from kubectl_reconcile.cli.output import findings, render
from kubectl_reconcile.core.planning.nested import without_others_values
from kubectl_reconcile.core.planning.plan import Change, Nested, Plan
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.views import changes
from kubectl_reconcile.views.changes import PlanView
from kubectl_reconcile.views.text import Line, clean, line

MOST_CHARACTERS = 60_000
"""How long a comment may become; GitHub takes 65,536 characters, and a pipeline may want to add a line."""

_LONGEST_TABLE = 100
_LONGEST_LIST = 20
_ENTITIES = str.maketrans(
    {one: f"&#{ord(one)};" for one in "\\`*_{}[]#!|~"}
    | {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "<span>@</span>"}  # a lone @ calls nobody
)


def github(plan: Plan, view: PlanView, *, most: int = MOST_CHARACTERS) -> Iterator[Line]:
    """Yield *plan* as Markdown of at most *most* characters. Whoever may propose manifests reads it: it shows no live values of what isn't the Sync's."""
    plan = without_others_values(plan, plan.sync) if plan.sync else plan
    head = [*_headline(plan), *_table(plan, view), *_obstacles(render.attention(plan)), *_findings(plan, view)]
    foot = ["", f"<sub>{_text(_origin(plan))}</sub>"]
    room = _Room(most - _length(head) - _length(foot) - 200)
    kept = [*_diffs(plan, view, room), *(text for each in plan.nested for text in _section(each, view, room))]
    return (line(text) for text in [*head, *kept, *room.left_out(), *foot])


class _Room(Struct):
    """How many characters are *left*, and how many diffs and Syncs were *dropped* for lack of them."""

    left: int
    diffs: int = 0
    syncs: int = 0

    def takes(self, lines: list[str]) -> bool:
        """Tell whether *lines* fit, which take their room then."""
        length = _length(lines)
        if length > self.left:
            return False
        self.left -= length
        return True

    def left_out(self) -> Iterator[str]:
        """Yield what to do about what didn't fit."""
        counted = [(self.diffs, "diff"), (self.syncs, "Sync")]
        what = " and ".join(f"{count} {noun if count == 1 else f'{noun}s'}" for count, noun in counted if count)
        if what:
            verb = "is" if self.diffs + self.syncs == 1 else "are"
            yield from ("", f"{what} {verb} too long for a comment; see `kubectl reconcile diff`.")


def _diffs(plan: Plan, view: PlanView, room: _Room) -> Iterator[str]:
    """Yield the diffs for which there is *room*, folded away."""
    for change, _ in changes.in_order(plan):
        folded = _folded(view.of(change), view)
        if room.takes(folded):
            yield from folded
        else:
            room.diffs += 1


def _section(each: Nested, view: PlanView, room: _Room) -> Iterator[str]:
    """Yield what a nested Sync would do, as far as there is *room* for it."""
    told = render.said_of(each)
    counts = f": {''.join(span.text for span in render.summary(each.plan))}" if each.plan else ""
    mark = "↳ " * (each.depth + 1)
    lines = ["", f"#### {mark}{_code(f'{each.sync.namespace}/{each.sync.name}')}{counts}"]
    lines += ["", _text(told)] if told else []
    if each.plan is not None:
        lines += [*_table(each.plan, view), *_obstacles(render.attention_of(each.plan))]
        lines += _findings(each.plan, view) if view.scan and findings.says_something(each.plan, view.scan) else ()
    if not room.takes(lines):
        room.syncs += 1
        return
    yield from lines
    if each.plan is not None:
        yield from _diffs(each.plan, view, room)


def _length(lines: list[str]) -> int:
    return sum(len(text) + 1 for text in lines)


def _headline(plan: Plan) -> Iterator[str]:
    sync = f"{plan.sync.namespace}/{plan.sync.name}" if plan.sync is not None else ""
    yield f"<!-- kubectl-reconcile diff {sync} -->"
    counts = "".join(span.text for span in render.summary(plan))
    yield f"### {_code(sync)}: {counts}" if sync else f"### {counts[:1].upper()}{counts[1:]}"


def _origin(plan: Plan) -> str:
    revision = "" if changes.is_worktree(plan) or not plan.revision else f" at {short_of(plan.revision)}"
    if plan.base:
        return f"kubectl reconcile diff{revision}, compared with {short_of(plan.base)}, rendered without a cluster"
    judged = "tried by the API server" if plan.confirmed else "not tried by the API server"
    return f"kubectl reconcile diff{revision}, {judged}"


def _table(plan: Plan, view: PlanView) -> Iterator[str]:
    rows = list(changes.in_order(plan))
    if not rows:
        return
    yield from ("", "| | object | why |", "|---|---|---|")
    for change, depth in rows[:_LONGEST_TABLE]:
        mark = "↳ " * depth
        yield f"| {changes.verdict(change).text} | {mark}{_code(str(change.ref))} | {_text(changes.reason(change, plan, view))} |"
    if len(rows) > _LONGEST_TABLE:
        yield f"| | and {len(rows) - _LONGEST_TABLE} more | |"


def _obstacles(attention: Iterable[Line]) -> Iterator[str]:
    found = ["".join(span.text for span in one).strip() for one in attention]
    if not found:
        return
    yield from ("", "> [!WARNING]")
    yield from (f"> - {_text(text)}" for text in found[:_LONGEST_LIST])
    if len(found) > _LONGEST_LIST:
        yield f"> - and {len(found) - _LONGEST_LIST} more"


def _findings(plan: Plan, view: PlanView) -> Iterator[str]:
    """Yield what the plan adds to a scan, in full as far as there is room for it."""
    found = ["".join(span.text for span in one) for one in findings.lines(plan, view.scan)] if view.scan else []
    if len(found) > 1:
        *listed, counts = found
        yield from ("", f"<details><summary>{_text(counts)}</summary>", "")
        yield from (f"- {_text(text)}" if text[:1] != " " else f"  - {_text(text.strip())}" for text in listed)
        yield from ("", "</details>")
    else:
        yield from ("", *map(_text, found)) if found else ()


def _folded(change: Change, view: PlanView) -> list[str]:
    """Return the diff of one change behind a line to click on; nothing where there is no diff."""
    hunks = ["".join(span.text for span in one) for one in render.hunks_of(*changes.sides(change, view))]
    if change.gate.cascade or not hunks:
        return []
    lines = [clean(text) for text in hunks]
    fence = "`" * max(3, *(len(run) + 1 for text in lines for run in re.findall(r"`+", text)), 3)
    title = f"{changes.verdict(change).text} <code>{_text(str(change.ref))}</code>"
    return ["", f"<details><summary>{title}</summary>", "", f"{fence}diff", *lines, fence, "", "</details>"]


def _code(text: str) -> str:
    """Return *text* as inline code that may stand in a table, whatever it holds."""
    return f"<code>{_text(text)}</code>"


def _text(text: str) -> str:
    """Return *text* so that it reads as it is."""
    return clean(text).translate(_ENTITIES)
