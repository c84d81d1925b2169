"""``kubectl reconcile sync``: makes the cluster what the source asks for, now.

A Sync that a daemon follows is the daemon's to write: it is asked, and watched while it works. Where no
daemon lives, and for folders and repositories given on the command line, the work is done here, by the
same engine.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.origin import Origin, origin
from kubectl_reconcile.cli.options.output import FORMATS, OutputOptions, output
from kubectl_reconcile.cli.options.selection import Chosen, selection
from kubectl_reconcile.cli.output import failures
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, STATUS_OF_REASON, ExitStatus, Failure, Interrupted
from kubectl_reconcile.cli.output.prompt import confirmed, may_ask
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.cli.verbs.asking import asking_meanwhile
from kubectl_reconcile.cli.verbs.inspect import diff, status
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    import asyncio

    from kubectl_reconcile.cli.output.progress import Progress
    from kubectl_reconcile.cluster.client import Client
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.core.planning.planfile import PlanFile
    from kubectl_reconcile.core.resources.source import SourceSpec
    from kubectl_reconcile.core.resources.status import Report
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.sync.session import Session
    from kubectl_reconcile.engine.sync.target import Target

_TAKEN = (
    "kubectl_reconcile.cli.output.outputs",
    "kubectl_reconcile.cli.output.progress",
    "kubectl_reconcile.cli.session",
    "kubectl_reconcile.core.planning.planfile",
    "kubectl_reconcile.core.resources.goals",
    "kubectl_reconcile.engine.commands.custom_resource",
    "kubectl_reconcile.engine.commands.install",
    "kubectl_reconcile.engine.commands.preview",
    "kubectl_reconcile.engine.sync.members_health",
    "kubectl_reconcile.views.results",
    "kubectl_reconcile.views.syncs",
)
"""What each sync takes, and imports in turn."""
_DAEMON_S = 300.0
_PATIENCE_S = 10.0
_RESULTS = {"", "name", "json", "yaml"}


class SyncOptions(Struct, frozen=True):
    """How the user wants it done. *yes* answers every question."""

    origin: Origin
    chosen: Chosen
    yes: bool
    install: bool
    dry_run: bool
    wait: bool
    timeout_s: float | None
    plan: str
    look: OutputOptions
    out: Terminal
    err: Terminal
    among: list[Plan] | None = None


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile sync shop -n shop           now, not at the next interval
  kubectl reconcile sync shop deploy/web        one of its objects
  kubectl reconcile sync -f . --name shop -y    a folder, without questions
  kubectl reconcile diff shop -o json > plan.json
  kubectl reconcile sync --plan plan.json       exactly what was shown
"""
)
@origin
@selection
@click.option("-A", "--all-namespaces", is_flag=True, help="All Syncs in all namespaces, one after another.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation. Without a terminal, there is no question.")
@click.option("--install", is_flag=True, help="Install the CRDs of kubectl-reconcile if they are missing.")
@click.option(
    "--plan",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Apply exactly this plan, which diff -o json has written. If the source or the cluster has changed, do nothing.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, as diff does, and write nothing.")
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait until the daemon has synced, and everything is healthy.",
)
@click.option(
    "--timeout",
    type=DURATION,
    metavar="DURATION",
    help="How long to wait for the daemon, or for objects to be healthy.  [default: 5m with a daemon, else spec.timeout of the Sync]",
)
@output(*FORMATS)
@colour
@common
@asking_meanwhile(*_TAKEN)
def sync(
    connection: Connection,
    origin: Origin,
    *,
    chosen: Chosen,
    all_namespaces: bool,
    yes: bool,
    install: bool,
    dry_run: bool,
    wait: bool,
    timeout: float | None,
    plan: str | None,
    output: str | None,
    color: str,
) -> int:
    """Make the cluster match the source of SYNC. Writes to the cluster.

    Without SYNC, -f or --repo, the only Sync in the namespace is used. On a terminal, sync asks before it deletes
    anything.

    OBJECT is TYPE/NAME, or the path of a file or folder/ in the repository. With OBJECT, this command writes only these
    objects and their children, even if a daemon is running.
    """
    if all_namespaces and (origin != Origin() or plan):
        raise click.UsageError(
            "-A means all Syncs with their own sources: leave out SYNC, --plan and the flags that name a source"
        )
    if not origin.is_sync and not origin.name:
        raise click.UsageError(
            "-f and --repo need --name: the Sync of that name records the objects, "
            "so that an object can be deleted once its file is removed"
        )
    form = output or ""
    if not dry_run and form.partition("=")[0] not in {*_RESULTS, "jsonpath"}:
        raise click.UsageError(f"-o {form} shows a plan; add --dry-run, or use diff")
    look = OutputOptions(form or ("diff" if dry_run else ""), color)
    options = SyncOptions(origin, chosen, yes, install, dry_run, wait, timeout, plan or "", look, *terminals(color))
    return synced(connection, options, everywhere=all_namespaces)


