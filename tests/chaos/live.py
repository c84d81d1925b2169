"""One custom resource with pods of its own on process pods of a sandbox, looked at and hurt past the program under test.

Its servers are reached over connections that the runtime of process pods hands out, whatever becomes of the API server, of Services and of the daemon. A *slot* is the
name that a server, its pod and its volume share, as in ``db-0``.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.sandbox.components import Component
from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile.sandbox.runtime.client import RuntimeClient
from tests.chaos.daemon import until


class MemberError(Exception):
    """A server doesn't answer, or refuses."""


class BusyError(RuntimeError):
    """The API server has no time, or has lost something under way."""


TROUBLE = MemberError, BusyError, CallError, OSError, http.client.HTTPException
"""What who asks in the middle of something may meet; asking again helps."""


@dataclass
class SocketStream:
    """A connection as sessions take it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def read(self, most: int) -> bytes:
        if not (found := await self.reader.read(most)):
            raise ConnectionResetError("the server has ended")
        return found

    async def write(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()


def soon(condition: Callable[[], Any], what: str, **options: Any) -> Any:
    """As `until`; what meets trouble while it looks isn't true yet."""

    def untroubled() -> Any:
        try:
            return condition()
        except TROUBLE:
            return None

    return until(untroubled, what, **options)


def unmet(cr: Mapping[str, Any], right: Mapping[str, str]) -> str:
    """Return what of a status isn't as it should be: it is of this spec, and its conditions are the *right* ones; nothing if all is so."""
    status = cr.get("status", {})
    if status.get("observedGeneration") != cr["metadata"]["generation"]:
        return "the status isn't of this spec"
    conditions = {each["type"]: each for each in status["conditions"]}
    wrong = (conditions[type_] for type_, state in right.items() if conditions[type_]["status"] != state)
    told = (f"{each['type']} is {each['status']}: {each.get('reason')}: {each.get('message')}" for each in wrong)
    return next(told, "")


def _is_emptied(folder: Path) -> bool:
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()
    return not any(folder.iterdir())


