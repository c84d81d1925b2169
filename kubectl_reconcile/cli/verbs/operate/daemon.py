"""``kubectl reconcile daemon``: follows all Syncs of a cluster, until it is told to end."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import DURATION
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES

if TYPE_CHECKING:
    from kubectl_reconcile.engine.daemon.daemon import Page


def _ceiling(flag: str, default: int, unit: str, text: str, *, least: int = 1) -> Callable[[Any], Any]:
    """Return the option of a ceiling; commands take it from the variable of that name."""
    variable = f"KUBECTL_RECONCILE_{flag.removeprefix('--').replace('-', '_').upper()}"
    return click.option(
        flag,
        type=click.IntRange(min=least),
        default=default,
        show_default=True,
        metavar=unit,
        envvar=variable,
        help=text,
    )


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile daemon                      all Syncs in the cluster
  kubectl reconcile daemon -n shop              only those in one namespace
"""
)
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT",
    help="Where to serve /healthz, /readyz and /metrics; port 0 chooses one.",
)  # fmt: skip
@click.option(
    "--listen-hooks", default="", metavar="HOST:PORT",
    help="Where to receive webhooks of Git servers, at /hooks/NAMESPACE/NAME.  [default: nowhere]",
)  # fmt: skip
@click.option(
    "--ui", default="", metavar="HOST:PORT",
    help="Where to serve the page to people. They sign in with a token of the cluster.  [default: nowhere]",
)  # fmt: skip
@click.option(
    "--ui-url", multiple=True, metavar="URL",
    help="Address of the page for people: https, through a proxy. May be repeated.  [default: only localhost, by port-forward]",
)  # fmt: skip
@click.option(
    "--lease-namespace",
    metavar="NAME",
    help="Namespace of the Leases by which daemons share the work.  [default: that of -n, or reconcile-system]",
)
@click.option(
    "--module-accounts", is_flag=True,
    help="Act for custom resources as the ServiceAccount of their module, kubectl-reconcile-module-NAME in the namespace of "
    "the Lease. Without this flag, the daemon acts as itself.",
)  # fmt: skip
@click.option(
    "--repositories", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER",
    help="Let Syncs follow repositories below this folder, with file:///… URLs.",
)  # fmt: skip
@click.option(
    "--allow-url-prefix", multiple=True, metavar="URL",
    help="Follow only repositories at this URL or below it (whole path segments). May be repeated.  [default: all]",
)  # fmt: skip
@click.option(
    "--git-max-jobs", type=click.IntRange(min=2), default=40, show_default=True, metavar="COUNT",
    help="For how many Syncs to ask Git servers at the same time; divided among hosts and namespaces.",
)  # fmt: skip
@click.option(
    "--min-interval", type=DURATION, default="1s", show_default=True, metavar="DURATION",
    help="Never check a repository for new commits more often than this, even if a Sync's interval is shorter.",
)  # fmt: skip
@_ceiling(
    "--git-max-memory",
    2048,
    "MIB",
    "Memory of each git process; a repository that takes more isn't followed.",
    least=64,
)
@_ceiling("--git-max-seconds", 600, "SECONDS", "Wall-clock and CPU time of each git process.")
@_ceiling("--git-max-said", 16, "MIB", "How much error output of git, or of the server through git, is read.")
@_ceiling(
    "--git-max-clone", 5120, "MIB", "Disk space for the clone of one repository; one that takes more isn't followed."
)
@_ceiling(
    "--git-max-entries", 500_000, "COUNT", "Files and folders at the path of one Sync; one with more isn't followed."
)
@_ceiling("--git-max-depth", 100, "COUNT", "Nested folders at the path of one Sync; one with more isn't followed.")
@_ceiling("--git-max-files", 100_000, "COUNT", "Files at the path of one Sync; one with more isn't followed.")
@_ceiling("--max-file", 10, "MIB", "Size of one manifest file; larger files aren't read.")
@_ceiling("--max-revision", 256, "MIB", "Size of all manifest files of one Sync; one with more isn't followed.")
@_ceiling("--max-objects", 100_000, "COUNT", "Objects of one Sync; one with more isn't followed.")
@_ceiling(
    "--max-values",
    4_000_000,
    "COUNT",
    "Values in the manifest files of one Sync, each 32 characters of text as one more; one with more isn't followed.",
)
@_ceiling("--max-parsing", 64, "MIB", "Size of manifest files in memory while they are parsed, for all Syncs together.")
@_ceiling("--load-max-rate", 1000, "REQUESTS", "Requests a second that a Checkup may send to a Service.")
@_ceiling("--load-max-connections", 100, "COUNT", "Connections that a Checkup may use for them.")
@_ceiling("--load-max-seconds", 600, "SECONDS", "How long a Checkup may send requests.")
@_ceiling("--job-max-seconds", 3600, "SECONDS", "How long a Checkup's own Job may run.")
@click.option(
    "--require-verify", is_flag=True,
    help="Don't follow Syncs that require no signatures (verify in spec.source.git, .oci or .chart).",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
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
    """Follow all Syncs of a cluster, and all custom resources that a module knows. Writes to the cluster.

    With -n, it follows only those in one namespace. SIGTERM and Ctrl-C end it cleanly: it finishes the requests that are
    running, and the next daemon continues from there.
    """
    from kubectl_reconcile.cli.early import access_of
    from kubectl_reconcile.core.redaction import without_credentials
    from kubectl_reconcile.core.resources.url_policy import FLAG, UrlPolicy
    from kubectl_reconcile.engine.daemon.daemon import SourcePace, serve
    from kubectl_reconcile.engine.modules.ceilings import set_ceilings
    from kubectl_reconcile.engine.telemetry import logs, loop_monitor, memory
    from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
    from kubectl_reconcile.source.policy import SourcePolicy

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
    from kubectl_reconcile.core.resources.url_policy import networks_around

    if not (server := os.environ.get("KUBERNETES_SERVICE_HOST")):
        return ()
    with contextlib.suppress(OSError):
        return networks_around(
            [server, *(str(place[0]) for *_, place in socket.getaddrinfo(socket.gethostname(), None))]
        )
    return networks_around([server])


def _page(ui: str, urls: tuple[str, ...]) -> Page | None:
    """Return what serves the page at *ui*, as being at *urls*; None where none is wanted."""
    from kubectl_reconcile.core.redaction import without_credentials
    from kubectl_reconcile.web.addresses import NO_ORIGIN, origins_of

    if not ui:
        if urls:
            raise click.UsageError("--ui-url needs --ui")
        return None
    from kubectl_reconcile.web.in_cluster import serving_page  # a lot, which most daemons never need

    try:
        return functools.partial(serving_page, ui, origins_of(urls))
    except ValueError as error:
        raise click.BadParameter(NO_ORIGIN.format(without_credentials(str(error))), param_hint="--ui-url") from None
