"""What a module reaches while it observes or acts: external systems, and pods of its own.

While observing, a system is asked by GET alone. While acting, every request to a system carries the action's idempotency key, so a system
that knows such keys does nothing twice even if an answer was lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.module.api import Answer, PodTls, SeenSecret
from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile.engine.modules.external_systems import ExternalSystems, OutsideError
from kubectl_reconcile.engine.modules.operands import Operands, OwnedPod, PodsOfCr
from kubectl_reconcile.engine.modules.secrets_of_cr import SecretsOfCr


class Reach(Struct, frozen=True):
    """All that modules reach, as *client* may: the systems and the ways to pods are those of the whole process."""

    systems: ExternalSystems
    operands: Operands
    client: Client

    @asynccontextmanager
    async def io(
        self, owned: Owned, idempotency_key: str = "", secrets: SecretsOfCr | None = None
    ) -> AsyncIterator[ModuleIo]:
        """Lend what a module observes with or, given a key, acts with; connections to pods end with the block."""
        pods = PodsOfCr(self.operands, self.client, owned, acts=bool(idempotency_key))
        try:
            yield ModuleIo(self.systems, pods, owned, secrets or SecretsOfCr(self.client), idempotency_key)
        finally:
            await pods.close()


class ModuleIo(Struct, frozen=True):
    """The `Io` of one look or one action; without *idempotency_key* it only reads."""

    systems: ExternalSystems
    pods: PodsOfCr
    owned: Owned
    secrets: SecretsOfCr
    idempotency_key: str = ""

    async def get(self, system: str, path: str) -> Answer:
        """Ask for *path*, changing nothing.

        Raises:
            OutsideError: nobody knows the system, or it doesn't answer.
        """
        return await self.systems.request("GET", self.systems.url(system) + path)

    async def send(self, method: str, system: str, path: str, body: Any = None) -> Answer:
        """Send *body* as JSON; the idempotency key of the action goes along.

        Raises:
            OutsideError: this is a look and no action, nobody knows the system, or it doesn't answer.
        """
        if not self.idempotency_key:
            raise OutsideError(f"observe must change nothing, but {method} {path} would")
        headers = {"Idempotency-Key": self.idempotency_key}
        return await self.systems.request(method, self.systems.url(system) + path, body=body, headers=headers)

    def pod(self, name: str, port: int, tls: PodTls | None = None) -> OwnedPod:
        """Return how to reach *port* of a pod that the CR controls.

        Raises:
            SilentPodError: it controls no pod of that name.
        """
        return self.pods.pod(name, port, tls)

    async def secret(self, name: str) -> Mapping[str, str] | None:
        """Return the values of a Secret beside the CR, None where there is none.

        Raises:
            OutsideError: the module never said that it reads it, or it can't be read.
        """
        return await self.secrets.read(name)

    async def make_secret(self, name: str, values: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Make a Secret beside the CR; one that is there stays as it is.

        Raises:
            OutsideError: this is a look and no action, the module never said that it reads it, or the server refuses.
        """
        await self.secrets.make(name, values, labels)

    async def see_secret(self, name: str) -> SeenSecret | None:
        """Return a Secret beside the CR, and whether it is the CR's own; None where there is none.

        Raises:
            OutsideError: the module never said that it reads it, or it can't be read.
        """
        return await self.secrets.see(name)

    async def put_secret(
        self, name: str, values: Mapping[str, str], labels: Mapping[str, str], *, over: SeenSecret | None
    ) -> None:
        """Make a Secret as the CR's own, or give the one that was seen other values.

        Raises:
            OutsideError: this is a look and no action, the module never said that it makes it, it is another's or has changed, or the server refuses.
        """
        await self.secrets.put(name, values, labels, over)
