"""``kubectl reconcile accept`` and ``adopt``: what the cluster holds becomes what Git asks for.

``accept`` writes drifted fields into the files that ask for them, or into patches of the Sync; ``adopt`` writes files for objects that no file asks
for yet. Both write into a working tree, or push a commit to a branch; neither writes to members.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour, given
from kubectl_reconcile.cli.options.origin import Origin, origin
from kubectl_reconcile.cli.options.selection import Chosen, selection
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.commands.accept import Accepted
    from kubectl_reconcile.engine.sync.session import Session
    from kubectl_reconcile.engine.sync.target import Target


def _destination(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say where its files go, besides --local."""
    flags = (
        click.option("--branch", metavar="NAME", default="", help="Push a commit to this branch, which may be new."),
        click.option("-m", "--message", metavar="TEXT", default="", help="Message of that commit."),
    )
    return given(flags, command)


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile accept shop --local .                    into its files
  kubectl reconcile accept shop deploy/web --branch keep-7   as a commit
  kubectl reconcile accept -f shop --name shop               into a folder
  kubectl reconcile accept shop deploy/web --patches         into the Sync
"""
)
@origin
@selection
@_destination
@click.option("--patches", is_flag=True, help="Write into spec.source.kustomize of the Sync, and into no file.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@colour
@common
def accept(
    connection: Connection,
    origin: Origin,
    *,
    chosen: Chosen,
    branch: str,
    message: str,
    patches: bool,
    dry_run: bool,
    color: str,
) -> int:
    """Write drift back into the manifests. Writes files, pushes a commit, or writes the Sync.

    Comments and layout of the files are kept. Fields that were changed in Git too, and values of Secrets, are left alone.

    In an overlay, accept changes the patch that sets the field, or adds a new patch to the kustomization. It never
    changes a base. In a chart, it changes a value in a values file, if this value sets only this field. Everything is
    rendered again to check the result.

    With --patches, accept changes what the Sync itself changes of its objects, which works over manifests, overlays and
    charts: the patch or image that sets the field, or a new patch. If the Sync is itself a member of a Sync, it only
    prints what to write into its file.
    """
    from kubectl_reconcile.cli.session import run

    if origin.values or origin.sets:
        raise click.UsageError("accept writes what a chart's files are to say: --values and --set aren't among them")
    if origin.repo or (bool(origin.file) + bool(origin.local) + bool(branch) + patches) != 1:
        raise click.UsageError(
            "say where it goes: --local FOLDER, --branch NAME, -f FOLDER --name NAME, or --patches into the Sync"
        )
    if patches and message:
        raise click.UsageError("--message is that of a commit, and --patches makes none")
    if origin.file and not origin.name:
        raise click.UsageError("-f needs --name: that Sync records what was applied")
    work = functools.partial(
        accepted,
        origin=origin,
        chosen=chosen,
        branch=branch,
        message=message,
        patches=patches,
        dry_run=dry_run,
        color=color,
    )
    return run(connection, work)


async def accepted(
    session: Session,
    *,
    origin: Origin,
    chosen: Chosen,
    color: str,
    branch: str = "",
    message: str = "",
    patches: bool = False,
    dry_run: bool = False,
) -> int:
    """Accept what drifted, and return the exit status.

    Raises:
        SourceError: a file can't be read or written, or the branch can't be pushed to.
        ApiError: the server refuses, or doesn't answer.
    """
    from kubectl_reconcile.cli.session import selected, target_of
    from kubectl_reconcile.engine.commands import accept as engine
    from kubectl_reconcile.engine.sync import reconcile

    out, err = terminals(color)
    target = await target_of(session, origin)
    if patches:
        _check_not_pinned(target)
    plan = selected(session, chosen, await reconcile.plan(session, target))
    found = await engine.accept(session, target, plan, patches=patches)
    out.write(lines_of(found))
    err.write(line(f"left: {why}", Tone.WARNING) for why in found.left)
    if not found.taken:
        err.write([line("nothing to accept", Tone.ASIDE)])
    elif patches:
        await _into_sync(session, target, found, out, dry_run=dry_run)
    elif not dry_run:
        what = message or f"Accept drift of {_object_count(len({taken.ref for taken in found.taken}))}"
        await _put(
            session, target, found.files, _Destination(plan.revision, branch, what, rendered=found.rendered), out
        )
    return ExitStatus.OK


def _check_not_pinned(target: Target) -> None:
    """Return if the Sync isn't rolled back: by resuming it, what it said before comes back.

    Raises:
        Failure: it is.
    """
    from kubectl_reconcile.engine.commands import suspend_resume

    live = target.parent
    if live is not None and suspend_resume.is_pinned(live):
        name, namespace = live["metadata"]["name"], live["metadata"]["namespace"]
        raise Failure(
            f"{namespace}/{name} is rolled back; when it is resumed, it says again what it said before",
            f"first: kubectl reconcile resume {name} -n {namespace}",
            status=ExitStatus.HELD,
        )


async def _into_sync(session: Session, target: Target, found: Accepted, out: Terminal, *, dry_run: bool) -> None:
    """Have the Sync say what was found; show its entries where it doesn't, since somebody else writes it or nothing is to be written.

    Raises:
        Failure: it is a member of a Sync, which would undo it.
    """
    from kubectl_reconcile.core.annotations import MemberOptions
    from kubectl_reconcile.engine.commands import accept as engine
    from kubectl_reconcile.engine.commands import suspend_resume
    from kubectl_reconcile.views.yamltext import dump

    live = target.parent or {}
    is_kept = suspend_resume.is_kept_by_another(live)
    if not dry_run and not is_kept:
        await engine.patch(session, target, found.said or {})
        return
    for place, entry in (found.entries or {}).items():
        out.write([line(f"# {place}", Tone.ASIDE), *map(line, dump([entry]))])
    if is_kept and not dry_run:
        name, file = live["metadata"]["name"], MemberOptions.of(live).source or "a file"
        raise Failure(
            f"{name} is itself a member of a Sync, from {file}, which would undo this; nothing was written",
            f"write what is shown above into {file}",
            status=ExitStatus.HELD,
        )


def lines_of(accepted: Accepted) -> list[Line]:
    """Return a line for each field that is taken into a file."""
    from kubectl_reconcile.cli.output.layouts import value_text

    return [
        (
            Span(f"{taken.file}: ", Tone.PLACE),
            Span(f"{taken.ref} {taken.field.path}  "),
            Span(value_text(taken.field.after), Tone.REMOVED),
            Span(" → "),
            Span(value_text(taken.field.before), Tone.ADDED),
        )
        for taken in accepted.taken
    ]


def _object_count(objects: int) -> str:
    return "1 object" if objects == 1 else f"{objects} objects"


class _Destination:
    """Where files go: onto *branch* on top of the commit *parent*, or into the folder where *branch* is empty.

    Files that something is *rendered* from go into the tree that the folder is in.
    """

    def __init__(self, parent: str, branch: str, message: str, *, rendered: bool = False) -> None:
        self.parent, self.branch, self.message, self.rendered = parent, branch, message, rendered


async def _put(
    session: Session, target: Target, files: Mapping[str, bytes], place: _Destination, out: Terminal
) -> None:
    from kubectl_reconcile.engine.commands import accept as engine

    if not place.branch:
        engine.write(target, files, rendered=place.rendered)
        return
    made = await engine.push(session, target, place.parent, place.branch, files, place.message)
    out.write([line(f"pushed {made[:7]} to {place.branch}", Tone.GOOD)])


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile adopt deploy/web svc/web --sync shop         shows
  kubectl reconcile adopt deploy/web --sync shop --local .       writes
  kubectl reconcile adopt deploy/web --sync shop --branch adopt  pushes
  kubectl reconcile adopt deploy/web --sync gitops/shop -n shop  of another
"""
)
@click.argument("objects", nargs=-1, required=True, metavar="OBJECT...")
@click.option("--sync", "sync", metavar="[NAMESPACE/]NAME", required=True, help="Sync to add them to.")
@click.option(
    "--local",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Write into this working tree of the Sync's repository.",
)
@_destination
@colour
@common
def adopt(
    connection: Connection,
    objects: tuple[str, ...],
    *,
    sync: str,
    local: str | None,
    branch: str,
    message: str,
    color: str,
) -> int:
    """Write manifests for live objects, to add them to a Sync. Writes files, or pushes a commit.

    OBJECT is TYPE/NAME, in the target namespace of the Sync. If the objects are in another namespace, name it with -n,
    and write --sync NAMESPACE/NAME. Fields that the server, controllers and tools added are left out.

    Nothing changes in the cluster until the next sync, which adopts the objects. Without --local or --branch, the
    manifests are only printed.
    """
    from kubectl_reconcile.cli.session import run

    if local and branch:
        raise click.UsageError("--local and --branch exclude each other")
    namespace, slash, name = sync.rpartition("/")
    if not name or "/" in namespace or bool(slash) != bool(namespace):
        raise click.UsageError(f"--sync {sync!r} isn't a Sync: write NAME, or NAMESPACE/NAME")
    origin = Origin(name, namespace=namespace, local=local or "")
    work = functools.partial(
        _adopt,
        objects=objects,
        origin=origin,
        theirs=connection.namespace if namespace else "",
        branch=branch,
        message=message,
        color=color,
    )
    return run(connection, work)


