"""``kubectl reconcile create``: a Sync, made once its repository has been looked at."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import SET, VALUES, VERSION, rendering
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.cli.verbs.change import grant
from kubectl_reconcile.views.text import Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session

_PROBLEMS_SHOWN = 10
_REGISTRY = "oci://"
_CHECK = "check --url, and --branch and --path or --chart and --version"


class CreateOptions(Struct, frozen=True):
    """The Sync that is wanted, and how to go about it."""

    name: str
    source: Mapping[str, Any]
    spec: Mapping[str, Any]
    check: bool
    give: bool | None
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
  kubectl reconcile create shop --url … --verify-secret keys
  kubectl reconcile create shop --url … --dry-run -o yaml > shop.yaml
  kubectl reconcile create web --url https://charts.example.com \\
    --chart web --version 1.2.3
  kubectl reconcile create shop --url oci://example.com/shop --tag 1.4
"""
)
@click.argument("name", metavar="SYNC", type=SYNC_NAME)
@click.option(
    "--url",
    required=True,
    metavar="URL",
    help="Address of the repository: https, http, ssh or user@host:path; oci for an artifact in a registry. With --chart, of the Helm repository or registry.",
)
@click.option("--chart", metavar="NAME", help="Chart of a Helm repository to follow, instead of Git.")
@VERSION
@click.option(
    "--digest",
    metavar="DIGEST",
    help="SHA-256 of the chart's archive, or digest of an artifact in a registry. A chart needs it: without it, the error names it.",
)
@VALUES
@SET
@click.option("--branch", metavar="NAME", help="Branch to follow.  [default: the repository's own]")
@click.option("--tag", metavar="NAME", help="Tag to follow, instead of a branch; of an artifact, instead of latest.")
@click.option("--semver", metavar="RANGE", help="Range of versions, as in 1.x: follow the newest tag in it.")
@click.option("--commit", metavar="SHA", help="Commit to apply, all 40 digits, instead of a branch.")
@click.option("--path", default=".", show_default=True, metavar="PATH", help="Folder or file in the repository.")
@rendering("How the files at the path become objects.")
@click.option(
    "--interval", default="1m", show_default=True, metavar="DURATION", help="How often to check the repository."
)
@click.option("--secret", metavar="NAME", help="Secret in the namespace with the repository's credentials.")
@click.option(
    "--verify-secret",
    metavar="NAME",
    help="Secret in the namespace with the keys that commits, or the artifact or chart, must be signed with.",
)
@click.option("--verify-configmap", metavar="NAME", help="ConfigMap with these keys, instead of a Secret.")
@click.option(
    "--verify-mode", type=click.Choice(["Commit", "Tag", "CommitOrTag", "CommitAndTag"]),
    help="What of Git must be signed.  [default: Commit]",
)  # fmt: skip
@click.option(
    "--target-namespace", metavar="NAME", help="Namespace of objects that don't name one.  [default: the Sync's]"
)
@click.option("--field-manager", metavar="NAME", help="Field manager to apply as.  [default: kubectl-reconcile]")
@click.option("--prune/--no-prune", default=True, show_default=True, help="Delete objects whose file is removed.")
@click.option(
    "--drift", type=click.Choice(["Correct", "Report", "Ask"]), help="What happens to drift.  [default: Correct]"
)
@click.option(
    "--conflicts",
    type=click.Choice(["Override", "Yield", "Fail"]),
    help="What happens to fields that another manager owns.  [default: Override]",
)
@click.option(
    "--service-account",
    metavar="NAME",
    help="ServiceAccount in the namespace to apply as.  [default: kubectl-reconcile]",
)
@click.option(
    "--grant/--no-grant",
    "give",
    default=None,
    help="Grant that account the rights that the source needs, like the command grant.  [default: ask on a terminal]",
)
@click.option("--suspend", is_flag=True, help="Don't sync until somebody resumes it.")
@click.option("--check/--no-check", default=True, show_default=True, help="Check the repository and the path first.")
@click.option("--dry-run", is_flag=True, help="Check everything, including a dry run, and write nothing.")
@output("name", "json", "yaml")
@colour
@common
def create(
    connection: Connection,
    name: str,
    *,
    url: str,
    chart: str | None,
    version: str | None,
    digest: str | None,
    values: tuple[str, ...],
    sets: tuple[str, ...],
    branch: str | None,
    tag: str | None,
    semver: str | None,
    commit: str | None,
    path: str,
    render: str | None,
    interval: str,
    secret: str | None,
    verify_secret: str | None,
    verify_configmap: str | None,
    verify_mode: str | None,
    target_namespace: str | None,
    field_manager: str | None,
    prune: bool,
    drift: str | None,
    conflicts: str | None,
    service_account: str | None,
    give: bool | None,
    suspend: bool,
    check: bool,
    dry_run: bool,
    output: str | None,
    color: str,
) -> int:
    """Create the Sync SYNC, after checking its repository and path. Writes the Sync.

    If the Secret doesn't say yet for which repositories it may be used, create annotates it with this URL (only for
    https and ssh).

    --dry-run -o yaml prints the manifest, for example to keep it in Git.
    """
    from kubectl_reconcile.cli.chart_flags import values_given
    from kubectl_reconcile.cli.session import run

    if sum(map(bool, (branch, tag, semver, commit))) > 1:
        raise click.UsageError("--branch, --tag, --semver and --commit exclude each other")
    if give and dry_run:
        raise click.UsageError(
            "--dry-run writes nothing; to see what --grant gives: kubectl reconcile grant --repo URL --name SYNC"
        )
    verify = _verify(verify_secret, verify_configmap, verify_mode, is_tag=bool(tag or semver))
    alike = {"interval": interval, "secretRef": _named(secret)}
    ref = {"branch": branch, "tag": tag, "semver": semver, "commit": commit}
    only_git = {"--branch": branch, "--commit": commit, "--verify-mode": verify_mode}
    is_oci = url.startswith(_REGISTRY) and not chart
    if chart:
        not_chart = {"--tag": tag, "--semver": semver, "--path": path != ".", "--render": render}
        _check_chart(version, {**only_git, **not_chart})
    elif version or (digest and not is_oci):
        raise click.UsageError(f"{'--version' if version else '--digest'} needs --chart")
    elif is_oci:
        _check_none(only_git, f"an artifact ({_REGISTRY}…)")
    source: dict[str, Any]
    if chart:
        pin = {"repository": url, "name": chart, "version": version, "digest": digest}
        source = {"chart": {**pin, **alike, "verify": verify}}
    elif is_oci:
        oci = {"url": url, "tag": tag, "semver": semver, "digest": digest, **alike, "verify": verify}
        source = {"oci": oci, "path": path if path != "." else None, "render": render}
    else:
        source = {"git": {"url": url, **ref, **alike, "verify": verify}, "path": path, "render": render}
    if values or sets:
        if render not in {None, "Auto", "Helm"}:
            raise click.UsageError(f"--values and --set are for charts, and --render is {render}")
        source |= {"helm": {"values": values_given(values, sets)}} | ({} if chart else {"render": "Helm"})
    spec = {
        "targetNamespace": target_namespace,
        "fieldManager": field_manager,
        "prune": None if prune else False,
        "drift": drift,
        "conflicts": conflicts,
        "serviceAccountName": service_account,
        "suspend": True if suspend else None,
    }
    options = CreateOptions(name, source, spec, check, give, dry_run, output or "", *terminals(color))
    return run(connection, functools.partial(_created, options=options))


