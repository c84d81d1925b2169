"""What is pushed to a browser: each change once, what it missed, or that it has to look again."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import pytest
from aiohttp.test_utils import make_mocked_request

from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.views.fleet import PushedDocument
from kubectl_reconcile.web import fleet_feed
from kubectl_reconcile.web import stream as streams
from kubectl_reconcile.web.asking import Asker
from tests.waiting import until
from tests.web.described import shape


@asynccontextmanager
async def stream(page, last=""):
    headers = {"Last-Event-ID": last} if last else {}
    async with asyncio.timeout(150), await page.ask("/api/v1/stream", headers=headers) as answer:
        assert answer.content_type == "text/event-stream", await answer.text()
        yield events(answer)


async def events(answer):
    """Number, kind and data of each event as it comes."""
    async for block in blocks(answer):
        parts = dict(line.partition(": ")[::2] for line in block.splitlines())
        if "event" in parts:
            data = json.loads(parts["data"])
            if parts["event"] == "syncs":
                shape("Pushed")(data)
            yield parts["id"], parts["event"], data


async def blocks(answer):
    text = ""
    async for piece in answer.content.iter_any():
        text += piece.decode()
        *whole, text = text.split("\n\n")
        for block in whole:
            yield block


async def state_of(told, followed, state):
    """The event by which a Sync's state is told."""
    async for number, kind, data in told:
        assert kind == "syncs"
        if state in [row["state"] for row in data["rows"] if row["namespace"] == followed.namespace]:
            return number
    raise AssertionError(state)


async def suspend(followed, value):
    path = f"/apis/reconcile.dev/v1alpha1/namespaces/{followed.namespace}/syncs/{followed.name}"
    await followed.session.client.patch(path, {"spec": {"suspend": value}})


def shows(state):
    return lambda found: [row["state"] for row in found["rows"]] == [state]


async def test_a_change_is_pushed_and_what_was_missed_is_sent_again(page, followed):
    await followed.make()
    async with stream(page) as told:
        assert (await anext(told))[1] == "again"  # it has seen nothing so far
        await suspend(followed, True)
        number = await state_of(told, followed, "Suspended")
    await suspend(followed, False)  # while nobody listens
    async with stream(page, last=number) as told:
        first, kind, _ = await anext(told)
        assert (first, kind) == (number, "hello")
        await state_of(told, followed, "Unknown")


async def test_what_is_gone_is_told(page, followed):
    await followed.make()
    await page.until(f"/api/v1/syncs?namespace={followed.namespace}", lambda found: found["rows"], "the Sync is seen")
    async with stream(page) as told:
        await anext(told)
        await followed.session.client.delete(f"/apis/reconcile.dev/v1alpha1/namespaces/{followed.namespace}/syncs/shop")
        gone = []
        async for _, _, data in told:
            gone += data["gone"]
            if {"namespace": followed.namespace, "name": "shop"} in gone:
                break


@pytest.mark.parametrize("last", ["feed.1", "nonsense", ".", "feed.99999999999999999999", "feed.-1", "x.٣"])
async def test_who_was_with_another_process_looks_at_everything_again(page, followed, last):
    async with stream(page, last.replace("feed", "0badcafe").encode("ascii", "replace").decode()) as told:
        assert (await anext(told))[1] == "again"


async def test_who_is_too_far_behind_looks_at_everything_again(served, session, followed, monkeypatch):
    monkeypatch.setattr(fleet_feed, "_KEPT", 2)
    page = await served(session)
    await followed.make()
    async with stream(page) as told:
        number, _, _ = await anext(told)
    for value in (True, False, True, False):  # while nobody listens: whatever else changes only comes on top
        await suspend(followed, value)
        await page.until(
            f"/api/v1/syncs?namespace={followed.namespace}", shows("Suspended" if value else "Unknown"), ""
        )
    async with stream(page, last=number) as told:
        assert (await anext(told))[1] == "again"


async def test_each_change_of_an_object_is_told_to_who_may_watch_it(page, session, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await session.client.create(path, {"metadata": {"name": "settings"}})
    async with asyncio.timeout(150):
        async with await page.ask(f"/api/v1/objects/ConfigMap/{namespace}/settings/changes") as answer:
            told = blocks(answer)
            assert (await anext(told)) == ": alive"
            await session.client.patch(f"{path}/settings", {"data": {"color": "black"}})
            await session.client.delete(f"{path}/settings")
            for kind in ("MODIFIED", "DELETED"):
                data = json.loads((await anext(told)).removeprefix("data: "))
                shape("Changed")(data)
                assert data == {"type": kind}


async def test_changes_of_an_object_take_the_right_to_watch_it(served, session_of, session, namespace, kubectl):
    await session.client.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "settings"}})
    kubectl("create", "role", "sees", "--verb=get", "--resource=configmaps", "-n", namespace)
    kubectl("create", "rolebinding", "sees", "--role=sees", "--user=frank", "-n", namespace)
    page = await served(await session_of("frank", namespace))
    path = f"/api/v1/objects/ConfigMap/{namespace}/settings/changes"

    async def may_get():
        return "may not watch" in await (await page.ask(path)).text()

    await until(may_get, "the right to get it is known")
    assert (await page.ask(path)).status == 403