def synced(connection: Connection, options: SyncOptions, *, everywhere: bool = False) -> int:
    """Sync, and return the exit status."""
    from kubectl_reconcile.cli.session import readable, run

    with readable(options.origin) as source:
        work = functools.partial(_everywhere if everywhere else _sync, options=replace(options, origin=source))
        return run(connection, work)


async def _everywhere(session: Session, options: SyncOptions) -> int:
    """Sync every Sync of the cluster, one after another; one that fails stops no other. Return the worst status."""
    from kubectl_reconcile.cli.session import unmatched
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.engine.sync import targets

    worst, among = 0, list[Plan]()
    for namespace, name in await targets.followed_syncs(session):
        options.err.write([line(f"Sync {namespace}/{name}", Tone.TITLE)])
        try:
            origin = Origin(name, namespace=namespace)
            worst = max(worst, await _sync(session, replace(options, origin=origin, among=among)))
        except Interrupted as interruption:
            raise Interrupted(f"{interruption} of {namespace}/{name}; the Syncs before it are done") from None
        except Exception as error:  # noqa: BLE001 - told as any other; what isn't a user's goes on up
            worst = max(worst, failures.report(error))
    return max([worst, *map(failures.report, unmatched(session, options.chosen, among))])


async def _sync(session: Session, options: SyncOptions) -> int:
    from kubectl_reconcile.cli.session import target_of

    if options.dry_run:
        return _shown(await diff.preview(session, options.origin, chosen=options.chosen, among=options.among), options)
    await _ensure_installed(session, options)
    if options.plan:
        return await _carry_out(session, options)
    if options.origin.is_sync and (sync := await _followed(session, options.origin)):
        if not (options.origin.revision or options.origin.local):
            if options.chosen.is_everything:
                return await _ask_daemon(session, sync, options)
        elif not sync.suspend:
            raise Failure(
                f"a daemon follows {sync.namespace}/{sync.name}, and would revert anything else",
                "preview it with diff, or suspend the Sync first",
                status=ExitStatus.USAGE,
            )
    return await _work(session, await target_of(session, options.origin), options)


def _who_writes_members(session: Session, sync: Sync) -> Client:
    """Return who writes the members: of a Sync that follows Git its account, which the caller acts as; else the caller."""
    return session.acting_for(sync).client if sync.source else session.client


def _shown(plan: Plan, options: SyncOptions) -> int:
    from kubectl_reconcile.cli.output import outputs
    from kubectl_reconcile.views.ages import current_time
    from kubectl_reconcile.views.changes import PlanView

    outputs.show([plan], PlanView(current_time()), options.look)
    status = diff.status_of(plan)
    return ExitStatus.OK if status is ExitStatus.DIFFERENT else status


