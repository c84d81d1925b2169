"""The cache on a real API server: complete, current, and never older than our own writes, whatever happens on the way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import time
from collections.abc import AsyncIterator, Callable

import psutil
import pytest

from kubectl_reconcile.cluster.cache import Cache, Event, EventKind, Feed
from kubectl_reconcile.cluster.client import (
    Access,
    Client,
    Forbidden,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.objects import ObjectRef
from tests.lines import Line, line_to
from tests.waiting import steadily_meanwhile

WATCH = "watch=true"
STREAMING = "sendInitialEvents=true"
CONTINUED = "resourceVersion="  # a watch that goes on from a position


@pytest.fixture
async def cache(client) -> AsyncIterator[Cache]:
    found = Cache(client)
    yield found
    await found.close()


@pytest.fixture
async def faulty_cache(through_faults) -> AsyncIterator[Cache]:
    """A cache whose requests pass the proxy."""
    found = Cache(through_faults)
    yield found
    await found.close()


@pytest.fixture
def maps(discovery) -> object:
    return discovery.find("v1", "ConfigMap")


@pytest.fixture
def feed(maps, namespace) -> Feed:
    """This test's ConfigMaps, those of the cluster's own (its certificate authority) left out."""
    return Feed(maps, label_selector="test", namespace=namespace)


@pytest.fixture
def path(maps, namespace) -> Callable[..., str]:
    return lambda name="": maps.path(namespace, name)


@pytest.fixture
def write(client, path, config_map) -> Callable[..., object]:
    """``await write("web", "1")`` -> the ConfigMap as the server has it."""

    async def apply(name: str, value: str = "", **labels: str) -> dict:
        body = config_map(name, labels={"test": "cache", **labels}, data={"value": value})
        return await client.apply(path(name), body, force=True)

    return apply


@pytest.fixture
def ref(namespace) -> Callable[[str], ObjectRef]:
    return lambda name: ObjectRef("", "ConfigMap", namespace, name)


def names(cache: Cache) -> list[str]:
    return [found.name for found in cache.snapshot().refs()]


def values(cache: Cache) -> dict[str, str]:
    stored = (cache.snapshot().stored(found) for found in cache.snapshot().refs())
    return {found.ref.name: found.manifest()["data"]["value"] for found in stored if found}


def story(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.kind.value, event.ref.name) for event in events]


async def following(cache: Cache, *feeds: Feed) -> list[Event]:
    """Follow *feeds* until they are synced; the events from then on."""
    for feed in feeds:
        cache.follow(feed)
    assert await cache.wait_synced(feeds, timeout_s=200)
    events: list[Event] = []
    cache.subscribe(events.append)
    return events


async def synced_now(cache: Cache, feed: Feed) -> bool:
    """Ask for another attempt, and say how it went."""
    cache.follow(feed)
    return await cache.wait_synced([feed], timeout_s=200)


# -- following ---------------------------------------------------------------------------------------------------------


async def test_a_feed_begins_complete_and_tells_what_follows(cache, feed, write, client, path, until):
    await write("one", "1")
    events = await following(cache, feed)
    assert values(cache) == {"one": "1"}
    await write("two", "2")
    await write("one", "changed")
    await client.delete(path("two"))
    await until(lambda: len(events) == 3, "three events arrived")
    assert story(events) == [("added", "two"), ("modified", "one"), ("deleted", "two")]
    assert values(cache) == {"one": "changed"}
    assert (events[1].old.manifest()["data"], events[1].new.manifest()["data"]) == (
        {"value": "1"},
        {"value": "changed"},
    )


async def test_stored_objects_are_complete_and_know_their_kind(cache, feed, write, client, path, ref):
    written = await write("one", "1")
    await following(cache, feed)
    assert cache.snapshot().get(ref("one")) == written == await client.get(path("one"))
    assert written["metadata"]["managedFields"]


async def test_an_object_that_loses_its_label_leaves_the_feed_and_may_return(cache, feed, write, client, path, until):
    await write("one")
    events = await following(cache, feed)
    await client.patch(path("one"), {"metadata": {"labels": {"test": None}}})
    await until(lambda: names(cache) == [], "the object left")
    await client.patch(path("one"), {"metadata": {"labels": {"test": "again"}}})
    await until(lambda: names(cache) == ["one"], "the object is back")
    assert story(events) == [("deleted", "one"), ("added", "one")]


async def test_a_megabyte_is_held_like_anything_else(cache, feed, write, ref, until):
    await following(cache, feed)
    await write("big", "x" * 1_000_000)
    await until(lambda: cache.snapshot().stored(ref("big")), "the large object arrived")
    assert len(cache.snapshot().get(ref("big"))["data"]["value"]) == 1_000_000


async def test_a_recreated_object_is_a_modified_one_of_its_name(cache, feed, write, client, path, until, ref):
    old = await write("one", "old")
    await following(cache, feed)
    await client.delete(path("one"))
    new = await write("one", "new")
    await until(lambda: values(cache) == {"one": "new"}, "the new object is there")
    assert cache.snapshot().stored(ref("one")).uid == new["metadata"]["uid"] != old["metadata"]["uid"]


async def test_snapshots_stay_as_they_were(cache, feed, write, until):
    await write("one", "1")
    await following(cache, feed)
    before = cache.snapshot()
    assert cache.snapshot() is before
    await write("one", "2")
    await until(lambda: values(cache) == {"one": "2"}, "the change arrived")
    assert [stored.manifest()["data"] for stored in before.labelled("test", "cache")] == [{"value": "1"}]


async def test_children_are_found_by_their_controller(cache, feed, write, client, path, until):
    owner = await write("owner")
    child = await write("child")
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    await following(cache, feed)
    await client.patch(path("child"), {"metadata": {"ownerReferences": [reference]}})
    await until(lambda: cache.snapshot().owned_by(owner["metadata"]["uid"]), "the child has its owner")
    assert [stored.uid for stored in cache.snapshot().owned_by(owner["metadata"]["uid"])] == [child["metadata"]["uid"]]


async def test_feeds_of_one_kind_may_overlap(cache, feed, maps, namespace, write, client, path, until):
    whole = Feed(maps, namespace=namespace)
    await write("one", "1")
    await following(cache, feed, whole)
    assert names(cache).count("one") == 1
    await client.patch(path("one"), {"metadata": {"labels": {"test": None}}})
    await until(lambda: not cache.snapshot().labelled("test", "cache"), "the label is gone from both")
    assert "one" in names(cache)


async def test_a_feed_can_be_dropped_and_taken_up_again(cache, feed, write):
    await write("one")
    await following(cache, feed)
    await cache.unfollow(feed)
    await cache.unfollow(feed)
    assert (names(cache), cache.synced(feed), cache.feeds) == ([], False, ())
    await following(cache, feed)
    assert names(cache) == ["one"]


async def test_a_subscriber_that_fails_fails_alone(cache, feed, write, until, caplog):
    events = await following(cache, feed)

    def broken(_event: Event) -> None:
        raise RuntimeError("not my day")

    cancel = cache.subscribe(broken)
    later: list[Event] = []
    cache.subscribe(later.append)
    await write("one")
    await until(lambda: later, "the others were told")
    assert "not my day" in caplog.text
    cancel()
    await write("one", "2")
    await until(lambda: len(events) == 2, "the feed goes on")
    assert caplog.text.count("RuntimeError: not my day") == 1


# -- read your writes --------------------------------------------------------------------------------------------------


async def test_no_snapshot_is_older_than_an_own_write(cache, feed, write, ref):
    events = await following(cache, feed)
    for number in range(40):
        written = await write("one", str(number))
        cache.wrote(written)
        assert values(cache) == {"one": str(number)}
    versions = [int(event.new.resource_version) for event in events]
    assert versions == sorted(set(versions))
    assert cache.snapshot().get(ref("one")) == written


async def test_the_echo_of_an_own_write_is_no_news(cache, feed, write, until):
    events = await following(cache, feed)
    for attempt in range(50):
        events.clear()
        written = await write(f"one-{attempt}")
        if not events:  # now and then the watch is faster than the answer
            break
    cache.wrote(written)
    await write("two")
    await until(lambda: len(events) == 2, "the watch got past the own write")
    assert [(event.ref.name, event.own) for event in events] == [(f"one-{attempt}", True), ("two", False)]


async def test_what_we_deleted_never_comes_back(cache, feed, write, client, path, ref, until):
    events = await following(cache, feed)
    deleted: set[str] = set()
    for _ in range(20):
        written = await write("one")
        await write("one", "changed")
        uid = written["metadata"]["uid"]
        assert (await client.delete(path("one"), uid=uid))["status"] == "Success"
        cache.deleted(ref("one"), uid)
        deleted.add(uid)
        assert names(cache) == []
        seen = len(events)
        await asyncio.sleep(0)
        assert not [event for event in events[seen:] if event.new and event.new.uid in deleted]
    await write("one", "last")
    await until(lambda: values(cache) == {"one": "last"}, "the watch caught up")
    assert not [event for event in events if event.new and event.new.uid in deleted and event.own]


async def test_news_of_a_write_that_was_overtaken_by_a_deletion_raises_no_ghost(
    cache, feed, write, client, path, until
):
    events = await following(cache, feed)
    written = await write("one")
    await client.delete(path("one"))
    await until(lambda: len(events) == 2, "the watch told of both")
    cache.wrote(written)
    assert names(cache) == []


async def test_an_object_whose_end_was_missed_is_found_out(
    cache, feed, write, client, path, until, monkeypatch, caplog
):
    monkeypatch.setattr("kubectl_reconcile.cluster.reflector._WATCH_S", (1, 1))
    events = await following(cache, feed)
    await write("other")
    written = await write("one")
    await client.delete(path("one"))
    await until(lambda: len(events) == 3, "the watch told of all that")
    beyond = str(int(written["metadata"]["resourceVersion"]) + 10)
    going = {**written["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": beyond}
    cache.wrote({**written, "metadata": going})  # newer than its end, so that no watch ever tells of that
    assert names(cache) == ["one", "other"]
    for number in range(10):
        await write("other", str(number))
    await until(lambda: names(cache) == ["other"], "it isn't waited for for ever")
    assert "watch missed a deletion" in caplog.text


async def test_an_own_write_that_takes_the_label_away_leaves_the_feed(cache, feed, write, client, path, until):
    await write("one")
    await following(cache, feed)
    cache.wrote(await client.patch(path("one"), {"metadata": {"labels": {"test": None}}}))
    assert names(cache) == []
    cache.wrote(await client.patch(path("one"), {"metadata": {"labels": {"test": "back"}}}))
    assert names(cache) == ["one"]
    await write("two")
    await until(lambda: names(cache) == ["one", "two"], "the watch caught up")


async def test_own_writes_of_other_namespaces_and_kinds_stay_out(cache, feed):
    await following(cache, feed)
    elsewhere = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "default", "labels": {"test": "1"}},
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x", "namespace": feed.namespace}}
    for manifest in (elsewhere, account):
        cache.wrote(manifest)
    assert names(cache) == []


async def test_an_own_write_during_the_first_list_survives_it(cache, feed, write):
    cache.follow(feed)
    cache.wrote(await write("one", "mine"))
    assert await cache.wait_synced(timeout_s=200)
    assert values(cache) == {"one": "mine"}


# -- one-shot ----------------------------------------------------------------------------------------------------------


async def test_filling_lists_once_and_filling_again_lists_anew(cache, feed, write, client, path):
    await write("one", "1")
    await write("two", "2")
    await cache.fill([feed, feed])
    assert values(cache) == {"one": "1", "two": "2"}
    assert cache.synced(feed)
    await client.delete(path("one"))
    await write("two", "changed")
    await cache.fill([feed])
    assert values(cache) == {"two": "changed"}


async def test_what_fails_for_one_feed_is_that_feeds_failure(client, feed, write, discovery, namespace):
    await write("one")
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "r", "namespace": namespace},
        "rules": rules,
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "r", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"user-{namespace}"}],
    }
    for body in (role, binding):
        await client.create(discovery.find(body["apiVersion"], body["kind"]).collection(namespace), body)
    secrets = Feed(discovery.find("v1", "Secret"), namespace=namespace)
    restricted = Cache(client.impersonate(f"user-{namespace}"))
    while not restricted.synced(feed):
        await restricted.fill([feed, secrets])
    assert names(restricted) == ["one"]
    assert isinstance(restricted.failure(secrets), Forbidden)
    assert (restricted.synced(secrets), restricted.failure(feed)) == (False, None)
    assert [str(kind) for kind in restricted.snapshot().unsynced] == ["Secret"]


async def test_filling_from_a_server_that_is_down_or_does_not_know_us_raises(kubeconfig, feed):
    for access, kind in (
        (Access(kubeconfig=kubeconfig, server="https://127.0.0.1:1"), Unreachable),
        (Access(kubeconfig=kubeconfig, token="wrong"), Unauthorized),
    ):
        async with await Client.connect(access) as client:
            with pytest.raises(kind):
                await Cache(client).fill([feed])


async def test_small_lists_take_one_request_and_large_ones_are_streamed(faulty_cache, faults, feed, write, monkeypatch):
    for number in range(5):
        await write(f"map-{number}")
    await faulty_cache.fill([feed])
    assert (len(names(faulty_cache)), len(faults.seen)) == (5, 1)
    monkeypatch.setattr("kubectl_reconcile.cluster.client.PAGE_SIZE", 2)
    await faulty_cache.fill([feed])
    assert (len(names(faulty_cache)), len(faults.seen)) == (5, 3)
    assert STREAMING in faults.seen[-1]


async def test_filling_survives_what_passes(faulty_cache, faults, feed, write, monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.cluster.client.PAGE_SIZE", 2)
    for number in range(5):
        await write(f"map-{number}")
    faults.answer("configmaps", 503)
    faults.cut(STREAMING, 700)
    faults.reset("continue=")
    await faulty_cache.fill([feed])
    assert len(names(faulty_cache)) == 5


async def test_filling_is_bound_by_the_users_patience(faults, feed):
    faults.silence("configmaps", times=9)
    async with await Client.connect(Access(server=faults.url, request_timeout_s=0.3)) as client:
        started = time.monotonic()
        with pytest.raises(Unreachable, match="timed out"):
            await Cache(client).fill([feed])
        assert time.monotonic() - started < 200


REFUSALS = {
    "refuses streaming lists": lambda faults: faults.answer(STREAMING, 422, times=99),
    "refuses its parameters": lambda faults: faults.answer(STREAMING, 400, times=99),
    "has never heard of their end": lambda faults: faults.silence(STREAMING, times=99),
}


@pytest.mark.parametrize("refuse", REFUSALS.values(), ids=REFUSALS)
async def test_an_older_server_is_listed_in_pages(faulty_cache, faults, feed, write, monkeypatch, refuse, until):
    monkeypatch.setattr("kubectl_reconcile.cluster.reflector._INITIAL_S", 0.5)
    monkeypatch.setattr("kubectl_reconcile.cluster.client.PAGE_SIZE", 2)
    refuse(faults)
    for number in range(5):
        await write(f"map-{number}")
    await following(faulty_cache, feed)
    assert len(names(faulty_cache)) == 5
    assert len([line for line in faults.seen if "limit=2" in line]) == 3
    await write("more")
    await until(lambda: len(names(faulty_cache)) == 6, "the watch goes on from the list")


async def test_pages_that_no_longer_fit_together_are_read_in_one_go(faulty_cache, faults, feed, write, monkeypatch):
    monkeypatch.setattr("kubectl_reconcile.cluster.client.PAGE_SIZE", 2)
    faults.answer(STREAMING, 422)
    faults.answer("continue=", 410, json.dumps({"kind": "Status", "code": 410, "reason": "Expired"}).encode())
    for number in range(5):
        await write(f"map-{number}")
    await faulty_cache.fill([feed])
    assert len(names(faulty_cache)) == 5


# -- trouble -----------------------------------------------------------------------------------------------------------


async def test_a_broken_watch_goes_on_where_it_was(faulty_cache, faults, feed, write, client, path, until):
    await write("one")
    await write("two")
    events = await following(faulty_cache, feed)
    faults.reset(WATCH, times=2)
    faults.hang_up()
    await client.delete(path("one"))
    await write("three")
    await until(lambda: names(faulty_cache) == ["three", "two"], "the feed caught up")
    assert story(events) == [("deleted", "one"), ("added", "three")]
    assert len([line for line in faults.seen if STREAMING in line]) == 1


GONE = json.dumps(
    {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
).encode()


async def test_a_forgotten_position_is_listed_again_without_a_gap(
    faulty_cache, faults, feed, write, client, path, until
):
    for name in ("gone", "changed", "same"):
        await write(name)
    events = await following(faulty_cache, feed)
    faults.reset(WATCH)
    faults.answer(CONTINUED, 200, GONE + b"\n")
    faults.hang_up()
    await client.delete(path("gone"))
    await write("changed", "anew")
    await write("new")
    await until(lambda: len(events) == 3, "the list was compared")
    assert sorted(story(events)) == [("added", "new"), ("deleted", "gone"), ("modified", "changed")]
    assert values(faulty_cache) == {"changed": "anew", "new": "", "same": ""}
    assert len([line for line in faults.seen if STREAMING in line]) == 2
    assert faulty_cache.synced(feed)


async def test_a_real_410_is_recovered_from(client, namespace, widget_kind, until):
    await widget_kind()
    discovery = await Discovery.load(client)
    while not discovery.find(f"{namespace}.test/v1", "Widget"):
        await discovery.refresh()
    feed = Feed(discovery.find(f"{namespace}.test/v1", "Widget"))
    cache = Cache(client)
    await following(cache, feed)
    state = cache._reflectors[feed]
    state.task.cancel()
    await asyncio.gather(state.task, return_exceptions=True)
    state.contents.position = "1"  # what a daemon that slept for long would ask for
    body = {"apiVersion": f"{namespace}.test/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": namespace}}
    await client.apply(feed.resource.path(namespace, "one"), body)
    cache.follow(feed)
    await until(lambda: names(cache) == ["one"], "it was listed again")
    assert cache.synced(feed)
    await cache.close()


async def test_a_list_that_breaks_off_is_never_taken_for_complete(faulty_cache, faults, feed, write, caplog):
    for number in range(5):
        await write(f"map-{number}")
    faults.cut(STREAMING, 900)
    seen = []
    faulty_cache.subscribe(lambda _event: seen.append(len(names(faulty_cache))))
    await following(faulty_cache, feed)
    assert "feed failed" in caplog.text
    assert "reason=Unreachable" in caplog.text
    assert seen == [5] * 5


@pytest.fixture
async def along_the_line(kubeconfig, tmp_path, monkeypatch) -> AsyncIterator[tuple[Line, Client]]:
    """A TCP line that may lose its connections without a word, and a client whose requests go along it; no watch ends by itself."""
    monkeypatch.setattr("kubectl_reconcile.cluster.reflector._WATCH_S", (1000, 1000))
    with contextlib.closing(line_to(kubeconfig)) as line:
        far = line.kubeconfig(kubeconfig, tmp_path / "along-the-line")
        async with await Client.connect(Access(kubeconfig=str(far))) as client:
            yield line, client


async def test_a_request_that_may_be_sent_twice_finds_out_that_all_connections_are_dead(
    along_the_line, feed, write, path, until
):
    line, client = along_the_line
    cache = Cache(client)
    await write("one")
    await following(cache, feed)
    await client.get(path("one"))  # so that there is a connection that requests go along
    line.silence()
    began_s = time.monotonic()
    await client.patch(path("one"), {"data": {"value": "2"}}, twice_after_s=0.5)
    assert time.monotonic() - began_s < 50
    await write("two")
    await until(lambda: names(cache) == ["one", "two"], "the watch goes on along a new connection")
    assert cache.synced(feed)
    await cache.close()


async def test_a_request_sent_twice_that_nobody_waits_for_any_more_leaves_nothing_open(
    along_the_line, path, recwarn, until
):
    line, client = along_the_line
    await client.get("/version")
    line.hold()
    asked = asyncio.create_task(client.patch(path("one"), {"data": {"value": "2"}}, twice_after_s=0.05))
    await until(lambda: len(open_to(line)) >= 2, "it is sent a second time")
    asked.cancel()
    await asyncio.wait({asked})
    await client.close()
    del asked
    gc.collect()
    assert [str(each.message) for each in recwarn] == []


def open_to(line: Line) -> list[int]:
    """The ports of this process's connections to *line*."""
    found = psutil.Process().net_connections("tcp")
    return [each.laddr.port for each in found if each.raddr and each.raddr.port == line.port]


