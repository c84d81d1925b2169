"""What daemons say of their work, as it happens: the Kubernetes Events that they write, in one stream.

Vocabulary: a *saying* is one such event. It is about a Sync, or about a custom resource that a module manages;
the latter belongs to the Sync whose member it is, or whose member owns it.

The stream is a list, then a watch from there: nothing is missed in between, and an idle stream costs nothing. What
a watch that was too slow has missed is listed again; a saying comes once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import SHORT_WATCH_S
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError, Gone, Unreachable
from kubectl_reconcile.core.annotations import EVENT_CONTROLLER
from kubectl_reconcile.core.objects import (
    GroupKind,
    Manifest,
    ObjectRef,
    controller_of,
    labels_of,
    mapping_of,
    metadata_of,
)
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.engine.sync.session import Session

_EVENTS = "/apis/events.k8s.io/v1"
_PAUSE_S = 1.0
_MOST_OWNERS = 8


class StreamedEvent(Struct, frozen=True):
    """One event of a daemon; *time* is RFC 3339, *kind* is ``Normal`` or ``Warning``."""

    time: str
    kind: str
    reason: str
    note: str
    about: ObjectRef
    uid: str
    daemon: str

    @classmethod
    def of(cls, event: Manifest) -> StreamedEvent:
        """Read an event of the API group events.k8s.io."""
        regarding = mapping_of(event.get("regarding"))
        group = str(regarding.get("apiVersion") or "").rpartition("/")[0]
        place = (str(regarding.get("namespace") or ""), str(regarding.get("name") or ""))
        return cls(
            time=str(
                event.get("eventTime")
                or event.get("deprecatedLastTimestamp")
                or metadata_of(event).get("creationTimestamp")
                or ""
            ),
            kind=str(event.get("type") or ""),
            reason=str(event.get("reason") or ""),
            note=str(event.get("note") or ""),
            about=ObjectRef(group, str(regarding.get("kind") or ""), *place),
            uid=str(regarding.get("uid") or ""),
            daemon=str(event.get("reportingInstance") or ""),
        )


class Stream(Struct):
    """What daemons say in *namespace* (empty: everywhere), or only of the *sync* and what belongs to it."""

    session: Session
    namespace: str = ""
    sync: Manifest | None = None
    _belongs: dict[str, bool] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    async def past(self) -> tuple[list[StreamedEvent], str]:
        """Return what was said and isn't forgotten yet, the oldest first, and from where to go on.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        items, version = await self.session.client.list(self._path, fieldSelector=_OF_DAEMONS)
        found = [await self._saying(item) for item in items if self._is_new(item)]
        return sorted((each for each in found if each), key=lambda each: each.time), version

    async def following(self, version: str) -> AsyncIterator[StreamedEvent]:
        """Yield what is said after *version*, forever.

        Raises:
            ApiError: the server refuses.
        """
        while True:
            try:
                async for item in self._added(version):
                    version = item["metadata"]["resourceVersion"]
                    if self._is_new(item) and (said := await self._saying(item)):
                        yield said
            except (Gone, Unreachable):
                await asyncio.sleep(_PAUSE_S)
                missed, version = await self._caught_up(version)
                for said in missed:
                    yield said

    async def _added(self, version: str) -> AsyncIterator[Manifest]:
        """Yield each event that comes up after *version*, until the server ends the watch."""
        watch = self.session.client.watch(
            self._path, fieldSelector=_OF_DAEMONS, resourceVersion=version, timeoutSeconds=SHORT_WATCH_S
        )
        async for kind, item in watch:
            if kind in {"ADDED", "MODIFIED"}:
                yield item

    async def _caught_up(self, version: str) -> tuple[list[StreamedEvent], str]:
        try:
            return await self.past()
        except Unreachable:
            return [], version

    @property
    def _path(self) -> str:
        return f"{_EVENTS}/namespaces/{self.namespace}/events" if self.namespace else f"{_EVENTS}/events"

    def _is_new(self, event: Manifest) -> bool:
        uid = event["metadata"]["uid"]
        if uid in self._seen:
            return False
        self._seen.add(uid)
        return True

    async def _saying(self, event: Manifest) -> StreamedEvent | None:
        said = StreamedEvent.of(event)
        if self.sync is None:
            return said
        if said.uid not in self._belongs:
            self._belongs[said.uid] = await self._is_of(self.sync, said.about)
        return said if self._belongs[said.uid] else None

    async def _is_of(self, sync: Manifest, about: ObjectRef) -> bool:
        """Tell whether *about* is the Sync, a member of it, or owned by one. What has gone isn't known."""
        root = ObjectRef.of(sync)
        for _ in range(_MOST_OWNERS):
            if about == root:
                return True
            live = await self._live(about)
            if live is None:
                return False
            if labels_of(live).get(PART_OF) == applyset_id(root):
                return True
            owner = controller_of(live)
            if owner is None:
                return False
            about = ObjectRef(owner["apiVersion"].rpartition("/")[0], owner["kind"], about.namespace, owner["name"])
        return False

    async def _live(self, ref: ObjectRef) -> Manifest | None:
        resource: Resource | None = self.session.resource(GroupKind(ref.group, ref.kind))
        if resource is None:
            return None
        try:
            return await self.session.client.get(resource.path(ref.namespace, ref.name))
        except ApiError:
            return None


async def events_of(session: Session, live: Manifest) -> list[StreamedEvent]:
    """Return what anybody said of one object and isn't forgotten yet, the oldest first.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    metadata = metadata_of(live)
    path = f"{_EVENTS}/namespaces/{metadata.get('namespace') or 'default'}/events"
    items, _ = await session.client.list(path, fieldSelector=f"regarding.uid={metadata.get('uid')}")
    return sorted(map(StreamedEvent.of, items), key=lambda each: each.time)


_OF_DAEMONS = f"reportingController={EVENT_CONTROLLER}"