def _check_chart(version: str | None, others: Mapping[str, Any]) -> None:
    """Return if a chart is given its version, and none of the *others*.

    Raises:
        UsageError: it isn't.
    """
    _check_none(others, "--chart")
    if not version:
        raise click.UsageError("--chart needs --version, one exact version")


def _check_none(options: Mapping[str, Any], what: str) -> None:
    """Return if none of these *options* is given, which *what* excludes.

    Raises:
        UsageError: one is.
    """
    for name, value in options.items():
        if value:
            raise click.UsageError(f"{name} and {what} exclude each other")


def _named(name: str | None) -> dict[str, str] | None:
    return {"name": name} if name else None


def _verify(secret: str | None, config_map: str | None, mode: str | None, *, is_tag: bool) -> dict[str, Any] | None:
    """Return whose signatures count, None if nobody asks for any."""
    if secret and config_map:
        raise click.UsageError("--verify-secret and --verify-configmap exclude each other")
    if mode and not (secret or config_map):
        raise click.UsageError("--verify-mode needs --verify-secret or --verify-configmap, which name the keys")
    if mode in {"Tag", "CommitAndTag"} and not is_tag:
        raise click.UsageError(f"--verify-mode {mode} needs a --tag or --semver to follow")
    found = {"mode": mode, "secretRef": _named(secret), "configMapRef": _named(config_map)}
    return {name: value for name, value in found.items() if value} if secret or config_map else None


async def _created(session: Session, *, options: CreateOptions) -> int:
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.commands import create as engine
    from kubectl_reconcile.engine.commands import install
    from kubectl_reconcile.engine.sync import targets

    namespace = session.client.namespace
    manifest = engine.manifest_of(options.name, namespace, options.source, options.spec)
    Sync.of(manifest)
    if not options.dry_run:
        targets.require_installed(session)
    if not options.dry_run:
        await _name_url(session, manifest, options)
    if options.check:
        await _looked_at(session, manifest, options)
    live: Manifest = manifest
    if install.is_installed(session):
        live = await _made(session, manifest, options, dry_run=True)
    if options.dry_run:
        _write(manifest, options)
        return ExitStatus.OK
    if await _granted(session, manifest, options) != ExitStatus.OK:
        hint = "have somebody grant them who holds them, then create the Sync; --no-grant creates it anyway"
        raise Failure("not all rights were given, so no Sync is created", hint, status=ExitStatus.FAILED)
    live = await _made(session, manifest, options, dry_run=False)
    _write(live, options)
    await _warn_of_no_daemon(session, namespace, options)
    return ExitStatus.OK