async def test_a_watch_that_does_not_tell_a_write_of_our_own_is_given_up(
    along_the_line, feed, write, until, monkeypatch, caplog
):
    monkeypatch.setattr("kubectl_reconcile.cluster.reflector._ECHO_S", 3.0)
    line, client = along_the_line
    cache = Cache(client)
    await following(cache, feed)
    cache.wrote(await write("one"))
    await steadily_meanwhile(lambda: "watch is dead" not in caplog.text, "it has told the write", for_s=4)
    line.silence()
    cache.wrote(await write("one", "2"))
    await write("two")
    await until(lambda: names(cache) == ["one", "two"], "the watch goes on along a new connection")
    assert "watch is dead" in caplog.text
    await cache.close()


async def test_requests_under_way_end_when_connections_are_given_up_and_reads_are_made_again(
    along_the_line, path, write, until
):
    line, client = along_the_line
    await write("one")
    await asyncio.gather(*(client.get(path("one")) for _ in range(3)))  # so that there are connections for both
    line.silence()
    reading = asyncio.create_task(client.get(path("one")))
    writing = asyncio.create_task(client.patch(path("one"), {"data": {"value": "2"}}))
    await until(lambda: len(line.lost) == 2, "both have been sent")
    client.give_up_connections()
    assert (await reading)["metadata"]["name"] == "one"
    with pytest.raises(Unreachable, match="died silently"):
        await writing