async def _adopt(
    session: Session,
    *,
    objects: tuple[str, ...],
    origin: Origin,
    theirs: str,
    branch: str,
    message: str,
    color: str,
) -> int:
    """Adopt *objects* of the namespace *theirs*, or else of that to which the Sync's objects go."""
    from kubectl_reconcile.cli.session import target_of
    from kubectl_reconcile.engine.sync import reconcile, targets
    from kubectl_reconcile.views.yamltext import dump_object

    out, _ = terminals(color)
    namespace = origin.namespace or session.client.namespace
    under = await _sync_of(session, origin.name, namespace)
    manifests = await _manifests(session, under, objects, theirs or under.default_namespace)
    if not (origin.local or branch):
        texts = [text for manifest in manifests for text in ("---", *dump_object(manifest))]
        out.write(map(line, texts[1:]))
        return ExitStatus.OK
    if under.source is None and origin.local:
        target = await targets.folder_target(session, Path(origin.local), under.name, namespace)
    else:
        target = await target_of(session, origin)
    revision = (await reconcile.read(session, target)).revision
    if revision.overlay is not None and not revision.is_plain:
        raise Failure(
            f"{revision.path} is an overlay: a file in it has an effect only if the kustomization names it",
            "leave out --local and --branch to print the manifests, and add them by hand",
            status=ExitStatus.USAGE,
        )
    files = {_file_of(under, each): "".join(f"{text}\n" for text in dump_object(each)).encode() for each in manifests}
    if there := sorted(files.keys() & revision.files.keys()):
        raise Failure(f"{there[0]} already exists", "move it, or add the object to it by hand", status=ExitStatus.USAGE)
    what = message or f"Adopt {_object_count(len(files))}"
    await _put(session, target, files, _Destination(revision.sha, branch, what), out)
    out.write(line(file, Tone.ADDED) for file in files)
    return ExitStatus.OK


