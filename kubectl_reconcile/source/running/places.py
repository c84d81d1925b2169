"""Places for work in threads that many tenants share: so many at a time, in turns of tenants, and what lasts is in nobody's way.

Whose work it is (``TENANT``) is set by whoever begins it, before the thread begins. What is decided is in ``core.fair``. Who is ended while
they wait (``ending``) waits no longer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from kubectl_reconcile.core.fair.shares import NEVER_LATE, Limits, Shares
from kubectl_reconcile.core.fair.turns import Turns
from kubectl_reconcile.source.running.ending import ending

TENANT: ContextVar[str] = ContextVar("tenant", default="")
"""Who shares what there is little of with others: the namespace of a Sync, or a person. Empty for who has the process for themselves."""

_LOOK_S: Final = 0.1
"""How often somebody who waits looks whether anybody waits for them."""


class _ThreadPlace(Struct, eq=False):
    tenant: str
    has_begun: bool = False
    is_late: bool = False
    is_over: bool = False
    alarm: threading.Timer | None = None


class TenantPlaces:
    """Places, *at_once* besides those that are late, which who has one for longer than *moment_s* is; by default nobody is. *one_each*: no tenant has two."""

    def __init__(
        self, at_once: int, limits: Limits = NEVER_LATE, moment_s: float | None = None, *, one_each: bool = False
    ) -> None:
        self._at_once, self._moment_s, self._one_each = at_once, moment_s, one_each
        self._shares = Shares(limits)
        self._waiting: Turns[_ThreadPlace] = Turns()
        self._changed = threading.Condition()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a place of the tenant at hand, and have it for the block.

        Raises:
            SourceError: it isn't needed any more.
        """
        place, waited = _ThreadPlace(TENANT.get()), ending()
        with self._changed:
            waiting = self._waiting.add(place, place.tenant)
            self._hand_on()
            try:
                while not place.has_begun:
                    waited.check()
                    self._changed.wait(_LOOK_S)
            except BaseException:
                self._waiting.withdraw(waiting)
                if place.has_begun:
                    self._end(place)
                raise
        try:
            self._watch(place)
            yield
        finally:
            with self._changed:
                self._end(place)

    def _watch(self, place: _ThreadPlace) -> None:
        """Have who has a place be late after a moment from now, unless they never are."""
        if self._moment_s is None or not place.tenant:
            return
        place.alarm = threading.Timer(self._moment_s, self._outstay, [place])
        place.alarm.daemon = True
        place.alarm.start()

    def _may(self, tenant: str) -> bool:
        is_one_more = self._one_each and bool(tenant) and self._shares.has(tenant)
        return not is_one_more and self._shares.has_place(tenant, self._at_once)

    def _hand_on(self) -> None:
        while (place := self._waiting.next(self._may)) is not None:
            place.has_begun = True
            self._shares.take(place.tenant)
            self._changed.notify_all()

    def _outstay(self, place: _ThreadPlace) -> None:
        with self._changed:
            if place.is_over:
                return
            if self._shares.outstay(place.tenant):
                place.is_late = True
                self._hand_on()
            else:
                self._watch(place)  # too many are late for now

    def _end(self, place: _ThreadPlace) -> None:
        place.is_over = True
        if place.alarm is not None:
            place.alarm.cancel()
        self._shares.give_back(place.tenant, was_late=place.is_late)
        self._hand_on()
