"""``kubectl reconcile create``: a Sync, made once its repository has been looked at."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.inspect import status
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Terminal, Tone, line

if TYPE_CHECKING:  # these import all that talks to clusters, which help and completion do without
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session

_PROBLEMS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _CreateOptions:
    """The Sync that is wanted, and how to go about it."""

    name: str
    git: Mapping[str, Any]
    spec: Mapping[str, Any]
    check: bool
    dry_run: bool
    output: str
    out: Terminal
    err: Terminal


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile create shop --url https://git.example.com/shop.git
  kubectl reconcile create shop --url … --path apps/shop --secret shop-git
  kubectl reconcile create shop --url … --dry-run -o yaml > shop.yaml
"""
)
@click.argument("name", metavar="SYNC")
@click.option(
    "--url", required=True, metavar="URL", help="Address of the repository: https, http, ssh or user@host:path."
)
@click.option("--branch", metavar="NAME", help="Branch to follow.  [default: the repository's own]")
@click.option("--tag", metavar="NAME", help="Tag to stay at, instead of a branch.")
@click.option("--commit", metavar="SHA", help="Commit to stay at, all 40 digits, instead of a branch.")
@click.option("--path", default=".", show_default=True, metavar="PATH", help="Folder or file in the repository.")
@click.option("--interval", default="1m", show_default=True, metavar="DURATION", help="How often to ask for news.")
@click.option("--secret", metavar="NAME", help="Secret of the namespace with the repository's credentials.")
@click.option(
    "--target-namespace", metavar="NAME", help="Where objects go that name no namespace.  [default: the Sync's]"
)
@click.option("--field-manager", metavar="NAME", help="Field manager to apply as.  [default: kubectl-reconcile]")
@click.option("--prune/--no-prune", default=True, show_default=True, help="Delete objects whose file goes.")
@click.option(
    "--drift", type=click.Choice(["Correct", "Report", "Ask"]), help="What becomes of drift.  [default: Correct]"
)
@click.option(
    "--conflicts",
    type=click.Choice(["Override", "Yield", "Fail"]),
    help="What becomes of fields that somebody else owns.  [default: Override]",
)
@click.option("--suspend", is_flag=True, help="Don't sync before somebody resumes it.")
@click.option("--check/--no-check", default=True, show_default=True, help="Read repository and path first.")
@click.option("--dry-run", is_flag=True, help="Check all, have the server try it, and write nothing.")
@options.output("name", "json", "yaml")
@options.colour
@options.common
def create(
    connection: options.Connection,
    name: str,
    *,
    url: str,
    branch: str | None,
    tag: str | None,
    commit: str | None,
    path: str,
    interval: str,
    secret: str | None,
    target_namespace: str | None,
    field_manager: str | None,
    prune: bool,
    drift: str | None,
    conflicts: str | None,
    suspend: bool,
    check: bool,
    dry_run: bool,
    output: str | None,
    color: str,
) -> int:
    """Create the Sync SYNC, once its repository and path have been read. Writes the Sync.

    With --dry-run -o yaml it prints the manifest, to be kept in Git itself.
    """
    if sum(map(bool, (branch, tag, commit))) > 1:
        raise click.UsageError("--branch, --tag and --commit exclude each other")
    ref = {"branch": branch, "tag": tag, "commit": commit}
    git = {"url": url, **ref, "path": path, "interval": interval, "secretRef": {"name": secret} if secret else None}
    spec = {
        "targetNamespace": target_namespace,
        "fieldManager": field_manager,
        "prune": None if prune else False,
        "drift": drift,
        "conflicts": conflicts,
        "suspend": True if suspend else None,
    }
    wishes = _CreateOptions(name, git, spec, check, dry_run, output or "", *options.screens(color))
    return connection.run(functools.partial(_created, wishes=wishes))


async def _created(session: Session, *, wishes: _CreateOptions) -> int:
    from kubectl_reconcile.cluster.errors import AlreadyExists  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.core.resources.sync import Sync  # noqa: PLC0415 - the core, which help does without
    from kubectl_reconcile.engine.commands import create, install  # noqa: PLC0415 - as above
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - as above

    namespace = session.client.namespace
    manifest = create.manifest_of(wishes.name, namespace, wishes.git, wishes.spec)
    Sync.of(manifest)
    if not wishes.dry_run:
        targets.require_installed(session)
    if wishes.check:
        await _looked_at(session, manifest, wishes)
    live: Manifest = manifest
    if install.is_installed(session):
        try:
            live = await create.create(session, manifest, dry_run=wishes.dry_run)
        except AlreadyExists:
            hint = f"to change it: kubectl edit sync {wishes.name} -n {namespace}"
            raise Failure(f"there is a Sync {wishes.name} in namespace {namespace} already", hint) from None
    _tell(manifest if wishes.dry_run else live, wishes)
    if not wishes.dry_run:
        await _warn_of_no_daemon(session, namespace, wishes)
    return ExitStatus.OK


async def _looked_at(session: Session, manifest: Manifest, wishes: _CreateOptions) -> None:
    """Read the repository, and tell what is there."""
    from kubectl_reconcile.engine.commands import create  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.source.errors import SourceError  # noqa: PLC0415 - the same

    try:
        found = await create.look(session, manifest)
    except SourceError as error:
        again = "; --no-check creates the Sync all the same"
        raise Failure(
            error.message, f"{error.hint or 'check --url, --branch and --path'}{again}", status=ExitStatus.SOURCE
        ) from None
    objects = "1 object" if found.objects == 1 else f"{found.objects} objects"
    files = "1 file" if found.files == 1 else f"{found.files} files"
    text = f"{status.short(found.revision)} has {objects} in {files}"
    tone = Tone.ASIDE if found.objects and not found.problems else Tone.WARNING
    wishes.err.write([line(text, tone)], options.stderr())
    shown = found.problems[:_PROBLEMS_SHOWN]
    wishes.err.write((line(f"warning: {problem}", Tone.WARNING) for problem in shown), options.stderr())


def _tell(manifest: Manifest, wishes: _CreateOptions) -> None:
    from kubectl_reconcile.cli.output import render  # noqa: PLC0415 - imports the planner

    match wishes.output:
        case "json":
            wishes.out.write(render.json_lines(status.document([manifest], one=True)))
        case "yaml":
            wishes.out.write(render.yaml_lines(status.document([manifest], one=True)))
        case "name":
            wishes.out.write([line(f"sync.reconcile.dev/{wishes.name}")])
        case _:
            how = "created (dry run)" if wishes.dry_run else "created"
            wishes.out.write([line(f"sync.reconcile.dev/{wishes.name} {how}", Tone.GOOD)])


async def _warn_of_no_daemon(session: Session, namespace: str, wishes: _CreateOptions) -> None:
    from kubectl_reconcile.engine.api import sync_requests  # noqa: PLC0415 - imports all that talks to clusters

    if not await sync_requests.daemon_alive(session.client, namespace):
        how = (
            f"kubectl reconcile daemon follows it, kubectl reconcile sync {wishes.name} -n {namespace} applies it once"
        )
        wishes.err.write([line(f"no daemon lives: {how}", Tone.WARNING)], options.stderr())