async def _sync_of(session: Session, name: str, namespace: str) -> Sync:
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.sync import targets
    from kubectl_reconcile.engine.sync.targets import NoSuchSync

    try:
        return Sync.of(await targets.live_sync(session, name, namespace))
    except NoSuchSync as error:
        if not error.elsewhere:
            raise
        there = error.elsewhere[0]
        hint = f"namespace {there} has one: --sync {there}/{name}"
        raise Failure(str(error), hint, status=ExitStatus.USAGE) from None


async def _manifests(session: Session, under: Sync, objects: tuple[str, ...], namespace: str) -> list[Manifest]:
    """Return the objects named, of *namespace*, as they would be written by hand.

    Raises:
        Failure: one of them can't be brought under a Sync.
        NoSuchKind, ApiError: there is no such object, or the server refuses.
    """
    from kubectl_reconcile.core.manifests import export
    from kubectl_reconcile.core.objects import GroupVersionKind
    from kubectl_reconcile.engine.commands import find_object as live_objects

    found: list[Manifest] = []
    for text in objects:
        live = await live_objects.live(session, text, namespace)
        if why := export.why_not(live):
            raise Failure(f"{text} can't be adopted: {why}", status=ExitStatus.USAGE)
        kind = GroupVersionKind.of(live)
        schema = (await session.kind(kind)).schema
        found.append(export.as_manifest(live, schema, under.default_namespace))
    return found


def _file_of(under: Sync, manifest: Manifest) -> str:
    folder = under.source.path.strip("./") if under.source else ""
    name = f"{manifest['kind'].lower()}-{manifest['metadata']['name'].replace(':', '-')}.yaml"
    return f"{folder}/{name}" if folder else name
