"""Writes that can't undo a successor's, however late their bytes arrive.

A fence (``FENCE``) keeps this replica from sending what another may work on by now. It can't take back bytes that are under
way: a proxy may hold them until the successor has written. So a write that is made behind a fence says what it judged: the very
version of the object, or that there is none. What the server finds changed it refuses.

Then the object is read and the write made again, with the version that was read. That is safe: the answer came while the fence
was open, or the write isn't sent, and while it is open no successor writes. Who did was a person or a controller, whom this
write would have met a moment later just the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.connection import FENCE
from kubectl_reconcile.cluster.errors import Conflict, NotFound
from kubectl_reconcile.core.objects import Manifest

NEVER = "1"
"""The version of no object: applying an object at it creates, and changes nothing that is there."""

_RACES = 6


class Guard(Struct):
    """What one write judged: *live* as it was seen, None where nothing was. *same* is meant for no other object of that name."""

    client: Client
    path: str
    live: Manifest | None
    same: bool = False

    async def apply(self, body: Manifest, **options: Any) -> Manifest:
        """Apply *body* to what was judged; where that has changed, look at it again before refusing.

        Raises:
            Conflict: it has changed; trying again applies to what it has become. Or others own fields, which causes name.
            ApiError: the server refuses, or doesn't answer.
        """
        if FENCE.get() is None:
            return await self.client.apply(self.path, body, **options)
        try:
            return await self.client.apply(self.path, judged_as(self.live, body), **options)
        except Conflict as error:
            if not error.causes:
                await self._look()
            raise

    async def _look(self) -> None:
        try:
            live = await self.client.get(self.path.removesuffix("/status"))
        except NotFound:
            live = None
        if not self.same or (live and self.live and live["metadata"]["uid"] == self.live["metadata"]["uid"]):
            self.live = live


def judged_as(live: Manifest | None, body: Manifest) -> Manifest:
    """Return *body* for applying to *live* as it was seen and to nothing else: never to what was recreated, nor to create it again."""
    seen = {"resourceVersion": NEVER} if live is None else version_of(live)
    return {**body, "metadata": {**body["metadata"], **seen}}


def version_of(live: Manifest) -> dict[str, str]:
    """Return what tells an object as it was seen from all that it was and will be."""
    return {key: live["metadata"][key] for key in ("uid", "resourceVersion") if live["metadata"].get(key)}


async def patched(client: Client, path: str, live: Manifest, make: Callable[[Manifest], Manifest | None]) -> Manifest:
    """Merge-patch *live* by what *make* wants of it, None for nothing; return it as it is then.

    Behind a fence only the version that *make* saw is patched; if that has changed, *make* sees it again.

    Raises:
        Conflict: it keeps changing, or was recreated.
        ApiError: the server refuses, or doesn't answer.
    """
    uid = live["metadata"].get("uid")
    for _ in range(_RACES):
        patch = make(live)
        if patch is None:
            return live
        seen = version_of(live) if FENCE.get() is not None else {}
        try:
            return await client.patch(path, {**patch, "metadata": {**patch.get("metadata", {}), **seen}})
        except Conflict:
            live = await client.get(path)
            if live["metadata"].get("uid") != uid:
                raise
    raise Conflict(f"{path} keeps changing; it is tried again", status=409)
