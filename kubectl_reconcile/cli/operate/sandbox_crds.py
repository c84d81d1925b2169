"""The CRDs of kubectl-reconcile in a sandbox."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.engine.commands.install import ensure_crds
from kubectl_reconcile.engine.sync.session import Session


def install(kubeconfig: Path) -> None:
    """Install the CRDs, or bring them up to date."""
    asyncio.run(_install(kubeconfig))


async def _install(kubeconfig: Path) -> None:
    async with Session.open(Access(kubeconfig=str(kubeconfig))) as session:
        await ensure_crds(session)
