"""``kubectl reconcile diff``: what the next sync would change, module children included, and why."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

import click
from msgspec.structs import replace

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.origin import Origin, origin
from kubectl_reconcile.cli.options.output import OutputOptions, look
from kubectl_reconcile.cli.options.selection import EVERYTHING, Chosen, selection
from kubectl_reconcile.cli.output import failures
from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.cli.verbs.asking import asking_meanwhile
from kubectl_reconcile.cli.verbs.change.accept import accepted
from kubectl_reconcile.views.text import Tone, line

if TYPE_CHECKING:
    import asyncio

    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.core.scan.outlook import PlanScan
    from kubectl_reconcile.core.scan.pod_security import Profile
    from kubectl_reconcile.engine.sync.session import Session
    from kubectl_reconcile.engine.sync.target import Target
    from kubectl_reconcile.views.changes import PlanView

    _Found: TypeAlias = tuple[list[Plan], PlanScan | None]
    _Scope: TypeAlias = Callable[[Session, Sequence[Plan]], Awaitable[PlanScan | None]]
    _Status: TypeAlias = Callable[[Plan, PlanScan | None], ExitStatus]


class Nesting(Enum):
    """What a preview shows of what the Syncs would do that change."""

    NONE = "none"
    """Nothing."""
    ALL = "all"
    """All that whoever looks may read."""
    PUBLIC = "public"
    """What whoever proposed the change may read anyway: a comment on a request is for everybody."""


_TAKEN = (
    "kubectl_reconcile.cli.output.outputs",
    "kubectl_reconcile.cli.session",
    "kubectl_reconcile.core.scan.outlook",
    "kubectl_reconcile.engine.commands.preview",
)
"""What each preview takes, and imports in turn."""


@click.command(
    epilog="""\b
Exit status: 0 no changes, 1 changes pending, 2 or more an error:
  2 usage or kubeconfig, 3 cluster unreachable or unauthorised,
  4 source or one of its files unusable, 6 the cluster would refuse a change,
  7 new findings (with --fail-on).

\b
Examples:
  kubectl reconcile diff                    the only Sync in the namespace
  kubectl reconcile diff shop -n shop       the Sync shop
  kubectl reconcile diff shop deploy/web    one object and its children
  kubectl reconcile diff shop --only drift  what was changed by hand
  kubectl reconcile diff shop --revision refs/pull/12/head -o github
  kubectl reconcile diff shop --local . --watch    after each save
  kubectl reconcile diff -f . --scan restricted --fail-on new-findings
  kubectl reconcile diff -f examples/shop/prod    a folder, as if applied
  kubectl reconcile diff -f . --name shop   as a new state of shop
  kubectl reconcile diff -f . --base origin/main    without a cluster
  kubectl reconcile diff --repo https://charts.example.com \\
    --chart web --version 1.2.3 --set replicas=3