async def _ensure_installed(session: Session, options: SyncOptions) -> None:
    """Install our CRDs where they are missing and the user says so."""
    from kubectl_reconcile.cli.output.results import result_line
    from kubectl_reconcile.engine.commands import install

    if install.is_installed(session):
        return
    missing = f"the cluster {session.client.server} doesn't know Syncs yet"
    if not (options.install or options.yes or (may_ask() and confirmed(f"{missing}. Install their CRDs?"))):
        raise Failure(missing, "add --install to install their CRDs", status=ExitStatus.USAGE)
    for result in await install.ensure_crds(session):
        options.err.write([result_line(result)])


async def _followed(session: Session, origin: Origin) -> Sync | None:
    """Return the Sync if a daemon manages it, else None.

    Where nobody can tell, nothing is written: there would be two writers.
    """
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.api.sync_requests import daemon_alive
    from kubectl_reconcile.engine.sync import targets

    namespace = origin.namespace or session.client.namespace
    alive = await daemon_alive(session.client, namespace)
    if alive is False:
        return None
    sync = Sync.of(await targets.live_sync(session, origin.name, namespace))
    if sync.source and alive is None:
        hint = "ask for the right to list leases.coordination.k8s.io, or commit and let the daemon find it"
        raise Failure("can't tell whether a daemon is running: you may not read its Leases", hint)
    return sync if sync.source else None


# --- by the daemon ----------------------------------------------------------------------------------------------------


async def _ask_daemon(session: Session, sync: Sync, options: SyncOptions) -> int:
    """Ask the daemon for a sync, and tell how it goes."""
    import asyncio

    from kubectl_reconcile.cli.output.progress import Progress
    from kubectl_reconcile.engine.api import sync_requests

    token = await sync_requests.request_sync(session.client, sync)
    name = f"{sync.namespace}/{sync.name}"
    options.err.write([line(f"asked the daemon to sync {name}", Tone.ASIDE)])
    if not options.wait:
        return ExitStatus.OK
    timeout_s = options.timeout_s or _DAEMON_S
    where = f"kubectl reconcile status {sync.name} -n {sync.namespace}"
    live, progress, began_s = None, Progress(options.out, options.err), asyncio.get_running_loop().time()
    try:
        async with progress.drawn(), asyncio.timeout(timeout_s) as clock:
            progress.waits(sync.ref, "waiting for the daemon")
            async for live in sync_requests.versions(session.client, sync.namespace, sync.name):
                if live is None:
                    raise Failure(f"{name} was deleted meanwhile")
                if text := _doing(live):
                    progress.note(sync.ref, text)
                if sync_requests.is_handled(live, token):
                    if not _is_getting_well(live):
                        break
                    _end_soon_if_failed(live, clock, began_s + timeout_s)
    except asyncio.CancelledError:
        hint = f"follow it with: {where}"
        raise Failure("stopped waiting; the daemon continues by itself", hint, status=ExitStatus.INTERRUPTED) from None
    except TimeoutError:
        if live is not None and sync_requests.is_handled(live, token):
            return _outcome(live, options)
        raise Failure(
            f"the daemon didn't finish the sync of {name} within {timeout_s:.0f} s",
            f"it continues by itself; see: {where}",
        ) from None
    return _outcome(live or {}, options)


def _doing(live: Manifest) -> str:
    """Return what the daemon is at, or what isn't well yet; empty where there is nothing to wait for."""
    from kubectl_reconcile.core.objects import condition_of
    from kubectl_reconcile.core.resources.goals import Goal, lack_of

    if _is_getting_well(live):
        return lack_of(live, Goal.READY)[1]
    busy = condition_of(live, "Reconciling") or {}
    return str(busy.get("message") or "") if busy.get("status") == "True" else ""


def _is_getting_well(live: Manifest) -> bool:
    """Tell whether all that is asked for is applied, and isn't well yet."""
    from kubectl_reconcile.core.resources.goals import Goal, is_reached

    return is_reached(live, Goal.SYNCED) and not is_reached(live, Goal.READY)