async def test_being_asked_to_wait_is_honoured(faulty_cache, faults, feed, until):
    await following(faulty_cache, feed)
    faults.answer(CONTINUED, 429, Retry_After="3")
    faults.hang_up()
    await until(lambda: faulty_cache.failure(feed) is not None, "the refusal is known")
    refused = time.monotonic()
    assert isinstance(faulty_cache.failure(feed), TooManyRequests | Unreachable)
    await until(lambda: isinstance(faulty_cache.failure(feed), TooManyRequests), "it is the 429")
    assert not faulty_cache.synced(feed)
    await until(lambda: faulty_cache.synced(feed), "the feed is back")
    assert time.monotonic() - refused > 0.9


async def test_nonsense_in_a_watch_never_ends_the_feed(faulty_cache, faults, feed, write, until, caplog):
    await following(faulty_cache, feed)
    for line in (
        b"<html>",
        b'{"type": "ADDED", "object": {}}',
        b'{"type": "ADDED", "object": {"metadata": {}}}',
        b"[]",
        b'{"type":',
    ):
        faults.answer(CONTINUED, 200, line + b"\n")
    faults.hang_up()
    await write("one")
    await until(lambda: names(faulty_cache) == ["one"], "the feed went on")
    await until(lambda: faulty_cache.synced(feed), "and is well")
    assert "reason=BadAnswer" in caplog.text


