"""What one person asks, however much and however long it takes, is answered beside what others ask."""

import asyncio

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from kubectl_reconcile.web import guard
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.guard import guarded
from kubectl_reconcile.web.rate_limit import RateLimit
from tests.waiting import until


class OpenDoor:
    """Lets in whoever says their name."""

    page_is_public = False

    def refusal(self, request):
        return ""

    async def asker(self, request):
        return Asker(None, None, None, request.headers["X-Name"], guest=True)


@pytest.fixture
async def slow():
    """A page on which all requests take until they are *let_go*, and how many are under way."""
    let_go, asked = asyncio.Event(), []

    async def answer(request):
        asked.append(request.path)
        await let_go.wait()
        return web.Response(text="here")

    app = web.Application(middlewares=[guarded(OpenDoor(), RateLimit())])
    for path in ("/api/logs/{name}", "/api/objects/{name}/changes"):
        app.router.add_get(path, answer)
    async with TestServer(app) as server, ClientSession() as browser:

        async def ask(name, path="/api/logs/web"):
            async with browser.get(server.make_url(path), headers={"X-Name": name}) as found:
                return found.status, await found.text()

        yield ask, asked, let_go


async def test_who_has_many_requests_under_way_waits_for_some_of_them_and_others_do_not(slow, monkeypatch):
    ask, asked, let_go = slow
    monkeypatch.setattr(guard, "_UNDER_WAY", 3)
    mallory, accounts = "mallory", [f"system:serviceaccount:shop:{name}" for name in "abc"]
    first = [asyncio.create_task(ask(name)) for name in (*[mallory] * 3, *accounts)]
    await until(lambda: len(asked) == 6, "all are under way")
    for name in (mallory, "system:serviceaccount:shop:d"):
        status, said = await ask(name)
        assert (status, "3 requests of yours are running" in said) == (429, True)
    others = [
        asyncio.create_task(ask("carol")),
        asyncio.create_task(ask(mallory, "/api/objects/web/changes")),  # has a share of its own
    ]
    await until(lambda: len(asked) == 8, "others are asked beside them")
    assert (await ask(mallory, "/api/logs/changes"))[0] == 429, "a name alone makes nothing a stream"
    let_go.set()
    assert {status for status, _ in await asyncio.gather(*first, *others)} == {200}
    assert (await ask(mallory))[0] == 200
