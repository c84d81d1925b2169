"""Takes word of pushes from Git servers over HTTP, so that a Sync needn't wait for its next poll.

``POST /hooks/NAMESPACE/NAME``, for a Sync that names a Secret in ``spec.source.git.webhookSecretRef``. A word is only that: the
repository is asked, as at any poll. The Sync and its secret are looked up before anything of a body is read, and who bears no proof is
refused then; who isn't genuine learns at most that a hook is there. A body is read in pieces and never held: only as much
is kept as it takes to see which branch it speaks of.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, NotFound
from kubectl_reconcile.core.daemon.webhook_signature import HeardWords, Word, concerns
from kubectl_reconcile.core.objects import Manifest, ObjectRef, decoded_text
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.source import GitSpec
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.engine.daemon.push_server import HookAnswer, HookRequest
from kubectl_reconcile.engine.sync.credentials import secret_path
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.engine.telemetry.metrics import Metrics

LARGEST = 5 * 2**20
"""Bytes of a body, at most; a push of thousands of commits is less."""

_KEPT = 64 * 1024
"""Bytes of a body that are kept; a larger one counts as being about any branch."""

_REMEMBERED_S = 10.0
_MOST_SECRETS = 1024
_KEY = "token"
_STRANGER = HookAnswer(401, "no such webhook, or not signed with its secret")

log = logging.getLogger(__name__)


class PushReceiver(Struct):
    """Answers Git servers. *live* returns a Sync as it is, *wake* has one look at its repository."""

    client: Client
    metrics: Metrics
    live: Callable[[ObjectRef], Manifest | None]
    wake: Callable[[ObjectRef], Awaitable[None]]
    _secrets: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    _heard: HeardWords = field(default_factory=HeardWords)

    async def receive(self, request: HookRequest) -> HookAnswer:
        """Answer one push notification.

        Raises:
            asyncio.IncompleteReadError: it ended too early.
        """
        answer = await self._answer(request)
        self.metrics.sources.pushes.labels(str(answer.status)).inc()
        return answer

    async def _answer(self, request: HookRequest) -> HookAnswer:
        place = request.path.partition("?")[0].split("/")
        if len(place) != 4 or place[:2] != ["", "hooks"]:
            return HookAnswer(404, "hooks are at /hooks/NAMESPACE/NAME")
        if request.method != "POST":
            return HookAnswer(405, "webhooks are POST requests")
        if request.length > LARGEST:
            return HookAnswer(413, f"more than {LARGEST} bytes")
        ref = ObjectRef(SYNC.group, SYNC.kind, place[2], place[3])
        sync = self._followed(ref)
        git = sync.source.git if sync and sync.source else None
        secret = await self._secret(sync, git.webhook_secret) if sync and git and git.webhook_secret else ""
        word = Word(request.headers, secret)
        if git is None or not word.may_be_genuine:
            return _STRANGER
        kept = await _taken_in(request, word)
        return await self._heed(ref, git, word, kept) if word.is_genuine else _STRANGER

    async def _heed(self, ref: ObjectRef, git: GitSpec, word: Word, body: bytes) -> HookAnswer:
        """Act on a word that is genuine; only one that was acted on makes those after it replays."""
        hook = f"{ref.namespace}/{ref.name}"
        if self._heard.is_replay(hook, word):
            return HookAnswer(202, "heard before")
        if not concerns(body, git):
            return HookAnswer(202, "the push is to another branch or tag")
        try:
            await self.wake(ref)
        except ApiError as error:
            event(log, logging.WARNING, "push not passed on", sync=hook, error=error)
            return HookAnswer(503, "not passed on; the next poll finds it")
        self._heard.remember(hook, word)
        return HookAnswer(202, "looking")

    def _followed(self, ref: ObjectRef) -> Sync | None:
        manifest = self.live(ref)
        try:
            return Sync.of(manifest) if manifest else None
        except SyncSpecError:
            return None

    async def _secret(self, sync: Sync, name: str) -> str:
        """Return the secret as the Sync's account reads it.

        It is asked for again after a while at most: strangers mustn't make requests to the cluster.
        """
        at_s, known = self._secrets.get((sync.account, name), (0.0, ""))
        if at_s and time.monotonic() - at_s < _REMEMBERED_S:
            return known
        try:
            secret = await self.client.impersonate(sync.account).get(secret_path(sync.namespace, name))
            known = decoded_text((secret.get("data") or {}).get(_KEY) or "").strip()
        except NotFound:
            known = ""
        except (ApiError, ValueError) as error:
            event(log, logging.WARNING, "hook's Secret not read", secret=f"{sync.namespace}/{name}", error=error)
            known = ""
        if len(self._secrets) >= _MOST_SECRETS:
            self._secrets.clear()
        self._secrets[sync.account, name] = time.monotonic(), known
        return known


async def _taken_in(request: HookRequest, word: Word) -> bytes:
    """Have *word* take in the body; return it if it is small enough to be looked at, else nothing."""
    kept = bytearray()
    async for piece in request.pieces():
        word.take(piece)
        if request.length <= _KEPT:
            kept += piece
    return bytes(kept)
