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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.inspect import diff
from kubectl_reconcile.cli.output import failures, outputs
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Line, Span, Terminal, Tone, line

if TYPE_CHECKING:  # these import all that talks to clusters, which help and completion do without
    import asyncio

    from kubectl_reconcile.cli.output.progress import Progress
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.core.planning.planfile import PlanFile
    from kubectl_reconcile.core.resources.status import Report
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.sync.reconcile import Target
    from kubectl_reconcile.engine.sync.session import Session

_DAEMON_S = 300.0
_RESULTS = {"", "name", "json", "yaml"}


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How the user wants it done. *yes* answers every question."""

    origin: options.Origin
    chosen: options.Chosen
    yes: bool
    install: bool
    dry_run: bool
    wait: bool
    timeout_s: float | None
    plan: str
    look: outputs.OutputOptions
    out: Terminal
    err: Terminal


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile sync shop -n shop           now, not at the next poll
  kubectl reconcile sync shop deploy/web        one object of it
  kubectl reconcile sync -f . --name shop -y    a folder, without questions
  kubectl reconcile diff shop -o json > plan.json
  kubectl reconcile sync --plan plan.json       exactly what was shown
"""
)
@options.origin
@options.selection
@click.option("-A", "--all-namespaces", is_flag=True, help="All Syncs of all namespaces, one after another.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing. Without a terminal nothing is asked either.")
@click.option("--install", is_flag=True, help="Install the CRDs of kubectl-reconcile where they are missing.")
@click.option(
    "--plan",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Do exactly what this file says, as diff -o json wrote it, or nothing if source or cluster moved.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, as diff does, and write nothing.")
@click.option(
    "--wait/--no-wait", default=True, show_default=True, help="Wait until a daemon has done what it was asked for."
)
@click.option(
    "--timeout",
    type=options.DURATION,
    metavar="DURATION",
    help="How long to wait for a daemon, or for objects to be healthy.  [default: 5m, or the Sync's own]",
)
@options.output(*outputs.FORMATS)
@options.colour
@options.common
def sync(
    connection: options.Connection,
    origin: options.Origin,
    *,
    chosen: options.Chosen,
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
    """Make the cluster what the source of SYNC asks for. Writes to the cluster.

    Without SYNC, -f or --repo, the only Sync of the namespace is meant. Before anything is deleted, a
    person at a terminal is asked. OBJECT is TYPE/NAME, or the path of a file or folder/ in the repository: then
    no more than that, and what follows from it, is written, from here even where a daemon follows.
    """
    if all_namespaces and (origin != options.Origin() or plan):
        raise click.UsageError(
            "-A is for all that the Syncs follow; drop SYNC, --plan and the flags that name a source"
        )
    if not origin.is_sync and not origin.name:
        raise click.UsageError(
            "-f and --repo need --name: the Sync of that name remembers which objects belong together, "
            "so that one whose file goes can be deleted later"
        )
    form = output or ""
    if not dry_run and form.partition("=")[0] not in {*_RESULTS, "jsonpath"}:
        raise click.UsageError(f"-o {form} shows a plan; add --dry-run, or use diff")
    look = outputs.OutputOptions(form or ("diff" if dry_run else ""), color)
    with options.readable(origin) as source:
        wishes = SyncOptions(
            source, chosen, yes, install, dry_run, wait, timeout, plan or "", look, *options.screens(color)
        )
        return connection.run(functools.partial(_everywhere if all_namespaces else _sync, wishes=wishes))


async def _everywhere(session: Session, wishes: SyncOptions) -> int:
    """Sync every Sync of the cluster, one after another; one that fails stops no other. Return the worst status."""
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - imports all that talks to clusters

    worst = 0
    for namespace, name in await targets.followed_syncs(session):
        wishes.err.write([line(f"Sync {namespace}/{name}", Tone.TITLE)], options.stderr())
        try:
            origin = options.Origin(name, namespace=namespace)
            worst = max(worst, await _sync(session, replace(wishes, origin=origin)))
        except Exception as error:  # noqa: BLE001 - told as any other; what isn't a user's goes on up
            worst = max(worst, failures.told(error))
    return worst


async def _sync(session: Session, wishes: SyncOptions) -> int:
    if wishes.dry_run:
        return _shown(await diff.preview(session, wishes.origin, chosen=wishes.chosen), wishes)
    await _ensure_installed(session, wishes)
    if wishes.plan:
        return await _carry_out(session, wishes)
    if wishes.origin.is_sync and (sync := await _followed(session, wishes.origin)):
        if not (wishes.origin.revision or wishes.origin.local):
            if wishes.chosen.is_everything:
                return await _ask_daemon(session, sync, wishes)
        else:
            raise Failure(
                f"a daemon follows {sync.namespace}/{sync.name}, and would put anything else back",
                "preview it with diff, or suspend the Sync first",
                status=ExitStatus.USAGE,
            )
    return await _work(session, await options.target_of(session, wishes.origin), wishes)


def _shown(plan: Plan, wishes: SyncOptions) -> int:
    from kubectl_reconcile.cli.output.render import PlanView  # noqa: PLC0415 - imports the planner

    outputs.show([plan], PlanView(options.now()), wishes.look)
    status = diff.status_of(plan)
    return ExitStatus.OK if status is ExitStatus.DIFFERENT else status


async def _ensure_installed(session: Session, wishes: SyncOptions) -> None:
    """Install our CRDs where they are missing and the user says so."""
    from kubectl_reconcile.engine.commands import install  # noqa: PLC0415 - imports all that talks to clusters

    if install.is_installed(session):
        return
    missing = f"the cluster {session.client.server} doesn't know Syncs yet"
    if not (wishes.install or wishes.yes or (options.may_ask() and _confirmed(f"{missing}. Install their CRDs?"))):
        raise Failure(missing, "add --install to install their CRDs", status=ExitStatus.USAGE)
    from kubectl_reconcile.cli.output.progress import result_line  # noqa: PLC0415 - imports asyncio

    for result in await install.ensure_crds(session):
        wishes.err.write([result_line(result)], options.stderr())


async def _followed(session: Session, origin: options.Origin) -> Sync | None:
    """Return the Sync if a daemon looks after it, else None."""
    from kubectl_reconcile.core.resources.sync import Sync  # noqa: PLC0415 - the core, which help does without
    from kubectl_reconcile.engine.api.sync_requests import daemon_alive  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - the same

    namespace = origin.namespace or session.client.namespace
    if not await daemon_alive(session.client, namespace):
        return None
    sync = Sync.of(await targets.live_sync(session, origin.name, namespace))
    return sync if sync.git else None


# --- by the daemon ----------------------------------------------------------------------------------------------------


async def _ask_daemon(session: Session, sync: Sync, wishes: SyncOptions) -> int:
    """Ask the daemon for a sync, and tell how it goes."""
    import asyncio  # noqa: PLC0415 - help does without

    from kubectl_reconcile.cli.output.progress import Progress  # noqa: PLC0415 - imports asyncio
    from kubectl_reconcile.engine.api import sync_requests  # noqa: PLC0415 - imports all that talks to clusters

    token = await sync_requests.request_sync(session.client, sync)
    name = f"{sync.namespace}/{sync.name}"
    wishes.err.write([line(f"asked the daemon to sync {name}", Tone.ASIDE)], options.stderr())
    if not wishes.wait:
        return ExitStatus.OK
    timeout_s = wishes.timeout_s or _DAEMON_S
    where = f"kubectl reconcile status {sync.name} -n {sync.namespace}"
    live, progress = None, Progress(wishes.out, wishes.err)
    try:
        async with progress.drawn():
            progress.waits(sync.ref, "waiting for the daemon")
            async for live in sync_requests.follow(session.client, sync, token, timeout_s=timeout_s):
                if text := _doing(live):
                    progress.note(sync.ref, text)
    except asyncio.CancelledError:
        hint = f"see how it goes: {where}"
        raise Failure("stopped waiting; the daemon goes on by itself", hint, status=ExitStatus.INTERRUPTED) from None
    except TimeoutError:
        raise Failure(
            f"the daemon didn't finish {name} within {timeout_s:.0f} s", f"it goes on by itself; see: {where}"
        ) from None
    return _outcome(live or {}, wishes)


def _doing(live: Manifest) -> str:
    """Return what the daemon is at; empty where it is at nothing."""
    from kubectl_reconcile.core.objects import condition_of  # noqa: PLC0415 - the core, which help does without

    busy = condition_of(live, "Reconciling") or {}
    return str(busy.get("message") or "") if busy.get("status") == "True" else ""


def _outcome(live: Manifest, wishes: SyncOptions) -> int:
    """Tell how the daemon's sync ended, and return the exit status of that."""
    from kubectl_reconcile.cli.inspect import status  # noqa: PLC0415 - imports the planner
    from kubectl_reconcile.cli.output import render  # noqa: PLC0415 - imports the planner
    from kubectl_reconcile.cli.output.progress import DONE  # noqa: PLC0415 - imports asyncio
    from kubectl_reconcile.core.objects import condition_of  # noqa: PLC0415 - the core, which help does without

    ready = condition_of(live, "Ready") or {}
    reason, message = str(ready.get("reason", "")), str(ready.get("message", ""))
    found = live.get("status") or {}
    wishes.err.write((line(str(problem), Tone.BAD) for problem in found.get("problems") or ()), options.stderr())
    warned = (line(f"warning: {each}", Tone.WARNING) for each in found.get("warnings") or ())
    wishes.err.write(warned, options.stderr())
    counts = dict(found.get("summary") or {})
    revision = status.short(str(found.get("lastAttemptedRevision", "")))
    ended = STATUS_OF_REASON.get(reason, ExitStatus.FAILED) if ready.get("status") != "True" else ExitStatus.OK
    tone = Tone.GOOD if ended is ExitStatus.OK else Tone.WARNING if ended is ExitStatus.HELD else Tone.BAD
    if wishes.look.output:
        wishes.out.write(status.documents([live], wishes.look.output, one=True))
        return ended
    wishes.out.write([(Span(reason or "Unknown", tone), Span(f" {revision}: {message}"))])
    if any(counts.get(word) for word in DONE.values()):
        wishes.out.write([render.counted(counts)])
    if reason == "Held":
        metadata = live["metadata"]
        advice = f"to let them go: kubectl reconcile approve {metadata['name']} -n {metadata['namespace']}"
        wishes.err.write([line(advice, Tone.WARNING)], options.stderr())
    return ended


STATUS_OF_REASON = {
    "Synced": ExitStatus.OK,
    "Suspended": ExitStatus.HELD,
    "Held": ExitStatus.HELD,
    "SourceUnavailable": ExitStatus.SOURCE,
    "ProblemsInSource": ExitStatus.SOURCE,
    "ClusterUnavailable": ExitStatus.CLUSTER,
    "InvalidSpec": ExitStatus.USAGE,
}
"""Exit statuses for what the condition Ready of a Sync gives as its reason; any other is a failure."""


# --- by ourselves -----------------------------------------------------------------------------------------------------


async def _carry_out(session: Session, wishes: SyncOptions) -> int:
    """Do what a plan file says, if the plan made now is the same."""
    from kubectl_reconcile.core.planning.planfile import PlanFile  # noqa: PLC0415 - imports the planner
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - imports all that talks to clusters

    with click.open_file(wishes.plan, "rb") as stream:
        file = PlanFile.parse(stream.read())
    if wishes.origin.is_sync and not wishes.origin.name:
        target = await targets.sync_target(session, file.sync.name, file.sync.namespace)
    else:
        target = await options.target_of(session, wishes.origin)
    if target.sync.ref != file.sync:
        raise Failure(f"{wishes.plan} is a plan for {file.sync}, not for {target.sync.ref}", status=ExitStatus.USAGE)
    return await _work(session, target, wishes, file)


async def _work(session: Session, target: Target, wishes: SyncOptions, file: PlanFile | None = None) -> int:
    """Plan, ask where something would go, and write; with a *file*, only what it says."""
    import asyncio  # noqa: PLC0415 - help does without

    from kubectl_reconcile.cli.output import render  # noqa: PLC0415 - imports the planner
    from kubectl_reconcile.cli.output.progress import Progress  # noqa: PLC0415 - imports asyncio
    from kubectl_reconcile.engine.apply import dry_run  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.apply.writer import Writer  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.commands import custom_resource  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.sync import reconcile as engine  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - the same

    started_s = time.monotonic()
    plan = wishes.chosen.of(session, await engine.plan(session, target))
    if file is None:
        plan = await dry_run.confirm_before_writing(session.client, plan, target.sync)
    else:
        plan = await dry_run.confirm(session.client, plan, target.sync) if file.confirmed else plan
        file.check(plan)
    waited_s = _ask_before_deleting(plan, wishes)
    pending = sum(1 for change in plan.changes if change.writes)
    progress = Progress(wishes.out, wishes.err, pending, tell_results=not wishes.look.output)
    target = await targets.ensure_parent(session, target)
    if wishes.timeout_s:
        target.sync = replace(target.sync, timeout_s=wishes.timeout_s)
    stopping = asyncio.Event()
    tend = functools.partial(custom_resource.tend, session, progress.hooks())
    writer = Writer(session.client, progress.hooks(), stopping, tend=tend)
    async with progress.drawn():
        with _stopped_by_ctrl_c(stopping, progress):
            done = await engine.perform(session, target, plan, writer)
            plan = done.plan
        if stopping.is_set():
            raise KeyboardInterrupt
        if not plan.partial:  # part of a Sync says nothing of the whole
            await engine.tell(session, target, done.report)
        if _has_modules(session, plan):
            choose = functools.partial(wishes.chosen.of, session)
            await engine.settle(session, target, progress.hooks(), choose=choose)
    counts = progress.counts(plan)
    wishes.err.write([*progress.slowest(), *render.waiting(plan)], options.stderr())
    if wishes.look.output:
        wishes.out.write(_results(plan, done.report, progress, wishes.look.output))
    else:
        wishes.out.write([render.results_summary(counts, time.monotonic() - started_s - waited_s)])
    return _ended(plan, counts)


def _results(plan: Plan, report: Report, progress: Progress, output: str) -> Iterable[Line]:
    """Return what was done in a form for programs."""
    from kubectl_reconcile.cli.output import render  # noqa: PLC0415 - imports the planner
    from kubectl_reconcile.cli.output.progress import results_document  # noqa: PLC0415 - imports asyncio

    if output == "name":
        return [line(render.name_of(each.change.ref)) for each in progress.results if each.wrote]
    return outputs.structured(results_document(plan, report, progress.results), output)


@contextlib.contextmanager
def _stopped_by_ctrl_c(stopping: asyncio.Event, progress: Progress) -> Iterator[None]:
    """Have Ctrl-C finish the requests under way and start no other; a second one ends the program at once."""
    import asyncio  # noqa: PLC0415 - help does without

    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        progress.say(line("stopping: requests under way are finished, no other is started", Tone.ASIDE))
        stopping.set()

    loop.add_signal_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _has_modules(session: Session, plan: Plan) -> bool:
    """Tell whether a second look is needed: modules learn from what the first one made."""
    return any(change.writes and change.kind and change.kind.gvk in session.modules for change in plan.changes)


def _ask_before_deleting(plan: Plan, wishes: SyncOptions) -> float:
    """Show what would go and ask, where a person is there to answer; return how long that took, in seconds."""
    doomed = [change for change in plan.changes if change.op.value in {"delete", "replace"} and change.writes]
    if not doomed or wishes.yes or not options.may_ask():
        return 0.0
    began_s = time.monotonic()
    lines = [line(f"{change.op.value:<8} {change.ref}", Tone.REMOVED) for change in doomed]
    wishes.err.write(lines, options.stderr())
    objects = "this object" if len(doomed) == 1 else f"these {len(doomed)} objects"
    if not _confirmed(f"Delete {objects}?"):
        raise Failure(
            "nothing was written",
            "to keep an object without its file, annotate it reconcile.dev/prune=false",
            status=ExitStatus.HELD,
        )
    return time.monotonic() - began_s


def _confirmed(question: str) -> bool:
    return click.confirm(question, default=False, err=True)


def _ended(plan: Plan, counts: Counter[str]) -> ExitStatus:
    if counts["failed"] or counts["skipped"]:
        return ExitStatus.FAILED
    if plan.errors:
        return ExitStatus.SOURCE if any(problem.in_source for problem in plan.errors) else ExitStatus.FAILED
    return ExitStatus.HELD if plan.holds else ExitStatus.OK