def _end_soon_if_failed(live: Manifest, clock: asyncio.Timeout, end_s: float) -> None:
    """Give what has failed some seconds more: it may come right by itself, and mostly doesn't."""
    import asyncio

    from kubectl_reconcile.core.resources.goals import Goal, lack_of

    if lack_of(live, Goal.READY)[0] != "Failed":
        clock.reschedule(end_s)
    elif clock.when() == end_s:
        clock.reschedule(min(end_s, asyncio.get_running_loop().time() + _PATIENCE_S))


def _outcome(live: Manifest, options: SyncOptions) -> int:
    """Tell how the daemon's sync ended, and return the exit status of that."""
    from kubectl_reconcile.cli.output.results import DONE, counted
    from kubectl_reconcile.core.objects import condition_of, map_at
    from kubectl_reconcile.views import syncs

    ready = condition_of(live, "Ready") or {}
    reason, message = str(ready.get("reason", "")), str(ready.get("message", ""))
    found = map_at(live, "status")
    told = found if reason not in _UNREAD else {}
    options.err.write(line(problem, Tone.BAD) for problem in syncs.texts(told.get("problems")))
    options.err.write(line(f"warning: {each}", Tone.WARNING) for each in syncs.texts(told.get("warnings")))
    counts = dict(map_at(told, "summary"))
    revision = syncs.short(str(told.get("lastAttemptedRevision", "")))
    ended = STATUS_OF_REASON.get(reason, ExitStatus.FAILED) if ready.get("status") != "True" else ExitStatus.OK
    tone = Tone.GOOD if ended is ExitStatus.OK else Tone.WARNING if ended is ExitStatus.HELD else Tone.BAD
    if options.look.output:
        options.out.write(status.documents([live], options.look.output, one=True))
        return ended
    options.out.write([(Span(reason or "Unknown", tone), Span(f"{f' {revision}' if revision else ''}: {message}"))])
    if any(counts.get(word) for word in DONE.values()):
        options.out.write([counted(counts)])
    options.err.write(line(advice, Tone.WARNING) for advice in _advice(live, reason))
    return ended


def _advice(live: Manifest, reason: str) -> Iterator[str]:
    """Yield what to do about a Sync that isn't Ready, where there is something."""
    place = f"{live['metadata']['name']} -n {live['metadata']['namespace']}"
    if reason == "Held":
        yield f"to approve them: kubectl reconcile approve {place}"
    if _is_getting_well(live):
        yield f"to see what isn't healthy: kubectl reconcile tree {place} --unhealthy"


_UNREAD = frozenset({"SourceUnavailable", "ClusterUnavailable", "InvalidSpec", "DependencyNotReady", "Suspended"})
"""Reasons of passes that read no revision: what a status says of one besides is of an earlier pass."""


# --- by ourselves -----------------------------------------------------------------------------------------------------


async def _carry_out(session: Session, options: SyncOptions) -> int:
    """Do what a plan file says, if the plan made now is the same."""
    from kubectl_reconcile.cli.session import target_of
    from kubectl_reconcile.core.planning.planfile import PlanFile
    from kubectl_reconcile.engine.sync import targets

    with click.open_file(options.plan, "rb") as stream:
        file = PlanFile.parse(stream.read())
    if options.origin.is_sync and not options.origin.name:
        target = await targets.sync_target(session, file.sync.name, file.sync.namespace)
    else:
        target = await target_of(session, options.origin)
    if target.sync.ref != file.sync:
        raise Failure(f"{options.plan} is a plan for {file.sync}, not for {target.sync.ref}", status=ExitStatus.USAGE)
    return await _work(session, target, options, file)


