"""``kubectl reconcile tree``: a Sync, its members, and all that these own, with health and age."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import table, terminals
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.engine.commands.owner_tree import OwnedObject, OwnerTree
    from kubectl_reconcile.engine.sync.session import Session

_TONES = {
    "Current": Tone.GOOD,
    "InProgress": Tone.WARNING,
    "Terminating": Tone.WARNING,
    "Suspended": Tone.ASIDE,
    "Unknown": Tone.WARNING,
}
_WELL = frozenset({"Current", "Suspended"})
_KINDS_SHOWN = 5
_BRANCHES = ("├─", "└─", "│ ", "  ")
_PLAIN_BRANCHES = ("|-", "`-", "| ", "  ")


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile tree shop -n shop    a Sync, its objects, what they own
  kubectl reconcile tree deploy/web      one object and what it owns
  kubectl reconcile tree shop -o wide    with the file of each object
"""
)
@click.argument("sync", required=False, metavar="[SYNC|KIND/NAME]", type=SYNC_NAME)
@click.option(
    "--unhealthy", is_flag=True, help="Only objects that are neither Current nor Suspended, and their owners."
)
@output("wide", "name", "json", "yaml")
@colour
@common
def tree(connection: Connection, sync: str | None, *, unhealthy: bool, output: str | None, color: str) -> int:
    """Show what belongs to SYNC: objects, their children, and their health. Writes nothing.

    Without SYNC, the only Sync in the namespace is used. The tree names the namespace of objects outside the Sync's own.
    """
    from kubectl_reconcile.cli.session import run
    from kubectl_reconcile.core.phrases import first_few

    looked_at = run(connection, functools.partial(_looked_at, name=sync or ""))
    out, err = terminals(color)
    root = _unwell(looked_at.root) if unhealthy else looked_at.root
    out.write(_shown(root, output, out.width))
    if looked_at.unseen:
        text = f"warning: can't list {first_few(looked_at.unseen, _KINDS_SHOWN, rest='more kinds')}, so the tree doesn't show them"
        err.write([line(text, Tone.WARNING)])
    if looked_at.unasked:
        named = first_few(looked_at.unasked, _KINDS_SHOWN, rest="more objects")
        err.write(
            [
                line(
                    f"warning: marked as a member, but not asked for by any revision, so not shown: {named}",
                    Tone.WARNING,
                )
            ]
        )
    return ExitStatus.OK


async def _looked_at(session: Session, *, name: str) -> OwnerTree:
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.engine.commands import find_object, owner_tree

    if "/" in name:
        return await owner_tree.of_object(session, await find_object.live(session, name))
    return await owner_tree.of_sync(session, await live_sync(session, name))


def _unwell(relative: OwnedObject) -> OwnedObject:
    """Return *relative* without those below that are well themselves and have only the like below them."""
    from kubectl_reconcile.engine.commands.owner_tree import OwnedObject

    below = (_unwell(child) for child in relative.children)
    return OwnedObject(
        relative.manifest,
        relative.health,
        tuple(each for each in below if each.children or each.health.status not in _WELL),
    )


def _shown(root: OwnedObject, output: str | None, width: int | None) -> Iterator[Line]:
    from kubectl_reconcile.cli.output import render
    from kubectl_reconcile.cli.output.data.structured import json_lines, yaml_lines
    from kubectl_reconcile.views import tree as views

    match output:
        case "json":
            return json_lines(views.document(root))
        case "yaml":
            return yaml_lines(views.document(root))
        case "name":
            return (line(render.name_of(each.ref)) for each, _ in _walk(root))
        case _:
            return iter(_table(root, width, wide=output == "wide"))


def _walk(root: OwnedObject, lead: str = "", ahead: str = "") -> Iterator[tuple[OwnedObject, str]]:
    """Yield each of a family with the branches that lead to it, from the root down."""
    tee, end, on, over = _branches()
    yield root, lead
    for child in root.children:
        last = child is root.children[-1]
        yield from _walk(child, ahead + (end if last else tee), ahead + (over if last else on))


def _branches() -> tuple[str, str, str, str]:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return _BRANCHES if encoding in {"utf8", "utf16"} else _PLAIN_BRANCHES


def _table(root: OwnedObject, width: int | None, *, wide: bool) -> list[Line]:
    from kubectl_reconcile.views.ages import current_time

    titles = ["OBJECT", "HEALTH", "AGE", *(["NAMESPACE", "API VERSION", "FILE"] if wide else []), "MESSAGE"]
    now = current_time()
    rows = [_row(each, lead, root.ref.namespace, now, wide=wide) for each, lead in _walk(root)]
    return table(titles, rows, None if wide else width)


def _row(relative: OwnedObject, lead: str, home: str, now: str, *, wide: bool) -> list[Span]:
    from kubectl_reconcile.views import syncs
    from kubectl_reconcile.views import tree as views
    from kubectl_reconcile.views.ages import age_of

    ref, verdict = relative.ref, relative.health
    place = f"{ref.namespace}/" if ref.namespace and ref.namespace != home and not wide else ""
    word, tone = verdict.status.value, _TONES.get(verdict.status, Tone.BAD)
    if ref.group == "reconcile.dev" and ref.kind == "Sync":
        word, tone = syncs.readiness(relative.manifest)
        word = "Ready" if word == "True" else "NotReady" if word == "False" else word
        message = syncs.message_of(relative.manifest)
    else:
        message = verdict.message
    age = age_of(relative.manifest["metadata"].get("creationTimestamp", ""), now).removesuffix(" ago")
    extras = [Span(ref.namespace or "-"), Span(relative.manifest["apiVersion"]), Span(views.source_of(relative) or "-")]
    name = f"{lead}{ref.kind}/{place}{ref.name}"
    return [Span(name), Span(word, tone), Span(age or "-"), *(extras if wide else []), Span(message)]
