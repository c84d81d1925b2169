"""All pods of the node: one worker each, and what they share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.pods import node
from kubectl_reconcile.sandbox.pods.api import Api, Object
from kubectl_reconcile.sandbox.pods.claims import Claims
from kubectl_reconcile.sandbox.pods.decisions import services
from kubectl_reconcile.sandbox.pods.pod_folder import Surroundings
from kubectl_reconcile.sandbox.pods.worker import PodWorker
from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient

_LOG = logging.getLogger(__name__)
_RETRY_S = 0.2
_PODS = f"fieldSelector=spec.nodeName%3D{node.NODE}"


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a nodelet keeps its things."""

    root: Path

    @property
    def pods(self) -> Path:
        """Folder of each pod, and of the runtime."""
        return self.root / "pods"

    @property
    def claims(self) -> Path:
        """What PersistentVolumeClaims hold."""
        return self.root / "volumes"

    @property
    def runtime_log(self) -> Path:
        """What the runtime says."""
        return self.root / "logs" / "runtime.log"


class Nodelet:
    """The pods of one node."""

    def __init__(self, api: Api, folders: Folders, environ: Mapping[str, str], port: int) -> None:
        self._api = api
        self._folders = folders
        self._port = port
        self._runtime = RuntimeClient(folders.pods)
        self._background: set[asyncio.Task[None]] = set()
        self._place = Surroundings(api, self._runtime, folders.pods, self._later, environ)
        self._workers: dict[str, PodWorker] = {}
        self._known: Mapping[str, Any] = {}
        self._version = -1
        self._seen = asyncio.Event()
        self._pods: dict[str, Object] = {}
        self._services: dict[str, Object] = {}
        self._slices: dict[str, Object] = {}
        self._routes_changed = asyncio.Event()
        self.ready = False
        """Whether pods are sent here and run."""

    def worker(self, namespace: str, name: str) -> PodWorker | None:
        """Return who sees to a pod."""
        for worker in self._workers.values():
            meta = worker.pod["metadata"]
            if (meta["namespace"], meta["name"]) == (namespace, name):
                return worker
        return None

    @property
    def runtime(self) -> RuntimeClient:
        """What the pods run in."""
        return self._runtime

    async def run(self) -> None:
        """Run the pods of the node forever.

        Raises:
            SandboxError: the runtime doesn't start.
            RefusedError, TimeoutError: the API server refuses the node.
        """
        for folder in (self._folders.pods, self._folders.claims):
            folder.mkdir(mode=0o700, exist_ok=True)
        await self._look_at_runtime()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._api.follow("/api/v1/pods", _PODS, self._see_pods))
            group.create_task(self._api.follow("/api/v1/services", "limit=0", self._see_services))
            group.create_task(self._api.follow("/apis/discovery.k8s.io/v1/endpointslices", "limit=0", self._see_slices))
            group.create_task(self._follow_runtime())
            group.create_task(self._tend_pods())
            group.create_task(self._route())
            group.create_task(Claims(self._api, self._folders.claims).run())
            await node.register(self._api, self._port)
            self.ready = True
            group.create_task(node.stay_registered(self._api, self._port))

    # -- what is heard -------------------------------------------------------------------------------------------------

    def _see_pods(self, pods: dict[str, Object]) -> None:
        self._pods = pods
        self._seen.set()

    def _see_services(self, found: dict[str, Object]) -> None:
        self._services = found
        self._routes_changed.set()

    def _see_slices(self, found: dict[str, Object]) -> None:
        self._slices = found
        self._routes_changed.set()

    async def _tend_pods(self) -> None:
        """Have a worker for each pod, and none for others; what the runtime has of others ends."""
        await self._seen.wait()
        for uid in self._known.keys() - self._pods.keys():
            with contextlib.suppress(CallError, OSError):
                await self._runtime.call("remove", uid=uid, tmpfs=[])
        for folder in self._folders.pods.iterdir():
            if folder.is_dir() and folder.name not in self._pods:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        while True:
            self._seen.clear()
            for uid, pod in list(self._pods.items()):
                try:
                    self._tend(uid, pod)
                except Exception:  # noqa: BLE001 - an odd pod mustn't end the others
                    _LOG.exception("pod %s/%s can't be parsed", pod["metadata"]["namespace"], pod["metadata"]["name"])
            for uid in self._workers.keys() - self._pods.keys():
                self._later(self._workers.pop(uid).abandon())
            await self._seen.wait()

    def _tend(self, uid: str, pod: Object) -> None:
        worker = self._workers.get(uid)
        if worker is None:
            self._workers[uid] = PodWorker(pod, self._place, self._known.get(uid))
        elif worker.pod["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]:
            worker.see_pod(pod)

    async def _look_at_runtime(self, since: int = -1) -> None:
        """Learn how the runtime has its pods, once that isn't what it was at version *since*; start it if it doesn't run."""
        try:
            state = await self._runtime.call("state", since=since)
        except OSError:
            await self._runtime.ensure(self._folders.runtime_log)
            state = await self._runtime.call("state")
            self._routes_changed.set()
        self._version, self._known = state["version"], state["pods"]

    async def _follow_runtime(self) -> None:
        while True:
            await self._look_at_runtime(self._version)
            for uid, worker in list(self._workers.items()):
                worker.see_runs(self._known.get(uid))

    async def _route(self) -> None:
        """Keep the runtime's table of Services and names as it should be."""
        last: Any = None
        while True:
            await self._routes_changed.wait()
            self._routes_changed.clear()
            every, slices = list(self._services.values()), list(self._slices.values())
            try:
                table = services.routes(every, slices, self._api.port)
                zone = services.zone(every, slices).to_json()
                answer = await self._runtime.call("route", services=table, zone=zone)
            except (CallError, OSError) as error:
                _LOG.warning("routes: %s", error)
                await asyncio.sleep(_RETRY_S)
                self._routes_changed.set()
                continue
            except Exception:  # noqa: BLE001 - nor may an odd Service; the table is as it was until it changes
                _LOG.exception("Services and their names stay as they were: one of them can't be parsed")
                continue
            if answer["complaints"] and answer["complaints"] != last:
                _LOG.warning("routes: %s", "; ".join(answer["complaints"]))
            last = answer["complaints"]

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