class LiveResource:
    """The custom resource *name* in a namespace of a sandbox."""

    api: ClassVar[str]
    plural: ClassVar[str]
    container: ClassVar[str]
    """The one of each pod in which its server runs."""
    selector: ClassVar[str]
    """What all pods and volumes of a resource are labelled with, its name left out."""

    def __init__(self, sandbox: Sandbox, namespace: str, name: str = "db") -> None:
        self.sandbox, self.namespace, self.name = sandbox, namespace, name
        self._runtime = RuntimeClient(sandbox.folder / "pods")

    # --- at rest --------------------------------------------------------------------------------------

    def unrest(self) -> str:
        """Return what isn't as specified, nothing if all is."""
        raise NotImplementedError

    def rest(self) -> Any:
        """Return who is who at a moment of rest, as far as that is to stay."""

    def settled(self, *, timeout_s: float = 400.0) -> Any:
        """Wait until all is as specified; return who is who then.

        What of the control plane has ended is started again, as a kubelet does: a scheduler ends itself where an API server that is back tells it
        something else of a pod than before.

        Raises:
            TimeoutError: it isn't; the text says what isn't.
        """

        def is_settled() -> bool:
            for component in (Component.CONTROLLERS, Component.SCHEDULER):
                if self.sandbox.pid(component) is None:
                    self.sandbox.start(component)
            return not self.unrest()

        try:
            until(is_settled, "all is as specified", timeout_s=timeout_s, pause_s=0.25)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.unrest()}") from None
        return self.rest()

    # --- what Kubernetes says -------------------------------------------------------------------------

    def path(self, plural: str, name: str = "", api: str = "v1") -> str:
        root = f"/apis/{api}" if "/" in api else f"/api/{api}"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what the API server answers, nothing where nothing is."""
        status, answer = self.sandbox.request(method, path, body)
        if status == 404:
            return {}
        if status == 429 or status >= 500:
            raise BusyError(f"{method} {path}: {status} {answer[:300]!r}")
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        return json.loads(answer)

    @property
    def cr(self) -> dict[str, Any]:
        return self.ask("GET", self.path(self.plural, self.name, self.api))

    def has_begun(self, verb: str) -> bool:
        """Tell whether the journal says that an action was begun, and not how it ended."""
        noted = json.loads(self.cr["metadata"].get("annotations", {}).get(ACTIONS, "[]"))
        return any(each["verb"] == verb and each["progress"] == "started" for each in noted)

    def condition(self, type_: str) -> dict[str, Any]:
        found = self.cr.get("status", {}).get("conditions", [])
        return next((each for each in found if each["type"] == type_), {"status": "", "reason": "", "message": ""})

    def change(self, **spec: Any) -> None:
        """Change the spec as somebody does who edits it."""

        def is_changed() -> bool:
            cr = self.cr
            cr["spec"] |= spec
            status, answer = self.sandbox.request("PUT", self.path(self.plural, self.name, self.api), cr)
            assert status in {200, 409, 429} or status >= 500, answer
            return status == 200

        soon(is_changed, f"the spec is changed to {spec}")

    def pods(self) -> dict[str, dict[str, Any]]:
        items = self.ask("GET", f"{self.path('pods')}?labelSelector={self.selector}%3D{self.name}")["items"]
        return {each["metadata"]["name"]: each for each in items}

    def claims(self) -> dict[str, dict[str, Any]]:
        items = self.ask("GET", f"{self.path('persistentvolumeclaims')}?labelSelector={self.selector}%3D{self.name}")
        return {each["metadata"]["name"].removesuffix("-data"): each for each in items["items"]}

    def delete_pod(self, slot: str, *, at_once: bool = False) -> None:
        self.ask("DELETE", self.path("pods", slot) + ("?gracePeriodSeconds=0" if at_once else ""))

    def delete_claim(self, slot: str) -> None:
        self.ask("DELETE", self.path("persistentvolumeclaims", f"{slot}-data"))

    def crash(self, *slots: str, also: Callable[[str], None] = lambda _: None) -> None:
        """Kill servers at once, and return when each has been started again; *also* is done right before."""
        before = {slot: self.containers()[slot]["attempt"] for slot in slots}
        for slot in slots:
            also(slot)
            self.sandbox.pods.signal(self.namespace, slot, "KILL")
        soon(
            lambda: all(self.containers().get(slot, {"attempt": 0})["attempt"] > attempt for slot, attempt in before.items()),
            f"{', '.join(slots)} are started again",
        )  # fmt: skip

    def end(self, slot: str) -> None:
        """Have a server end at once, unless it has; return once it has ended, or ended and was started again."""
        before = self.containers().get(slot)
        with contextlib.suppress(SandboxError):  # it has ended before
            self.sandbox.pods.signal(self.namespace, slot, "KILL")

        def has_ended() -> bool:
            now = self.containers().get(slot)
            return not now or not now["runs"] or now != before

        soon(has_ended, f"{slot} has ended")

    def answers(self, slot: str) -> bool:
        """Tell whether a server answers by itself, within a moment."""
        raise NotImplementedError

    def heal(self, slot: str) -> None:
        """Let a server go on, and reach others, unless its pod is gone meanwhile."""
        with contextlib.suppress(SandboxError):
            self.sandbox.pods.heal(self.namespace, slot)

    @contextlib.contextmanager
    def hanging(self, *slots: str) -> Iterator[None]:
        """Let servers hang in the block; none of them answers then, or nothing of it was true."""
        for slot in slots:
            self.sandbox.pods.pause(self.namespace, slot)
        try:
            assert not (awake := [slot for slot in slots if self.answers(slot)]), f"{awake} were stopped, and answer"
            yield
        finally:
            for slot in slots:
                self.heal(slot)

    def is_alone(self, slot: str) -> bool:
        """Tell whether the others have lost a server, as they say; one that says nothing may be well."""
        raise NotImplementedError

    @contextlib.contextmanager
    def cut_off(self, slot: str) -> Iterator[None]:
        """Let a server be cut off in the block, once it and the others have noticed."""
        self.sandbox.pods.partition(self.namespace, slot)
        try:
            soon(lambda: self.is_alone(slot), f"{slot} and the others have lost one another", timeout_s=90.0)
            yield
        finally:
            self.heal(slot)

    def volume(self, slot: str) -> Path:
        """Return where the volume of a slot lies on this machine."""
        claim = self.claims()[slot]
        found = self.ask("GET", f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")
        return Path(found["spec"]["hostPath"]["path"])

    def wipe(self, slot: str) -> None:
        """Empty the volume of a slot, under a server that may run and write meanwhile; return once nothing is left."""
        volume = self.volume(slot)
        soon(lambda: _is_emptied(volume), f"the volume of {slot} is empty", timeout_s=30.0)

    def acted(self, verb: str, since: str) -> bool:
        """Tell whether the journal has an action of this kind since a time."""
        noted = json.loads(self.cr["metadata"].get("annotations", {}).get(ACTIONS, "[]"))
        return any(each["verb"] == verb and each["at"] >= since for each in noted)

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return address, attempt and whether it runs, of each pod's container."""
        state = asyncio.run(self._runtime.call("state"))
        mine = {
            pod["name"]: pod
            for pod in state["pods"].values()
            if pod["namespace"] == self.namespace and self.container in pod["runs"]
        }
        return {
            name: {"ip": pod["ip"], "attempt": pod["runs"][self.container]["attempt"], "runs": pod["runs"][self.container]["exitCode"] is None}
            for name, pod in mine.items()
        }  # fmt: skip
