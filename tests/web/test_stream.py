"""What is pushed to a browser: each change once, what it missed, or that it has to look again."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from kubectl_reconcile.web import fleet_feed


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
            yield parts["id"], parts["event"], json.loads(parts["data"])


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


async def test_so_many_pages_may_be_open_and_no_more(page, monkeypatch):
    from kubectl_reconcile.web import stream as streams  # noqa: PLC0415

    opened = streams.Streams(most=0)
    with pytest.raises(streams.Refused, match="0 pages"):
        await opened.answer(None)
