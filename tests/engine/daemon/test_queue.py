"""The work queue: what is looked at next, and how long what fails or is fought over waits."""

from __future__ import annotations

import asyncio
import itertools
import logging
from types import SimpleNamespace

import pytest

from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.engine.daemon.turns import queue as work_queue
from kubectl_reconcile.engine.daemon.turns.pacing import TurnPacing
from kubectl_reconcile.engine.daemon.turns.queue import WorkQueue
from kubectl_reconcile.engine.telemetry.logs import News
from tests.waiting import steadily_meanwhile, until


async def test_higher_priority_goes_first_and_equals_in_their_order():
    queue = WorkQueue()
    for name, priority in {"poll": Priority.POLL, "one": Priority.DRIFT, "two": Priority.DRIFT}.items():
        queue.add(name, priority)
    queue.add("asked", Priority.ASKED)
    assert [(await queue.get()).item for _ in range(4)] == ["asked", "one", "two", "poll"]


async def test_an_item_asked_for_while_it_is_worked_on_runs_once_more_and_not_at_once():
    queue = WorkQueue()
    queue.add("item", Priority.PUSH)
    assert (await queue.get()).item == "item"
    queue.add("item", Priority.PUSH)
    queue.add("item", Priority.DRIFT)
    queue.add("other", Priority.RESYNC)
    assert (await queue.get()).item == "other"
    queue.done("item")
    assert (await queue.get()).item == "item"
    assert len(queue) == 0


async def test_a_delayed_request_postpones_nothing():
    queue = WorkQueue()
    queue.add("item", Priority.PUSH)
    queue.add("item", Priority.ASKED, after_s=3600)
    assert (await queue.get())[:2] == ("item", Priority.ASKED)


async def is_due(queue, *, within_s=30.0):
    """Whether something is due in time; where nothing is, *within_s* is a moment."""
    try:
        async with asyncio.timeout(within_s):
            turn = await queue.get()
    except TimeoutError:
        return False
    queue.done(turn.item)
    return True


async def worker(queue, taken):
    """Take one item after the other."""
    while True:
        item = (await queue.get()).item
        taken.append(item)
        await asyncio.sleep(0)
        queue.done(item)


async def all_are(taken, wanted):
    await until(lambda: sorted(taken) == sorted(wanted), f"all are taken: {wanted}", timeout_s=30, pause_s=0.005)


@pytest.mark.parametrize("workers", [1, 3, 24])
async def test_whatever_is_asked_for_is_taken_once_however_many_wait_and_whenever_it_is_due(workers):
    queue, taken = WorkQueue(), []
    waiting = [asyncio.create_task(worker(queue, taken)) for _ in range(workers)]
    await asyncio.sleep(0)
    for number in range(50):
        queue.add(f"later {number}", Priority.POLL, after_s=number % 7 * 0.01)
        queue.add(f"now {number}", Priority.PUSH)
    await all_are(taken, [f"{when} {number}" for when in ("now", "later") for number in range(50)])
    taken.clear()
    queue.add("when all was at rest", Priority.POLL, after_s=0.02)
    queue.add("sooner", Priority.POLL, after_s=0.01)
    await all_are(taken, ["sooner", "when all was at rest"])
    for each in waiting:
        each.cancel()


async def test_what_has_its_time_in_a_while_comes_together(monkeypatch):
    monkeypatch.setattr(work_queue, "_FAR_S", 0.1)
    queue = WorkQueue()
    for number in range(20):
        queue.add(number, Priority.POLL, after_s=0.1 + number / 1000)
    pauses = [await _pauses(queue.get()) for _ in range(20)]
    assert sum(pauses) <= 2, "at one half second, or at two where the clock was just between them"


@pytest.mark.parametrize(("priority", "after_s"), [(Priority.POLL, 0.01), (Priority.DRIFT, 0.1)])
async def test_what_is_due_soon_or_is_no_mere_matter_of_time_waits_for_nothing_else(monkeypatch, priority, after_s):
    monkeypatch.setattr(work_queue, "_FAR_S", 0.1)
    monkeypatch.setattr(work_queue, "_TOGETHER_S", 100_000.0)
    queue = WorkQueue()
    queue.add("web", priority, after_s=after_s)
    assert (await queue.get()).item == "web"


async def _pauses(taken) -> int:
    """How often whoever takes an item has to wait for it."""
    task = asyncio.create_task(taken)
    await asyncio.sleep(0)
    is_there = task.done()
    await task
    return not is_there


