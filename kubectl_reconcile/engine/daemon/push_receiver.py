"""Takes word of pushes from Git servers over HTTP, so that a Sync needn't wait for its next poll.

``POST /hooks/NAMESPACE/NAME``, for a Sync that names a Secret in ``spec.source.git.webhookSecretRef``. A word is only
that: the repository is asked, as at any poll. Who isn't genuine learns nothing, not even which Syncs there are.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, NotFound
from kubectl_reconcile.core.daemon.webhook_signature import concerns, is_genuine
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.resources.sync import SYNC, GitSpec, Sync, SyncSpecError
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.engine.telemetry.metrics import Metrics

ROUTE = "/hooks/{namespace}/{name}"
LARGEST = 5 * 2**20
"""Bytes of a body, at most; a push of thousands of commits is less."""

_PATIENCE_S = 10.0
_REMEMBERED_S = 10.0
_KEY = "token"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class PushReceiver:
    """Answers Git servers. *live* returns a Sync as it is, *wake* has one look at its repository."""

    client: Client
    metrics: Metrics
    live: Callable[[ObjectRef], Manifest | None]
    wake: Callable[[ObjectRef], Awaitable[None]]
    _secrets: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)

    async def receive(self, request: web.Request) -> web.Response:
        """Answer one word of a push."""
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        ref = ObjectRef(SYNC.group, SYNC.kind, namespace, name)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                body = await request.read()  # larger ones are refused while they come in
        except TimeoutError:
            return self._answer(408, "too slow")
        git = self._followed(ref)
        secret = await self._secret(namespace, git.webhook_secret) if git and git.webhook_secret else ""
        if not is_genuine(request.headers, body, secret) or git is None:
            return self._answer(401, "no such hook, or not signed with its secret")
        if not concerns(body, git):
            return self._answer(202, "about another branch or tag")
        try:
            await self.wake(ref)
        except ApiError as error:
            event(log, logging.WARNING, "push not passed on", sync=f"{namespace}/{name}", error=error)
            return self._answer(503, "not passed on; the next poll finds it")
        return self._answer(202, "looking")

    def _answer(self, status: int, text: str) -> web.Response:
        self.metrics.sources.pushes.labels(str(status)).inc()
        return web.Response(status=status, text=f"{text}\n")

    def _followed(self, ref: ObjectRef) -> GitSpec | None:
        manifest = self.live(ref)
        try:
            return Sync.of(manifest).git if manifest else None
        except SyncSpecError:
            return None

    async def _secret(self, namespace: str, name: str) -> str:
        """Return the secret, asked for anew after a while at most: strangers mustn't make requests to the cluster."""
        at_s, known = self._secrets.get((namespace, name), (0.0, ""))
        if at_s and time.monotonic() - at_s < _REMEMBERED_S:
            return known
        try:
            secret = await self.client.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
            known = base64.b64decode((secret.get("data") or {}).get(_KEY) or "").decode().strip()
        except NotFound:
            known = ""
        except (ApiError, binascii.Error, UnicodeDecodeError) as error:
            event(log, logging.WARNING, "hook's Secret not read", secret=f"{namespace}/{name}", error=error)
            known = ""
        self._secrets[namespace, name] = time.monotonic(), known
        return known