"""
)
@origin
@selection
@click.option("-A", "--all-namespaces", is_flag=True, help="All Syncs in all namespaces.")
@click.option(
    "--offline",
    is_flag=True,
    help="Don't check the changes in a dry run. The output then lacks the effects of defaults and webhooks. With -f, no cluster needs to be configured.",
)
@click.option(
    "--base",
    metavar="REV",
    help="Compare the folder of -f with this revision of its working tree, and with no cluster: a branch, a tag, a commit, HEAD~1.",
)
@click.option("--no-nested", is_flag=True, help="Leave out what the Syncs that change would do themselves.")
@click.option(
    "--until-stable",
    is_flag=True,
    help="Show further passes, too, assuming that workloads roll out and actions succeed. Implies --offline.",
)
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="Keep running, and show the changes again whenever you save a file of -f or --local.",
)
@click.option("--accept", is_flag=True, help="Write drift into the files of -f or --local, like the command accept.")
@click.option(
    "--scan",
    type=click.Choice(["baseline", "restricted"]),
    help="List security findings that the sync would add or fix.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["new-findings"]),
    help="Exit with 7 if --scan, or a Checkup of a namespace that changes, finds something new.",
)
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
@click.option("--show-managed-fields", is_flag=True, help="Show metadata.managedFields.")
@look
@common
@asking_meanwhile(*_TAKEN)
def diff(
    connection: Connection,
    origin: Origin,
    *,
    chosen: Chosen,
    look: OutputOptions,
    all_namespaces: bool,
    offline: bool,
    base: str | None,
    no_nested: bool,
    until_stable: bool,
    watch: bool,
    accept: bool,
    scan: str | None,
    fail_on: str | None,
    show_secrets: bool,
    show_managed_fields: bool,
) -> int:
    """Show what the next sync of SYNC would change. Writes nothing.

    Without SYNC, -f or --repo, the only Sync in the namespace is used. OBJECT is TYPE/NAME, or the path of a file or
    folder/ in the repository. You can name several objects.

    Where Syncs are created, changed or removed, what each of them would do follows, as its own account would do it.

    With --base, what changes between two revisions of a working tree is shown, by rendering alone; no kubeconfig is read.
    """
    from kubectl_reconcile.cli.session import readable, run, run_until_interrupted
    from kubectl_reconcile.core.scan.pod_security import Profile
    from kubectl_reconcile.views.ages import current_time
    from kubectl_reconcile.views.changes import PlanView

    _check(
        origin,
        base=base,
        all_namespaces=all_namespaces,
        until_stable=until_stable,
        watch=watch,
        accept=accept,
        fail_on=fail_on,
    )
    profile = Profile(scan) if scan else None
    scope = functools.partial(_scope_of, profile=profile)
    view = PlanView(current_time(), show_secrets, show_managed_fields)
    show = functools.partial(_show, view=view, look=look)
    status = _status_after_scan if fail_on else _status_without_scan
    nested = Nesting.NONE if no_nested else Nesting.PUBLIC if look.output == "github" else Nesting.ALL
    if base:
        plans, scanned = _between(connection, origin, chosen, profile, base=base, nested=not no_nested)
        show(plans, scan=scanned)
        return status(plans[0], scanned)
    if all_namespaces:
        return run(
            connection,
            functools.partial(
                _everywhere, chosen=chosen, offline=offline, nested=nested, scope=scope, show=show, status=status
            ),
        )
    with readable(origin) as source:
        if watch:
            return run_until_interrupted(
                connection,
                functools.partial(
                    _watched,
                    origin=source,
                    chosen=chosen,
                    offline=offline,
                    nested=nested,
                    scope=scope,
                    show=show,
                ),
            )
        if until_stable:
            asked = functools.partial(_simulated, origin=source, chosen=chosen)
        else:
            asked = functools.partial(
                _one, origin=source, chosen=chosen, offline=offline, nested=nested, reasons=look.reasons
            )
        otherwise = (
            functools.partial(_without_cluster, source, chosen, look, profile, nested=not no_nested)
            if offline and source.file and not (source.values or source.sets)
            else None
        )
        plans, scanned = _looked(connection, functools.partial(_scanned, asked=asked, scope=scope), otherwise)
    if accept:
        show(plans, scan=scanned)
        work = functools.partial(accepted, origin=origin, chosen=chosen, color=look.color)
        return int(run(connection, work))
    titles = [f"pass {number} of {len(plans)}" for number in range(1, len(plans) + 1)] if len(plans) > 1 else []
    show(plans, titles=titles, scan=scanned)
    return status(plans[0], scanned)


def _check(
    origin: Origin,
    *,
    base: str | None,
    all_namespaces: bool,
    until_stable: bool,
    watch: bool,
    accept: bool,
    fail_on: str | None,
) -> None:
    """Return if these flags go together.

    Raises:
        UsageError: they don't.
    """
    if all_namespaces and (origin != Origin() or watch or until_stable):
        raise click.UsageError(
            "-A means all Syncs with their own sources: leave out SYNC and the flags that name a source"
        )
    if watch and (origin.file in {"", "-"} and not origin.local):
        raise click.UsageError("--watch watches files: it needs -f FOLDER or --local FOLDER")
    if accept and (all_namespaces or watch or until_stable or (origin.file in {"", "-"} and not origin.local)):
        raise click.UsageError("--accept writes files: it needs -f FOLDER --name NAME, or with --local FOLDER")
    if accept and (origin.values or origin.sets):
        raise click.UsageError("--accept writes what a chart's files are to say: --values and --set aren't among them")
    if fail_on and (watch or accept):
        raise click.UsageError("--fail-on new-findings can't be combined with --watch or --accept")
    if base and (
        origin.file in {"", "-"}
        or not origin.recursive
        or origin.values
        or origin.sets
        or until_stable
        or watch
        or accept
    ):
        raise click.UsageError(
            "--base compares a folder: it needs -f FOLDER, and none of its flags for charts or passes"
        )


def _looked(
    connection: Connection,
    work: Callable[[Session], Coroutine[Any, Any, _Found]],
    otherwise: Callable[[], _Found] | None,
) -> _Found:
    """Return what *work* finds in the cluster; where none is configured, what can be said *otherwise*, if anything can.

    Raises:
        NoClusterConfigured: nothing can.
    """
    from kubectl_reconcile.cli.session import run
    from kubectl_reconcile.cluster.errors import NoClusterConfigured

    try:
        return run(connection, work)
    except NoClusterConfigured:
        if otherwise is None:
            raise
        return otherwise()


def _without_cluster(
    origin: Origin, chosen: Chosen, look: OutputOptions, profile: Profile | None, *, nested: bool
) -> _Found:
    """Return what files ask for where there is no cluster to compare them with, having said so.

    Raises:
        Failure: only a part of it is asked for, which nobody can find without knowing the kinds.
        SourceError: the files can't be read.
    """
    import asyncio

    from kubectl_reconcile.core.resources.source import Render
    from kubectl_reconcile.core.scan.outlook import PlanScan, ScanScope
    from kubectl_reconcile.engine.commands import between_revisions
    from kubectl_reconcile.engine.sync import nowhere
    from kubectl_reconcile.engine.sync.decryption import own_decryption

    if not chosen.is_everything:
        raise Failure("names of objects mean nothing without a cluster", "show all, or configure a cluster")
    _, err = terminals(look.color)
    err.write(
        [line("no cluster is configured: each object is shown as one to create, by its file alone", Tone.WARNING)]
    )
    place, render = origin.namespace or "default", Render(origin.render)
    file = Path(origin.file)
    keys = own_decryption(origin.decrypt, os.environ)
    asked = nowhere.plan(file, origin.name, place, recursive=origin.recursive, render=render, decryption=keys)
    plan = asyncio.run(asked)
    plan = asyncio.run(between_revisions.with_nested_rendered(plan, file)) if nested else plan
    return [plan], PlanScan(ScanScope(profile)) if profile else None


def _between(
    connection: Connection, origin: Origin, chosen: Chosen, profile: Profile | None, *, base: str, nested: bool
) -> _Found:
    """Return what changes in files since the revision *base*.

    Raises:
        Failure: only a part of it is asked for, which nobody can find without knowing the kinds.
        SourceError: there is no such revision, or the files can't be read.
    """
    import asyncio

    from kubectl_reconcile.core.resources.source import Render
    from kubectl_reconcile.core.scan.outlook import PlanScan, ScanScope
    from kubectl_reconcile.engine.commands import between_revisions

    if not chosen.is_everything:
        raise Failure("names of objects mean nothing without a cluster", "show all of it")
    namespace, render = connection.namespace or "default", Render(origin.render)
    asked = between_revisions.between(
        Path(origin.file), base, origin.name, namespace, render=render, with_nested=nested
    )
    return [asyncio.run(asked)], PlanScan(ScanScope(profile)) if profile else None


class _Show(Protocol):
    """Shows plans, and what is found in them."""

    def __call__(self, plans: Sequence[Plan], titles: Sequence[str] = (), *, scan: PlanScan | None) -> None: ...


def _show(
    plans: Sequence[Plan],
    titles: Sequence[str] = (),
    *,
    scan: PlanScan | None,
    view: PlanView,
    look: OutputOptions,
) -> None:
    from kubectl_reconcile.cli.output import outputs
    from kubectl_reconcile.views.ages import current_time

    outputs.show(plans, replace(view, now=current_time(), scan=scan), look, titles)


# --- what is looked for -----------------------------------------------------------------------------------------------


async def _scope_of(session: Session, plans: Sequence[Plan], *, profile: Profile | None) -> PlanScan | None:
    """Return what is looked for in what changes: by *profile*, or by the Checkups of its namespaces; None where there are none."""
    from kubectl_reconcile.core.scan.outlook import PlanScan, ScanScope

    if profile is not None:
        return PlanScan(ScanScope(profile))
    plans = [each for plan in plans for each in plan.with_nested_plans()]
    if all(plan.is_clean for plan in plans):
        return PlanScan(ScanScope())
    from kubectl_reconcile.engine.commands import scanning  # only changes are scanned

    scope = await scanning.scope_of(session, plans)
    return None if scope is None else PlanScan(scope)


async def _scanned(
    session: Session, *, asked: Callable[[Session], Awaitable[list[Plan]]], scope: _Scope
) -> tuple[list[Plan], PlanScan | None]:
    plans = await asked(session)
    return plans, await scope(session, plans)


def _status_without_scan(plan: Plan, _scan: PlanScan | None) -> ExitStatus:
    return status_of(plan)


def _status_after_scan(plan: Plan, scan: PlanScan | None) -> ExitStatus:
    """Return the exit status of a preview that is to fail on new findings.

    Raises:
        Failure: nobody says what to look for.
    """
    if scan is None:
        hint = "name a profile with --scan, or create a Checkup that you may read"
        raise Failure("no Checkup scans the namespaces that change", hint, status=ExitStatus.USAGE)
    return status_of(plan, must_pass=scan)


async def _one(session: Session, **asked: Any) -> list[Plan]:
    return [await preview(session, **asked)]


async def _simulated(session: Session, *, origin: Origin, chosen: Chosen) -> list[Plan]:
    from kubectl_reconcile.cli.session import selected, target_of
    from kubectl_reconcile.engine.sync import foresight

    plans = await foresight.foresee(session, await target_of(session, origin))
    first, *later = plans
    return [selected(session, chosen, first), *(selected(session, chosen, plan, among=[]) for plan in later)]


async def preview(
    session: Session,
    origin: Origin,
    *,
    chosen: Chosen = EVERYTHING,
    offline: bool = False,
    among: list[Plan] | None = None,
    reasons: bool = False,
    nested: Nesting = Nesting.ALL,
) -> Plan:
    """Return what a sync of *origin* would do to what is *chosen*, and the Syncs that are *nested* in that; unless *offline*, as the server judges it.

    *among* is as in ``selected``: one of several previews leaves it to its caller whether names mean anything. *reasons* asks for
    those that take long to find.

    Raises:
        SourceError: the source can't be read.
        SelectionError: what is chosen can't be meant as it is written.
        ApiError: the server refuses, or doesn't answer.
    """
    from kubectl_reconcile.cli.session import target_of
    from kubectl_reconcile.engine.commands import preview as engine

    target = await target_of(session, origin)
    made = await _judged(session, target, origin, chosen, offline=offline, among=among)
    explained = await engine.explained(target, made, reasons=reasons)
    return await with_nested(session, target, origin, explained, nested, offline=offline)


async def with_nested(
    session: Session, target: Target, origin: Origin, made: Plan, nested: Nesting = Nesting.ALL, *, offline: bool
) -> Plan:
    """Return *made*, the plan of *origin*, with those of the Syncs that it changes, as far as *nested* says.

    Raises:
        SourceError: there is no git.
        ApiError: the server doesn't answer.
    """
    from kubectl_reconcile.core.resources.sync import SYNC

    if nested is Nesting.NONE or not any(change.ref.group_kind == SYNC.group_kind for change in made.acting()):
        return made
    from kubectl_reconcile.engine.commands import nested as engine  # few plans change Syncs

    repository = "" if origin.chart else origin.repo
    looked_at = await engine.LookedAt.of(target, made.revision, local=origin.local, repository=repository)
    return await engine.with_nested(session, made, looked_at, offline=offline, public=nested is Nesting.PUBLIC)


async def _judged(
    session: Session,
    target: Target,
    origin: Origin,
    chosen: Chosen,
    *,
    offline: bool,
    among: list[Plan] | None = None,
) -> Plan:
    from kubectl_reconcile.cli.session import selected
    from kubectl_reconcile.engine.commands import preview as engine

    return await engine.judged(
        session,
        target,
        by_account=origin.is_sync and target.sync.source is not None,
        chosen=lambda plan: selected(session, chosen, plan, among=among),
        offline=offline,
    )


def status_of(plan: Plan, *, must_pass: PlanScan | None = None) -> ExitStatus:
    """Return the exit status of a preview, nested plans included, which *must_pass* a scan without new findings if one is given."""
    plans = plan.with_nested_plans()
    if any(change.gate.blocked or change.gate.denied for each in plans for change in each.changes):
        return ExitStatus.FAILED
    if errors := [problem for each in plans for problem in each.errors]:
        return ExitStatus.SOURCE if any(problem.in_source for problem in errors) else ExitStatus.FAILED
    if must_pass and any(must_pass.outlook(each.changes).new for each in plans):
        return ExitStatus.FINDINGS
    return ExitStatus.OK if all(each.is_clean for each in plans) else ExitStatus.DIFFERENT


# --- all Syncs --------------------------------------------------------------------------------------------------------


async def _everywhere(
    session: Session, *, chosen: Chosen, offline: bool, nested: Nesting, scope: _Scope, show: _Show, status: _Status
) -> int:
    """Preview every Sync of the cluster; one that can't be previewed hides no other."""
    from kubectl_reconcile.cli.session import unmatched
    from kubectl_reconcile.engine.sync import targets

    plans, titles, worst = [], [], ExitStatus.OK
    among: list[Plan] = []
    for namespace, name in await targets.followed_syncs(session):
        try:
            origin = Origin(name, namespace=namespace)
            plans.append(await preview(session, origin, chosen=chosen, offline=offline, among=among, nested=nested))
        except Exception as error:  # noqa: BLE001 - told as any other; what isn't a user's goes on up
            worst = max(worst, failures.report(error, f"Sync {namespace}/{name}: "))
        else:
            titles.append(f"Sync {namespace}/{name}")
    scanned = await scope(session, plans)
    show(plans, titles, scan=scanned)
    worst = max([worst, *(status(plan, scanned) for plan in plans)])
    return max([worst, *map(failures.report, unmatched(session, chosen, among))])


