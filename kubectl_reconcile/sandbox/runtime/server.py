"""What a runtime is asked for, and what it knows.

Requests are objects with ``do`` (one of the methods below) and its arguments; see :mod:`.channel`. It remembers each pod with the
last run of each of its containers, until it is told to remove the pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.runtime import containers, kernel
from kubectl_reconcile.sandbox.runtime.channel import Answer, CallError, serve
from kubectl_reconcile.sandbox.runtime.containers import Run
from kubectl_reconcile.sandbox.runtime.names import NameServer, Zone
from kubectl_reconcile.sandbox.runtime.network import GATEWAY, Network, PodNetwork
from kubectl_reconcile.sandbox.runtime.traffic import Outside, Proxy, connect

_FILES_A_CONNECTION = 2
SOCKET = "runtime.sock"
"""Where it listens, in its folder."""


@dataclass(slots=True)
class _Pod:
    uid: str
    namespace: str
    name: str
    place: PodNetwork
    folder: Path
    cut: bool = False
    runs: dict[str, Run] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "ip": self.place.ip,
            "cut": self.cut,
            "runs": {name: run.to_json() for name, run in self.runs.items()},
        }


class Runtime:
    """The pods of one sandbox, in *folder*."""

    def __init__(self, folder: Path, outside: socket.socket) -> None:
        self._folder = folder
        self._network = Network()
        self._names = NameServer()
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._proxy = Proxy(Outside(outside), most=files // _FILES_A_CONNECTION // 2)
        self._pods: dict[str, _Pod] = {}
        self._version = 0
        self._changed = asyncio.Event()
        self._begun: set[asyncio.Future[None]] = set()
        self._verbs: dict[str, Callable[..., Awaitable[Answer]]] = {
            "state": self._state,
            "add": self._add,
            "remove": self._remove,
            "start": self._start,
            "signal": self._signal,
            "enter": self._enter,
            "dial": self._dial,
            "route": self._route,
            "cut": self._cut,
            "pause": self._pause,
        }

    async def run(self) -> None:
        """Serve forever.

        Raises:
            CallError, OSError: the network can't be made.
        """
        self._network.set_up()
        await self._names.listen(GATEWAY)
        await serve(self._folder / SOCKET, self._handle)

    async def _handle(self, request: dict[str, Any], files: list[int]) -> Answer:
        verb = self._verbs.get(request.pop("do", ""))
        if verb is None:
            raise CallError("the runtime is of another version than who talks to it")
        return await (verb(**request, files=files) if files else verb(**request))

    def _tell(self) -> None:
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def _pod(self, uid: str) -> _Pod:
        if uid not in self._pods:
            raise CallError(f"there is no pod {uid}")
        return self._pods[uid]

    def _run(self, uid: str, container: str) -> Run:
        run = self._pod(uid).runs.get(container)
        if run is None:
            raise CallError(f"container {container} was never started")
        return run

    async def _state(self, since: int = -1) -> Answer:
        """Tell all that is known, once it isn't what version *since* was."""
        while since == self._version:
            await self._changed.wait()
        return {"version": self._version, "pods": {uid: pod.to_json() for uid, pod in self._pods.items()}}, ()

    async def _add(self, uid: str, namespace: str, name: str, hostname: str, tmpfs: dict[str, str]) -> Answer:
        """Make the namespaces of a pod; *tmpfs* are folders that are to be in memory, and their sizes."""
        if uid not in self._pods:
            pod = _Pod(uid, namespace, name, self._network.add(hostname), self._folder / uid)
            try:
                (pod.folder / "root").mkdir(parents=True, exist_ok=True)
                for folder, size in tmpfs.items():
                    kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode=777{size}")
            except OSError:  # it will be retried, and then starts over
                self._network.remove(pod.place)
                raise
            self._pods[uid] = pod
            self._tell()
        return {"ip": self._pods[uid].place.ip}, ()

    async def _remove(self, uid: str, tmpfs: list[str]) -> Answer:
        """End all that runs in a pod at once, and forget it."""
        pod = self._pods.get(uid)
        if pod is not None:
            running = [run for run in pod.runs.values() if run.running]
            for run in running:
                containers.send(run, signal.SIGKILL)
            await asyncio.gather(*(run.over.wait() for run in running))
        if pod is not None and self._pods.get(uid) is pod:  # nobody else has removed it meanwhile
            for folder in tmpfs:
                with contextlib.suppress(CallError, OSError):
                    kernel.unmount(folder)
            self._network.remove(pod.place)
            del self._pods[uid]
            self._tell()
        return {}, ()

    async def _start(self, uid: str, container: str, attempt: int, spec: dict[str, Any], log: str) -> Answer:
        pod = self._pod(uid)
        last = pod.runs.get(container)
        if last is not None and (last.running or last.attempt >= attempt):
            raise CallError(f"container {container} was started already")
        run = pod.runs[container] = Run(container, attempt)
        whole = {**spec, "root": str(pod.folder / "root"), "namespaces": list(pod.place.namespaces)}
        begun = asyncio.ensure_future(containers.start(run, whole, Path(log), self._tell))
        self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        await asyncio.shield(
            begun
        )  # seen through, also when whoever asked has gone: else nobody would know of the process
        self._tell()
        return {}, ()

    async def _signal(self, uid: str, container: str, signum: int) -> Answer:
        run = self._run(uid, container)
        if run.paused and signum == signal.SIGKILL:
            run.paused = False
        containers.send(run, signum)
        return {}, ()

    async def _enter(self, uid: str, container: str, spec: dict[str, Any], files: list[int]) -> Answer:
        return {"exitCode": await containers.enter(self._run(uid, container), spec, files)}, ()

    async def _dial(self, ip: str, port: int, timeout_s: float) -> Answer:
        with await connect((ip, port), timeout_s) as connection:
            return {}, (os.dup(connection.fileno()),)

    async def _route(self, services: list[Any], zone: dict[str, Any]) -> Answer:
        """Follow a table of Services, and a zone of names."""
        self._names.zone = Zone(**zone)
        table = {(ip, port): [(one, at) for one, at in endpoints] for ip, port, endpoints in services}
        return {"complaints": await self._proxy.follow(table)}, ()

    async def _cut(self, uid: str, peers: list[str], *, heal: bool) -> Answer:
        pod = self._pod(uid)
        if heal:
            self._network.repair(pod.place)
        else:
            self._network.cut(pod.place, peers)
        pod.cut = not heal
        self._tell()
        return {}, ()

    async def _pause(self, uid: str, container: str, *, paused: bool) -> Answer:
        containers.pause(self._run(uid, container), paused=paused)
        self._tell()
        return {}, ()
