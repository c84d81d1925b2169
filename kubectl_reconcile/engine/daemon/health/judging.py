"""Judges the members of followed Syncs, and what modules have made of them: from the caches, without a request.

What counts as a member carries the mark of its Sync, and is asked for by its source; where no plan has shown for what that asks, the
Sync's field manager has put the mark there, in a namespace that the Sync writes to. What counts
below one was applied by the module of what owns it. A stranger's object says nothing about a Sync.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.cluster.cache import Event, StoredObject
from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.health.health import Health, HealthStatus
from kubectl_reconcile.core.health.silence import Expected, expected_of
from kubectl_reconcile.core.health.summary import health_below, member_health
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, labels_of
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import PART_OF, is_marked_by_us
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.core.ssa.managed_fields import entry_of
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.health.watched import WatchedMembers

_AT_A_TIME: Final = 100
_DEEPEST: Final = 8
"""Custom resources above one another, at most: a circle of owners ends there."""
_TOGETHER_S: Final = 5.0
"""Second looks within this many seconds happen together, so that objects that were created one after the other aren't reported one by one."""
_ABOVE: Final = Health(HealthStatus.CURRENT, "it contains this Sync, and waits for it")
_LEFT_AWAY: Final = Health(HealthStatus.NOT_FOUND, "somebody deleted it, and spec.drift leaves it so")