# --- at each save -----------------------------------------------------------------------------------------------------


def _wake(loop: asyncio.AbstractEventLoop, saved: asyncio.Event) -> None:
    loop.call_soon_threadsafe(saved.set)


async def _watched(
    session: Session, *, origin: Origin, chosen: Chosen, offline: bool, nested: Nesting, scope: _Scope, show: _Show
) -> NoReturn:
    """Preview now and at each save, until Ctrl-C."""
    import asyncio

    from kubectl_reconcile.cli.output import outputs
    from kubectl_reconcile.cli.session import target_of
    from kubectl_reconcile.engine.commands import preview as engine
    from kubectl_reconcile.engine.sync import lookups, reconcile, targets
    from kubectl_reconcile.engine.sync.variables import values_of

    target = await target_of(session, origin)
    loop, saved = asyncio.get_running_loop(), asyncio.Event()
    with targets.watch(target, functools.partial(_wake, loop, saved)) as watch:
        while True:
            saved.clear()
            try:
                target = replace(target, values=await values_of(session, target.sync))
                behalf = lookups.Behalf.of(session, target.sync, target.parent)
                await lookups.read_again(session, target.reader, behalf)
                await reconcile.read(session, target)
                watch.follow()  # the preview reads again, and sees what changed before that
                made = await _judged(session, target, origin, chosen, offline=offline)
                plan = await engine.explained(target, made)
                plan = await with_nested(session, target, origin, plan, nested, offline=offline)
                scanned = await scope(session, [plan])
            except Exception as error:  # noqa: BLE001 - told as any other; the next save may fix it
                failures.report(error)
            else:
                outputs.wipe()
                show([plan], scan=scanned)
                if watch.follow():
                    saved.set()
            await saved.wait()
