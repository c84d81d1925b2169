"""Fixtures of the page: its application as a browser meets it, with the rights of a session on the shared cluster."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession
from aiohttp.test_utils import TestServer

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.engine.sync import reconcile, targets
from kubectl_reconcile.engine.sync.books import tell
from kubectl_reconcile.engine.sync.reconcile import perform
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.events import Events
from kubectl_reconcile.web.app import application
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.fleet_feed import FleetFeed
from kubectl_reconcile.web.local_door import LocalDoor
from tests.engine.manifests import MAKERS
from tests.engine.shop import PATHS, Shop
from tests.waiting import until
from tests.web import browser
from tests.web.described import as_described
from tests.web.site import site_of


@pytest.fixture
async def session(kubeconfig, namespace, crds, tmp_path) -> AsyncIterator[Session]:
    """A session of the shared cluster in the test's namespace."""
    async with Session.open(Access(kubeconfig=kubeconfig, namespace=namespace), tmp_path / "cache") as found:
        yield found


@pytest.fixture
def shop(session, namespace, tmp_path) -> Shop:
    """A folder and its Sync, in the test's namespace."""
    return Shop(session, tmp_path / "shop", namespace)


@pytest.fixture(scope="session")
def manifests() -> Callable[..., Any]:
    """manifests("config_map") -> the maker of that kind."""
    return MAKERS.__getitem__


@dataclass
class Page:
    """The page as one browser has it, which has come in by its ticket unless it says otherwise."""

    door: LocalDoor
    browser: ClientSession
    origin: str
    server: TestServer

    async def ask(self, path: str, *, method: str = "GET", **options: Any) -> ClientResponse:
        return await self.browser.request(method, f"{self.origin}{path}", allow_redirects=False, **options)

    async def get(self, path: str, *, status: int = 200) -> Any:
        async with await self.ask(path) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return as_described("GET", path, status, json.loads(text))

    async def post(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        async with await self.ask(path, method="POST", json=body or {}, headers={"Origin": self.origin}) as answer:
            text = await answer.text()
            assert answer.status == status, text
            return as_described("POST", path, status, json.loads(text))

    async def enter(self) -> ClientResponse:
        return await self.ask(self.door.url.removeprefix(self.origin))

    async def until(self, path: str, condition: Callable[[Any], bool], what: str) -> Any:
        """What is at *path*, once *condition* is true of it."""
        found: Any = None

        async def is_so() -> bool:
            nonlocal found
            found = await self.get(path)
            return condition(found)

        try:
            await until(is_so, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; at {path} is {found!r}") from None
        return found


@pytest.fixture
async def served(session, session_of) -> AsyncIterator[Callable[..., Any]]:  # pages end before sessions do
    """``await served(session)`` -> the page of whoever's session it is; ``entered=False`` leaves them at the door."""
    async with AsyncExitStack() as stack:

        async def serve(session: Session, *, entered: bool = True, **options: Any) -> Page:
            fleet = await stack.enter_async_context(FleetFeed(session))
            door = LocalDoor(Asker(session, fleet, Events(session.client)))
            server = TestServer(application(door, **options))
            await stack.enter_async_context(server)
            door.port = server.port or 0
            browser = await stack.enter_async_context(ClientSession(cookie_jar=_jar()))
            page = Page(door, browser, f"http://127.0.0.1:{server.port}", server)
            if entered:
                assert (await page.enter()).status == 200
            return page

        yield serve


def _jar() -> Any:
    from aiohttp import CookieJar  # noqa: PLC0415 - needs a running loop

    return CookieJar(unsafe=True)  # addresses may have cookies, too


@pytest.fixture
async def page(served, session) -> Page:
    """The page, of somebody with all rights who looks at the test's namespace."""
    return await served(session)


@pytest.fixture
async def session_of(sandbox, tmp_path) -> AsyncIterator[Callable[..., Any]]:
    """``await session_of("bob", namespace)`` -> a session with the rights of a user."""
    async with AsyncExitStack() as stack:

        async def open_as(user: str, namespace: str) -> Session:
            kubeconfig = str(sandbox.kubeconfig_for(user, namespace=namespace))
            access = Access(kubeconfig=kubeconfig, namespace=namespace)
            return await stack.enter_async_context(Session.open(access, tmp_path / f"cache-{user}"))

        yield open_as


@dataclass
class Followed:
    """A Sync that follows a repository, which nobody syncs but the test."""

    session: Session
    namespace: str
    repository: Any
    name: str = "shop"

    async def make(self, **spec: Any) -> dict[str, Any]:
        git = {"url": self.repository.url, "branch": "main"}
        manifest = {
            "apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"source": {"git": git}, **spec},
        }  # fmt: skip
        return await self.session.client.create(
            PATHS["Sync"].format(namespace=self.namespace, name="").rstrip("/"), manifest
        )

    def push(self, files: Any, message: str = "Change", **options: Any) -> str:
        texts = {
            name: content if isinstance(content, str | None) else json.dumps(content) for name, content in files.items()
        }
        return self.repository.push(texts, message, **options)

    async def sync(self) -> None:
        """Sync once, as an administrator, and tell it on the Sync as a daemon does."""
        target = await targets.sync_target(self.session, self.name, self.namespace)
        done = await perform(self.session, target, await reconcile.plan(self.session, target))
        await tell(self.session, done.target, done.report)

    async def status(self, **status: Any) -> None:
        path = PATHS["Sync"].format(namespace=self.namespace, name=self.name)
        await self.session.client.patch(f"{path}/status", {"status": status})

    @property
    def path(self) -> str:
        return f"/api/v1/syncs/{self.namespace}/{self.name}"


@pytest.fixture
def followed(session, namespace, git_server) -> Followed:
    """A Sync of the test's repository in the test's namespace, once it is made."""
    return Followed(session, namespace, git_server)


# -- the page as a daemon serves it ------------------------------------------------------------------------------------


@pytest.fixture
async def site(session, crds):
    async with site_of(session) as site:
        yield site


@pytest.fixture
def token_of(session, namespace):
    """``await token_of("alice")`` -> another token of an account of the test's namespace, made where it isn't there yet."""

    async def token(name):
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        if name not in {each["metadata"]["name"] for each in (await session.client.list(accounts))[0]}:
            await session.client.create(accounts, {"metadata": {"name": name}})
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return (await session.client.create(f"{accounts}/{name}/token", request))["status"]["token"]

    return token


@pytest.fixture
def allow(kubectl, namespace):
    """``allow("alice", "list,watch")`` -> gives an account rights on Syncs in the test's namespace."""

    def give(name, verbs, where=""):
        place, role = where or namespace, f"{name}-{verbs.replace(',', '-')}"
        kubectl("create", "role", role, f"--verb={verbs}", "--resource=syncs.reconcile.dev", "-n", place)
        kubectl("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={namespace}:{name}", "-n", place)

    return give


# -- a browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def port(tmp_path_factory):
    if not browser.program():
        pytest.skip(f"none of {', '.join(browser.PROGRAMS)} is installed (Debian: apt-get install chromium)")
    folder = str(tmp_path_factory.mktemp("browser"))
    with browser.started(folder):
        yield browser.debugging_port(folder)


@pytest.fixture
async def tab(port, served, session):
    """A tab that has come in by the ticket, and the page's address."""
    page = await served(session, entered=False)
    async with browser.tab_of(port) as tab:
        tab.origin = page.origin
        await tab.open(page.door.url)
        await tab.sees("Syncs", "h1")
        yield tab
        assert not tab.complaints
