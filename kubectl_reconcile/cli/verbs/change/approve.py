"""``kubectl reconcile approve``: a person lets the held deletions of a Sync through, or the held actions of a CR.

What is approved is exactly the list that was held. For deletions its hash goes onto the Sync as an annotation, and
counts only as long as the same objects are to be deleted; for actions their keys go onto the CR, and each
key counts once.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.prompt import confirmed, may_ask
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.views.text import Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.sync.session import Session


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile approve shop -n shop          shows what is held, and asks
  kubectl reconcile approve shop --plan-hash H    as sync and diff print it
  kubectl reconcile approve candy/sweet -n shop   held actions of a CR
"""
)
@click.argument("sync", metavar="SYNC|KIND/NAME", type=SYNC_NAME)
@click.option("--plan-hash", metavar="HASH", help="Approve the deletions with this hash, and no others.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@colour
@common
def approve(connection: Connection, sync: str, *, plan_hash: str | None, yes: bool, color: str) -> int:
    """Approve the held deletions of SYNC, or the held actions of KIND/NAME. Writes an annotation; the daemon does the rest.

    Without a terminal, --plan-hash or --yes is required. A Sync that is applied by hand (sync -f) needs --plan-hash, and
    continues when somebody syncs again from the same files.
    """
    from kubectl_reconcile.cli.session import run

    if plan_hash is not None and not re.fullmatch(r"[0-9a-f]{8,64}(,[0-9a-f]{8,64})*", plan_hash):
        raise click.UsageError("diff and sync print the hash for --plan-hash together with the held changes")
    if "/" in sync:
        if plan_hash is not None:
            raise click.UsageError("--plan-hash is for deletions; actions are approved by their keys")
        return run(connection, functools.partial(_approve_actions, name=sync, yes=yes, color=color))
    return run(connection, functools.partial(_approve, name=sync, plan_hash=plan_hash or "", yes=yes, color=color))


async def _approve(session: Session, *, name: str, plan_hash: str, yes: bool, color: str) -> int:
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.api import sync_requests
    from kubectl_reconcile.engine.apply import dry_run
    from kubectl_reconcile.engine.sync import gather, reconcile, targets

    out, _ = terminals(color)
    live = await live_sync(session, name)
    sync = Sync.of(live)
    if not plan_hash:
        _require_source(sync)
        target = await targets.sync_target(session, name, session.client.namespace)
        plan = await dry_run.confirm(
            session.client, await reconcile.plan(session, target), target.sync, along=gather.lister(session)
        )
        plan = replace(plan, holds=plan.waiting)
        if not plan.holds:
            out.write([line("nothing is held", Tone.GOOD)])
            return ExitStatus.OK
        plan_hash = _consented(plan, yes=yes, color=color)
    await sync_requests.approve(session.client, sync, plan_hash)
    out.write([line(f"approved {plan_hash} for {sync.namespace}/{sync.name}", Tone.GOOD), line(_what_follows(sync))])
    return ExitStatus.OK


def _require_source(sync: Sync) -> None:
    """Return if what is held can be found out: of a Sync that is applied by hand, only its files tell."""
    if sync.source is None:
        raise Failure(
            f"Sync {sync.namespace}/{sync.name} is applied by hand, so this command needs its files to know what is held",
            f"sync again from the same files, sync -f PATH --name {sync.name} -n {sync.namespace}: it prints what is held, and "
            "the approve command with its --plan-hash; then sync again",
            status=ExitStatus.USAGE,
        )


def _what_follows(sync: Sync) -> str:
    if sync.source is None:
        again = f"kubectl reconcile sync -f PATH --name {sync.name} -n {sync.namespace}"
        return f"nothing is deleted yet: no daemon follows a Sync that is applied by hand; sync again from the same files: {again}"
    return "the daemon continues once the Sync is resumed" if sync.suspend else "the daemon continues by itself"


async def _approve_actions(session: Session, *, name: str, yes: bool, color: str) -> int:
    from kubectl_reconcile.core.annotations import APPROVED_ACTIONS
    from kubectl_reconcile.core.module.action_journal import approving
    from kubectl_reconcile.engine.commands import custom_resource

    out, err = terminals(color)
    found = await custom_resource.find(session, name)
    made = await custom_resource.preview(session, found.cr)
    held = [change.action for change in made.changes if change.action and change.gate.held]
    if not held:
        out.write([line("nothing is held", Tone.GOOD)])
        return ExitStatus.OK
    err.write(line(f"{action.key}: {action.summary}", Tone.WARNING) for action in held)
    if not yes and not may_ask():
        raise Failure("there is no terminal to ask on", "approve with --yes", status=ExitStatus.USAGE)
    if not yes and not confirmed("Run this?" if len(held) == 1 else "Run these?"):
        raise Failure("nothing was approved", status=ExitStatus.HELD)
    keys = tuple(action.key for action in held)
    await custom_resource.annotate(session, found, {APPROVED_ACTIONS: approving(found.cr, keys)})
    out.write([line(f"approved {', '.join(keys)} for {name}", Tone.GOOD)])
    return ExitStatus.OK


def _consented(plan: Plan, *, yes: bool, color: str) -> str:
    """Show what is held, and return its hash if the user wants it gone."""
    from kubectl_reconcile.cli.output import render
    from kubectl_reconcile.core.planning.hold import NEW_REVISION

    _, err = terminals(color)
    err.write(render.holds(plan))
    if not yes and not may_ask():
        raise Failure(
            "there is no terminal to ask on",
            f"approve with --yes, or --plan-hash {plan.approval}",
            status=ExitStatus.USAGE,
        )
    if not yes and not confirmed(
        "Apply this?" if any(hold.reason == NEW_REVISION for hold in plan.holds) else "Delete these objects?"
    ):
        raise Failure("nothing was approved", status=ExitStatus.HELD)
    return plan.approval
