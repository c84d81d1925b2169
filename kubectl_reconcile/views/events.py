"""What was said of a Sync, an object or a pod: events, and the end of what a container has printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.engine.api import pod_logs
from kubectl_reconcile.engine.commands.event_stream import Stream, StreamedEvent, events_of
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.views.document import Document, ObjectName, Time, about

_MOST = 100


class EventDocument(Document, frozen=True, kw_only=True):
    """An event."""

    time: Time
    type: Annotated[str, about("Normal or Warning.")]
    reason: str
    object: ObjectName
    message: str
    daemon: Annotated[str, about("Who said it.")]


class EventsDocument(Document, frozen=True, kw_only=True):
    """Events, the newest first."""

    events: Annotated[list[EventDocument], about("The newest first, a hundred at most.")]


class LogsDocument(Document, frozen=True, kw_only=True):
    """The end of what a container of a pod has printed."""

    containers: Annotated[Sequence[str], about("Of the pod.")]
    container: Annotated[str, about("The container of these lines.")]
    lines: Annotated[Sequence[str], about("The last 500.")]


def document(said: StreamedEvent) -> EventDocument:
    """Return an event."""
    return EventDocument(
        time=said.time,
        type=said.kind,
        reason=said.reason,
        object=ObjectName.of(said.about),
        message=said.note,
        daemon=said.daemon,
    )


def _newest(events: Sequence[StreamedEvent]) -> EventsDocument:
    return EventsDocument(events=[document(each) for each in reversed(events[-_MOST:])])


async def of_sync(session: Session, live: Manifest) -> EventsDocument:
    """Return what daemons said of a Sync and what belongs to it.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    past, _ = await Stream(session, live["metadata"]["namespace"], live).past()
    return _newest(past)


async def of_object(session: Session, live: Manifest) -> EventsDocument:
    """Return what anybody said of an object.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    return _newest(await events_of(session, live))


async def logs(session: Session, live: Manifest, container: str, *, previous: bool) -> LogsDocument:
    """Return the end of what a container of a pod has printed; of its first one where none is named.

    Raises:
        ValueError: the pod has no such container.
        ApiError: the server refuses, or doesn't answer.
    """
    found = await pod_logs.logs_of(session.client, live, container, previous=previous)
    return LogsDocument(containers=found.containers, container=found.container, lines=found.lines)
