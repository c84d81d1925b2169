"""``kubectl reconcile install`` and ``uninstall``: the daemon in a cluster, with the rights it needs and no more."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import kubectl_reconcile
from kubectl_reconcile import IMAGE
from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.prompt import confirmed, may_ask
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.apply.results import Result
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session

IMAGE_DIGEST = ""
"""Where a release writes the digest of its image (``@sha256:…``); no other build has an image whose digest it could know."""


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile install --image registry.example.com/reconcile:0.1.0
  kubectl reconcile install --dry-run -o yaml > reconcile.yaml   to review
"""
)
@click.option("--image", metavar="IMAGE", help=f"Image of the daemon.  [default: {IMAGE.rpartition(':')[0]}:VERSION]")
@click.option(
    "--replicas", type=click.IntRange(min=1), default=1, show_default=True, help="How many daemons share the work."
)
@click.option(
    "--ui", is_flag=True, help="Have the daemon serve the page to people. They sign in with a token of the cluster."
)
@click.option(
    "--ui-url", multiple=True, metavar="URL",
    help="Address of that page: https, through a proxy. May be repeated.  [default: only localhost, by port-forward]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Don't write to the cluster, and don't read from it.")
@output("yaml")
@colour
@common
def install(
    connection: Connection,
    *,
    image: str | None,
    replicas: int,
    ui: bool,
    ui_url: tuple[str, ...],
    dry_run: bool,
    output: str | None,
    color: str,
) -> int:
    """Install CRDs, rights and the daemon. Writes to the cluster.

    -n names the daemon's namespace (default: reconcile-system). To upgrade, run install again: Syncs and their members
    don't change. Syncs apply their objects as ServiceAccounts of their own namespaces. To give these accounts rights,
    use kubectl reconcile grant.
    """
    from kubectl_reconcile.cli.early import access_of
    from kubectl_reconcile.cli.session import run
    from kubectl_reconcile.core import installation
    from kubectl_reconcile.core.redaction import without_credentials
    from kubectl_reconcile.web.addresses import NO_ORIGIN, origins_of

    if ui_url and not ui:
        raise click.UsageError("--ui-url needs --ui")
    try:
        urls = origins_of(ui_url) if ui else None
    except ValueError as error:
        raise click.BadParameter(NO_ORIGIN.format(without_credentials(str(error))), param_hint="--ui-url") from None
    place = access_of(connection).namespace
    manifests = manifests_of(place, image, replicas=replicas, page_urls=urls)
    if dry_run or output:
        _print(manifests, output, color)
    if dry_run:
        return ExitStatus.OK
    obsolete = [*installation.OBSOLETE, *(() if ui else installation.page_objects(place or installation.NAMESPACE))]
    return run(connection, functools.partial(_install, manifests=manifests, obsolete=obsolete, color=color))


def manifests_of(
    namespace: str | None, image: str | None, *, replicas: int = 1, page_urls: Sequence[str] | None = None
) -> list[Manifest]:
    """Return what is installed, CRDs first; None is the default of each. With *page_urls*, though it be empty, the daemon serves the page."""
    from kubectl_reconcile.core import installation
    from kubectl_reconcile.engine.commands.install import crds
    from kubectl_reconcile.engine.modules import metacontroller
    from kubectl_reconcile.engine.modules.registry import installed_modules

    chosen = image or f"{kubectl_reconcile.IMAGE}{IMAGE_DIGEST}"
    modules = [*installed_modules().all_loaded(), *metacontroller.modules_offline()]
    place = namespace or installation.NAMESPACE
    definitions = [located.manifest for located in crds()]
    ours = installation.objects(place, chosen, modules, definitions, replicas=replicas, page_urls=page_urls)
    return [*definitions, *ours]


def _print(manifests: list[Manifest], output: str | None, color: str) -> None:
    from kubectl_reconcile.core.objects import ObjectRef
    from kubectl_reconcile.views.yamltext import dump

    out, _ = terminals(color)
    for manifest in manifests:
        lines = ["---", *dump(manifest)] if output else [f"would apply {ObjectRef.of(manifest)}"]
        out.write(line(each) for each in lines)


