"""Kubernetes Events about what the daemon did, for ``kubectl describe`` and ``kubectl events``.

The same sentence about the same object is one event: while it comes again within ten minutes it is counted, and the event
tells the count, at most once a minute. An event that can't be written, or not soon, is lost until the same is said again: events inform,
nothing depends on them.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import time
import uuid
from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.annotations import EVENT_CONTROLLER
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.engine.api.identity import identity

_QUIET_S = 600.0
_SERIES_S = 60.0
_NOTE = 1024
_WAITS_S = 5.0
"""How long a pass waits for an event at most: along a connection that has died silently, an answer never comes."""
_REMEMBERED = 4096


_Sentence: TypeAlias = tuple[str, str, str]


class _Said(Struct):
    """An event at *path*: how often it came, and when that was heard and told last."""

    path: str
    heard_s: float
    told_s: float
    count: int = 1


class Events(Struct):
    """Writes events through one client."""

    client: Client
    _said: dict[_Sentence, _Said] = field(default_factory=dict)

    async def normal(self, about: Manifest, reason: str, note: str, *, action: str) -> None:
        """Say that something went as it should."""
        await self._say(about, "Normal", reason, note, action)

    async def warning(self, about: Manifest, reason: str, note: str, *, action: str) -> None:
        """Say that something needs somebody's attention."""
        await self._say(about, "Warning", reason, note, action)

    async def _say(self, about: Manifest, type_: str, reason: str, note: str, action: str) -> None:
        key, now_s = (about["metadata"].get("uid", ""), reason, note), time.monotonic()
        said = self._said.get(key)
        try:
            async with asyncio.timeout(_WAITS_S):
                if said is not None and now_s - said.heard_s < _QUIET_S:
                    await self._again(said, now_s)
                else:
                    await self._first(key, _event(about, type_, reason, note, action), now_s)
        except (ApiError, TimeoutError):
            self._said.pop(key, None)

    async def _first(self, key: _Sentence, event: dict[str, Any], now_s: float) -> None:
        if len(self._said) >= _REMEMBERED:
            self._said = _lately(self._said, now_s)
        collection = f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events"
        self._said[key] = _Said(f"{collection}/{event['metadata']['name']}", heard_s=now_s, told_s=now_s)
        await self.client.create(collection, event)

    async def _again(self, said: _Said, now_s: float) -> None:
        said.count, said.heard_s = said.count + 1, now_s
        if now_s - said.told_s < _SERIES_S:
            return
        said.told_s = now_s
        series = {"count": said.count, "lastObservedTime": _now()}
        await self.client.patch(said.path, {"series": series}, manager=EVENT_CONTROLLER)


def _lately(said: Mapping[_Sentence, _Said], now_s: float) -> dict[_Sentence, _Said]:
    """Return what was heard last, half of what is remembered at most: so not every new event of many makes room again."""
    lately = [(key, each) for key, each in said.items() if now_s - each.heard_s < _QUIET_S]
    return dict(sorted(lately, key=lambda pair: pair[1].heard_s)[-_REMEMBERED // 2 :])


def _event(about: Manifest, type_: str, reason: str, note: str, action: str) -> dict[str, Any]:
    metadata = about["metadata"]
    regarding = {"apiVersion": about["apiVersion"], "kind": about["kind"], "name": metadata["name"]}
    regarding |= {key: metadata[key] for key in ("namespace", "uid", "resourceVersion") if key in metadata}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}",
            "namespace": metadata.get("namespace") or "default",
        },
        "eventTime": _now(),
        "type": type_,
        "reason": reason,
        "action": action,
        "note": note if len(note) <= _NOTE else f"{note[: _NOTE - 1]}…",
        "regarding": regarding,
        "reportingController": EVENT_CONTROLLER,
        "reportingInstance": identity(),
    }


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
