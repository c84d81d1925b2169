"""A quiet team: two Syncs, one of plain manifests and one of an overlay, which it pushes to, looks at, and whose drift it sees put back."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from benchmarks.abuse.world import PEOPLE, World, config_map
from benchmarks.process import until
from kubectl_reconcile.cluster.client import ApiError, Client
from kubectl_reconcile.sandbox.gitserver import ServedRepository
from tests.security.tenants import manifest

MEMBERS: Final = 100
"""So many that no field is put back so often that it counts as contended."""
_GIVEN_UP_S: Final = 60.0
_TOKEN: Final = "quiet"  # noqa: S105 - nobody else's
_PAUSE_S: Final = 0.2


@dataclass
class Quiet:
    """One team, and how long what it waits for takes; what never came is *lost*."""

    world: World
    client: Client
    name: str
    plain: ServedRepository
    overlay: ServedRepository
    took_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    lost: list[str] = field(default_factory=list)
    turns: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    wanted: dict[str, str] = field(default_factory=dict)
    """The version that each member has to have."""

    async def begin(self) -> None:
        """Have both repositories followed, and wait until they are."""
        self.wanted = {f"member-{number}": "0" for number in range(MEMBERS)} | {"rendered": "0"}
        shas = {
            "plain": self.plain.push({f"{name}.json": self._file(name) for name in self.wanted if name != "rendered"}),
            "overlay": self.overlay.push(
                {"kustomization.yaml": "resources: [a.json]\n", "a.json": self._file("rendered")}
            ),
        }
        hook = manifest("v1", "Secret", "hook", self.name, stringData={"token": _TOKEN})
        self.world.cluster.at(self.name).apply(hook)
        for name, repository in (("plain", self.plain), ("overlay", self.overlay)):
            git = {"url": repository.url, "interval": "1m", "webhookSecretRef": {"name": "hook"}}
            followed = manifest("reconcile.dev/v1alpha1", "Sync", name, self.name, spec={"source": {"git": git}})
            self.world.cluster.at(self.name).apply(followed)

        async def synced() -> bool:
            live = {name: await self.client.get(self._sync(name)) for name in shas}
            return all((live[name].get("status") or {}).get("lastAppliedRevision") == sha for name, sha in shas.items())

        await until(synced, f"{self.name} is synced", within_s=300, pause_s=0.2)

    async def live_on(self, over: asyncio.Event) -> None:
        """Push, look and see to drift, again and again, until it is over."""
        doings: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("drift", self._drift),
            ("push", self._push),
            ("drift", self._drift),
            ("push of an overlay", self._push_overlay),
            ("drift", self._drift),
            ("preview", self._preview),
        ]
        for what, do in itertools.cycle(doings):
            if over.is_set():
                return
            began_s = time.monotonic()
            try:
                await do()
            except (TimeoutError, ApiError, aiohttp.ClientError, OSError, LostError) as error:
                self.lost.append(f"{what} of {self.name}: {error!r}")
            self.took_s[what].append(time.monotonic() - began_s)
            await asyncio.sleep(_PAUSE_S)

    async def all_is_there(self) -> None:
        """Note what isn't as Git asks for in the end."""

        async def equal() -> bool:
            items, _ = await self.client.list(f"/api/v1/namespaces/{self.name}/configmaps")
            live = {each["metadata"]["name"]: each["data"] for each in items if "version" in (each.get("data") or {})}
            return live == {name: {"color": "red", "version": version} for name, version in self.wanted.items()}

        try:
            await until(equal, f"{self.name} is as Git asks for", within_s=_GIVEN_UP_S, pause_s=0.5)
        except TimeoutError as error:
            self.lost.append(str(error))

    def _file(self, name: str) -> str:
        return config_map(name, color="red", version=self.wanted[name])

    def _sync(self, name: str) -> str:
        return f"/apis/reconcile.dev/v1alpha1/namespaces/{self.name}/syncs/{name}"

    async def _drift(self) -> None:
        name = f"member-{next(self.turns) % MEMBERS}"
        path = f"/api/v1/namespaces/{self.name}/configmaps/{name}"
        await self.client.patch(path, {"data": {"color": "blue"}}, manager="by-hand")
        await self._until(name, "color", "red")

    async def _push(self) -> None:
        await self._pushed("plain", self.plain, f"member-{next(self.turns) % MEMBERS}", "{}.json")

    async def _push_overlay(self) -> None:
        await self._pushed("overlay", self.overlay, "rendered", "a.json")

    async def _pushed(self, sync: str, repository: ServedRepository, name: str, file: str) -> None:
        self.wanted[name] = str(next(self.turns))
        await asyncio.to_thread(repository.push, {file.format(name): self._file(name)})
        proof = hmac.new(_TOKEN.encode(), b"{}", hashlib.sha256).hexdigest()
        url = f"http://{self.world.daemon.hooks}/hooks/{self.name}/{sync}"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=b"{}", headers={"X-Signature-256": proof}) as answer,
        ):
            if answer.status != 202:
                raise LostError(f"the webhook answered {answer.status}")
        await self._until(name, "version", self.wanted[name])

    async def _preview(self) -> None:
        url = f"http://{self.world.page}/api/v1/syncs/{self.name}/plain/plan"
        headers = {"Authorization": f"Bearer {self.world.tokens[PEOPLE[self.name][0]]}"}
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
            if answer.status != 200:
                raise LostError(f"the page answered {answer.status}: {(await answer.text())[:200]}")

    async def _until(self, name: str, key: str, value: str) -> None:
        path = f"/api/v1/namespaces/{self.name}/configmaps/{name}"

        async def reached() -> bool:
            live: dict[str, Any] = await self.client.get(path)
            return bool(live["data"][key] == value)

        await until(reached, f"{key} of {name} in {self.name} is {value}", within_s=_GIVEN_UP_S, pause_s=0.02)


class LostError(Exception):
    """What was asked for isn't there."""
