"""A way to the API server on which a daemon is killed at each step of its work, once, before the step is heard of.

A *step* is a write that wasn't tried before: which object is written how, and for journals which action is how far. So a daemon that is started again each
time gets one step further each time, and no moment between two steps is left out: what was done outside between them is known to nobody but who
observes it.
"""

import asyncio
import contextlib
import json
import ssl
import threading
from pathlib import Path

import yaml

from kubectl_reconcile.core.annotations import ACTIONS
from tests import yaml_text
from tests.chaos.live import soon
from tests.e2e.program import Daemon

_WRITES = {"POST", "PUT", "PATCH", "DELETE"}
_PARTS = ("pods", "persistentvolumeclaims", "jobs", "etcdbackups")


class Interrupter:
    """Stands before the API server of a sandbox, with its certificate; while it is armed, *victim* is killed at its next new step."""

    def __init__(self, sandbox, folder: Path):
        self.steps: list[str] = []
        self.is_armed = False
        self.victim: Daemon | None = None
        self._port = sandbox.port("kube-apiserver")
        pair = sandbox.folder / "pki" / "kube-apiserver"
        self._near = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._near.load_cert_chain(pair / "apiserver.crt", pair / "apiserver.key")
        self._far = ssl.create_default_context(cafile=str(pair / "apiserver.crt"))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._near), self._loop
        )
        self._server = listening.result(120)
        self.kubeconfig = folder / "interrupted.kubeconfig"
        self.kubeconfig.write_text(self._config(sandbox.kubeconfig))

    def _config(self, kubeconfig: Path) -> str:
        config = yaml_text.document(kubeconfig.read_text())
        port = self._server.sockets[0].getsockname()[1]
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        return yaml.safe_dump(config)

    def disarm(self):
        """Kill nobody from now on; whoever was to be killed has ended."""

        async def off():
            self.is_armed = False

        asyncio.run_coroutine_threadsafe(off(), self._loop).result(120)

    def close(self):
        async def end():
            self._server.close()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0.5)  # what was aborted is closed in the loop's next turns

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(120)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()

    async def _serve(self, reader, writer):
        """Carry one request and its answer, or one WebSocket; or end the one who asks."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(_length(head))
            if self.is_armed and (step := step_of(head, body)) and step not in self.steps:
                self.steps.append(step)
                self.is_armed = False
                self.victim.process.kill()
                self.victim.process.wait(120)  # before anything else is carried, so that it is seen to have ended
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._far)
            try:
                far_writer.write(_once(head) + body)
                ways = [asyncio.create_task(_pump(reader, far_writer)), asyncio.create_task(_pump(far_reader, writer))]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
            finally:
                await _ended(far_writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # either side has ended, or the test
        finally:
            await _ended(writer)


def in_spite(way: Interrupter, is_so, what):
    """Start the daemon again each time that it is killed, until something is so."""

    def is_done():
        if not way.victim.alive:
            way.is_armed = True  # before it may take a step
            way.victim.start(ready=False)
        return is_so()

    try:
        soon(is_done, what, timeout_s=1200.0)
    except TimeoutError as error:
        raise TimeoutError(f"{error} (killed at {way.steps})") from error


def step_of(head: bytes, body: bytes) -> str:
    """Return which step of its work somebody tries to write down, nothing where it is none."""
    method, target = head.decode().split(" ", 2)[:2]
    path, _, query = target.partition("?")
    parts = path.strip("/").split("/")
    place = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else []
    if method not in _WRITES or not place or "dryRun" in query or "portforward" in place:
        return ""
    if place[0] in _PARTS and place[-1] != "status":
        return f"{method} {'/'.join(place)}"
    noted = (json.loads(body or b"{}").get("metadata") or {}).get("annotations") or {}
    actions = json.loads(noted.get(ACTIONS, "[]"))
    return f"{actions[-1]['key']} {actions[-1]['progress']}" if actions else ""


def _length(head: bytes) -> int:
    lines = (line.partition(b":") for line in head.lower().splitlines())
    return next((int(value) for name, _, value in lines if name == b"content-length"), 0)


def _once(head: bytes) -> bytes:
    """Return *head* so that the connection ends with its answer, unless it becomes a WebSocket."""
    lines = head.split(b"\r\n")[:-2]
    if any(line.lower().startswith(b"upgrade:") for line in lines):
        return head
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


async def _ended(writer):
    """Close a connection; nothing is left of it, whatever the other side says to that, and whoever ends this."""
    try:
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), 5)
    finally:
        writer.transport.abort()


async def _pump(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