async def _work(session: Session, target: Target, options: SyncOptions, file: PlanFile | None = None) -> int:
    """Plan, ask where something would go, and write; with a *file*, only what it says."""
    import asyncio

    from kubectl_reconcile.cli.output import render
    from kubectl_reconcile.cli.output.progress import Progress
    from kubectl_reconcile.cli.output.results import results_summary
    from kubectl_reconcile.cli.session import selected
    from kubectl_reconcile.engine.apply.writer import Writer
    from kubectl_reconcile.engine.commands import custom_resource
    from kubectl_reconcile.engine.sync import targets
    from kubectl_reconcile.engine.sync.books import tell
    from kubectl_reconcile.engine.sync.members_health import MembersHealth
    from kubectl_reconcile.engine.sync.reconcile import perform, settle

    started_s, members = time.monotonic(), _who_writes_members(session, target.sync)
    plan = await _planned(session, target, options, file, members)
    if any(change.writes for change in plan.changes):
        options.err.write(warned_of_putting_back(target.sync, options.origin))
    waited_s = _ask_before_deleting(plan, options)
    progress = Progress(options.out, options.err, tell_results=not options.look.output)
    progress.expect(plan)
    target = await targets.ensure_parent(session, target)
    if options.timeout_s:
        target = replace(target, sync=replace(target.sync, timeout_s=options.timeout_s))
    stopping = asyncio.Event()
    waits = options.wait and target.sync.waits_for_health
    health, unwell = MembersHealth(session.health_of(target.sync)), list[str]()
    hooks = replace(progress.hooks(), wrote=health.learn) if waits else progress.hooks()
    tend = functools.partial(custom_resource.tend, session, hooks)
    writer = Writer(session.client, hooks, stopping, tend=tend, members=members)
    with _told_what_is_left(progress):
        async with progress.drawn():
            with _stopped_by_ctrl_c(stopping, progress):
                done = await perform(session, target, plan, writer)
                plan = done.plan
            if stopping.is_set():
                raise asyncio.CancelledError
            if not plan.partial:  # part of a Sync says nothing about the whole
                done = replace(done, target=await tell(session, done.target, done.report))
            if _has_modules(session, plan):

                def choose(made: Plan) -> Plan:
                    return progress.expect(selected(session, options.chosen, made, among=[]))

                await settle(session, done, hooks, members=members, choose=choose)
            ended = _ended(plan, progress.counts(plan))
            if ended is ExitStatus.OK and waits:
                left_s = target.sync.timeout_s - (time.monotonic() - started_s - waited_s)
                health.found(plan)
                unwell = await health.until_well(members, plan, timeout_s=left_s, told=progress.awaits, tend=tend)
    counts = progress.counts(plan)
    options.err.write([*progress.slowest(), *render.problems_and_holds(plan)])
    options.err.write(line(text, Tone.BAD) for text in unwell)
    if options.look.output:
        options.out.write(_results(plan, done.report, progress, options.look.output))
    else:
        options.out.write([results_summary(counts, time.monotonic() - started_s - waited_s)])
    return ExitStatus.FAILED if unwell else ended


async def _planned(
    session: Session, target: Target, options: SyncOptions, file: PlanFile | None, members: Client
) -> Plan:
    """Return what is to be done, tried by the server where that takes no second round."""
    from kubectl_reconcile.cli.session import selected
    from kubectl_reconcile.engine.apply import dry_run
    from kubectl_reconcile.engine.sync import gather
    from kubectl_reconcile.engine.sync import reconcile as engine
    from kubectl_reconcile.engine.sync.signed_sources import require_verified

    plan = selected(session, options.chosen, await engine.preview(session, target), among=options.among)
    await require_verified(target, plan.revision)
    along = gather.lister(session)
    if file is None:
        return await dry_run.confirm_before_writing(
            session.client, plan, target.sync, along=along, members=members, looks=True
        )
    if file.confirmed:
        plan = await dry_run.confirm(session.client, plan, target.sync, along=along, members=members)
    if file.nested:
        plan = await diff.with_nested(session, target, options.origin, plan, offline=not file.confirmed)
    file.check(plan)
    return plan


