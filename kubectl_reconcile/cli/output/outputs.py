"""Shows plans in the form that the flags ask for, through a pager, or by another program that compares.

A program reads the same bytes wherever they go; a person at a terminal gets the width of the screen, and a pager
where there is more than a screenful.

Environment: ``KUBECTL_EXTERNAL_DIFF`` names a program that compares two folders, as kubectl has it; ``PAGER`` one
that shows long text (``less`` where it isn't set; empty or ``cat`` is none).
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from kubectl_reconcile.cli.options.output import OutputOptions
from kubectl_reconcile.cli.output import findings, layouts, markdown, render
from kubectl_reconcile.cli.output.data.structured import structured
from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.views import changes
from kubectl_reconcile.views.changes import PlanView
from kubectl_reconcile.views.document import plain
from kubectl_reconcile.views.text import Line, Tone, line

Show: TypeAlias = Callable[..., None]
"""Shows plans, with their titles."""

_DIFFERENT = 1


def show(plans: Sequence[Plan], view: PlanView, chosen: OutputOptions, titles: Sequence[str] = ()) -> None:
    """Write *plans* to standard output, and what a person has to see to to standard error.

    Raises:
        Failure: the program that should compare failed.
    """
    out, err = terminals(chosen.color)
    if external := _external_diff(chosen):
        for plan in chain.from_iterable(each.with_nested_plans() for each in plans):
            _compare(external, plan, view)
    else:
        lines = list(_lines(plans, view, chosen, titles, out.width))
        if not (chosen.is_for_people and chosen.pager and _paged([out.text(one) for one in lines])):
            out.write(lines)
    for plan in plans:
        err.write([*render.attention(plan), *render.attention_below(plan)])
        if chosen.is_for_people:
            scanned = (*findings.lines(plan, view.scan), *findings.lines_below(plan, view.scan)) if view.scan else ()
            out.write([*render.unhealthy(plan), *scanned, render.summary(plan), *render.summary_below(plan)])


def _lines(
    plans: Sequence[Plan], view: PlanView, chosen: OutputOptions, titles: Sequence[str], width: int | None
) -> Iterable[Line]:
    """Return what goes to standard output: one document for programs, plan after plan for people."""
    if chosen.output in {"json", "yaml"} or chosen.output.startswith("jsonpath="):
        plan_document = importlib.import_module("kubectl_reconcile.views.plan")  # slow to import
        documents = [plain(plan_document.document(plan, view)) for plan in plans]
        whole = documents[0] if len(documents) == 1 else {"apiVersion": "v1", "kind": "List", "items": documents}
        return structured(whole, chosen.output)
    lines: list[Line] = []
    for number, plan in enumerate(plans):
        if titles and chosen.is_for_people:
            lines.append(line(titles[number], Tone.TITLE))
        lines += _of_one(plan, view, chosen, width)
        lines += _below(plan, view, chosen, width)
    return lines


def _below(plan: Plan, view: PlanView, chosen: OutputOptions, width: int | None) -> Iterator[Line]:
    """Yield the nested plans, each under its title; Markdown has them already."""
    for each in plan.nested if chosen.output != "github" else ():
        if chosen.is_for_people:
            yield render.title_of(each)
        yield from _of_one(each.plan, view, chosen, width) if each.plan else ()


def _of_one(plan: Plan, view: PlanView, chosen: OutputOptions, width: int | None) -> Iterable[Line]:
    if chosen.side_by_side:
        return layouts.side_by_side(plan, view, width)
    if chosen.reasons:
        return layouts.reasons(plan, view, width)
    forms: dict[str, Callable[[], Iterable[Line]]] = {
        "diff": lambda: render.diff(plan, view),
        "tree": lambda: layouts.tree(plan, view, width),
        "summary": lambda: layouts.summary(plan, view, width),
        "wide": lambda: layouts.wide(plan, view),
        "github": lambda: markdown.github(plan, view),
        "name": lambda: render.names(plan),
    }
    return forms[chosen.output]()


def wipe() -> None:
    """Clear the screen, where a person watches one."""
    if sys.stdout.isatty():
        sys.stdout.write("\x1b[H\x1b[2J")


# --- the pager --------------------------------------------------------------------------------------------------------


def _paged(texts: Sequence[str]) -> bool:
    """Show *texts* through the user's pager if a person's screen is too small for them; tell whether it was done."""
    if not (sys.stdout.isatty() and sys.stdin.isatty()) or len(texts) < shutil.get_terminal_size().lines:
        return False
    command = _pager()
    if not command:
        return False
    environment = {"LESS": "FRX", **os.environ}  # as git has it: quit if it fits, keep colours and the screen
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=environment)
    except OSError:
        return False
    try:
        pager.communicate("".join(f"{text}\n" for text in texts))
    except (BrokenPipeError, KeyboardInterrupt):  # they have seen enough
        pager.wait()
    return True


def _pager() -> list[str]:
    wanted = os.environ.get("PAGER")
    if wanted is None:
        return ["less"] if shutil.which("less") else []
    return [] if wanted.strip() in {"", "cat"} else shlex.split(wanted)


# --- another diff -----------------------------------------------------------------------------------------------------


def _external_diff(chosen: OutputOptions) -> list[str]:
    """Return the program that shows differences, with its arguments, where the user has named one."""
    if chosen.output != "diff" or chosen.side_by_side or chosen.reasons:
        return []
    return shlex.split(os.environ.get("KUBECTL_EXTERNAL_DIFF", ""))


def _compare(command: Sequence[str], plan: Plan, view: PlanView) -> None:
    """Have *command* compare two folders, ``LIVE-…`` and ``MERGED-…``, with one file for each object that changes."""
    with tempfile.TemporaryDirectory(prefix="LIVE-") as live, tempfile.TemporaryDirectory(prefix="MERGED-") as merged:
        for change, _ in changes.in_order(plan):
            if change.gate.cascade:
                continue
            old, new = changes.sides(view.of(change), view)
            name = re.sub(r"[^\w.-]", "-", ".".join(part for part in change.ref if part), flags=re.ASCII)
            for folder, lines in ((live, old), (merged, new)):
                if lines:
                    Path(folder, name).write_text("".join(f"{text}\n" for text in lines))
        sys.stdout.flush()
        try:
            done = subprocess.run([*command, live, merged], check=False)
        except OSError as error:
            raise Failure(
                f"KUBECTL_EXTERNAL_DIFF: {command[0]} can't be run: {error.strerror}",
                "unset it, or name a program that compares two folders",
                status=ExitStatus.USAGE,
            ) from None
    if done.returncode > _DIFFERENT:
        raise Failure(f"KUBECTL_EXTERNAL_DIFF: {command[0]} ended with status {done.returncode}")
