"""The page as a daemon serves it, asked by anybody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientSession, DummyCookieJar

from kubectl_reconcile.web.in_cluster import serving_page
from tests.waiting import until
from tests.web.described import as_described

ORIGIN = "https://sync.example.com"


class Site:
    """The page of a daemon, asked by anybody."""

    def __init__(self, address, browser):
        self.address, self.browser = address, browser
        self.origin = f"http://{address}"

    async def ask(self, path, *, method="GET", token="", key="", headers=(), **options):
        sent = dict(headers)
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        if key:
            sent["Cookie"] = key
        if method == "POST":
            sent.setdefault("Origin", self.origin)
        answer = await self.browser.request(method, self.origin + path, headers=sent, allow_redirects=False, **options)
        await answer.read()
        return answer

    async def get(self, path, token, status=200):
        answer = await self.ask(path, token=token)
        assert answer.status == status, await answer.text()
        return as_described("GET", path, status, await answer.json())

    async def sign_in(self, token, onward="/"):
        return await self.ask("/start", method="POST", data={"token": token, "next": onward})

    async def until(self, path, token, condition):
        """What is at *path*, once it is there and *condition* is true of it."""
        answer = found = None

        async def is_so():
            nonlocal answer, found
            answer = await self.ask(path, token=token)
            found = await answer.json() if answer.status == 200 else None
            return answer.status == 200 and condition(found)

        try:
            await until(is_so, f"what is wanted is at {path}")
        except AssertionError as error:
            said = answer and (answer.status, await answer.text())
            raise AssertionError(f"{error}; the answer is {said}") from None
        return found


@asynccontextmanager
async def site_of(session) -> AsyncIterator[Site]:
    """The page as a daemon with that session serves it."""
    async with (
        serving_page("127.0.0.1:0", (ORIGIN,), session) as address,
        ClientSession(cookie_jar=DummyCookieJar()) as browser,
    ):
        yield Site(address, browser)
