"""Fixtures of the cluster room: clients of the shared cluster, and a proxy that breaks answers on the way."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kubectl_reconcile.cluster.access.cluster import Route, resolve
from kubectl_reconcile.cluster.client import Access, Client
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.cluster.errors import NotFound, TooManyRequests
from tests import waiting, yaml_text

WIDGETS = "widgets.cluster-room.test"


@pytest.fixture
async def client(kubeconfig) -> AsyncIterator[Client]:
    """A client of the shared cluster with all rights."""
    async with await Client.connect(Access(kubeconfig=kubeconfig)) as found:
        yield found


@pytest.fixture
async def discovery(client) -> Discovery:
    return await Discovery.load(client)


@pytest.fixture
def token(kubeconfig) -> str:
    """The administrator's bearer token."""
    found = next(user["user"]["token"] for user in yaml_text.document(Path(kubeconfig).read_text())["users"])
    return str(found)


@pytest.fixture
def until() -> Callable[..., Any]:
    """``await until(condition, "what is to come true")`` -> what the condition returned; the loop goes on meanwhile."""

    return functools.partial(waiting.until, pause_s=0.01)


@pytest.fixture
def config_map(namespace) -> Callable[..., dict[str, Any]]:
    """Make a ConfigMap of this test's namespace: config_map("web", labels={…}, data={…})."""

    def make(name: str, *, labels=None, data=None) -> dict[str, Any]:
        metadata = {"name": name, "namespace": namespace, "labels": labels or {}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}

    return make


def widgets(group: str, *, plural: str = "widgets", versions: tuple[str, ...] = ("v1",)) -> dict[str, Any]:
    """A CRD of free-form widgets."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": free, "status": free}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": plural[:-1],
                "kind": "Widget",
                "listKind": "WidgetList",
                "shortNames": ["wdg"],
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": index == 0,
                    "subresources": {"status": {}},
                    "schema": schema,
                }
                for index, version in enumerate(versions)
            ],
        },
    }


async def is_served(client: Client, path: str) -> bool:
    """Tell whether objects at *path* can be listed; those of a kind so new that the server has no storage for it yet can't."""
    try:
        await client.list(path)
    except (NotFound, TooManyRequests):
        return False
    return True


@pytest.fixture
async def widget_kind(client, namespace) -> AsyncIterator[Callable[..., Any]]:
    """``await widget_kind()`` -> the path of a new CRD of this test's own, established and deleted afterwards."""
    made: list[str] = []

    async def make(**options: Any) -> str:
        crd = widgets(f"{namespace}.test", **options)
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
        await client.apply(path, crd)
        made.append(path)

        async def is_established() -> bool:
            conditions = ((await client.get(path)).get("status") or {}).get("conditions") or ()
            return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)

        await waiting.until(is_established, f"{path} is established", pause_s=0.02)
        names, version = crd["spec"]["names"], crd["spec"]["versions"][0]["name"]
        place = f"/apis/{crd['spec']['group']}/{version}/{names['plural']}"
        await waiting.until(lambda: is_served(client, place), f"{place} is served", pause_s=0.02)
        return path

    yield make
    for path in made:
        with suppress(Exception):
            await client.delete(path)


# -- faults ------------------------------------------------------------------------------------------------------------


@dataclass
class Fault:
    """What to do with the next *times* requests whose method and URL contain *match*."""

    match: str
    act: Callable[[web.Request, aiohttp.ClientResponse | None], Any]
    times: int
    before: bool  # without asking the server


