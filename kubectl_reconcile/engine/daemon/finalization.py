"""What happens to a set when its Sync is deleted.

With ``deletionPolicy: Prune`` the Sync carries a finalizer of ours: its members are deleted first, as its account, then it goes. With
``Orphan``, the default, nothing holds it: members stay, and so do those of a Sync that is suspended. What happens to a Sync
that can't get rid of its members is decided in ``core.daemon.removal``; meanwhile its conditions say what it waits for. It is tried
again with growing pauses, and at once when rights change.

Three sorts of members go one after the other, each when those before are gone, and no pass waits for that: what runs and
what configures it, child Syncs among it; accounts, roles and bindings, by which child Syncs delete their own members; and what the
Sync can't outlive: its own namespace, the kind Sync, the daemon's namespace, and Syncs whose member it is, itself perhaps. The end of the last waits for our
finalizer, so it isn't waited for: the Sync is let go at once. In this order nothing is lost. A daemon that dies in between
leaves a Sync that is being deleted, and whoever manages it next finds these deletions under way.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Feed
from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound
from kubectl_reconcile.core.annotations import PRUNE_FINALIZER, MemberOptions
from kubectl_reconcile.core.apply.results import Result, ResultState, undeletable
from kubectl_reconcile.core.daemon.pass_events import RightsChanged
from kubectl_reconcile.core.daemon.pass_phase import RIGHTS_S
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.daemon.removal import Remains, RemovalEnding, ending_of
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning import planner, prune
from kubectl_reconcile.core.planning.inputs import Inputs, Lookups
from kubectl_reconcile.core.planning.plan import Plan, set_id_of
from kubectl_reconcile.core.planning.snapshot import Snapshot, Stored, members_in
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents, has_lost_its_writer, is_marked_by_us
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import DeletionPolicy, Sync
from kubectl_reconcile.core.retry import DELETION, PASS
from kubectl_reconcile.engine.api.sync_requests import now_text, sync_path
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.books import status_after
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.logs import event

_PATIENCE = dt.timedelta(hours=1)
"""How long what may pass holds up the deletion of a namespace."""
_WAITS_S = 10.0
"""How long one try waits for what must be gone before something else is deleted."""

log = logging.getLogger(__name__)


class Finalization(Struct):
    """Manages Syncs that are deleted, and watches those that will be deleted. *namespace* is where the daemon lives.

    *waiting* are Syncs whose deletion waits for members, *stalled* those of them that lack a right.
    """

    context: DaemonContext
    namespace: str = ""
    waiting: set[ObjectRef] = field(default_factory=set)
    stalled: set[ObjectRef] = field(default_factory=set)
    _rights_s: dict[ObjectRef, float] = field(default_factory=dict)

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
        ending = await self._ending(sync, manifest) if await self._prunes(sync, manifest) else RemovalEnding()
        if ending.report is not None:
            await self._stay(sync, ending, ending.report)
            return
        self.forget(sync.ref)
        left = (*ending.left, *(self._unrecorded(sync, manifest) if sync.deletion is DeletionPolicy.PRUNE else ()))
        event(log, logging.INFO, "let go", sync=f"{sync.namespace}/{sync.name}", left=", ".join(left) or "none")
        await self._tell_of_left(sync, manifest, left)
        await self._set_finalizers(sync, manifest, [each for each in finalizers if each != PRUNE_FINALIZER])

    def rights_changed(self, news: RightsChanged) -> None:
        """Look at the Syncs whose deletion lacks a right: at once, or a while after the last time."""
        now_s = time.monotonic()
        for ref in self.stalled:
            if not self._concerns(news, ref):
                continue
            from_s = self._rights_s.get(ref, now_s)
            if from_s <= now_s:
                self._rights_s[ref] = now_s + RIGHTS_S
                self.context.queue.succeeded(ref)
            self.context.queue.add(ref, Priority.PUSH, after_s=max(from_s - now_s, 0.0))

    def _concerns(self, news: RightsChanged, ref: ObjectRef) -> bool:
        """Tell whether news of rights may be about the account of a Sync."""
        live = self.context.live(ref)
        try:
            return live is not None and news.concerns(Sync.of(live).account)
        except SyncSpecError:
            return False

    def forget(self, ref: ObjectRef) -> None:
        """Drop a Sync that is gone, or another's."""
        self.waiting.discard(ref)
        self.stalled.discard(ref)
        self._rights_s.pop(ref, None)

    async def _stay(self, sync: Sync, ending: RemovalEnding, report: Report) -> None:
        """Say what the deletion waits for, and look again: soon for what is going, else later and later."""
        queue = self.context.queue
        self.waiting.add(sync.ref)
        if report.reason is ConditionReason.UNDELETABLE:
            self.stalled.add(sync.ref)
        else:
            self.stalled.discard(sync.ref)
        await self.context.set_status(sync.ref, lambda live: status_after(live, report, sync.requested_at))
        await self.context.hear(sync.ref, ending)
        queue.failed(sync.ref, Priority.POLL, backoff=PASS if sync.ref in self.stalled else DELETION)

    def _unrecorded(self, sync: Sync, manifest: Manifest) -> list[str]:
        """Return what carries all marks of a member and stays, since nobody is recorded to have written them."""
        places = Contents.recorded(manifest).namespaces
        found = members_in(self.context.view.of(sync).snapshot(), set_id_of(sync), places)
        return [str(each.ref) for each in found if has_lost_its_writer(each.manifest())]

    async def _tell_of_left(self, sync: Sync, manifest: Manifest, left: Sequence[str]) -> None:
        """Name the members that stay behind; no event can be made in a namespace that is going, so there it is one of that."""
        if not left:
            return
        note = f"Sync {sync.namespace}/{sync.name} is gone; these objects stay: {', '.join(left)}"
        place = await self._namespace_of(sync)
        about = place if place is not None and _is_going(place) else manifest
        await self.context.events.warning(about, "MembersLeft", note, action="Delete")

    async def _prunes(self, sync: Sync, manifest: Manifest) -> bool:
        """Tell whether members go with their Sync; of one that is suspended they stay, and that is said."""
        if sync.deletion is not DeletionPolicy.PRUNE:
            return False
        if sync.suspend:
            note = "the Sync was suspended when it was deleted, so its members stay"
            await self.context.events.warning(manifest, "PruneSkipped", note, action="Delete")
        return not sync.suspend

    async def _ending(self, sync: Sync, manifest: Manifest) -> RemovalEnding:
        """Delete what is left of the set, and return what happens to the Sync."""
        remains = await self._removed(sync, manifest)
        place = await self._namespace_of(sync) if remains != Remains() else None
        known = (manifest.get("status") or {}).get("undeletable") or ()
        namespace_goes = place is not None and _is_going(place)
        return ending_of(
            sync, remains, known=frozenset(known), namespace_goes=namespace_goes, is_overdue=_is_overdue(manifest)
        )

    async def _removed(self, sync: Sync, manifest: Manifest) -> Remains:
        """Delete what is left of the set as far as its turn has come; return what remains."""
        session, recorded, view = self.context.session_of(sync), Contents.recorded(manifest), self.context.view.of(sync)
        kinds = gather.member_kinds(session, recorded, ())
        feeds = gather.member_feeds(session, kinds, view.selects(set_id_of(sync)))
        failures = await view.ensure(feeds, Contents.looked_for(manifest))
        strangers = _strangers(view.snapshot(), sync, manifest)
        inputs = Inputs(
            sync=sync,
            revision=Revision("", "", {}),
            desired=(),
            live=view.snapshot(),
            kinds=await session.kinds(kinds),
            now=now_text(),
            coverage=gather.coverage_of(failures, recorded.namespaces, recorded, {}),
            lookups=Lookups(strangers=strangers),
        )
        holders = prune.holders_of(sync, self.namespace, self.context.above(sync.ref)) | strangers
        first, last = prune.parted(planner.build_removal(inputs), holders)
        results: list[Result] = []
        for part in prune.without_rights(first):
            results += await self._run(sync, session, part)
            remains = _remains(failures, results, _members(view.snapshot(), sync, holders, recorded.namespaces), part)
            if remains != Remains():
                return remains
        results = await self._run(sync, session, last)
        return _remains({}, results, (), last)

    async def _run(self, sync: Sync, session: Session, part: Plan) -> list[Result]:
        writer = self.context.writer(session, self.context.stop(sync.ref), tenant=sync.namespace)
        return await replace(writer, timeout_s=_WAITS_S).run(part)

    async def _namespace_of(self, sync: Sync) -> Manifest | None:
        """Return the namespace of a Sync, None where it can't be looked at."""
        try:
            return await self.context.session.client.get(f"/api/v1/namespaces/{sync.namespace}")
        except (NotFound, Forbidden):
            return None

    async def _set_finalizers(self, sync: Sync, manifest: Manifest, finalizers: list[str]) -> None:
        """Set the finalizers, unless somebody else changed the Sync meanwhile: then its event brings us back."""
        body: dict[str, Any] = {
            "metadata": {"finalizers": finalizers, "resourceVersion": manifest["metadata"]["resourceVersion"]}
        }
        try:
            self.context.cache.wrote(await self.context.session.client.patch(sync_path(sync), body))
        except NotFound:
            return