async def _install(
    session: Session, *, manifests: list[Manifest], obsolete: Sequence[Mapping[str, Any]], color: str
) -> int:
    from kubectl_reconcile.engine.commands import install as engine

    out, err = terminals(color)
    await _warn_of_lost_rights(session, manifests, err)

    def told(result: Result) -> None:
        if result.state.value == "succeeded":
            word = "unchanged" if not result.wrote else "created" if result.change.op.value == "create" else "updated"
            out.write([_told(word, result.change.ref)])

    await engine.apply_all(session, manifests, told)
    out.write([_told("deleted", ref) for ref in await engine.remove_all(session, obsolete)])
    return ExitStatus.OK


async def _warn_of_lost_rights(session: Session, manifests: Sequence[Manifest], err: Terminal) -> None:
    """Where more rights are asked for than before, name the Syncs whose accounts lack some, and ask."""
    from kubectl_reconcile.engine.commands import install as engine
    from kubectl_reconcile.engine.commands.rights.survey import in_trouble

    why = await _what_asks_for_more(session, manifests) if engine.is_installed(session) else ""
    poor = await in_trouble(session) if why else ()
    if not poor:
        return
    err.write([line(f"{why}. These accounts lack rights:", Tone.WARNING)])
    for each in poor:
        err.write([line(f"  Sync {each.sync.namespace}/{each.sync.name}: {'; '.join(each.troubles)}", Tone.WARNING)])
        err.write([line(f"    {each.advice}", Tone.ASIDE)])
    if may_ask() and not confirmed("Install it anyway?"):
        raise Failure("nothing was installed", "the grants work with both versions", status=ExitStatus.HELD)


async def _what_asks_for_more(session: Session, manifests: Sequence[Manifest]) -> str:
    """Return what of this installation asks accounts of Syncs for rights that the installed one didn't; empty where nothing does."""
    from kubectl_reconcile.core import installation
    from kubectl_reconcile.core.objects import ObjectRef
    from kubectl_reconcile.core.planning.rights.policy import asks_for_more
    from kubectl_reconcile.engine.commands import install as engine

    if await engine.live(session, installation.OBSOLETE):
        return "the installed daemon writes with its own rights; this version writes as the account of each Sync"
    asking = [each for each in manifests if each["kind"].startswith("ValidatingAdmissionPolicy")]
    there = {ObjectRef.of(each): each for each in await engine.live(session, asking)}
    if any(asks_for_more(each, there.get(ObjectRef.of(each))) for each in asking):
        return (
            "this version has the API server ask who sets an image in a custom resource for the right to create pods, "
            "and who names a Secret for the right to get it"
        )
    return ""


def _told(word: str, ref: Any) -> Line:
    tone = {"created": Tone.ADDED, "updated": Tone.WARNING, "deleted": Tone.REMOVED}.get(word, Tone.ASIDE)
    return (Span(f"{word:<9}", tone), Span(f" {ref}"))


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile uninstall              the daemon and its rights
  kubectl reconcile uninstall --crds -y    also all Syncs and CRs
"""
)
@click.option(
    "--crds",
    is_flag=True,
    help="Remove the CRDs, too, and with them every Sync and every custom resource of our modules; delete those with finalizers before.",
)
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@colour
@common
def uninstall(connection: Connection, *, crds: bool, yes: bool, color: str) -> int:
    """Remove the daemon and its rights. The objects that it applied stay.

    -n names the daemon's namespace (default: reconcile-system), which is removed, too. Without a terminal, --yes is
    required.
    """
    from kubectl_reconcile.cli.early import access_of
    from kubectl_reconcile.cli.session import run

    manifests = [
        manifest
        for manifest in manifests_of(access_of(connection).namespace, None, page_urls=())
        if crds or manifest["kind"] != "CustomResourceDefinition"
    ]
    if not yes:
        what = "the daemon, its namespace" + (", and all Syncs and CRs of our kinds" if crds else "")
        if not may_ask():
            raise Failure("nothing was removed", "without a terminal, add --yes", status=ExitStatus.USAGE)
        if not confirmed(f"Remove {what}?"):
            raise Failure("nothing was removed", status=ExitStatus.HELD)
    return run(connection, functools.partial(_uninstall, manifests=manifests, color=color))


async def _uninstall(session: Session, *, manifests: list[Manifest], color: str) -> int:
    from kubectl_reconcile.engine.commands import install as engine

    out, _ = terminals(color)
    removed = await engine.remove_all(session, manifests)
    out.write([_told("deleted", ref) for ref in removed] or [line("nothing was installed", Tone.ASIDE)])
    return ExitStatus.OK
