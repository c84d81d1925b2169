"""What a Sync that depends on others still waits for.

Syncs of its own namespace are taken from the cache. One of another namespace is asked for as the Sync's account: whether it is
Ready is nothing to anybody who may not read it.
"""

from __future__ import annotations

from msgspec import Struct, field

from kubectl_reconcile.cluster.errors import Forbidden, NotFound
from kubectl_reconcile.core.daemon.dependencies import DependencyGraph
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.resources.status import was_ready
from kubectl_reconcile.core.resources.sync import Dependency, Sync
from kubectl_reconcile.engine.api.sync_requests import SYNCS
from kubectl_reconcile.engine.daemon.context import DaemonContext


class Dependencies(Struct, frozen=True):
    """Looks at what Syncs depend on; *graph* tells who waits for whom."""

    context: DaemonContext
    graph: DependencyGraph = field(default_factory=DependencyGraph)

    async def lack(self, sync: Sync) -> str:
        """Return what of the Syncs that *sync* depends on must come true first, as a sentence; empty where nothing must.

        Raises:
            ApiError: the server doesn't answer.
        """
        for each in sync.depends_on:
            if lack := await self._lack_of(sync, each):
                return f"waits for Sync {each.ref.namespace}/{each.ref.name}{lack}"
        return ""

    async def _lack_of(self, sync: Sync, dependency: Dependency) -> str:
        ref = dependency.ref
        try:
            live = self.context.live(ref) if ref.namespace == sync.namespace else await self._asked_for(sync, ref)
        except Forbidden as error:
            return f", which {sync.account} may not read: {error}"
        if live is None:
            return " to be Ready: it doesn't exist"
        if not was_ready(live):
            return " to be Ready"
        found = dependency.lack(live)
        return f": {found}" if found else ""

    async def _asked_for(self, sync: Sync, ref: ObjectRef) -> Manifest | None:
        path = f"{SYNCS}/namespaces/{ref.namespace}/syncs/{ref.name}"
        try:
            return await self.context.session_of(sync).client.get(path)
        except NotFound:
            return None
