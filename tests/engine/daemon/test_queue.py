"""The work queue: what is looked at next, and how long what fails or is fought over waits."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.engine.daemon.queue import WorkQueue, backoff_s
from kubectl_reconcile.engine.telemetry.logs import News

BACKOFFS = {
    "the first failure waits the base": (1, 1.0),
    "the third has doubled twice": (3, 4.0),
    "a long outage stops at the cap": (99, 60.0),
}


@pytest.mark.parametrize(("failures", "expected"), BACKOFFS.values(), ids=BACKOFFS)
def test_backoff(failures, expected):
    assert backoff_s(failures) == expected


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


async def is_due(queue):
    """Whether something is due within a moment."""
    try:
        async with asyncio.timeout(0.2):
            turn = await queue.get()
    except TimeoutError:
        return False
    queue.done(turn.item)
    return True


async def test_an_item_that_writes_in_every_pass_is_paced_and_a_person_goes_past_that():
    queue = WorkQueue()
    passes = 0
    queue.changed("fought over")
    while await is_due(queue):
        passes += 1
        queue.wrote("fought over")
        queue.succeeded("fought over")
        queue.changed("fought over")
    assert passes == 11  # a burst, and the one that finds the allowance used up
    queue.changed("another")
    assert await is_due(queue)
    queue.add("fought over", Priority.ASKED)
    assert await is_due(queue)


async def test_an_item_that_writes_now_and_then_is_never_paced():
    queue = WorkQueue()
    for _ in range(5):
        queue.changed("item")
        assert await is_due(queue)
        queue.wrote("item")
        queue.succeeded("item")


def test_only_news_is_told_until_it_was_well_in_between():
    news = News()
    assert news.of("shop", ["a is wrong", "b is wrong", "a is wrong"]) == ["a is wrong", "b is wrong"]
    assert news.of("shop", ["b is wrong", "c is wrong"]) == ["c is wrong"]
    assert news.of("shop", ()) == []
    assert news.level("shop", "b is wrong") == logging.WARNING
    assert news.level("shop", "b is wrong") == logging.DEBUG
    assert news.level("other", "b is wrong", logging.ERROR) == logging.ERROR
