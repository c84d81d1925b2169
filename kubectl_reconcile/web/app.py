"""The HTTP application: the page, and the JSON that it shows, at ``/api/v1``.

Whoever asks is let in by a door, and answered with their own rights and nobody else's. A GET changes nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any

from aiohttp import web

from kubectl_reconcile import __version__
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.engine.commands import find_object
from kubectl_reconcile.engine.sync import targets
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.views import events, explanation, fleet, history, plan_review, syncs, tree
from kubectl_reconcile.web import assets, doings, stream
from kubectl_reconcile.web.asking import Door
from kubectl_reconcile.web.errors import Refused, refused
from kubectl_reconcile.web.guard import LARGEST_BODY_BYTES, asker, guarded, with_headers
from kubectl_reconcile.web.rate_limit import RateLimit
from kubectl_reconcile.web.slots import LATE, RequestSlots
from kubectl_reconcile.web.spelling import as_json

_PLANS_AT_ONCE = _LOOKS_AT_ONCE = 2
_DOINGS_OF_ONE = 2
_LAST_S = 10.0
_LONGEST_REVISION = _LONGEST_NAME = 253
_NAME = re.compile(r"[A-Za-z0-9_:@.-]+", re.ASCII)

_PAGES = ("/", "/syncs/{namespace}/{name}", "/syncs/{namespace}/{name}/plan", "/objects/{kind}/{namespace}/{name}")


def application(door: Door, limit: RateLimit | None = None) -> web.Application:
    """Return the application that serves whoever *door* lets in."""
    app = web.Application(middlewares=[guarded(door, limit or RateLimit())], client_max_size=LARGEST_BODY_BYTES)
    app.on_response_prepare.append(with_headers)
    api = _Api()
    app.on_cleanup.append(api.ended)
    page = _Page(door)
    app.router.add_get("/start", page.start)
    app.router.add_post("/start", page.start)
    app.router.add_get("/assets/{name:.+}", page.asset)
    app.router.add_get("/favicon.ico", page.icon)
    for path in _PAGES:
        app.router.add_get(path, page.index)
    for (method, path), answer in API.items():
        app.router.add_route(method, path, partial(answer, api))
    return app


def answered(document: Any) -> web.Response:
    """Return *document* as JSON, in which nothing turns the direction of text."""
    return web.Response(text=as_json(document), content_type="application/json")


class _Page:
    """The page itself."""

    def __init__(self, door: Door) -> None:
        self._door, self._assets = door, assets.assets()

    async def start(self, request: web.Request) -> web.StreamResponse:
        entered = await self._door.enter(request)
        return entered or refused(
            401,
            "this address was used before, or isn't complete",
            "run kubectl reconcile ui again, and use the address that it prints",
        )

    async def index(self, request: web.Request) -> web.Response:
        return assets.answer(request, self._assets["index.html"])

    async def icon(self, request: web.Request) -> web.Response:
        """Answer what browsers ask for beside an answer that names no icon."""
        return assets.answer(request, self._assets["icon.svg"])

    async def asset(self, request: web.Request) -> web.Response:
        found = self._assets.get(request.match_info["name"])
        return assets.answer(request, found) if found else refused(404, "no such file")


class _Api:
    """What the page shows, as JSON. *busy* bounds what takes a processor for long, *planning* what waits for Git besides."""

    def __init__(self) -> None:
        self.begun: dict[asyncio.Task[str], str] = {}
        self.threads = ThreadPoolExecutor(_PLANS_AT_ONCE + _LOOKS_AT_ONCE + 2 * LATE.late_in_all, "page")
        self.streams = stream.Streams()
        self.busy = RequestSlots(self.threads, _LOOKS_AT_ONCE)
        self.planning = RequestSlots(self.threads, _PLANS_AT_ONCE)

    async def about(self, _request: web.Request) -> web.Response:
        who = asker()
        client = who.session.client
        place = {"context": client.context, "server": client.server, "namespace": client.namespace}
        about = {"version": __version__, **place}
        return answered({**about, "name": who.name, "guest": who.guest})

    async def syncs(self, request: web.Request) -> web.Response:
        try:
            query = fleet.FleetQuery.of(request.query)
        except ValueError as error:
            raise Refused(400, str(error)) from None
        feed = asker().fleet
        rows = await feed.rows()
        return answered(fleet.page(rows, query, only=feed.place, at=f"{feed.era}.{feed.number}"))

    async def stream(self, request: web.Request) -> web.StreamResponse:
        return await self.streams.answer(request)

    async def sync(self, request: web.Request) -> web.Response:
        session, live = await live_sync(request)
        may_write = await doings.may_write(session, live)
        return answered(syncs.document(live, may_write=may_write))

    async def tree(self, request: web.Request) -> web.Response:
        session, live = await live_sync(request)
        async with self.busy.one(asker()):
            return answered(await tree.of_sync(session, live))

    async def events(self, request: web.Request) -> web.Response:
        return answered(await events.of_sync(*await live_sync(request)))

    async def history(self, request: web.Request) -> web.Response:
        session, live = await live_sync(request)
        async with self.planning.one(asker()):
            return answered(await history.of_sync(session, live))

    async def plan(self, request: web.Request) -> web.Response:
        revision = request.query.get("revision", "")
        if len(revision) > _LONGEST_REVISION:
            raise Refused(400, "that is too long for a revision")
        session, live = await live_sync(request)
        if revision and asker().guest and not await doings.may_write(session, live, "update"):
            hint = "other revisions are read with the Sync's Git credentials"
            raise Refused(403, "without the right to update the Sync, you see only the revision that it follows", hint)
        async with self.planning.one(asker()):
            return answered(await plan_review.of_sync(session, live, revision))

    async def object(self, request: web.Request) -> web.Response:
        session, live = await live_object(request)
        async with self.planning.one(asker()):
            return answered(await explanation.of_object(session, live))

    async def object_events(self, request: web.Request) -> web.Response:
        return answered(await events.of_object(*await live_object(request)))

    async def object_changes(self, request: web.Request) -> web.StreamResponse:
        return await self.streams.of_object(request, *await live_object(request))

    async def logs(self, request: web.Request) -> web.Response:
        session, live = await live_object(request)
        if (live["apiVersion"], live["kind"]) != ("v1", "Pod"):
            raise Refused(404, "only pods have logs")
        container, previous = request.query.get("container", ""), request.query.get("previous") == "true"
        try:
            return answered(await events.logs(session, live, container, previous=previous))
        except ValueError as error:
            raise Refused(404, str(error)) from None

    async def do(self, request: web.Request) -> web.Response:
        do = doings.DOINGS.get(request.match_info["doing"])
        if do is None:
            raise Refused(404, f"a Sync can be told to {', '.join(doings.DOINGS)}")
        asked = await doings.asked_of(request)
        session, live = await live_sync(request)
        return answered({"said": await self._done(do, session, live, asked)})

    async def approve_actions(self, request: web.Request) -> web.Response:
        asked = await doings.asked_of(request)
        session, live = await live_object(request)
        return answered({"said": await self._done(doings.approve_actions, session, live, asked)})

    async def ended(self, _app: web.Application) -> None:
        """Return when what has begun is done, or has had some time for it."""
        if self.begun:
            _, late = await asyncio.wait(self.begun, timeout=_LAST_S)
            for task in late:
                task.cancel()
        self.threads.shutdown(wait=False, cancel_futures=True)

    async def _done(self, do: doings.Doing, session: Session, live: Manifest, asked: doings.Asked) -> str:
        """Have something done that may be done, to its end, whether or not the browser waits for it.

        Raises:
            Refused: they may not patch the object, or too much is being done for them; nothing is begun.
        """
        await doings.check_right(asker(), session, live)
        person = asker().person
        if Counter(self.begun.values())[person] >= _DOINGS_OF_ONE:
            raise Refused(429, "your previous requests are still running", "wait until it is done, and try again")
        task = asyncio.create_task(self._do(do, session, live, asked))
        self.begun[task] = person
        task.add_done_callback(self.begun.pop)
        return await asyncio.shield(task)

    async def _do(self, do: doings.Doing, session: Session, live: Manifest, asked: doings.Asked) -> str:
        async with nullcontext() if do in doings.AT_ONCE else self.planning.one(asker()):
            said = await do(session, live, asked)
        await doings.told(asker(), live, do, said)
        return said


_SYNC, _OBJECT = "/api/v1/syncs/{namespace}/{name}", "/api/v1/objects/{kind}/{namespace}/{name}"

API: Mapping[tuple[str, str], Callable[[_Api, web.Request], Awaitable[web.StreamResponse]]] = {
    ("GET", "/api/v1/about"): _Api.about,
    ("GET", "/api/v1/syncs"): _Api.syncs,
    ("GET", "/api/v1/stream"): _Api.stream,
    ("GET", _SYNC): _Api.sync,
    ("GET", f"{_SYNC}/tree"): _Api.tree,
    ("GET", f"{_SYNC}/events"): _Api.events,
    ("GET", f"{_SYNC}/history"): _Api.history,
    ("GET", f"{_SYNC}/plan"): _Api.plan,
    ("POST", f"{_SYNC}/{{doing}}"): _Api.do,
    ("GET", _OBJECT): _Api.object,
    ("GET", f"{_OBJECT}/events"): _Api.object_events,
    ("GET", f"{_OBJECT}/changes"): _Api.object_changes,
    ("GET", f"{_OBJECT}/logs"): _Api.logs,
    ("POST", f"{_OBJECT}/approve"): _Api.approve_actions,
}
"""The API by method and path; `reference` describes each."""


async def live_sync(request: web.Request) -> tuple[Session, Manifest]:
    """Return the Sync that a request is about, read as who asks, and their session.

    Raises:
        Refused: that isn't a name.
        NotInstalled, NoSuchSync: there is none.
        ApiError: the server refuses, or doesn't answer.
    """
    session = await asker().knowing_kinds()
    return session, await targets.live_sync(session, _named(request, "name"), _named(request, "namespace"))


async def live_object(request: web.Request) -> tuple[Session, Manifest]:
    """Return the object that a request is about, read as who asks, and their session.

    Raises:
        Refused: that isn't a name.
        NoSuchKind: the cluster serves no such kind.
        ApiError: there is no such object, or the server refuses.
    """
    session = await asker().knowing_kinds()
    kind, namespace, name = (_named(request, part) for part in ("kind", "namespace", "name"))
    return session, await find_object.live(session, f"{kind}/{name}", "" if namespace == "-" else namespace)


def _named(request: web.Request, part: str) -> str:
    """Return a part of the path that names something: one that can't lead anywhere else."""
    text = request.match_info[part]
    if text in {".", ".."} or len(text) > _LONGEST_NAME or not _NAME.fullmatch(text):
        raise Refused(400, f"{text[:60]!r} is no {part}")
    return text