class Slow:
    """Syncs that nobody has listed yet."""

    def __init__(self):
        self.listed = asyncio.Event()

    async def rows(self):
        await self.listed.wait()
        raise ApiError("gone")


async def test_pages_count_while_they_open_and_all_tokens_of_a_person_together(monkeypatch):
    monkeypatch.setattr(streams, "_MOST_OF_ONE", 1)
    fleet, opened = Slow(), streams.Streams()
    monkeypatch.setattr(streams, "asker", lambda: Asker(None, fleet, None, "alice"))  # another for each token
    first = asyncio.create_task(opened.answer(None))
    await asyncio.sleep(0)
    with pytest.raises(streams.Refused, match="1 open pages"):
        await asyncio.wait_for(opened.answer(None), 30)
    fleet.listed.set()
    with pytest.raises(ApiError):
        await first
    assert not opened.open


class Leaving:
    """Changes during which somebody is forgotten."""

    era, number, who = "feed", 0, None

    def since(self, _number):
        return ["change"]

    async def wait(self, _number, _timeout_s):
        self.number += 1

    async def told(self, _changes):
        self.who.left = True
        return PushedDocument(rows=["row"], gone=[])


async def test_who_is_known_no_more_is_told_nothing_more():
    feed, written = Leaving(), []
    feed.who = Asker(None, feed, None, "alice")

    class Answer:
        async def write(self, data):
            written.append(data)

    await streams._send(make_mocked_request("GET", "/"), Answer(), feed.who)
    assert [b"event: again" in each for each in written] == [True]


class Ending(Leaving):
    """Nothing changes until somebody's session ends."""

    async def wait(self, _number, _timeout_s):
        self.who.ends_s = time.monotonic() - 1


async def test_who_is_signed_out_after_half_a_day_is_told_nothing_more():
    feed, written = Ending(), []
    feed.who = Asker(None, feed, None, "alice", ends_s=time.monotonic() + 3600)

    class Answer:
        async def write(self, data):
            written.append(data)

    await asyncio.wait_for(streams._send(make_mocked_request("GET", "/"), Answer(), feed.who), 150)
    assert [b"event: again" in each for each in written] == [True]


async def test_accounts_of_a_namespace_leave_pages_to_others(monkeypatch):
    monkeypatch.setattr(streams, "_MOST_OF_TENANT", 1)
    opened = streams.Streams()
    opened.open.append(streams.OpenStream("system:serviceaccount:shop:a"))
    monkeypatch.setattr(streams, "asker", lambda: Asker(None, None, None, "system:serviceaccount:shop:b"))
    with pytest.raises(streams.Refused, match="1 open pages"):
        await opened.answer(None)
    monkeypatch.setattr(streams, "asker", lambda: Asker(None, fleet, None, "system:serviceaccount:other:a"))
    fleet = Slow()
    fleet.listed.set()
    with pytest.raises(ApiError, match="gone"):
        await opened.answer(None)


async def test_so_many_pages_may_be_open_and_no_more(page, monkeypatch):
    monkeypatch.setattr(streams, "asker", lambda: page.door.owner)
    opened = streams.Streams(most=0)
    with pytest.raises(streams.Refused, match="0 pages"):
        await opened.answer(None)


async def test_two_who_have_all_streams_give_way_to_a_third(page, monkeypatch):
    feed = page.door.owner.fleet
    opened = streams.Streams(most=4)

    async def ask(name):
        monkeypatch.setattr(streams, "asker", lambda: Asker(None, feed, None, name))
        task = asyncio.create_task(opened.answer(make_mocked_request("GET", "/api/v1/stream")))
        count = len(opened.open)
        await until(lambda: task.done() or len(opened.open) > count or len(opened.open) == 4, "the stream is open")
        return task

    first, *others = [await ask(name) for name in ("mallory", "mallory", "mallet", "mallet")]
    third = await ask("carol")
    await asyncio.wait_for(first, 30)
    assert [each.name for each in opened.open] == ["mallory", "mallet", "mallet", "carol"]
    for task in (*others, third):
        assert not task.done()
        task.cancel()
    await asyncio.gather(*others, third, return_exceptions=True)
    assert not opened.open
