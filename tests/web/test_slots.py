"""Slots for requests that take long: nobody holds up everybody else, nobody waits forever, and work that nobody waits for is ended."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack

import pytest

from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.running.threads import in_thread
from kubectl_reconcile.web import slots
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.errors import Refused
from kubectl_reconcile.web.slots import RequestSlots


def guest(name):
    return Asker(None, None, None, name, guest=True)


@pytest.fixture
def two():
    threads = ThreadPoolExecutor(4, "page")
    yield RequestSlots(threads, 2)
    threads.shutdown()


@pytest.fixture
def impatient(monkeypatch):
    """Whoever doesn't get a slot at once gets none."""
    monkeypatch.setattr(slots, "WAIT_S", 0.0)


async def test_one_person_has_one_slot_and_others_have_the_other(two, impatient):
    async with two.one(guest("alice")):
        with pytest.raises(Refused) as refused:
            async with two.one(guest("alice")):
                pass
        assert refused.value.status == 503
        async with two.one(guest("bob")):
            with pytest.raises(Refused):
                async with two.one(guest("carol")):
                    pass
    async with two.one(guest("carol")), two.one(guest("alice")):
        pass


async def test_accounts_of_a_namespace_have_one_slot_together(two, impatient):
    async with two.one(guest("system:serviceaccount:shop:a")):
        with pytest.raises(Refused):
            async with two.one(guest("system:serviceaccount:shop:b")):
                pass
        async with two.one(guest("system:serviceaccount:other:a")):
            pass


async def test_two_people_whose_requests_take_long_leave_the_slots_to_others(two, monkeypatch):
    monkeypatch.setattr(slots, "MOMENT_S", 0.01)
    async with AsyncExitStack() as held, asyncio.timeout(60):
        for name in ("alice", "bob", "carol", "dave"):
            await held.enter_async_context(two.one(guest(name)))
        monkeypatch.setattr(slots, "WAIT_S", 0.0)
        with pytest.raises(Refused):
            await held.enter_async_context(two.one(guest("alice")))


async def test_who_has_the_page_for_themselves_has_all_slots(two, impatient):
    me = Asker(None, None, None)
    async with two.one(me), two.one(me):
        with pytest.raises(Refused):
            async with two.one(me):
                pass


async def test_requests_of_one_person_that_wait_keep_no_slot_from_others(two):
    answered = []

    async def ask(name):
        async with two.one(guest(name)):
            answered.append(name)

    async with AsyncExitStack() as held:
        await held.enter_async_context(two.one(guest("alice")))
        more = [asyncio.create_task(ask("alice")) for _ in range(5)]
        await asyncio.sleep(0)
        await ask("bob")
        assert answered == ["bob"]
    async with asyncio.timeout(150):
        await asyncio.gather(*more)


async def test_work_of_requests_is_done_in_threads_of_the_page(two):
    async with two.one(guest("alice")):
        assert (await in_thread(lambda: threading.current_thread().name)).startswith("page")
    assert not (await in_thread(lambda: threading.current_thread().name)).startswith("page")


async def test_what_work_of_a_request_raises_is_raised(two):
    async with two.one(guest("alice")):
        with pytest.raises(ValueError, match="no number"):
            await in_thread(int, "no number")


async def test_work_that_nobody_waits_for_is_ended_and_its_slot_is_free_once_its_thread_has_ended(two, monkeypatch):
    begun, told, let_go = asyncio.Event(), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work():
        with ending().around(lambda: loop.call_soon_threadsafe(told.set)):
            loop.call_soon_threadsafe(begun.set)
            let_go.wait(300)

    async def ask():
        async with two.one(guest("alice")):
            await in_thread(work)

    asked = asyncio.create_task(ask())
    try:
        async with asyncio.timeout(150):
            await begun.wait()
            asked.cancel()
            await told.wait()
            await asyncio.wait([asked])
        with monkeypatch.context() as patched:
            patched.setattr(slots, "WAIT_S", 0.0)
            with pytest.raises(Refused):
                await two.one(guest("alice")).__aenter__()
    finally:
        let_go.set()
    async with two.one(guest("alice")):
        pass
