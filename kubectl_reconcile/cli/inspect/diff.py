"""``kubectl reconcile diff``: what the next sync would change, module children included, and why."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.output import failures, outputs
from kubectl_reconcile.cli.output.failures import ExitStatus

if TYPE_CHECKING:  # the planner takes a tenth of a second to import, which help and completion do without
    import asyncio

    from kubectl_reconcile.cli.output.render import PlanView
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.engine.sync.reconcile import Target
    from kubectl_reconcile.engine.sync.session import Session


@click.command(
    epilog="""\b
Exit status: 0 no changes, 1 changes pending, 2 or more an error:
  2 usage or kubeconfig, 3 cluster unreachable or unauthorised,
  4 source or a file of it unusable, 6 the cluster would refuse a change.

\b
Examples:
  kubectl reconcile diff                    the only Sync of the namespace
  kubectl reconcile diff shop -n shop       the Sync shop
  kubectl reconcile diff shop deploy/web    one object, and what follows
  kubectl reconcile diff shop --only drift  what was changed by hand
  kubectl reconcile diff shop --revision refs/pull/12/head -o github
  kubectl reconcile diff shop --local . --watch    anew at each save
  kubectl reconcile diff -f examples/shop   a folder, as if applied
  kubectl reconcile diff -f . --name shop   as a new state of shop