def _strangers(snapshot: Snapshot, sync: Sync, manifest: Manifest) -> frozenset[ObjectRef]:
    """Return what only says of itself that it is a member, as was told while the Sync was there: it stays."""
    told = frozenset(map(str, (manifest.get("status") or {}).get("unasked") or ()))
    marked = snapshot.labelled(PART_OF, set_id_of(sync)) if told else ()
    return frozenset(each.ref for each in marked if str(each.ref) in told)


def _members(
    snapshot: Snapshot, sync: Sync, holders: Collection[ObjectRef], places: Collection[str]
) -> tuple[Stored, ...]:
    """Return the members that are still there; those that ask to be kept don't count, nor do *holders*."""
    found = (each for each in members_in(snapshot, set_id_of(sync), places) if each.ref not in holders)
    return tuple(each for each in found if _goes(each.manifest(), sync))


def _goes(manifest: Manifest, sync: Sync) -> bool:
    """Tell whether a member goes with its Sync: it is ours, and doesn't ask to be kept."""
    return not MemberOptions.of(manifest).kept and is_marked_by_us(manifest, sync.field_manager)


def _remains(
    failures: Mapping[Feed, ApiError], results: Sequence[Result], members: Sequence[Stored], part: Plan
) -> Remains:
    """Return what remains once *part* was carried out with these *results* and these *members* are still there.

    Of these, what isn't refused is going, or comes later: accounts and roles wait for the rest.
    """
    refused = undeletable(results)
    lost = {each.change.ref for each in results if each.state is not ResultState.SUCCEEDED}
    unlisted = [why for why in failures.values() if isinstance(why, Forbidden)]
    late = [f"{feed.resource.gvk.group_kind}: {why}" for feed, why in failures.items() if why not in unlisted]
    failing = [f"{each.change.ref}: {each.error}" for each in results if each.change.ref in lost and not each.is_left]
    turn = {change.ref for change in part.changes}
    going = [each.ref for each in members if each.ref not in lost and _is_under_way(each, turn)]
    return Remains(tuple(refused), tuple(sorted({str(why) for why in unlisted})), tuple(going), (*late, *failing))


def _is_under_way(each: Stored, turn: Collection[ObjectRef]) -> bool:
    """Tell whether a member's deletion was accepted, now or earlier."""
    return each.ref in turn or bool(each.manifest()["metadata"].get("deletionTimestamp"))


def _is_going(manifest: Manifest) -> bool:
    return bool(manifest["metadata"].get("deletionTimestamp"))


def _is_overdue(manifest: Manifest) -> bool:
    since = dt.datetime.fromisoformat(manifest["metadata"]["deletionTimestamp"])
    return dt.datetime.now(dt.UTC) - since > _PATIENCE