def _results(plan: Plan, report: Report, progress: Progress, output: str) -> Iterable[Line]:
    """Return what was done in a form for programs."""
    from kubectl_reconcile.cli.output import render
    from kubectl_reconcile.cli.output.data.structured import structured
    from kubectl_reconcile.views import results

    if output == "name":
        return [line(render.name_of(each.change.ref)) for each in progress.results if each.wrote]
    return structured(results.document(plan, report, progress.results), output)


@contextlib.contextmanager
def _told_what_is_left(progress: Progress) -> Iterator[None]:
    """Have an interruption say what was written before it."""
    import asyncio

    from kubectl_reconcile.cli.output.results import DONE

    try:
        yield
    except asyncio.CancelledError:
        written = sum(1 for outcome in progress.outcomes.values() if outcome in DONE.values())
        objects = "1 object was" if written == 1 else f"{written} objects were"
        stays = f"{objects} written and stay{'s' * (written == 1)}; run it again to continue"
        raise Interrupted(stays if written else "nothing was written") from None


@contextlib.contextmanager
def _stopped_by_ctrl_c(stopping: asyncio.Event, progress: Progress) -> Iterator[None]:
    """Have Ctrl-C finish the requests under way and start no other; a second one ends the program at once."""
    import asyncio

    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)

    def restore() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)  # the loop's own, which closes what is open before the program ends

    def stop() -> None:
        restore()
        progress.write_line(line("stopping: running requests are finished, no new ones are started", Tone.ASIDE))
        stopping.set()

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        restore()


def _has_modules(session: Session, plan: Plan) -> bool:
    """Tell whether a second look is needed: modules learn from what the first one made."""
    return any(change.writes and change.kind and change.kind.gvk in session.modules for change in plan.changes)


def warned_of_putting_back(sync: Sync, origin: Origin) -> list[Line]:
    """Return a warning where *origin* brings to a Sync what its repository may not hold, and that isn't suspended."""
    is_own = origin.is_sync and not (origin.revision or origin.local)
    if is_own or sync.source is None or sync.suspend:
        return []
    name = f"{sync.namespace}/{sync.name}"
    followed = _place_of(sync.source)
    text = (
        f"warning: Sync {name} follows {followed}: the daemon, or the Sync's next sync, reverts what isn't there; "
        f"commit the change there, or suspend the Sync first: kubectl reconcile suspend {sync.name} -n {sync.namespace}"
    )
    return [line(text, Tone.WARNING)]


def _place_of(source: SourceSpec) -> str:
    from kubectl_reconcile.core.redaction import without_credentials

    if source.git is None and source.chart is not None:
        return str(source.chart)
    return f"{without_credentials(source.address)}, path {source.path}"


def _ask_before_deleting(plan: Plan, options: SyncOptions) -> float:
    """Show what would go and ask, where a person is there to answer; return how long that took, in seconds."""
    from kubectl_reconcile.cli.output import render

    doomed = list(render.ending(plan))
    if not doomed or options.yes or not may_ask():
        return 0.0
    began_s = time.monotonic()
    options.err.write(doomed)
    objects = "this object" if len(doomed) == 1 else f"these {len(doomed)} objects"
    if not confirmed(f"Delete {objects}?"):
        raise Failure(
            "nothing was written",
            "to keep an object without its file, annotate it reconcile.dev/prune=false",
            status=ExitStatus.HELD,
        )
    return time.monotonic() - began_s


def _ended(plan: Plan, counts: Counter[str]) -> ExitStatus:
    if counts["failed"] or counts["skipped"]:
        return ExitStatus.FAILED
    if plan.errors:
        return ExitStatus.SOURCE if any(problem.in_source for problem in plan.errors) else ExitStatus.FAILED
    return ExitStatus.HELD if plan.holds else ExitStatus.OK
