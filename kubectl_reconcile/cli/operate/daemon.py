"""``kubectl reconcile daemon``: follows all Syncs of a cluster, until it is told to end."""

from __future__ import annotations

from pathlib import Path

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile daemon                      all Syncs of the cluster
  kubectl reconcile daemon -n shop              those of one namespace
"""
)
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT",
    help="Where to serve /healthz, /readyz, /metrics and /hooks; port 0 chooses one.",
)  # fmt: skip
@click.option(
    "--lease-namespace", metavar="NAME", help="Namespace of the Lease that says it is alive.  [default: the context's]"
)
@click.option(
    "--repositories", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER",
    help="Let Syncs follow repositories below this folder, by file:///… URLs.",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@options.common
def daemon(
    connection: options.Connection,
    *,
    listen: str,
    lease_namespace: str | None,
    repositories: Path | None,
    log_level: str,
    log_format: str,
) -> None:
    """Follow all Syncs of a cluster, and all custom resources that a module knows. Writes to the cluster.

    With -n only those of one namespace. SIGTERM and Ctrl-C end it cleanly: requests under way are
    finished, the next daemon goes on from there.
    """
    import asyncio  # noqa: PLC0415 - help and completion do without

    from kubectl_reconcile.engine.daemon.daemon import serve  # noqa: PLC0415 - the same
    from kubectl_reconcile.engine.telemetry import logs  # noqa: PLC0415 - the same

    logs.set_up(log_level, log_format)
    asyncio.run(
        serve(
            connection.access,
            cache_dir=connection.cache_dir,
            listen=listen,
            lease_namespace=lease_namespace or "",
            repositories=repositories,
        )
    )