async def test_a_lasting_reason_is_not_waited_for_and_ends_with_its_cause(client, feed, write):
    await write("one")
    user = f"late-{feed.namespace}"
    cache = Cache(client.impersonate(user))
    cache.follow(feed)
    assert await cache.wait_synced(timeout_s=200) is False
    assert isinstance(cache.failure(feed), Forbidden)
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "late", "namespace": feed.namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [subject],
    }
    await client.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{feed.namespace}/rolebindings", binding)

    while not await synced_now(cache, feed):  # the server's authorizer takes a moment to know
        assert isinstance(cache.failure(feed), Forbidden)
    assert names(cache) == ["one"]
    await cache.close()


async def test_waiting_for_a_feed_has_an_end(faulty_cache, faults, feed):
    faults.silence(STREAMING, times=9)
    faulty_cache.follow(feed)
    assert await faulty_cache.wait_synced(timeout_s=0.2) is False


async def test_a_kind_that_goes_takes_its_objects_along_and_may_return(cache, client, namespace, widget_kind, until):
    crd = await widget_kind()
    discovery = await Discovery.load(client)
    while not discovery.find(f"{namespace}.test/v1", "Widget"):
        await discovery.refresh()
    feed = Feed(discovery.find(f"{namespace}.test/v1", "Widget"))
    body = {"apiVersion": f"{namespace}.test/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": namespace}}
    await client.apply(feed.resource.path(namespace, "one"), body)
    events = await following(cache, feed)
    await client.delete(crd)
    await until(lambda: isinstance(cache.failure(feed), NotFound), "the kind is gone")
    assert (names(cache), cache.synced(feed), story(events)) == ([], False, [("deleted", "one")])
    await widget_kind()
    await client.apply(
        feed.resource.path(namespace, "two"), body | {"metadata": {"name": "two", "namespace": namespace}}
    )

    while not await synced_now(cache, feed):
        assert isinstance(cache.failure(feed), NotFound | TooManyRequests | None)
    await until(lambda: names(cache) == ["two"], "and what is new of it")


async def test_an_outage_of_the_server_is_survived(own_sandbox, until):
    sandbox = own_sandbox(components=("etcd", "kube-apiserver"))
    async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
        feed = Feed((await Discovery.load(client)).find("v1", "ConfigMap"), label_selector="test")
        path = feed.resource.path("default", "")

        async def write(name: str) -> None:
            metadata = {"name": name, "namespace": "default", "labels": {"test": "1"}}
            await client.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

        await write("before")
        cache = Cache(client)
        events = await following(cache, feed)
        await asyncio.to_thread(sandbox.stop, "kube-apiserver", grace_s=0)
        await until(lambda: isinstance(cache.failure(feed), Unreachable), "the outage is known")
        assert (names(cache), cache.synced(feed)) == (["before"], False)
        with pytest.raises(Unreachable):
            await client.get("/version")
        await asyncio.to_thread(sandbox.start, "kube-apiserver")
        await write("after")
        await until(lambda: names(cache) == ["after", "before"], "the feed caught up")
        await until(lambda: cache.synced(feed), "and is well")
        assert story(events) == [("added", "after")]
        assert EventKind.DELETED not in {event.kind for event in events}
        await cache.close()