async def _made(session: Session, manifest: Manifest, options: CreateOptions, *, dry_run: bool) -> Manifest:
    from kubectl_reconcile.cluster.errors import AlreadyExists
    from kubectl_reconcile.engine.commands import create as engine

    try:
        return await engine.create(session, manifest, dry_run=dry_run)
    except AlreadyExists:
        namespace = manifest["metadata"]["namespace"]
        hint = f"to change it: kubectl edit sync {options.name} -n {namespace}"
        raise Failure(f"there is a Sync {options.name} in namespace {namespace} already", hint) from None


async def _granted(session: Session, manifest: Manifest, options: CreateOptions) -> int:
    """Give the account its rights before there is a Sync, whose first pass would lack them. A source that couldn't be read before isn't read for an offer."""
    from kubectl_reconcile.engine.sync import targets

    if options.give is False or not (options.give or options.check):
        return ExitStatus.OK
    target = await targets.target_of_manifest(session, manifest)
    if target is None:
        return ExitStatus.OK
    return await grant.offer(session, target, options.err, options.err, wanted=options.give)


async def _name_url(session: Session, manifest: Manifest, options: CreateOptions) -> None:
    """Have the Secret say what it is for, and tell."""
    from kubectl_reconcile.core.annotations import URLS
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.commands import create as engine
    from kubectl_reconcile.source.errors import SourceError

    try:
        url = await engine.name_url(session, manifest)
    except SourceError as error:
        if options.check:
            raise Failure(error.message, error.hint, status=ExitStatus.SOURCE) from None
        return
    if url:
        source = Sync.of(manifest).source
        secret = source.secret if source else ""
        options.err.write(
            [line(f"annotated Secret {secret}: its credentials may be used for {url} ({URLS})", Tone.ASIDE)]
        )


async def _looked_at(session: Session, manifest: Manifest, options: CreateOptions) -> None:
    """Read the repository, and tell what is there."""
    from kubectl_reconcile.engine.commands import create as engine
    from kubectl_reconcile.source.errors import SourceError
    from kubectl_reconcile.views import syncs

    try:
        found = await engine.look(session, manifest)
    except SourceError as error:
        again = "; --no-check creates the Sync anyway"
        raise Failure(error.message, f"{error.hint or _CHECK}{again}", status=ExitStatus.SOURCE) from None
    objects = "1 object" if found.objects == 1 else f"{found.objects} objects"
    files = "1 file" if found.files == 1 else f"{found.files} files"
    held = f"renders to {objects}" if found.is_rendered else f"has {objects} in {files}"
    text = f"{syncs.short(found.revision)} {held}"
    tone = Tone.ASIDE if found.objects and not found.problems else Tone.WARNING
    options.err.write([line(text, tone)])
    if found.signed:
        options.err.write([line(found.signed, Tone.ASIDE)])
    shown = found.problems[:_PROBLEMS_SHOWN]
    options.err.write(line(f"warning: {problem}", Tone.WARNING) for problem in shown)


def _write(manifest: Manifest, options: CreateOptions) -> None:
    from kubectl_reconcile.cli.output.data.structured import json_lines, yaml_lines
    from kubectl_reconcile.views import syncs

    match options.output:
        case "json":
            options.out.write(json_lines(syncs.listed([manifest], one=True)))
        case "yaml":
            options.out.write(yaml_lines(syncs.listed([manifest], one=True)))
        case "name":
            options.out.write([line(f"sync.reconcile.dev/{options.name}")])
        case _:
            how = "created (dry run)" if options.dry_run else "created"
            options.out.write([line(f"sync.reconcile.dev/{options.name} {how}", Tone.GOOD)])


async def _warn_of_no_daemon(session: Session, namespace: str, options: CreateOptions) -> None:
    from kubectl_reconcile.engine.api import sync_requests

    alive = await sync_requests.daemon_alive(session.client, namespace)
    if not alive:
        known = (
            "no daemon is running"
            if alive is False
            else "can't tell whether a daemon is running: you may not list Leases"
        )
        how = (
            f"kubectl reconcile daemon follows it, kubectl reconcile sync {options.name} -n {namespace} applies it once"
        )
        options.err.write([line(f"{known}: {how}", Tone.WARNING)])
