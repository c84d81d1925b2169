"""``kubectl reconcile daemon``: follows all Syncs of a cluster, until it is told to end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.session import access_of
from kubectl_reconcile.engine.daemon.daemon import serve
from kubectl_reconcile.engine.telemetry import logs
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits


def daemon(
    connection: Connection,
    *,
    listen: str,
    listen_hooks: str,
    lease_namespace: str | None,
    module_accounts: bool,
    repositories: Path | None,
    git_max_memory: int,
    git_max_clone: int,
    git_max_files: int,
    require_verify: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Follow all Syncs of a cluster, and all custom resources that a module knows."""
    os.umask(0o077)  # what it writes are caches, which are nobody else's
    logs.set_up(log_level, log_format)
    asyncio.run(
        serve(
            access_of(connection),
            cache_dir=connection.cache_dir,
            listen=listen,
            listen_hooks=listen_hooks,
            lease_namespace=lease_namespace or "",
            module_accounts=module_accounts,
            repositories=repositories,
            git_limits=GitLimits(git_max_memory * MEBIBYTE, git_max_clone * MEBIBYTE, git_max_files),
            requires_verify=require_verify,
        )
    )
