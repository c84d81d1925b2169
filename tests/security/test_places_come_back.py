"""The law of what tenants share: whatever becomes of those who have a place or wait for one, afterwards there is as much room as before.

Whoever has a place ends well or by an error, and may have outstayed; whoever waits is cancelled, or loses patience, maybe in the very
moment in which their turn comes. All kinds of places are put to the same histories.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.fair.shares import Limits
from kubectl_reconcile.engine.apply import flow_control
from kubectl_reconcile.engine.apply.flow_control import FlowControl
from kubectl_reconcile.engine.daemon import cr_controller
from kubectl_reconcile.engine.daemon.cr_controller import OutsidePasses
from kubectl_reconcile.engine.daemon.sources.git_lanes import GitLanes
from kubectl_reconcile.engine.daemon.turns.queue import TurnsUnderWay, WorkQueue
from kubectl_reconcile.engine.telemetry.metrics import Metrics
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.running import budget, places
from kubectl_reconcile.source.running.budget import ByteBudget
from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.running.places import TENANT, TenantPlaces
from kubectl_reconcile.source.running.threads import Errand
from kubectl_reconcile.web import slots
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.slots import RequestSlots
from tests.waiting import until

ROOM = 2
LIMITS = Limits(late=1, late_in_all=2)
ONE_LATE = Limits(late=1, late_in_all=1)


@dataclass
class Stay:
    """Somebody who wants a place, and stays until told to go; *fails*: by an error."""

    tenant: str
    has_begun: bool = False
    fails: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    over_in_threads: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[None] | None = None

    def go(self, *, fails=False):
        self.fails = fails
        self.over.set()
        self.over_in_threads.set()

    def leave(self):
        if self.fails:
            raise ValueError(self.tenant)

    def stay_in_thread(self):
        self.has_begun = True
        with ending().around(self.over_in_threads.set):
            self.over_in_threads.wait(60)
        self.leave()


def in_the_loop(place):
    """Places that are waited for in the event loop: place(tenant) is one for a block."""

    async def stay(one):
        async with place(one.tenant):
            one.has_begun = True
            await one.over.wait()
            one.leave()

    return stay


def in_threads(threads, place):
    """Places that are waited for in threads: place() is one of the tenant at hand for a block."""

    def work(one):
        with place():
            one.stay_in_thread()

    async def stay(one):
        TENANT.set(one.tenant)
        await Errand(threads).run(lambda: work(one))

    return stay


def of_the_page(threads):
    page = RequestSlots(threads, ROOM)
    return in_the_loop(lambda tenant: page.one(Asker(None, None, None, tenant, guest=True)))


def of_requests(threads):
    flow = FlowControl(ROOM, ROOM)
    return in_the_loop(lambda tenant: flow.share(tenant).place())


def of_requests_in_bulk(threads):
    flow = FlowControl(ROOM, ROOM)
    return in_the_loop(lambda tenant: flow.share(tenant, bulk=True).place())


def of_turns(threads):
    queue, names = WorkQueue(TurnsUnderWay(lambda item: item.partition("/")[0])), iter(range(1000))

    @asynccontextmanager
    async def turn(tenant):
        item = f"{tenant}/{next(names)}"
        queue.add(item, Priority.ASKED)
        found = await queue.get()
        if flow_control._MOMENT_S == 0:
            queue.under_way.outstay(found.item)
        try:
            yield
        finally:
            queue.done(found.item)
            queue.forget(item)

    return in_the_loop(turn)


def of_passes_outside(threads):
    passes = OutsidePasses(nullcontext)

    @asynccontextmanager
    async def begun(namespace):
        with passes.begun(namespace):
            yield

    return in_the_loop(begun)


def of_git_lanes(threads):
    lanes = GitLanes(Metrics(), 4, patience_s=0.05)

    async def stay(one):
        await lanes.run(
            one.stay_in_thread, who=one.tenant, url="https://a.example/a.git", tenant=one.tenant, is_urgent=False,
            timeout_s=WAITS["timeout"],
        )  # fmt: skip

    return stay


def of_work_in_threads(threads):
    shared = TenantPlaces(ROOM, LIMITS, 0.01)
    return in_threads(threads, shared.one)


def of_bytes(threads):
    shared = ByteBudget()
    return in_threads(threads, lambda: shared.room(1, ROOM))


LOOP = {each.__name__: each for each in (of_the_page, of_requests, of_requests_in_bulk, of_turns, of_passes_outside)}
THREADS = {each.__name__: each for each in (of_git_lanes, of_work_in_threads, of_bytes)}
WAITS = {"timeout": 60.0}

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("comes"), st.sampled_from("abc")),
        st.tuples(st.sampled_from(("goes", "fails", "is cancelled")), st.integers(0, 9)),
        st.just(("a moment passes", 0)),
    ),
    max_size=20,
)


async def happen(stay, steps, *, moment_s=0.0):
    """Have all that happen, then everybody go; return once they have gone."""
    stays = []
    for what, which in steps:
        one = stays[which % len(stays)] if stays and isinstance(which, int) else None
        if what == "comes":
            stays.append(Stay(which))
            stays[-1].task = asyncio.create_task(stay(stays[-1]))
        elif what == "a moment passes":
            await asyncio.sleep(moment_s)
        elif one is not None and what == "is cancelled":
            one.task.cancel()
        elif one is not None:
            one.go(fails=what == "fails")
    for one in stays:
        one.go()
    gone = await asyncio.gather(*(one.task for one in stays), return_exceptions=True)
    expected = (asyncio.CancelledError, ValueError, SourceError, slots.Refused)
    assert all(isinstance(each, (type(None), *expected)) for each in gone), gone


async def has_room(stay, tenants):
    """Wait until so many tenants who come together all have a place."""
    stays = [Stay(each) for each in tenants]
    tasks = [asyncio.create_task(stay(one)) for one in stays]
    try:

        async def all_have():
            await asyncio.sleep(0)
            return all(one.has_begun for one in stays)

        await until(all_have, "all who fit in have a place", timeout_s=5, pause_s=0)
    finally:
        for one, task in zip(stays, tasks, strict=True):
            one.go()
            if not one.has_begun:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def impatient(monkeypatch):
    """impatient(True) has everybody lose patience at once, and be late at once; impatient(False) nobody ever."""

    def be(now):
        wait_s = 0.0 if now else 3600.0
        monkeypatch.setattr(slots, "WAIT_S", wait_s)
        monkeypatch.setattr(slots, "MOMENT_S", wait_s)
        monkeypatch.setattr(flow_control, "_MOMENT_S", wait_s)
        monkeypatch.setattr(cr_controller, "_MOMENT_S", wait_s)
        monkeypatch.setitem(WAITS, "timeout", 0.01 if now else 60.0)
        monkeypatch.setattr(places, "_LOOK_S", 0.005)
        monkeypatch.setattr(budget, "_LOOK_S", 0.005)

    return be


@pytest.mark.parametrize("kind", LOOP.values(), ids=LOOP)
def test_there_is_as_much_room_as_before(impatient, kind):
    @given(STEPS, st.booleans())
    def law(steps, are_impatient):
        async def history():
            stay = kind(threads)
            impatient(are_impatient)
            await happen(stay, steps)
            impatient(False)
            await has_room(stay, ["x", "y"])

        asyncio.run(history())

    with ThreadPoolExecutor(4) as threads:
        law()


@pytest.mark.parametrize("kind", THREADS.values(), ids=THREADS)
def test_there_is_as_much_room_as_before_in_threads(impatient, kind):
    @settings(max_examples=20)
    @given(STEPS, st.booleans())
    def law(steps, are_impatient):
        async def history():
            stay = kind(threads)
            impatient(are_impatient)
            await happen(stay, steps, moment_s=0.02)
            impatient(False)
            await has_room(stay, ["x", "y"])

        asyncio.run(history())

    with ThreadPoolExecutor(16) as threads:
        law()


@pytest.mark.parametrize("kind", [of_the_page, of_requests, of_requests_in_bulk, of_work_in_threads])
async def test_who_lasts_while_too_many_are_late_makes_room_once_fewer_are(monkeypatch, kind):
    monkeypatch.setattr(slots, "LATE", ONE_LATE)
    monkeypatch.setattr(flow_control, "LATE", ONE_LATE)
    monkeypatch.setattr(sys.modules[__name__], "LIMITS", ONE_LATE)
    monkeypatch.setattr(slots, "MOMENT_S", 0.01)
    monkeypatch.setattr(flow_control, "_MOMENT_S", 0.01)
    with ThreadPoolExecutor(8) as threads:
        stay, stays = kind(threads), {}
        for name in "abc":  # one who is late, and two who last as long in the two places that there are
            stays[name] = Stay(name)
            stays[name].task = asyncio.create_task(stay(stays[name]))
            await until(lambda name=name: stays[name].has_begun, f"{name} has a place")
        stays["d"] = Stay("d")
        stays["d"].task = asyncio.create_task(stay(stays["d"]))
        await asyncio.sleep(0.1)  # many moments: nothing shows that none of the two has made room
        assert not stays["d"].has_begun
        stays["a"].go()
        await until(lambda: stays["d"].has_begun, "somebody else is late now, and makes room")
        for each in stays.values():
            each.go()
        await asyncio.gather(*(each.task for each in stays.values()))


async def test_who_loses_patience_as_the_turn_comes_gives_it_back(impatient):
    stay = of_the_page(None)
    impatient(False)
    first, second = Stay("a"), Stay("a")
    first.task = asyncio.create_task(stay(first))
    await asyncio.sleep(0)
    impatient(True)
    second.task = asyncio.create_task(stay(second))
    first.go()
    await asyncio.wait([first.task, second.task])
    assert isinstance(second.task.exception(), slots.Refused)
    impatient(False)
    await has_room(stay, ["a"])


def test_a_place_whose_timer_cannot_begin_is_given_back(monkeypatch):
    shared = TenantPlaces(ROOM, LIMITS, 3600.0)
    TENANT.set("a")

    def none_left(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Timer, "start", none_left)
        for _ in range(ROOM + 1):
            with pytest.raises(RuntimeError, match="new thread"), shared.one():
                pass
    with shared.one():
        pass


async def test_a_job_whose_thread_cannot_begin_gives_its_slot_back(monkeypatch):
    lanes = GitLanes(Metrics(), 4)
    job = {"who": "a", "url": "https://a.example/a.git", "tenant": "a", "is_urgent": False, "timeout_s": 60.0}

    def none_left(*_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(lanes._threads, "submit", none_left)
        for _ in range(5):
            with pytest.raises(RuntimeError, match="new thread"):
                await lanes.run(lambda: 1, **job)
    assert await lanes.run(lambda: 1, **job) == 1
