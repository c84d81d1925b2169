"""What charts look up in the cluster, read as whoever the session is: the Sync's account for a daemon, the user for the command line.

A user who previews what a Sync follows is answered only what its account may look up, too: else whoever proposes a change could have a pipeline read for them.

A chart is rendered, what it asked for is read, and it is rendered again, as long as it asks for more: what it asks for may depend on what
it was told. What may not be read is a problem that names the right that is lacking. Nothing of it is kept on disk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeVar

from msgspec import Struct

from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import Forbidden, NotFound, ServerError
from kubectl_reconcile.core.objects import Manifest, map_at
from kubectl_reconcile.core.planning.rights.grant import Account
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
    reported_as,
)
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.access_reviews import may_other
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.session import Session

T = TypeVar("T")


class Behalf(Struct, frozen=True):
    """On whose behalf somebody previews who isn't the account of *sync*: no more is answered than the account may look up as well.

    Its rights are asked of the server. Who may not ask that believes what the daemon *reported* that it looked up.
    """

    sync: Sync
    reported: tuple[str, ...] = ()

    @classmethod
    def of(cls, session: Session, sync: Sync, parent: Manifest | None) -> Behalf | None:
        """Return on whose behalf a session looks at what a live Sync follows; None where it is the account itself, or applies by hand."""
        if parent is None or sync.source is None or session.client.user == sync.account:
            return None
        return cls(sync, tuple(map(str, map_at(parent, "status").get("warnings") or ())))

    async def refusal(self, session: Session, asked: str) -> str:
        """Return why something isn't looked up, empty where it may be.

        Raises:
            ApiError: the server doesn't answer.
        """
        account = Account.of(self.sync)
        who = {"user": account.user, "groups": list(account.groups)}
        for place, right in rights_to_read(session, [asked]):
            allowed = await _may(session, who, place, right)
            if allowed is False:
                return f"not looked up: the Sync's account may not {right}{f' in namespace {place}' if place else ''}"
            if allowed is None and not any(reported_as(asked) in each for each in self.reported):
                return (
                    "not looked up: you may not ask whether the Sync's account may, and its daemon hasn't looked it up"
                )
        return ""


async def _may(session: Session, who: Manifest, place: str, right: Right) -> bool | None:
    """Tell whether somebody has a right; None where that may not be asked."""
    for local in (True, False) if place else (False,):
        with suppress(Forbidden):
            return await may_other(session.client, who, place, right, local=local)
    return None


async def answered(
    session: Session,
    readers: Sequence[ManifestReader],
    read: Callable[[], Awaitable[T]],
    behalf: Behalf | None = None,
) -> T:
    """Return what *read* returns once all that the charts of *readers* look up is answered, which it renders with.

    Raises:
        ApiError: the server doesn't answer; and whatever *read* raises.
    """
    for reader in readers:
        reader.conceals = behalf is not None
    found = await read()
    for round_ in range(MOST_ROUNDS + 1):
        lacking = [(each, lack) for each in readers if (lack := each.lack())]
        if not lacking:
            break
        for reader, lack in lacking:
            more = await answers_of(session, lack, behalf) if round_ < MOST_ROUNDS else Answers(beyond=_TOO_DEEP)
            reader.answers = reader.answers.and_also(more)
        found = await read()
    return found


_TOO_DEEP = f"it looks up something different each of {MOST_ROUNDS} times, depending on earlier answers"


async def read_again(session: Session, reader: ManifestReader, behalf: Behalf | None = None) -> None:
    """Have *reader* know what was looked up last as it is now.

    Raises:
        ApiError: the server doesn't answer.
    """
    reader.answers = await answers_of(session, reader.asked(), behalf)


async def answers_of(session: Session, asked: Iterable[str], behalf: Behalf | None = None) -> Answers:
    """Return the answers to what was *asked*, one after the other; beyond a bound no more are read.

    Raises:
        ApiError: the server doesn't answer.
    """
    answers = NO_ANSWERS
    for each in islice(asked, MOST_LOOKUPS + 1):
        answers = answers.and_also(await _answer(session, each, behalf))
        if answers.beyond:
            break
    return answers


async def _answer(session: Session, asked: str, behalf: Behalf | None) -> Answers:
    lookup = Lookup.of(asked)
    if lookup is None:
        return Answers(absent={asked: "no object can have this name"})
    resource = session.discovery.find(lookup.api_version, lookup.kind)
    if resource is None:
        return Answers(absent={asked: _unserved(session, lookup)})
    if behalf is not None and (why := await behalf.refusal(session, asked)):
        return Answers(refused={asked: why})
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
