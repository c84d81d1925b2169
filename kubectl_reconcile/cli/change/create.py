"""``kubectl reconcile create``: a Sync, made once its repository has been looked at."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import click
from msgspec import Struct

from kubectl_reconcile.cli.change import grant
from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.output.data.structured import json_lines, yaml_lines
from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.cli.session import run
from kubectl_reconcile.cluster.errors import AlreadyExists
from kubectl_reconcile.core.annotations import URLS
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api import sync_requests
from kubectl_reconcile.engine.commands import create as engine
from kubectl_reconcile.engine.commands import install
from kubectl_reconcile.engine.sync import targets
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.views import syncs
from kubectl_reconcile.views.text import Tone, line

_PROBLEMS_SHOWN = 10


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


def create(
    connection: Connection,
    name: str,
    *,
    url: str,
    branch: str | None,
    tag: str | None,
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
    """Create the Sync SYNC, once its repository and path have been read."""
    if sum(map(bool, (branch, tag, commit))) > 1:
        raise click.UsageError("--branch, --tag and --commit exclude each other")
    if give and dry_run:
        raise click.UsageError(
            "--dry-run writes nothing; to see what --grant gives: kubectl reconcile grant --repo URL --name SYNC"
        )
    ref = {"branch": branch, "tag": tag, "commit": commit}
    git = {
        "url": url, **ref, "interval": interval, "secretRef": _named(secret),
        "verify": _verify(verify_secret, verify_configmap, verify_mode, is_tag=bool(tag)),
    }  # fmt: skip
    spec = {
        "targetNamespace": target_namespace,
        "fieldManager": field_manager,
        "prune": None if prune else False,
        "drift": drift,
        "conflicts": conflicts,
        "serviceAccountName": service_account,
        "suspend": True if suspend else None,
    }
    source = {"git": git, "path": path, "render": render}
    options = CreateOptions(name, source, spec, check, give, dry_run, output or "", *terminals(color))
    return run(connection, functools.partial(_created, options=options))


def _named(name: str | None) -> dict[str, str] | None:
    return {"name": name} if name else None


def _verify(secret: str | None, config_map: str | None, mode: str | None, *, is_tag: bool) -> dict[str, Any] | None:
    """Return whose signatures count, None if nobody asks for any."""
    if secret and config_map:
        raise click.UsageError("--verify-secret and --verify-configmap exclude each other")
    if mode and not (secret or config_map):
        raise click.UsageError("--verify-mode needs --verify-secret or --verify-configmap, which name the keys")
    if mode in {"Tag", "CommitAndTag"} and not is_tag:
        raise click.UsageError(f"--verify-mode {mode} needs a --tag to follow")
    found = {"mode": mode, "secretRef": _named(secret), "configMapRef": _named(config_map)}
    return {name: value for name, value in found.items() if value} if secret or config_map else None


async def _created(session: Session, *, options: CreateOptions) -> int:
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
    try:
        return await engine.create(session, manifest, dry_run=dry_run)
    except AlreadyExists:
        namespace = manifest["metadata"]["namespace"]
        hint = f"to change it: kubectl edit sync {options.name} -n {namespace}"
        raise Failure(f"there is a Sync {options.name} in namespace {namespace} already", hint) from None


async def _granted(session: Session, manifest: Manifest, options: CreateOptions) -> int:
    """Give the account its rights before there is a Sync, whose first pass would lack them. A source that couldn't be read before isn't read for an offer."""
    if options.give is False or not (options.give or options.check):
        return ExitStatus.OK
    target = await targets.target_of_manifest(session, manifest)
    if target is None:
        return ExitStatus.OK
    return await grant.offer(session, target, options.err, options.err, wanted=options.give)


async def _name_url(session: Session, manifest: Manifest, options: CreateOptions) -> None:
    """Have the Secret say what it is for, and tell."""
    try:
        url = await engine.name_url(session, manifest)
    except SourceError as error:
        if options.check:
            raise Failure(error.message, error.hint, status=ExitStatus.SOURCE) from None
        return
    if url:
        secret = manifest["spec"]["source"]["git"]["secretRef"]["name"]
        options.err.write(
            [line(f"annotated Secret {secret}: its credentials may be used for {url} ({URLS})", Tone.ASIDE)]
        )


async def _looked_at(session: Session, manifest: Manifest, options: CreateOptions) -> None:
    """Read the repository, and tell what is there."""
    try:
        found = await engine.look(session, manifest)
    except SourceError as error:
        again = "; --no-check creates the Sync anyway"
        raise Failure(
            error.message, f"{error.hint or 'check --url, --branch and --path'}{again}", status=ExitStatus.SOURCE
        ) from None
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
