"""From watch events to items: what happened is handed to whom it concerns, and the queue has it looked at.

What an event means is decided in ``core.daemon.watch_events``. What is held bare concerns another replica. Called in the event loop; nothing here waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Event, EventKind, StoredObject
from kubectl_reconcile.core.annotations import RESUME_REQUESTED_AT
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.cr_pass import ReadingTimes
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.daemon.rights_news import rights_news
from kubectl_reconcile.core.daemon.watch_events import (
    ItemIndex,
    crd_facts,
    established_kinds,
    generation_of,
    is_newly_set,
    is_status_alone,
    kind_of_crd,
    sync_events,
    sync_priority,
)
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, RIGHTS
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.sync_controller import SyncController
from kubectl_reconcile.engine.sync import gather


class WatchRouter(Struct):
    """Hands events on; *kind_changed* is called with a kind of which the CRD is another one, *established* are those promised."""

    context: DaemonContext
    syncs: SyncController
    index: ItemIndex
    kind_changed: Callable[[GroupKind], None]
    established: dict[ObjectRef, tuple[GroupVersionKind, ...]]
    _reading: ReadingTimes = field(default_factory=ReadingTimes)

    def on_event(self, happened: Event) -> None:
        """Say which items an event concerns."""
        happened = self._of_the_cluster(happened)
        newest = happened.new or happened.old
        if newest is None:
            return
        is_of_module = newest.gvk in self.context.session.modules
        if happened.ref.group_kind == SYNC.group_kind:
            self._on_sync(happened)
        elif happened.ref.group_kind == CRD:
            self._on_crd(happened)
        elif happened.ref.group_kind == NAMESPACE and happened.old is None:
            self._on_namespace(happened.ref.name)
        elif happened.ref.group_kind in RIGHTS:
            self._on_rights(happened)
        elif is_of_module:
            self._on_cr(happened, newest)
        if newest.is_whole:
            self.syncs.health.on_event(happened)
            if not happened.own and not is_status_alone(_manifest(happened.old), _manifest(happened.new)):
                self._on_member(happened)
        # A status that we gave a nested CR is our own write, and news for the CR above it.
        if not happened.own or is_of_module:
            self._on_child(newest)
        self._on_read(happened.ref)

    def _of_the_cluster(self, happened: Event) -> Event:
        """Return what an event means for the cluster: what has gone from one feed, as by the loss of a label, another may still show."""
        still = self.context.cache.snapshot().stored(happened.ref) if happened.new is None else None
        return happened if still is None else replace(happened, kind=EventKind.MODIFIED, new=still)

    def top_of(self, ref: ObjectRef) -> ObjectRef:
        """Return the item by which an item is shared out among replicas: the CR on top of a nested one, else itself."""
        snapshot = self.context.cache.snapshot()

        def controller_uid(each: ObjectRef) -> str:
            stored = snapshot.stored(each)
            return stored.controller_uid if stored else ""

        return self.index.top_of(ref, controller_uid)

    def _on_sync(self, happened: Event) -> None:
        ref = happened.ref
        if self.index.namespace not in {"", ref.namespace}:
            return
        if happened.new is None:
            self.syncs.dependencies.graph.went(ref)
            self.syncs.forget(ref)
            return
        before, after = _manifest(happened.old), happened.new.manifest()
        if is_newly_set(RESUME_REQUESTED_AT, before, after):
            self._resume(ref)
        for each in sync_events(before, after):
            self.syncs.notify(ref, each)
        self.index.sync_came(after)
        if (
            generation_of(before) != generation_of(after)
            or (happened.old or happened.new).labels != happened.new.labels
        ):
            self.syncs.dependencies.graph.came(after)
        for waiting in self.syncs.dependencies.graph.waiting_for(ref):
            self.syncs.notify(waiting, on.DependencyChanged(ref))
        if (priority := sync_priority(before, after)) is not None:
            self.context.queue.add(ref, priority)

    def _on_namespace(self, name: str) -> None:
        """Have those looked at who lacked a namespace that came, or whose members in it nobody watches yet."""
        self.syncs.notify_all(on.NamespaceCame(name))
        for ref in self.context.view.members.awaiting(name):
            self.syncs.notify(ref, on.KindsChanged())

    def _on_rights(self, happened: Event) -> None:
        news = rights_news(happened.ref, _manifest(happened.old), _manifest(happened.new))
        if news is not None:
            self.syncs.notify_all(news)

    def _resume(self, sync: ObjectRef) -> None:
        """End the contention of a Sync and of the CRs in it, and try again at once."""
        snapshot = self.context.cache.snapshot()
        for item in self.context.contention.contended_items():
            stored = snapshot.stored(item)
            if item == sync:
                self.context.contention.resume(item)
                self.syncs.notify(sync, on.Resumed())
            elif stored and self.index.sync_of(stored.labels) == sync:
                self.context.contention.resume(item)
                self.context.queue.add(item, Priority.ASKED)

    def _on_crd(self, happened: Event) -> None:
        """A kind came, went or changed; mere status updates are no news, but Established is."""
        before, after = _manifest(happened.old), _manifest(happened.new)
        self.established[happened.ref] = established_kinds(after)
        if crd_facts(before) != crd_facts(after):
            self.kind_changed(kind_of_crd(after or before or {}))

    def _on_cr(self, happened: Event, stored: StoredObject) -> None:
        """Wake the CR itself; a status that we wrote ourselves is no news."""
        before, after = _manifest(happened.old), _manifest(happened.new)
        if happened.own and generation_of(before) == generation_of(after):
            return
        if not self.index.looks_after(stored.ref, stored.labels):
            return
        module = self.context.session.modules[stored.gvk]
        if after is None:
            self.index.cr_went(stored.ref, stored.uid, module, stored.manifest())
            self.context.view.readers.use(stored.ref, frozenset())
            self._reading.forget(stored.ref)
            self.context.forget(stored.ref)
            return
        if is_newly_set(RESUME_REQUESTED_AT, before, after):
            self.context.contention.resume(stored.ref)
        self.index.cr_came(stored.ref, stored.uid, module, after)
        read = gather.reading_feeds(self.context.session, [module], stored.ref.namespace)
        self.context.view.readers.use(stored.ref, frozenset(read))
        self.context.queue.changed(stored.ref)

    def _on_member(self, happened: Event) -> None:
        syncs = {self.index.sync_of(stored.labels) for stored in (happened.old, happened.new) if stored}
        for sync in syncs:
            if sync is not None:
                self.syncs.objects_changed(sync, happened.ref)

    def _on_child(self, stored: StoredObject) -> None:
        """Wake the CR that a child, or an object that its module reads, belongs to."""
        owners = self.index.owners_of(stored.ref, stored.labels, stored.controller_uid)
        modules = self.context.session.modules.in_use() if stored.is_whole else ()
        readers = self.index.readers_of(stored.ref, stored.manifest, modules, self.context.live)
        for cr in owners.union(readers):
            self.context.queue.changed(cr)

    def _on_read(self, ref: ObjectRef) -> None:
        """Have the CRs looked at whose modules read all of this one's namespace: soon, or some seconds after the last time. Who wrote it doesn't matter."""
        now_s = time.monotonic()
        for cr in self.index.reading_all(ref, self.context.session.modules.in_use()):
            self.context.queue.add(cr, Priority.RESYNC, after_s=self._reading.after_change(cr, now_s) - now_s)


def _manifest(stored: StoredObject | None) -> Manifest | None:
    return stored.manifest() if stored and stored.is_whole else None