class Judging(Struct):
    """What is watched, by Sync; *cr_of* returns the custom resource that has a module and this uid, None where there is none."""

    context: DaemonContext
    cr_of: Callable[[str], ObjectRef | None]
    watched: dict[ObjectRef, WatchedMembers] = field(default_factory=dict)
    _by_set: dict[str, ObjectRef] = field(default_factory=dict)

    def begin(self, watched: WatchedMembers) -> None:
        """Have what happens to members of a Sync counted from now on."""
        self.watched[watched.sync.ref], self._by_set[set_id_of(watched.sync)] = watched, watched.sync.ref

    def end(self, watched: WatchedMembers) -> None:
        """Count no more what happens to members of a Sync."""
        self.watched.pop(watched.sync.ref, None)
        self._by_set.pop(set_id_of(watched.sync), None)

    # All at once -----------------------------------------------------------------------------

    async def judge_all(self, watched: WatchedMembers) -> None:
        """Judge all members as they are, some at a time: others have their turn in between."""
        view, set_id = self.context.view.of(watched.sync), set_id_of(watched.sync)
        refs = [stored.ref for stored in view.snapshot().labelled(PART_OF, set_id)]
        with_module = {gvk.group_kind for gvk in self.context.session.modules}
        for at in range(0, len(refs), _AT_A_TIME):
            snapshot = view.snapshot()
            for ref in refs[at : at + _AT_A_TIME]:
                stored = snapshot.stored(ref)
                self.judge(watched, ref, stored.manifest() if stored is not None else None)
                if stored is not None and ref.group_kind in with_module:
                    for below in self._owned(stored.uid):
                        self._judge_below(watched, ref, below.ref, below)
            await asyncio.sleep(0)
        watched.is_whole = True

    def ask_for(self, watched: WatchedMembers, asked: Mapping[ObjectRef, object]) -> None:
        """Count as members what the source asks for now."""
        before, watched.claims.asked = watched.claims.asked, asked
        if before is asked:
            return
        known = set(before) if before is not None else set(watched.tally.refs())
        snapshot, set_id = self.context.view.of(watched.sync).snapshot(), set_id_of(watched.sync)
        for ref in known.symmetric_difference(asked):
            stored = snapshot.stored(ref)
            is_marked = stored is not None and stored.labels.get(PART_OF) == set_id
            self.judge(watched, ref, stored.manifest() if stored is not None and is_marked else None)

    def _owned(self, uid: str, deep: int = 1) -> Iterator[StoredObject]:
        """Yield what modules have made of an object, and of what they made."""
        for stored in self.context.cache.snapshot().owned_by(uid):
            yield stored
            if deep < _DEEPEST and stored.gvk in self.context.session.modules:
                yield from self._owned(stored.uid, deep + 1)

    # As it happens ---------------------------------------------------------------------------

    def on_event(self, happened: Event) -> Iterator[WatchedMembers]:
        """Judge an object that came, changed or went; yield those for whose members, or what is below these, that is news."""
        for sync in {self._set_of(stored) for stored in (happened.old, happened.new) if stored}:
            watched = self.watched.get(sync) if sync else None
            if watched is not None and self._judge_member(watched, happened):
                yield watched
        newest = happened.new or happened.old
        above = self._member_above(newest.controller_uid) if newest is not None and newest.controller_uid else None
        if above is not None and self._judge_below(*above, happened.ref, happened.new):
            yield above[0]

    def _judge_member(self, watched: WatchedMembers, happened: Event) -> bool:
        new = happened.new or self.context.cache.snapshot().stored(happened.ref)
        is_member = new is not None and self._set_of(new) == watched.sync.ref
        return self.judge(watched, happened.ref, new.manifest() if new is not None and is_member else None)

    def _set_of(self, stored: StoredObject) -> ObjectRef | None:
        return self._by_set.get(stored.labels.get(PART_OF, ""))

    def _member_above(self, uid: str) -> tuple[WatchedMembers, ObjectRef] | None:
        """Return the member, and what is known of its set, that an object with this owner belongs to by way of modules."""
        for _ in range(_DEEPEST):
            ref = self.cr_of(uid)
            stored = self.context.cache.snapshot().stored(ref) if ref else None
            if stored is None:
                return None
            sync = self._set_of(stored)
            if (
                sync is not None
                and (watched := self.watched.get(sync)) is not None
                and watched.claims.may_be(stored.ref)
            ):
                return watched, stored.ref
            uid = stored.controller_uid
        return None

    # One object ------------------------------------------------------------------------------

    def judge(self, watched: WatchedMembers, ref: ObjectRef, live: Manifest | None) -> bool:
        """Judge a member, None where it isn't there or is none any more; tell whether there is news."""
        sync, now = watched.sync, now_text()
        is_ours = live is not None and watched.claims.may_be(ref)
        if watched.claims.asked is None and live is not None:
            is_ours = is_ours and is_marked_by_us(live, sync.field_manager)
        found, is_news = (_LEFT_AWAY if live is None and ref in watched.missing else None), False
        if live is not None and is_ours:
            found = self._member_health(watched, ref, live, now)
            is_news = bool(live.get("status")) and watched.tally.note_spoken(ref.group_kind, now)
        _note_again(watched, ref, found)
        is_news |= watched.tally.note(ref, found, now)
        watched.is_news |= is_news
        return is_news

    def _member_health(self, watched: WatchedMembers, ref: ObjectRef, live: Manifest, now: str) -> Health:
        """Return how a member is. A Sync that this one is a member of waits for this one: to wait for it, too, would be to wait forever."""
        sync = watched.sync
        if ref.group_kind == SYNC.group_kind and ref in self.context.above(sync.ref):
            return _ABOVE
        return member_health(sync.health, live, expected=self._expected(watched, live), now=now)

    def _expected(self, watched: WatchedMembers, live: Manifest) -> Expected:
        """Return whether a status is to be expected of a member that has none; a module gives its custom resources one."""
        if live.get("status"):
            return Expected.NOT_KNOWN
        gvk = GroupVersionKind.of(live)
        resource = self.context.session.discovery.find(gvk.api_version, gvk.kind)
        has_status = resource is not None and resource.has_status
        if has_status and gvk in self.context.session.modules:
            return Expected.SURE
        return expected_of(gvk.group_kind, has_status=has_status, spoken=watched.tally.spoken)

    def _judge_below(
        self, watched: WatchedMembers, member: ObjectRef, ref: ObjectRef, stored: StoredObject | None
    ) -> bool:
        """Judge what is below a member, None where it is gone, and the member where that changes it; tell whether there is news."""
        live, found = stored.manifest() if stored is not None else None, None
        if live is not None:
            found = health_below(watched.sync.health, live, now=now_text())
            found = found if not found.status.holds_up or self._is_applied_by_its_module(live) else None
        _note_again(watched, ref, found)
        return watched.tally.note_below(member, ref, found) and self.judge(watched, member, self.context.live(member))

    def _is_applied_by_its_module(self, live: Manifest) -> bool:
        """Tell whether an object is what its label says: anybody may set that, and an owner."""
        name = labels_of(live).get(MODULE_LABEL)
        modules = self.context.session.modules.in_use() if name else ()
        return any(each.name == name and entry_of(live, each.manager) for each in modules)

    def judge_again(self, watched: WatchedMembers) -> None:
        """Judge what time alone may have changed."""
        snapshot = self.context.cache.snapshot()
        for ref in watched.again.take(time.monotonic()):
            stored = snapshot.stored(ref)
            if stored is None or self._set_of(stored) == watched.sync.ref:
                self.judge(watched, ref, stored.manifest() if stored is not None else None)
            elif (above := self._member_above(stored.controller_uid)) is not None:
                self._judge_below(*above, ref, stored)


def _note_again(watched: WatchedMembers, ref: ObjectRef, found: Health | None) -> None:
    """Have an object looked at again when time alone changes its verdict."""
    if found is None or found.lasts_s is None:
        watched.again.note(ref, None)
        return
    due_s = time.monotonic() + found.lasts_s
    watched.again.note(ref, math.ceil(due_s / _TOGETHER_S) * _TOGETHER_S)
