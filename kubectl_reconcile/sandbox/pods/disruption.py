"""Breaks and repairs pods that run as processes, for those who want to see what happens to it.

The pods are found by asking the runtime, so this works without the API server and without the nodelet; of a pod that isn't found
the API server is asked, so that what is said is true.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.pods.node import LABEL, VALUE
from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient


class Disruption:
    """What can be done to the pods whose runtime is in *folder*; *request* asks the API server.

    Raises of all methods:
        SandboxError: there is no such pod or container, or no runtime.
    """

    def __init__(self, folder: Path, request: Callable[[str, str], tuple[int, bytes]]) -> None:
        self._runtime = RuntimeClient(folder)
        self._request = request

    def partition(self, namespace: str, pod: str, peers: Sequence[str] = ()) -> None:
        """Cut *pod* off from everything, Services and the daemon too, or from *peers* alone, both ways. Commands in it (``exec``, probes by one) still run."""
        uid, pods = self._find(namespace, pod)
        addresses = [pods[self._find(namespace, peer)[0]]["ip"] for peer in peers]
        self._ask("cut", uid=uid, peers=addresses, heal=False)

    def heal(self, namespace: str, pod: str) -> None:
        """Undo a partition and a pause of *pod*."""
        uid, pods = self._find(namespace, pod)
        self._ask("cut", uid=uid, peers=[], heal=True)
        for name, run in pods[uid]["runs"].items():
            if run["paused"]:
                self._ask("pause", uid=uid, container=name, paused=False)

    def pause(self, namespace: str, pod: str, container: str = "") -> None:
        """Stop all processes of *pod*, or of one of its containers, until it is healed: as if it hung."""
        uid, names = self._running(namespace, pod, container)
        for name in names:
            self._ask("pause", uid=uid, container=name, paused=True)

    def signal(self, namespace: str, pod: str, name: str = "KILL", container: str = "") -> None:
        """Send the signal *name* to the first process of *pod*'s containers, or of one: SIGKILL is a crash."""
        number = getattr(signal, f"SIG{name.upper().removeprefix('SIG')}", None)
        if number is None:
            raise SandboxError(f"there is no signal {name}", "KILL, TERM, INT and others are")
        uid, names = self._running(namespace, pod, container)
        for one in names:
            self._ask("signal", uid=uid, container=one, signum=int(number))

    def _running(self, namespace: str, pod: str, container: str) -> tuple[str, list[str]]:
        uid, pods = self._find(namespace, pod)
        running = [name for name, run in pods[uid]["runs"].items() if run["exitCode"] is None]
        wanted = [name for name in running if container in {"", name}]
        if not wanted:
            what = f"container {container} doesn't run" if container else "none of its containers runs"
            raise SandboxError(f"pod {namespace}/{pod}: {what}", f"those that run: {', '.join(running) or 'none'}")
        return uid, wanted

    def _find(self, namespace: str, name: str) -> tuple[str, dict[str, Any]]:
        pods = self._ask("state")["pods"]
        for uid, pod in pods.items():
            if (pod["namespace"], pod["name"]) == (namespace, name):
                return uid, pods
        if not self._may_exist(namespace, name):
            raise SandboxError(
                f"there is no pod {namespace}/{name}", f"kubectl get pods -n {namespace} lists those there are"
            )
        raise SandboxError(
            f"pod {namespace}/{name} doesn't run as processes",
            f"pods of namespaces with a label do: kubectl label namespace {namespace} {LABEL}={VALUE}, then create it again",
        )

    def _may_exist(self, namespace: str, name: str) -> bool:
        """Tell whether there is such a pod, as far as the API server says."""
        try:
            return (
                self._request("GET", f"/api/v1/namespaces/{quote(namespace, '')}/pods/{quote(name, '')}")[0]
                != HTTPStatus.NOT_FOUND
            )
        except (OSError, HTTPException, SandboxError):
            return True

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        try:
            return asyncio.run(self._runtime.call(do, **arguments))
        except CallError as error:
            raise SandboxError(str(error)) from error
        except OSError as error:
            raise SandboxError("no pods run as processes in this sandbox", "check it with: sandbox status") from error
