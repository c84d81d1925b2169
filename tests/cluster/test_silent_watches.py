"""Watches that stay open and tell nothing, and watches that just end: a feed is current within a bound, and never away for nothing."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable

import pytest

from kubectl_reconcile.cluster import reflector
from kubectl_reconcile.cluster.cache import Cache, Feed

FOUND_OUT_S = 100.0
WATCH = "watch=true"
STREAMING = "sendInitialEvents=true"
CONTINUED = re.compile(r"[?&]resourceVersion=(\d+)")


@pytest.fixture
def feed(discovery, namespace) -> Feed:
    return Feed(discovery.find("v1", "ConfigMap"), label_selector="test", namespace=namespace)


@pytest.fixture
def write(client, feed, config_map) -> Callable[..., object]:
    """``await write("web")``: a ConfigMap of the feed, written past the proxy."""

    async def apply(name: str) -> None:
        body = config_map(name, labels={"test": "silence"})
        await client.apply(feed.resource.path(feed.namespace, name), body, force=True)

    return apply


@pytest.fixture
def write_other(client, feed, config_map) -> Callable[..., object]:
    """``await write_other("web")``: a ConfigMap beside those of the feed."""

    async def apply(name: str) -> None:
        await client.apply(feed.resource.path(feed.namespace, name), config_map(name), force=True)

    return apply


@pytest.fixture
async def cache(through_faults, feed) -> AsyncIterator[Cache]:
    """A cache whose requests pass the proxy, and which follows the feed."""
    found = Cache(through_faults)
    found.follow(feed)
    assert await found.wait_synced(timeout_s=200)
    yield found
    await found.close()


@pytest.fixture
def states(cache, feed, monkeypatch) -> list[bool]:
    """Whether the feed was synced, each time that this may have changed."""
    found: list[bool] = []
    told = cache._reflectors[feed].turned

    def turned() -> None:
        told()
        found.append(cache.synced(feed))

    monkeypatch.setattr(cache._reflectors[feed], "turned", turned)
    return found


@pytest.fixture
def brief(monkeypatch) -> None:
    """Watches that the server ends after three seconds: late enough for it to send a bookmark before."""
    monkeypatch.setattr(reflector, "_WATCH_S", (3, 3))


def names(cache: Cache) -> list[str]:
    return [found.name for found in cache.snapshot().refs()]


def positions(faults) -> list[int]:
    """The versions from which watches went on, one after the other."""
    return [int(found[1]) for line in faults.seen if WATCH in line and (found := CONTINUED.search(line))]


async def silenced(cache, feed, faults, write, until, name: str) -> float:
    """Let the watch fall silent; return how long it took until the cache told what was written since, in seconds."""
    assert faults.mute() == 1
    began_s = time.monotonic()
    await write(name)
    await until(lambda: name in names(cache), "the cache tells what was written since", timeout_s=FOUND_OUT_S)
    return time.monotonic() - began_s


async def test_a_watch_that_falls_silent_alone_is_replaced_within_twenty_seconds(
    cache, feed, faults, write, until, states, caplog
):
    await silenced(cache, feed, faults, write, until, "one")
    assert positions(faults), "the first watch, which began with the list, was replaced by one that goes on from there"
    await silenced(cache, feed, faults, write, until, "two")
    assert len([line for line in faults.seen if STREAMING in line]) == 1, "nothing was listed again"
    assert states == []
    assert "feed failed" not in caplog.text
    assert caplog.text.count("watch went silent") == 1


async def test_watches_that_the_server_ends_are_no_outage_and_go_on_along_the_same_connection(
    brief, cache, feed, faults, write, write_other, until, states, caplog, monkeypatch
):
    monkeypatch.setattr("kubectl_reconcile.cluster.client._WATCH_GRACE_S", 100.0)  # however late the server ends them
    await until(lambda: len(positions(faults)) >= 2, "the second watch that goes on")
    connections = len(faults.watched_along)
    for number in range(3):
        known = positions(faults)[-1]
        await write_other(f"other-{number}")
        await until(lambda known=known: positions(faults)[-1] > known, "a bookmark tells of what isn't the feed's")
    for number in range(3):
        await write(f"map-{number}")
        await until(lambda number=number: len(names(cache)) == number + 1, "it is told")
        told = len(positions(faults))
        await until(lambda told=told: len(positions(faults)) > told, "the server has ended that watch")
    assert positions(faults) == sorted(positions(faults))
    assert len(faults.watched_along) == connections
    assert (states, caplog.text) == ([], "")
    assert len([line for line in faults.seen if STREAMING in line]) == 1
    assert not [line for line in faults.seen[1:] if WATCH not in line], "nothing was asked but the watches"


async def test_a_feed_whose_every_watch_is_silent_is_kept_current_by_lists(
    brief, cache, feed, faults, write, until, states, caplog
):
    faults.silence(WATCH, times=99)
    faults.mute()
    for name in ("one", "two"):
        await write(name)
        await until(lambda name=name: name in names(cache), "it is told")
    assert all(states), "it is as current as lists can be, so it never counts as away"
    assert caplog.text.count("watch went silent") == 1
    assert "feed failed" not in caplog.text


async def test_a_busy_watch_that_falls_silent_does_not_count_as_heard_for_what_it_told_before(
    brief, cache, feed, faults, write, until, monkeypatch
):
    monkeypatch.setattr(reflector, "_WATCH_S", (6, 6))
    await until(lambda: positions(faults), "a watch that goes on")
    for number in range(10):
        await write(f"map-{number}")
        await asyncio.sleep(0.2)  # the watch is busy for a while
    await until(faults.mute, "a watch is under way")
    monkeypatch.setattr(reflector, "_WATCH_S", (1000, 1000))  # the watch after this one wouldn't find it out in time
    await write("last")
    await until(lambda: "last" in names(cache), "the cache tells what was written since")
