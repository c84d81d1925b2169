"""Which kinds the cluster serves, looked at again whenever CRDs come, change or go, and the feeds that all else hangs on.

Established comes before discovery lists a kind, by moments or, where the server is busy, by seconds: until all that are
promised are listed, it is asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress

from msgspec import Struct, field

from kubectl_reconcile.cluster.cache import Feed
from kubectl_reconcile.cluster.errors import ApiError, ServerError, TooManyRequests, Unreachable
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.core.retry import KINDS
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.telemetry.logs import event

_KNOCK_S = 3.0
_SCHEMA_S = 3.0
"""How long after a CRD has changed the server's OpenAPI documents have surely followed."""
_PASSING = (Unreachable, ServerError, TooManyRequests)
"""Failures of a feed that end by themselves; any other is somebody's to fix, and logged."""

log = logging.getLogger(__name__)


class KindsWatch(Struct):
    """Learns of kinds; *established* are those that CRDs promise, *learnt* is called after each look with the kinds that changed."""

    context: DaemonContext
    namespace: str
    established: dict[ObjectRef, tuple[GroupVersionKind, ...]]
    learnt: Callable[[Collection[GroupKind]], None]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _touched: set[GroupKind] = field(default_factory=set)

    def crd_changed(self, kind: GroupKind) -> None:
        """Look again soon, since the CRD of *kind* came, changed or went; and once more, since the server reports schemas later."""
        self._touched.add(kind)
        self.changed.set()
        asyncio.get_running_loop().call_later(_SCHEMA_S, self.changed.set)

    async def start(self) -> bool:
        """Bring in what everything hangs on: Syncs, CRDs, namespaces, the CRs of all modules; False if told to end before that."""
        session = self.context.session
        while not session.discovery.find(SYNC.api_version, SYNC.kind):
            hint = "install the CRDs: kubectl reconcile sync --install"
            event(log, logging.WARNING, "the cluster serves no Syncs", hint=hint)
            if await self._is_told_to_end():
                return False
            with suppress(ApiError):
                await session.refresh()
        await self.context.view.ensure(self._root_feeds())
        return True

    async def run(self) -> None:
        """Look again at what the server knows whenever that may have changed."""
        late = 0
        while True:
            await self.changed.wait()
            await asyncio.sleep(KINDS.pause_s(late + 1))
            self.changed.clear()
            try:
                await self.context.session.refresh()
                await self.context.view.ensure(self._root_feeds())
            except ApiError as error:
                event(log, logging.WARNING, "kinds not refreshed", error=error)
                self.changed.set()
            late = late + 1 if self._is_unlisted() else 0
            if late:
                self.changed.set()
            touched, self._touched = self._touched, set()
            self.learnt(touched | self.context.session.take_changes())

    def trouble(self) -> str:
        """Return which of the feeds that all hangs on isn't followed for now, and why, or nothing."""
        cache = self.context.cache
        late = next((feed for feed in self._root_feeds() if isinstance(cache.failure(feed), _PASSING)), None)
        return f"{late} isn't followed: {cache.failure(late)}" if late else ""

    async def _is_told_to_end(self) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.context.stopping.wait(), _KNOCK_S)
        return self.context.stopping.is_set()

    def _root_feeds(self) -> list[Feed]:
        """Return what all else hangs on. What a module makes and reads is followed once there is a CR for it: its first pass has it followed."""
        session, modules = self.context.session, self.context.session.modules
        served = {
            gvk: found for gvk in (SYNC, *modules) if (found := session.discovery.find(gvk.api_version, gvk.kind))
        }
        feeds = [Feed(resource, namespace=self.namespace) for resource in served.values()]
        watched = (CRD,) if self.namespace else (CRD, NAMESPACE)
        feeds += [Feed(resource) for kind in watched if (resource := session.resource(kind))]
        live = self.context.cache.snapshot()
        in_use = [modules[gvk] for gvk in served if gvk in modules and live.of_kind(gvk.group_kind)]
        return feeds + gather.child_feeds(session, in_use)

    def _is_unlisted(self) -> bool:
        """Tell whether some kind that is Established isn't among those that we know."""
        find = self.context.session.discovery.find
        return any(not find(gvk.api_version, gvk.kind) for kinds in self.established.values() for gvk in kinds)
