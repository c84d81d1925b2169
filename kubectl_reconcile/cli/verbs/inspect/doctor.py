"""``kubectl reconcile doctor``: checks that everything is in place, line by line, and says what to do where it isn't."""

from __future__ import annotations

import contextlib
import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.views.text import Line, Span, Tone, clean, line

if TYPE_CHECKING:
    from kubectl_reconcile.engine.commands.doctor import Finding

_TONES = {"ok": Tone.GOOD, "warn": Tone.WARNING, "fail": Tone.BAD}
_SUBJECT = 10
_INDENT = 6 + _SUBJECT + 1


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile doctor               everything, and all Syncs
  kubectl reconcile doctor -n shop       the Syncs and rights of one namespace
  kubectl reconcile doctor -o json       one JSON object per line
"""
)
@output("json")
@colour
@common
def doctor(connection: Connection, *, output: str | None, color: str) -> int:
    """Check versions, modules, cluster, clock, CRDs, rights, daemon, and the repository of each Sync. Writes nothing.

    Each line begins with ok, warn or fail; the line below it says what to do. The exit status is 3 if the cluster can't be
    reached, 6 if anything else fails, and 0 otherwise.
    """
    import asyncio

    from kubectl_reconcile.cli.session import log_to_stderr

    log_to_stderr(connection)
    out, _ = terminals(color)
    return asyncio.run(_examined(connection, out, output or ""))


async def _examined(connection: Connection, out: Terminal, output: str) -> int:
    from kubectl_reconcile.cli.early import access_of
    from kubectl_reconcile.engine.commands.doctor import Grade, examine

    status, counts = ExitStatus.OK, dict.fromkeys(Grade, 0)
    examination = examine(access_of(connection), connection.cache_dir, connection.namespace)
    async with contextlib.aclosing(examination) as findings:  # closes the connection even where nobody reads on
        async for finding in findings:
            out.write([line(_json(finding))] if output else _lines(finding, out.width))
            counts[finding.grade] += 1
            if finding.grade is Grade.FAIL and status is ExitStatus.OK:
                status = ExitStatus.CLUSTER if finding.unreachable else ExitStatus.FAILED
    if not output:
        tone = Tone.BAD if counts[Grade.FAIL] else Tone.WARNING if counts[Grade.WARN] else Tone.GOOD
        out.write([line(", ".join(f"{count} {grade}" for grade, count in counts.items() if count), tone)])
    return status


def _json(finding: Finding) -> str:
    found = {"grade": finding.grade.value, "subject": finding.subject, "text": finding.text, "advice": finding.advice}
    return json.dumps({key: value for key, value in found.items() if value})


def _lines(finding: Finding, width: int | None) -> Iterator[Line]:
    """Yield a finding: its grade, what it is about, and what was found; below, what to do."""
    grade, subject = Span(f"{finding.grade.value:<6}", _TONES[finding.grade.value]), clean(finding.subject)
    first, *rest = _wrapped(finding.text, width)
    if len(subject) > _SUBJECT:
        yield (grade, Span(subject, Tone.TITLE))
        rest = [first, *rest]
    else:
        yield (grade, Span(f"{subject:<{_SUBJECT + 1}}", Tone.TITLE), Span(first))
    yield from (line(f"{' ' * _INDENT}{text}") for text in rest)
    for text in _wrapped(finding.advice, width) if finding.advice else ():
        yield line(f"{' ' * _INDENT}{text}", Tone.ASIDE)


def _wrapped(text: str, width: int | None) -> list[str]:
    shown = clean(text)
    room = max((width or 0) - _INDENT, 30)
    return textwrap.wrap(shown, room, break_on_hyphens=False) or [""] if width else [shown]
