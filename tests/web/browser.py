"""A real browser, driven by the DevTools protocol: pages opened, looked at, and typed into."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

from tests.talking import talking
from tests.waiting import eventually, until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 150.0
RUN_S = 5400.0
"""Longer than any run of tests or measurements, which may share a browser."""


def program() -> str:
    """The browser of this machine; empty where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), "")


def started(folder: str) -> Any:
    """Run a browser that keeps its things in *folder*, until the context ends."""
    flags = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-extensions",
    ]
    quiet = [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--metrics-recording-only",
    ]
    command = [program(), *flags, *quiet, "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
    return talking(command, patience_s=RUN_S, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def debugging_port(folder: str) -> int:
    """Where the browser listens that was started in *folder*, as it writes down there."""
    place = Path(folder) / "DevToolsActivePort"
    return int(eventually(lambda: place.exists() and place.read_text().split(), "the browser listens")[0])


class UntoldError(Exception):
    """The browser didn't do what it was told."""


@dataclass
class Tab:
    """One tab. *complaints* are exceptions of scripts, and what the browser refused or couldn't load; *requests* what it has asked for."""

    socket: ClientWebSocketResponse
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _count: int = 0

    async def tell(self, method: str, **parameters: Any) -> Any:
        self._count += 1
        mine = self._count
        await self.socket.send_json({"id": mine, "method": method, "params": parameters})
        while True:
            said = await self.socket.receive_json(timeout=PATIENCE_S)
            self._hear(said)
            if said.get("id") == mine:
                if "error" in said:
                    raise UntoldError(said["error"]["message"])
                return said["result"]

    def _hear(self, said: Any) -> None:
        if said.get("method") == "Runtime.exceptionThrown":
            details = said["params"]["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description", details["text"])))
        if said.get("method") == "Network.requestWillBeSent":
            self.requests.append(said["params"]["request"]["url"])
        if said.get("method") == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
            entry = said["params"]["entry"]
            self.complaints.append(f"{entry.get('url', '')}: {entry['text']}")

    async def open(self, url: str) -> None:
        """Go to *url*, and return once what was shown before is gone."""
        await self.value("window.before = true")
        await self.tell("Page.navigate", url=url)
        await self.until("!window.before && document.readyState === 'complete'")

    async def value(self, script: str) -> Any:
        """What a script's expression is."""
        answer = await self.tell("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")

    async def until(self, script: str) -> Any:
        """What a script's expression is, once it is true."""

        async def value() -> Any:
            with suppress(UntoldError):  # a page that is just being left can't say anything
                return await self.value(script)

        return await until(value, script, timeout_s=PATIENCE_S)

    async def sees(self, text: str, where: str = "main") -> None:
        """Return once *text* is to be read."""
        try:
            await self.until(f"document.querySelector({json.dumps(where)})?.innerText.includes({json.dumps(text)})")
        except AssertionError:
            shown = await self.value("document.body.innerText")
            raise AssertionError(f"{text!r} isn't shown, but:\n{shown}\n{self.complaints}") from None

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            await self.tell(
                "Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" and len(key) == 1 else ""
            )


@asynccontextmanager
async def tab_of(port: int) -> AsyncIterator[Tab]:
    """A new tab of the browser that listens at *port*, with cookies of its own."""
    async with ClientSession() as session:
        async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
            target = await answer.json()
        async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            tab = Tab(socket)
            for domain in ("Page", "Runtime", "Log", "Network"):
                await tab.tell(f"{domain}.enable")
            await tab.tell("Network.clearBrowserCookies")
            try:
                yield tab
            finally:  # a tab that stays open keeps its page's server from ending
                await session.get(f"http://127.0.0.1:{port}/json/close/{target['id']}")
