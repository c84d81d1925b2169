"""What happens to a set when its Sync is deleted.

With ``deletionPolicy: Prune`` the Sync carries a finalizer of ours: its members are deleted first,
then it goes. With ``Orphan``, the default, nothing holds it: members stay, and so do those of a Sync that is suspended. A Sync that can't get
rid of its members is let go after an hour, so that no namespace hangs on it for ever.

A Sync may have members that it can't outlive: its own namespace, the kind Sync, the daemon's namespace. Their end waits for our
finalizer, so it isn't waited for: they are deleted when all others are gone, and then the Sync is let go at once. In this
order nothing is lost. A daemon that dies between the two leaves a Sync that is being deleted, and whoever looks after it
next finds these deletions under way, and lets it go.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.cluster.errors import NotFound
from kubectl_reconcile.core.annotations import PRUNE_FINALIZER, MemberOptions
from kubectl_reconcile.core.apply.results import ResultState
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning import planner, prune
from kubectl_reconcile.core.planning.inputs import Coverage, Inputs
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.planning.snapshot import Snapshot
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents
from kubectl_reconcile.core.resources.sync import DeletionPolicy, Sync
from kubectl_reconcile.engine.api.sync_requests import now_text, sync_path
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.telemetry.logs import event

_PATIENCE = dt.timedelta(hours=1)
_LOOK_AGAIN_S = 2.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Finalization:
    """Looks after Syncs that are deleted, and those that will want looking after. *namespace* is where the daemon lives."""

    context: DaemonContext
    namespace: str = ""

    async def prepare(self, sync: Sync, manifest: Manifest) -> None:
        """Put our finalizer on a Sync whose members go with it, and take it off any other.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        finalizers = list(manifest["metadata"].get("finalizers") or ())
        wanted = sync.deletion is DeletionPolicy.PRUNE
        if wanted != (PRUNE_FINALIZER in finalizers):
            await self._set_finalizers(
                sync, manifest, [*(each for each in finalizers if each != PRUNE_FINALIZER), *[PRUNE_FINALIZER] * wanted]
            )

    async def run(self, sync: Sync, manifest: Manifest) -> None:
        """Go on with a Sync that is being deleted: delete its members, and let it go once they are gone.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        finalizers = list(manifest["metadata"].get("finalizers") or ())
        if PRUNE_FINALIZER not in finalizers:
            return
        left = await self._remove_members(sync, manifest) if await self._prunes(sync, manifest) else 0
        if left and not _is_overdue(manifest):
            self.context.queue.add(sync.ref, Priority.POLL, after_s=_LOOK_AGAIN_S)
            return
        if left:
            note = f"{left} members are still there after {_PATIENCE}; they are left behind"
            await self.context.events.warning(manifest, "PruneGivenUp", note, action="Delete")
        event(log, logging.INFO, "let go", sync=f"{sync.namespace}/{sync.name}", left=left)
        await self._set_finalizers(sync, manifest, [each for each in finalizers if each != PRUNE_FINALIZER])

    async def _prunes(self, sync: Sync, manifest: Manifest) -> bool:
        """Tell whether members go with their Sync; of one that is suspended they stay, and that is said."""
        if sync.deletion is not DeletionPolicy.PRUNE:
            return False
        if sync.suspend:
            note = "the Sync was suspended when it was deleted, so its members stay as they are"
            await self.context.events.warning(manifest, "PruneSkipped", note, action="Delete")
        return not sync.suspend

    async def _remove_members(self, sync: Sync, manifest: Manifest) -> int:
        """Delete what is left of the set; return how many members are still there that the Sync may outlive."""
        session, recorded, view = self.context.session_of(sync), Contents.recorded(manifest), self.context.view.of(sync)
        kinds = gather.member_kinds(session, recorded, ())
        feeds = gather.member_feeds(session, kinds, view.selects(set_id_of(sync)))
        failures = await view.ensure(feeds, recorded.namespaces)
        inputs = Inputs(
            sync=sync,
            revision=Revision("", "", {}),
            desired=(),
            live=view.snapshot(),
            kinds=await session.kinds(kinds),
            now=now_text(),
            coverage=Coverage(gather.failures_by_kind(failures), recorded.namespaces),
        )
        holders, writer = (
            prune.holders_of(sync, self.namespace),
            self.context.writer(session, self.context.stop(sync.ref)),
        )
        first, last = prune.parted(planner.build_removal(inputs), holders)
        await writer.run(first)
        if left := len(failures) + _members(view.snapshot(), sync, holders, recorded.namespaces):
            return left
        return sum(1 for result in await writer.run(last) if result.state is not ResultState.SUCCEEDED)

    async def _set_finalizers(self, sync: Sync, manifest: Manifest, finalizers: list[str]) -> None:
        """Set the finalizers, unless somebody else changed the Sync meanwhile: then its event brings us back."""
        body: dict[str, Any] = {
            "metadata": {"finalizers": finalizers, "resourceVersion": manifest["metadata"]["resourceVersion"]}
        }
        try:
            self.context.cache.wrote(await self.context.session.client.patch(sync_path(sync), body))
        except NotFound:
            return


def _members(snapshot: Snapshot, sync: Sync, holders: Collection[ObjectRef], places: Collection[str]) -> int:
    """Count the members that are still there; those that ask to be kept don't count, nor do *holders*."""
    found = (
        each
        for each in snapshot.labelled(PART_OF, set_id_of(sync))
        if each.ref not in holders and each.ref.namespace in {"", *places}
    )
    return sum(1 for each in found if not MemberOptions.of(each.manifest()).kept)


def _is_overdue(manifest: Manifest) -> bool:
    since = dt.datetime.fromisoformat(manifest["metadata"]["deletionTimestamp"])
    return dt.datetime.now(dt.UTC) - since > _PATIENCE
