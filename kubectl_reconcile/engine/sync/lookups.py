"""What charts look up in the cluster, read as whoever the session is: the Sync's account for a daemon, the user for the command line.

A chart is rendered, what it asked for is read, and it is rendered again, as long as it asks for more: what it asks for may depend on what
it was told. What may not be read is a problem that names the right that is lacking. Nothing of it is kept on disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import Forbidden, NotFound, ServerError
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.rendering.lookups import (
    MOST_BYTES,
    MOST_LOOKUPS,
    MOST_ROUNDS,
    NO_ANSWERS,
    Answers,
    Lookup,
    answer,
    answer_of_all,
)
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.session import Session

T = TypeVar("T")


async def answered(session: Session, readers: Sequence[ManifestReader], read: Callable[[], Awaitable[T]]) -> T:
    """Return what *read* returns once all that the charts of *readers* look up is answered, which it renders with.

    Raises:
        ApiError: the server doesn't answer; and whatever *read* raises.
    """
    found = await read()
    for round_ in range(MOST_ROUNDS + 1):
        lacking = [(each, lack) for each in readers if (lack := each.lack())]
        if not lacking:
            break
        for reader, lack in lacking:
            more = await answers_of(session, lack) if round_ < MOST_ROUNDS else Answers(beyond=_TOO_DEEP)
            reader.answers = reader.answers.and_also(more)
        found = await read()
    return found


_TOO_DEEP = f"it looks up something different each of {MOST_ROUNDS} times, depending on earlier answers"


async def read_again(session: Session, reader: ManifestReader) -> None:
    """Have *reader* know what was looked up last as it is now.

    Raises:
        ApiError: the server doesn't answer.
    """
    reader.answers = await answers_of(session, reader.asked())


async def answers_of(session: Session, asked: Iterable[str]) -> Answers:
    """Return the answers to what was *asked*, one after the other; beyond a bound no more are read.

    Raises:
        ApiError: the server doesn't answer.
    """
    answers = NO_ANSWERS
    for each in islice(asked, MOST_LOOKUPS + 1):
        answers = answers.and_also(await _answer(session, each))
        if answers.beyond:
            break
    return answers


async def _answer(session: Session, asked: str) -> Answers:
    lookup = Lookup.of(asked)
    if lookup is None:
        return Answers(absent={asked: "no object can have this name"})
    resource = session.discovery.find(lookup.api_version, lookup.kind)
    if resource is None:
        return Answers(absent={asked: _unserved(session, lookup)})
    try:
        found = await (_object if lookup.name else _all)(session, resource, lookup)
    except NotFound:
        return Answers({asked: ""})
    except Forbidden as error:
        return Answers(refused={asked: str(error)})
    return Answers({asked: found})


def _unserved(session: Session, lookup: Lookup) -> str:
    """Return that the cluster has no such kind.

    Raises:
        ServerError: that can't be known: the server behind it doesn't answer.
    """
    if why := session.discovery.unavailable.get(lookup.api_version):
        raise ServerError(f"a chart looks up {lookup.kind} of {lookup.api_version}, which can't be read now: {why}")
    return f"the cluster serves no {lookup.kind} {lookup.api_version}"


async def _object(session: Session, resource: Resource, lookup: Lookup) -> str:
    if resource.namespaced and not lookup.namespace:
        return ""  # as the server answers to it
    return answer(await session.client.get(resource.path(lookup.namespace, lookup.name)))


async def _all(session: Session, resource: Resource, lookup: Lookup) -> str:
    """Return the list of a kind; of one that is far too long no more than shows that it is."""
    items: list[Manifest] = []
    size = 0
    async for page, _ in session.client.pages(resource.collection(lookup.namespace)):
        items += page
        size += sum(len(answer(each)) for each in page)
        if size > MOST_BYTES:
            break
    return answer_of_all(lookup, items)


def rights_to_read(session: Session, asked: Iterable[str]) -> frozenset[tuple[str, Right]]:
    """Return the rights to read what was *asked*, each with its namespace, which is empty for those that are needed everywhere."""
    found = set()
    for lookup in filter(None, map(Lookup.of, asked)):
        resource = session.discovery.find(lookup.api_version, lookup.kind)
        if resource is not None and (lookup.namespace or not lookup.name or not resource.namespaced):
            verb = "get" if lookup.name else "list"
            place = lookup.namespace if resource.namespaced else ""
            found.add((place, Right(resource.gvk.group, resource.plural, verb, lookup.name)))
    return frozenset(found)