@dataclass
class Faults:
    """An HTTP proxy before the API server. It lends callers the administrator's credentials, and breaks what it is told to.

    *seen* are the requests so far (``GET /api/v1/…?…``), *watched_along* the client's ends of connections that watches came along.
    """

    route: Route
    session: aiohttp.ClientSession
    url: str = ""
    seen: list[str] = field(default_factory=list)
    accept: str = ""
    watched_along: set[Any] = field(default_factory=set)
    _faults: list[Fault] = field(default_factory=list)
    _streams: dict[int, web.Request] = field(default_factory=dict)
    _muted: set[int] = field(default_factory=set)

    def answer(self, match: str, status: int, body: bytes = b"{}", *, times: int = 1, **headers: str) -> None:
        """Answer with *status* instead of the server; headers' names have _ for -."""

        async def act(_request, _response):
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, body=body, headers={"Content-Type": "application/json", **names})

        self._faults.append(Fault(match, act, times, before=True))

    def reset(self, match: str, *, times: int = 1) -> None:
        """Break the connection before any answer."""

        async def act(request, _response):
            request.transport.abort()
            return web.Response()

        self._faults.append(Fault(match, act, times, before=True))

    def cut(self, match: str, after: int, *, times: int = 1) -> None:
        """Pass on the first *after* bytes of the body, then break the connection."""

        async def act(request, response):
            body = (await response.content.readexactly(after)) if after else b""
            answer = web.StreamResponse(status=response.status, headers={"Content-Type": "application/json"})
            answer.content_length = after + 1000
            await answer.prepare(request)
            await answer.write(body)
            request.transport.abort()
            return answer

        self._faults.append(Fault(match, act, times, before=False))

    def silence(self, match: str, *, times: int = 1) -> None:
        """Begin an answer and never go on with it, as a half-open connection does."""

        async def act(request, response):
            answer = web.StreamResponse(status=response.status, headers={"Content-Type": "application/json"})
            answer.enable_chunked_encoding()
            await answer.prepare(request)
            await asyncio.Event().wait()
            return answer

        self._faults.append(Fault(match, act, times, before=False))

    def mute(self) -> int:
        """Pass on nothing more of the answers that are still going on, and keep their connections open; say how many.

        All else is answered as before, new watches too.
        """
        self._muted |= set(self._streams)
        return len(self._muted)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        line = f"{request.method} {request.path_qs}"
        self.seen.append(line)
        if "watch=true" in line:
            self.watched_along.add(request.get_extra_info("peername"))
        fault = next((fault for fault in self._faults if fault.times and fault.match in line), None)
        if fault:
            fault.times -= 1
            if fault.before:
                return await fault.act(request, None)
        headers = {
            name: value for name, value in request.headers.items() if name.lower() not in {"host", "content-length"}
        }
        headers |= dict(self.route.headers) | ({"Accept": self.accept} if self.accept else {})
        url = aiohttp.client.URL(f"{self.route.server}{request.raw_path}", encoded=True)
        body = await request.read() or None
        async with self.session.request(request.method, url, data=body, headers=headers) as response:
            try:
                return await (fault.act(request, response) if fault else self._pass_on(request, response))
            finally:
                if response.connection and response.connection.transport:
                    response.connection.transport.abort()  # a watch would go on

    def hang_up(self) -> None:
        """Break all connections whose answers are still going on: the watches."""
        for request in tuple(self._streams.values()):
            if request.transport:
                request.transport.abort()

    async def _pass_on(self, request: web.Request, response: aiohttp.ClientResponse) -> web.StreamResponse:
        kept = {
            name: response.headers[name] for name in ("Content-Type", "Etag", "Retry-After") if name in response.headers
        }
        answer = web.StreamResponse(status=response.status, headers=kept)
        await answer.prepare(request)
        self._streams[id(request)] = request
        try:
            async for chunk in response.content.iter_any():
                if id(request) not in self._muted:
                    await answer.write(chunk)
            if id(request) in self._muted:
                await asyncio.Event().wait()
            await answer.write_eof()
        except (aiohttp.ClientError, ConnectionError):
            if request.transport:
                request.transport.abort()
        finally:
            self._streams.pop(id(request), None)
            self._muted.discard(id(request))
        return answer


@pytest.fixture
async def faults(kubeconfig) -> AsyncIterator[Faults]:
    """A proxy before the shared cluster: Access(server=faults.url) goes through it."""
    route = await resolve(Access(kubeconfig=kubeconfig))
    connector = aiohttp.TCPConnector(ssl=route.tls.context(), limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=timeout) as session:
        found = Faults(route, session)
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/{path:.*}", found.handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        found.url = f"http://127.0.0.1:{port}"
        yield found
        await runner.cleanup()


@pytest.fixture
async def through_faults(faults) -> AsyncIterator[Client]:
    """A client whose requests pass the proxy."""
    async with await Client.connect(Access(server=faults.url)) as found:
        yield found