"""
)
@options.origin
@options.selection
@click.option("-A", "--all-namespaces", is_flag=True, help="All Syncs of all namespaces.")
@click.option(
    "--offline", is_flag=True, help="Don't have the server try the changes; defaults and webhooks don't show then."
)
@click.option(
    "--until-stable",
    is_flag=True,
    help="Show what would follow, too: further passes, supposing that workloads roll out and actions work. Implies --offline.",
)
@click.option("-w", "--watch", is_flag=True, help="Go on, and show it again whenever a file of -f or --local is saved.")
@click.option(
    "--accept", is_flag=True, help="Write what drifted into the files of -f or --local, as the verb accept does."
)
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
@click.option("--show-managed-fields", is_flag=True, help="Show metadata.managedFields.")
@outputs.look
@options.common
def diff(
    connection: options.Connection,
    origin: options.Origin,
    *,
    chosen: options.Chosen,
    look: outputs.OutputOptions,
    all_namespaces: bool,
    offline: bool,
    until_stable: bool,
    watch: bool,
    accept: bool,
    show_secrets: bool,
    show_managed_fields: bool,
) -> int:
    """Show what the next sync of SYNC would change. Writes nothing.

    Without SYNC, -f or --repo, the only Sync of the namespace is meant. OBJECT is TYPE/NAME, or the path
    of a file or folder/ in the repository; several are shown together.
    """
    from kubectl_reconcile.cli.output.render import PlanView  # noqa: PLC0415 - imports the planner

    if all_namespaces and (origin != options.Origin() or watch or until_stable):
        raise click.UsageError("-A is for all that the Syncs follow; drop SYNC and the flags that name a source")
    if watch and (origin.file in {"", "-"} and not origin.local):
        raise click.UsageError("--watch watches files: it goes with -f FOLDER or --local FOLDER")
    if accept and (all_namespaces or watch or until_stable or (origin.file in {"", "-"} and not origin.local)):
        raise click.UsageError("--accept writes files: it goes with -f FOLDER --name NAME, or with --local FOLDER")
    show = functools.partial(_show, view=PlanView(options.now(), show_secrets, show_managed_fields), look=look)
    if all_namespaces:
        return connection.run(functools.partial(_everywhere, chosen=chosen, offline=offline, show=show))
    with options.readable(origin) as source:
        if watch:
            return connection.run(functools.partial(_watched, origin=source, chosen=chosen, offline=offline, show=show))
        if until_stable:
            plans = connection.run(functools.partial(_foreseen, origin=source, chosen=chosen))
        else:
            plans = [connection.run(functools.partial(preview, origin=source, chosen=chosen, offline=offline))]
    if accept:
        from kubectl_reconcile.cli.change.accept import accepted  # noqa: PLC0415 - for one rare flag

        show(plans)
        return connection.run(functools.partial(accepted, origin=origin, chosen=chosen, color=look.color))
    titles = [f"pass {number} of {len(plans)}" for number in range(1, len(plans) + 1)] if len(plans) > 1 else []
    show(plans, titles=titles)
    return status_of(plans[0])


def _show(plans: Sequence[Plan], titles: Sequence[str] = (), *, view: PlanView, look: outputs.OutputOptions) -> None:
    from dataclasses import replace  # noqa: PLC0415 - ages count from when it is shown

    outputs.show(plans, replace(view, now=options.now()), look, titles)


async def _foreseen(session: Session, *, origin: options.Origin, chosen: options.Chosen) -> list[Plan]:
    from kubectl_reconcile.engine.sync import reconcile  # noqa: PLC0415 - imports all that talks to clusters

    plans = await reconcile.foresee(session, await options.target_of(session, origin))
    return [chosen.of(session, plan) for plan in plans]


async def preview(
    session: Session, origin: options.Origin, *, chosen: options.Chosen = options.EVERYTHING, offline: bool = False
) -> Plan:
    """Return what a sync of *origin* would do to what is *chosen*; unless *offline*, as the server judges it.

    Raises:
        SourceError: the source can't be read.
        SelectionError: what is chosen can't be meant as it is written.
        ApiError: the server refuses, or doesn't answer.
    """
    return await _preview_of(session, await options.target_of(session, origin), chosen, offline=offline)


async def _preview_of(session: Session, target: Target, chosen: options.Chosen, *, offline: bool) -> Plan:
    from kubectl_reconcile.engine.apply import dry_run  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.engine.commands import blame  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.engine.sync import reconcile  # noqa: PLC0415 - imports all that talks to clusters

    made = chosen.of(session, await reconcile.plan(session, target))
    judged = made if offline else await dry_run.confirm(session.client, made, target.sync)
    return await blame.with_commits(target, judged)


def status_of(plan: Plan) -> ExitStatus:
    """Return the exit status of a preview."""
    if any(change.gate.blocked for change in plan.changes):
        return ExitStatus.FAILED
    if plan.errors:
        return ExitStatus.SOURCE if any(problem.in_source for problem in plan.errors) else ExitStatus.FAILED
    return ExitStatus.OK if plan.is_clean else ExitStatus.DIFFERENT


# --- all Syncs --------------------------------------------------------------------------------------------------------


async def _everywhere(session: Session, *, chosen: options.Chosen, offline: bool, show: outputs.Show) -> int:
    """Preview every Sync of the cluster; one that can't be previewed hides no other."""
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - imports all that talks to clusters

    plans, titles, worst = [], [], ExitStatus.OK
    for namespace, name in await targets.followed_syncs(session):
        try:
            origin = options.Origin(name, namespace=namespace)
            plans.append(await preview(session, origin, chosen=chosen, offline=offline))
        except Exception as error:  # noqa: BLE001 - told as any other; what isn't a user's goes on up
            worst = max(worst, failures.told(error, f"Sync {namespace}/{name}: "))
        else:
            titles.append(f"Sync {namespace}/{name}")
            worst = max(worst, status_of(plans[-1]))
    show(plans, titles)
    return worst


# --- at each save -----------------------------------------------------------------------------------------------------


def _wake(loop: asyncio.AbstractEventLoop, saved: asyncio.Event) -> None:
    loop.call_soon_threadsafe(saved.set)


async def _watched(
    session: Session, *, origin: options.Origin, chosen: options.Chosen, offline: bool, show: outputs.Show
) -> int:
    """Preview now and at each save, until Ctrl-C; return the status of the last preview."""
    import asyncio  # noqa: PLC0415 - help does without

    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - imports all that talks to clusters

    target = await options.target_of(session, origin)
    loop, saved, status = asyncio.get_running_loop(), asyncio.Event(), ExitStatus.OK
    with targets.watch(target, functools.partial(_wake, loop, saved)):
        while True:
            saved.clear()
            try:
                plan = await _preview_of(session, target, chosen, offline=offline)
            except Exception as error:  # noqa: BLE001 - told as any other; the next save may mend it
                status = failures.told(error)
            else:
                outputs.wipe()
                show([plan])
                status = status_of(plan)
            try:
                await saved.wait()
            except asyncio.CancelledError:  # Ctrl-C is how it is meant to end
                return status
