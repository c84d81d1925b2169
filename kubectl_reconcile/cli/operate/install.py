"""``kubectl reconcile install`` and ``uninstall``: the daemon in a cluster, with the rights it needs and no more."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Line, Span, Tone, line

if TYPE_CHECKING:  # these import all that talks to clusters, which help and completion do without
    from kubectl_reconcile.core.apply.results import Result
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session

IMAGE = "ghcr.io/kubectl-reconcile/kubectl-reconcile"


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile install --image registry.example.com/reconcile:0.1.0
  kubectl reconcile install --dry-run -o yaml > reconcile.yaml   to review
"""
)
@click.option("--image", metavar="IMAGE", help=f"Image of the daemon.  [default: {IMAGE}:VERSION]")
@click.option(
    "--cluster-admin", is_flag=True,
    help="Let the daemon write every kind. Without, it writes what ClusterRoles labelled "
    "reconcile.dev/aggregate-to-daemon=true allow.",
)  # fmt: skip
@click.option(
    "--replicas", type=click.IntRange(min=1), default=1, show_default=True, help="How many daemons share the work."
)
@click.option("--dry-run", is_flag=True, help="Write nothing to the cluster, and ask it nothing.")
@options.output("yaml")
@options.colour
@options.common
def install(
    connection: options.Connection,
    *,
    image: str | None,
    cluster_admin: bool,
    replicas: int,
    dry_run: bool,
    output: str | None,
    color: str,
) -> int:
    """Install CRDs, rights and the daemon. Writes to the cluster.

    -n says where the daemon lives (default: reconcile-system). Running it again brings all of it up to
    date; Syncs and what belongs to them aren't touched.
    """
    manifests = _manifests(connection.access.namespace, image, cluster_admin=cluster_admin, replicas=replicas)
    if dry_run or output:
        _print(manifests, output, color)
    if dry_run:
        return ExitStatus.OK
    return connection.run(functools.partial(_install, manifests=manifests, color=color))


def _manifests(
    namespace: str | None, image: str | None, *, cluster_admin: bool = False, replicas: int = 1
) -> list[Manifest]:
    import kubectl_reconcile  # noqa: PLC0415 - help and completion do without
    from kubectl_reconcile.core import installation  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.commands.install import crds  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.sync.session import installed_modules  # noqa: PLC0415 - the same

    chosen = image or f"{IMAGE}:{kubectl_reconcile.__version__}"
    modules = installed_modules().values()
    place = namespace or installation.NAMESPACE
    ours = installation.objects(place, chosen, modules, cluster_admin=cluster_admin, replicas=replicas)
    return [*(located.manifest for located in crds()), *ours]


def _print(manifests: list[Manifest], output: str | None, color: str) -> None:
    from kubectl_reconcile.cli.output.yamltext import dump  # noqa: PLC0415 - help and completion do without
    from kubectl_reconcile.core.objects import ObjectRef  # noqa: PLC0415 - the same

    out, _ = options.screens(color)
    for manifest in manifests:
        lines = ["---", *dump(manifest)] if output else [f"would apply {ObjectRef.of(manifest)}"]
        out.write(line(each) for each in lines)


async def _install(session: Session, *, manifests: list[Manifest], color: str) -> int:
    from kubectl_reconcile.engine.commands import install as engine  # noqa: PLC0415 - imports all that talks to clusters

    out, _ = options.screens(color)

    def told(result: Result) -> None:
        if result.state.value == "succeeded":
            word = "unchanged" if not result.wrote else "created" if result.change.op.value == "create" else "updated"
            out.write([_told(word, result.change.ref)])

    await engine.apply_all(session, manifests, told)
    return ExitStatus.OK


def _told(word: str, ref: Any) -> Line:
    tone = {"created": Tone.ADDED, "updated": Tone.WARNING, "deleted": Tone.REMOVED}.get(word, Tone.ASIDE)
    return (Span(f"{word:<9}", tone), Span(f" {ref}"))


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile uninstall              the daemon and its rights
  kubectl reconcile uninstall --crds -y    all Syncs and CRs, too
"""
)
@click.option("--crds", is_flag=True, help="Remove the CRDs too, and with them every Sync and every CR of our domains.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@options.colour
@options.common
def uninstall(connection: options.Connection, *, crds: bool, yes: bool, color: str) -> int:
    """Remove the daemon and its rights. What it applied stays, as it is.

    -n says where the daemon lives (default: reconcile-system); that namespace goes too. Without a terminal,
    --yes is needed.
    """
    manifests = [
        manifest
        for manifest in _manifests(connection.access.namespace, None)
        if crds or manifest["kind"] != "CustomResourceDefinition"
    ]
    if not yes:
        what = "the daemon, its namespace" + (", and all Syncs and CRs of our kinds" if crds else "")
        if not options.may_ask():
            raise Failure("nothing was removed", "without a terminal, say --yes", status=ExitStatus.USAGE)
        if not click.confirm(f"Remove {what}?", default=False, err=True):
            raise Failure("nothing was removed", status=ExitStatus.HELD)
    return connection.run(functools.partial(_uninstall, manifests=manifests, color=color))


async def _uninstall(session: Session, *, manifests: list[Manifest], color: str) -> int:
    from kubectl_reconcile.engine.commands import install as engine  # noqa: PLC0415 - imports all that talks to clusters

    out, _ = options.screens(color)
    removed = await engine.remove_all(session, manifests)
    out.write([_told("deleted", ref) for ref in removed] or [line("nothing was there", Tone.ASIDE)])
    return ExitStatus.OK
