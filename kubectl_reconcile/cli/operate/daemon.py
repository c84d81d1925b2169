"""``kubectl reconcile daemon``: follows all Syncs of a cluster, until it is told to end."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import socket
from pathlib import Path

import click

from kubectl_reconcile.cli.early import access_of
from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.url_policy import FLAG, UrlPolicy, networks_around
from kubectl_reconcile.engine.daemon.daemon import Page, SourcePace, serve
from kubectl_reconcile.engine.modules.ceilings import set_ceilings
from kubectl_reconcile.engine.telemetry import logs, loop_monitor, memory
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.web.addresses import NO_ORIGIN, origins_of


def daemon(
    connection: Connection,
    *,
    listen: str,
    listen_hooks: str,
    ui: str,
    ui_url: tuple[str, ...],
    lease_namespace: str | None,
    module_accounts: bool,
    repositories: Path | None,
    allow_url_prefix: tuple[str, ...],
    git_max_jobs: int,
    min_interval: float,
    require_verify: bool,
    log_level: str,
    git_max_memory: int,
    git_max_seconds: int,
    git_max_said: int,
    git_max_clone: int,
    git_max_entries: int,
    git_max_depth: int,
    git_max_files: int,
    max_file: int,
    max_revision: int,
    max_objects: int,
    max_values: int,
    max_parsing: int,
    load_max_rate: int,
    load_max_connections: int,
    load_max_seconds: int,
    job_max_seconds: int,
    log_format: str,
) -> None:
    """Follow all Syncs of a cluster, and all custom resources that a module knows."""
    try:
        allowed = UrlPolicy.of(allow_url_prefix, _networks_of_the_cluster())
    except ValueError as error:
        message = f"{without_credentials(str(error))} isn't the URL of a repository, or is ambiguous"
        raise click.BadParameter(message, param_hint=FLAG) from None
    limits = GitLimits(
        memory_bytes=git_max_memory * MEBIBYTE,
        clone_bytes=git_max_clone * MEBIBYTE,
        files=git_max_files,
        seconds=git_max_seconds,
        said_bytes=git_max_said * MEBIBYTE,
        entries=git_max_entries,
        depth=git_max_depth,
        file_bytes=max_file * MEBIBYTE,
        revision_bytes=max_revision * MEBIBYTE,
        objects=max_objects,
        values=max_values,
        parsing_bytes=max_parsing * MEBIBYTE,
    )
    set_ceilings(
        {
            "--load-max-rate": load_max_rate,
            "--load-max-connections": load_max_connections,
            "--load-max-seconds": load_max_seconds,
            "--job-max-seconds": job_max_seconds,
        }
    )
    os.umask(0o077)  # what it writes are caches, which are nobody else's
    logs.set_up(log_level, log_format)
    memory.look_after()
    loop_monitor.run(
        serve(
            access_of(connection),
            cache_dir=connection.cache_dir,
            listen=listen,
            listen_hooks=listen_hooks,
            page=_page(ui, ui_url),
            lease_namespace=lease_namespace or "",
            module_accounts=module_accounts,
            sources=SourcePolicy(limits, allowed, folder=repositories, requires_verify=require_verify, guarded=True),
            pace=SourcePace(git_max_jobs, min_interval),
        )
    )


def _networks_of_the_cluster() -> tuple[str, ...]:
    """Return what is taken for the networks of Services and pods, where the daemon runs in a cluster; nothing elsewhere."""
    if not (server := os.environ.get("KUBERNETES_SERVICE_HOST")):
        return ()
    with contextlib.suppress(OSError):
        return networks_around(
            [server, *(str(place[0]) for *_, place in socket.getaddrinfo(socket.gethostname(), None))]
        )
    return networks_around([server])


def _page(ui: str, urls: tuple[str, ...]) -> Page | None:
    """Return what serves the page at *ui*, as being at *urls*; None where none is wanted."""
    if not ui:
        if urls:
            raise click.UsageError("--ui-url needs --ui")
        return None
    module = importlib.import_module("kubectl_reconcile.web.in_cluster")  # a lot, which most daemons never need
    try:
        return functools.partial(module.serving_page, ui, origins_of(urls))
    except ValueError as error:
        raise click.BadParameter(NO_ORIGIN.format(without_credentials(str(error))), param_hint="--ui-url") from None