async def test_an_item_that_was_asked_for_while_it_was_worked_on_is_taken_by_who_waits_for_it_to_be_done():
    queue, taken = WorkQueue(), []
    queue.add("item", Priority.PUSH)
    await queue.get()
    waiting = asyncio.create_task(worker(queue, taken))
    await asyncio.sleep(0)
    queue.add("item", Priority.PUSH)
    await steadily_meanwhile(lambda: not taken, "nobody takes what is being worked on", for_s=0.01)
    queue.done("item")
    await all_are(taken, ["item"])
    waiting.cancel()


async def test_what_somebody_was_woken_for_who_is_cancelled_then_is_taken_by_another():
    queue = WorkQueue()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await asyncio.sleep(0)
    queue.add("item", Priority.PUSH)
    first.cancel()
    async with asyncio.timeout(30):
        assert (await second).item == "item"


async def test_an_item_that_writes_in_every_pass_is_paced_and_a_person_goes_past_that(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.daemon.turns.pacing._REFILL_S", 10_000.0)
    queue = WorkQueue()
    passes = 0
    queue.changed("fought over")
    while not queue.pacing.pause_s("fought over"):
        assert await is_due(queue)
        passes += 1
        queue.pacing.wrote("fought over")
        queue.succeeded("fought over")
        queue.changed("fought over")
    assert passes == 11  # a burst, and the one that finds the allowance used up
    queue.changed("another")
    assert await is_due(queue)
    queue.add("fought over", Priority.ASKED)
    assert await is_due(queue)


async def test_what_somebody_waits_for_isnt_put_off_by_what_was_written_before_nor_is_it_without_end(monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.engine.daemon.turns.pacing._REFILL_S", 10_000.0)
    pacing = TurnPacing()
    for _ in range(10):
        pacing.wrote("database")
    urgent = 0
    while pacing.pause_s("database") == 0:
        urgent += 1
        pacing.wrote("database", is_urgent=True)
    assert urgent == 61


async def test_an_item_that_writes_now_and_then_is_never_paced():
    queue = WorkQueue()
    for _ in range(5):
        queue.changed("item")
        assert await is_due(queue)
        queue.pacing.wrote("item")
        queue.succeeded("item")


async def test_who_holds_up_everybody_waits_as_does_its_namespace_and_nobody_else():
    queue = WorkQueue()
    queue.pacing.held_up("slow", "crowded", 5.0)
    queue.pacing.held_up("slow too", "crowded", 5.0)
    queue.pacing.held_up("slow elsewhere", "quiet", 5.0)
    queue.pacing.held_up("quick", "quiet", 0.01)
    assert 50 < queue.pacing.pause_s("slow") <= 100
    assert 150 < queue.pacing.pause_s("slow too") <= 200
    assert 50 < queue.pacing.pause_s("slow elsewhere") <= 100
    assert queue.pacing.pause_s("quick") == 0
    queue.changed("slow")
    queue.changed("quick")
    assert (await queue.get()).item == "quick"
    queue.add("slow", Priority.ASKED)
    assert (await queue.get()).item == "slow"


async def test_what_was_asked_for_during_the_pass_that_held_up_everybody_waits_as_well():
    queue = WorkQueue()
    queue.add("slow", Priority.DRIFT)
    await queue.get()
    queue.add("slow", Priority.DRIFT)
    queue.pacing.held_up("slow", "crowded", 5.0)
    queue.done("slow")
    queue.add("quick", Priority.POLL)
    assert (await queue.get()).item == "quick"
    assert not await is_due(queue, within_s=0.2)


def test_an_item_that_is_gone_and_comes_back_has_used_what_its_namespace_used():
    pacing = TurnPacing()
    pacing.held_up("slow", "crowded", 5.0)
    pacing.forget("slow")
    assert pacing.pause_s("slow") == 0
    pacing.held_up("slow", "crowded", 5.0)
    assert pacing.pause_s("slow") > 150


def test_what_is_over_is_forgotten_once_much_is_known(monkeypatch):
    clock = itertools.count(1000.0, 1000.0)
    monkeypatch.setattr(
        "kubectl_reconcile.engine.daemon.turns.pacing.time", SimpleNamespace(monotonic=lambda: next(clock))
    )
    pacing = TurnPacing()
    for number in range(5000):
        pacing.held_up(number, f"namespace-{number}", 1.0)
    assert len(pacing._until_s) + len(pacing._shares_until_s) <= 1002


def test_only_news_is_told_until_it_was_well_in_between():
    news = News()
    assert news.of("shop", ["a is wrong", "b is wrong", "a is wrong"]) == ["a is wrong", "b is wrong"]
    assert news.of("shop", ["b is wrong", "c is wrong"]) == ["c is wrong"]
    assert news.of("shop", ()) == []
    assert news.level("shop", "b is wrong") == logging.WARNING
    assert news.level("shop", "b is wrong") == logging.DEBUG
    assert news.level("other", "b is wrong", logging.ERROR) == logging.ERROR
