"""What the planner must know of the cluster, gathered in as few requests as possible.

Members and children are found by label, one list (or watch) per kind. Absent from such a list
isn't absent from the cluster: before a create is planned, the object is looked up by name, so
that what somebody made by hand, or whose label somebody removed, is taken over rather than
collided with.
"""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Feed
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound, ServerError
from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import (
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    Problem,
    Severity,
)
from kubectl_reconcile.core.planning.endings.cascade import FLEETING, WHOLE, Listed, Listing
from kubectl_reconcile.core.planning.inputs import Coverage, Unseen
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import ID as SET_ID
from kubectl_reconcile.core.resources.applyset import MOST_PLACES, PART_OF, Contents, applyset_id, places_beyond
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.engine.apply.flow_control import patiently
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.view import BeyondCeiling

_FEW = 8
"""Up to so many objects of one kind and namespace are asked for by name; beyond, the collection is listed."""
_ROWS = 8
"""So many rows of a list of names cost about as much as one question for an object."""


def member_feeds(session: Session, kinds: Iterable[GroupVersionKind], selector: str) -> list[Feed]:
    """Return what to list to find members of *kinds*, one version a kind."""
    chosen: dict[GroupKind, Feed] = {}
    for gvk in sorted(kinds):
        if resource := session.discovery.find(gvk.api_version, gvk.kind):
            chosen.setdefault(gvk.group_kind, Feed(resource, label_selector=selector))
    return list(chosen.values())


def child_feeds(session: Session, modules: Iterable[Module]) -> list[Feed]:
    """Return what to list to find the children of *modules*, and what those read; each as its module's account."""
    wanted = [
        (gvk, selector, session.account_of(module))
        for module in modules
        for gvk, selector in chain(
            ((gvk, f"{MODULE_LABEL}={module.name}") for gvk in module.owns),
            (
                (reads.gvk, reads.selector)
                for reads in module.reads
                if not reads.on_request and not reads.whole_namespace
            ),
        )
    ]
    found = ((session.discovery.find(gvk.api_version, gvk.kind), selector, user) for gvk, selector, user in wanted)
    return [Feed(resource, label_selector=selector, user=user) for resource, selector, user in found if resource]


def reading_feeds(session: Session, modules: Iterable[Module], namespace: str) -> list[Feed]:
    """Return what to list to find what *modules* read of all that is in *namespace*, as their accounts; nothing for CRs that are in none."""
    if not namespace:
        return []
    wanted = ((each.gvk, module) for module in modules for each in module.reads if each.whole_namespace)
    found = ((session.discovery.find(gvk.api_version, gvk.kind), module) for gvk, module in wanted)
    return [
        Feed(resource, namespace=namespace, user=session.account_of(module)) for resource, module in found if resource
    ]


def unread(failures: Mapping[Feed, ApiError]) -> dict[tuple[str, GroupKind], str]:
    """Return what of whole namespaces could not be listed, and why."""
    return {
        (feed.namespace, feed.resource.gvk.group_kind): str(error)
        for feed, error in failures.items()
        if _is_of_whole_namespace(feed)
    }


def _is_of_whole_namespace(feed: Feed) -> bool:
    return bool(feed.namespace) and not feed.label_selector


def beyond(parent: Manifest | None, failures: Mapping[Feed, ApiError]) -> list[Problem]:
    """Return the ceilings beyond which members of a Sync aren't looked for, a warning each."""
    told = dict.fromkeys(str(each) for each in failures.values() if isinstance(each, BeyondCeiling))
    if parent is not None and (number := places_beyond(parent)):
        told[
            f"its annotations name {number} namespaces more than the {MOST_PLACES} in which members are looked for"
        ] = None
    return [Problem("", 0, each, severity=Severity.WARNING) for each in told]


def modules_below(modules: Mapping[GroupVersionKind, Module], kinds: Iterable[GroupVersionKind]) -> list[Module]:
    """Return the modules that own *kinds*, and those that own what these make, and so on."""
    found: dict[str, Module] = {}
    queue = list(kinds)
    while queue:
        module = modules.get(queue.pop())
        if module is not None and module.name not in found:
            found[module.name] = module
            queue.extend(module.owns)
    return list(found.values())


def member_kinds(session: Session, recorded: Contents, desired: Iterable[GroupVersionKind]) -> set[GroupVersionKind]:
    """Return the kinds that members may have: those Git asks for now, and those recorded before.

    What is there of a kind is there at any version that is served, also while that which Git asks for isn't yet.
    """
    asked = set(desired)
    covered = {gvk.group_kind for gvk in asked if session.discovery.find(gvk.api_version, gvk.kind)}
    others = recorded.kinds | {gvk.group_kind for gvk in asked}
    earlier = (session.resource(kind) for kind in others - covered)
    return asked | {resource.gvk for resource in earlier if resource}


async def sets_behind(client: Client, set_ids: Iterable[str]) -> dict[str, ObjectRef]:
    """Return the Syncs that sets belong to, by the ids of the sets, as far as they can be seen."""
    ids = sorted(set(set_ids))
    try:
        syncs, _ = await client.list(f"/apis/{SYNC.api_version}/syncs", labelSelector=f"{SET_ID} in ({','.join(ids)})")
    except (Forbidden, NotFound):
        return {}
    found = {applyset_id(ref): ref for ref in map(ObjectRef.of, syncs)}  # the label may be a lie
    return {set_id: found[set_id] for set_id in ids if set_id in found}


async def givers_gone(session: Session, asked: Collection[ObjectRef]) -> frozenset[ObjectRef]:
    """Return which of these Syncs are gone; one that may not be looked at isn't.

    Whether there is one behind the id of a set is asked as whoever follows all Syncs, where somebody does.
    """
    named, unnamed = sorted(each for each in asked if each.namespace), {each for each in asked if not each.namespace}
    found = await asyncio.gather(*(_is_gone(session.client, ref) for ref in named))
    return frozenset(ref for ref, gone in zip(named, found, strict=True) if gone) | await _sets_gone(session, unnamed)


async def _sets_gone(session: Session, asked: Collection[ObjectRef]) -> frozenset[ObjectRef]:
    """Return those of the Syncs of which only their sets' ids are known that are gone; none where not all Syncs may be seen."""
    if not asked:
        return frozenset()
    try:
        syncs, _ = await session.discovery.client.metadata(f"/apis/{SYNC.api_version}/syncs")
    except (Forbidden, NotFound):
        return frozenset()
    names = (each["metadata"] for each in syncs)
    there = {applyset_id(ObjectRef(SYNC.group, SYNC.kind, each["namespace"], each["name"])) for each in names}
    return frozenset(each for each in asked if each.name not in there)


async def _is_gone(client: Client, sync: ObjectRef) -> bool:
    try:
        await client.get(f"/apis/{SYNC.api_version}/namespaces/{sync.namespace}/syncs/{sync.name}")
    except NotFound:
        return True
    except Forbidden:
        return False
    return False


class Found(Struct, frozen=True):
    """What a look by name found, and why it could not look at some."""

    objects: Objects
    unreadable: Mapping[ObjectRef, str]


async def look_up(session: Session, wanted: Iterable[tuple[ObjectRef, Kind]], *, unseen: bool = False) -> Found:
    """Return those of *wanted* that exist, by name.

    They are looked for at the version that Git asks for, or at one that is served. *unseen*, only those are looked for that are many of a kind and
    namespace, and only where that takes one short list: a collection that was too long for that lately isn't listed again. A kind that can't be
    read, since whoever serves or converts it is down, is nobody else's trouble.

    Raises:
        ApiError: the server doesn't answer.
    """
    groups: dict[tuple[GroupVersionKind, str], list[tuple[ObjectRef, Kind]]] = defaultdict(list)
    for ref, coming in wanted:
        kind = _as_served(session, coming)
        groups[kind.gvk, ref.namespace].append((ref, kind))
    unreadable: dict[ObjectRef, str] = {}
    found = await asyncio.gather(
        *(_look_up_group(session, group, unreadable, unseen=unseen) for group in groups.values())
    )
    return Found(Objects(chain.from_iterable(found)), unreadable)


def _as_served(session: Session, kind: Kind) -> Kind:
    """Return a kind at a version that is served now, where there is one: of objects whose version comes only by the plan, some may be there at another."""
    served = session.resource(kind.gvk.group_kind)
    if served is None or session.discovery.find(kind.gvk.api_version, kind.gvk.kind):
        return kind
    return replace(kind, gvk=served.gvk, plural=served.plural, namespaced=served.namespaced)


async def _look_up_group(
    session: Session, group: Sequence[tuple[ObjectRef, Kind]], unreadable: dict[ObjectRef, str], *, unseen: bool
) -> list[Manifest]:
    """Ask for objects of one kind and namespace: one by one, or where they are many by a list."""
    is_few = len(group) <= _FEW
    try:
        there = None if is_few else await _listed(session, group, unreadable)
    except Forbidden:  # who may get but not list still gets an answer
        return await _by_name(session.client, group, unreadable)
    except ServerError as error:
        unreadable.update((ref, str(error)) for ref, _ in group)
        return []
    if there is not None:
        return there
    return [] if unseen else await _by_name(session.client, group, unreadable)


async def _listed(
    session: Session, group: Sequence[tuple[ObjectRef, Kind]], unreadable: dict[ObjectRef, str]
) -> list[Manifest] | None:
    """Return those that exist; None where so much else is in the collection that a list is dearer than a question for each.

    Names are listed first: what others have there may be large.
    """
    (first, kind), names = group[0], {ref.name for ref, _ in group}
    client, collection, most = session.client, kind.path(first.namespace), _ROWS * len(group)
    if session.long_collections.exceeds(collection, most):
        return None
    try:
        rows, is_all = await client.metadata(collection, limit=most)
        there = names & {row["metadata"]["name"] for row in rows}
        if not is_all:
            session.long_collections.note(collection, more_than=most)
            return None
        if 2 * len(there) < len(rows) or not there:
            return await _by_name(client, [each for each in group if each[0].name in there], unreadable)
        return [item for item in (await client.list(collection))[0] if item["metadata"]["name"] in there]
    except NotFound:
        return []


async def _by_name(
    client: Client, group: Iterable[tuple[ObjectRef, Kind]], unreadable: dict[ObjectRef, str]
) -> list[Manifest]:
    slots = asyncio.Semaphore(24)
    found = await asyncio.gather(*(_get(client, ref, kind, slots, unreadable) for ref, kind in group))
    return [live for live in found if live]


async def _get(
    client: Client, ref: ObjectRef, kind: Kind, slots: asyncio.Semaphore, unreadable: dict[ObjectRef, str]
) -> Manifest | None:
    async with slots:
        try:
            return await client.get(kind.path(ref.namespace, ref.name))
        except NotFound:
            return None
        except (Forbidden, ServerError) as error:
            unreadable[ref] = str(error)
            return None


def coverage_of(
    failures: Mapping[Feed, ApiError], places: Collection[str], recorded: Contents, unavailable: Mapping[str, str]
) -> Coverage:
    """Return how much of a set is seen: of a kind that could not be listed nothing may be pruned, and in a namespace where it couldn't be nothing is."""
    lost = {feed: why for feed, why in failures.items() if not _is_of_whole_namespace(feed)}
    return Coverage(
        frozenset(feed.resource.gvk.group_kind for feed in lost if not feed.namespace),
        places,
        unread(failures),
        {(feed.resource.gvk.group_kind, feed.namespace): _unseen(why) for feed, why in lost.items()},
        recorded,
        unavailable,
    )


def _unseen(error: ApiError) -> Unseen:
    denial = error.denial if isinstance(error, Forbidden) else None
    return Unseen(str(error), isinstance(error, Forbidden), denial is not None and denial.is_of_account)


# --- what deletions take along -------------------------------------------------------------------

_LISTS_AT_ONCE = 16
_NOT_ALLOWED = 405


def _is_unlistable(error: ApiError) -> bool:
    """Tell whether what can't be listed is forbidden, not meant to be listed, or served (or converted) by somebody who is down."""
    return isinstance(error, Forbidden | ServerError) or error.status == _NOT_ALLOWED


def lister(session: Session) -> Callable[[Iterable[Listing]], Awaitable[dict[Listing, Listed]]]:
    """Return what answers listings as whoever *session* acts as."""
    return functools.partial(list_along, session)


async def list_along(session: Session, wanted: Iterable[Listing]) -> dict[Listing, Listed]:
    """Return what *wanted* asks for, as whoever *session* acts as may see it.

    Raises:
        ApiError: the server doesn't answer.
    """
    slots, listings = asyncio.Semaphore(_LISTS_AT_ONCE), sorted(wanted, key=repr)
    found = await asyncio.gather(*(_listed_along(session, listing, slots) for listing in listings))
    return dict(zip(listings, found, strict=True))


async def _listed_along(session: Session, listing: Listing, slots: asyncio.Semaphore) -> Listed:
    if listing.name:
        return await _named(session, listing)
    lists = await asyncio.gather(
        *(_metadata(session.client, resource, listing, slots) for resource in _resources(session, listing))
    )
    unseen = [resource.gvk.group_kind for resource, items in lists if items is None]
    if listing.kind is None:  # the kinds of a server that is down aren't known, and may be anything
        unseen += [GroupKind(each.rpartition("/")[0], "any kind") for each in session.discovery.unavailable]
    return Listed(tuple(each for _, items in lists for each in items or ()), tuple(sorted(unseen)))


async def _named(session: Session, listing: Listing) -> Listed:
    """Return one object by its name, where it is there; what is in no namespace isn't looked for in one, nor the other way round."""
    kind = listing.kind
    resource = session.resource(kind) if kind is not None else None
    if kind is None or resource is None or (resource.namespaced and not listing.namespace):
        return Listed()
    try:
        return Listed(
            (await session.client.get(f"{resource.collection(listing.namespace)}/{quote(listing.name, safe=':')}"),)
        )
    except NotFound:
        return Listed()
    except ApiError as error:
        if not _is_unlistable(error):
            raise
        return Listed(unseen=(kind,))


def _resources(session: Session, listing: Listing) -> list[Resource]:
    """Return the collections that make up a listing; a kind that isn't served has no objects."""
    if listing.kind is not None:
        found = session.resource(listing.kind)
        return [found] if found else []
    return [
        each
        for each in session.discovery.resources
        if each.preferred
        and "list" in each.verbs
        and each.gvk.group_kind not in FLEETING
        and (each.namespaced or not listing.namespace)
    ]


async def _metadata(
    client: Client, resource: Resource, listing: Listing, slots: asyncio.Semaphore
) -> tuple[Resource, Sequence[Manifest] | None]:
    """Return the objects of one collection, None where they can't be listed. A server that has no time, or reads a new kind's storage still, is asked again."""
    kind, path = resource.gvk.group_kind, resource.collection(listing.namespace)
    selector = {"labelSelector": f"{PART_OF}={listing.set_id}"} if listing.set_id else {}

    async def found() -> Sequence[Manifest] | None:
        try:
            return (await (client.list if kind in WHOLE else client.metadata)(path, **selector))[0]
        except NotFound:
            return []
        except ApiError as error:
            if not _is_unlistable(error):
                raise
            return None

    async with slots:
        items = await patiently(found)
    if items is None or kind in WHOLE:
        return resource, items
    named = {"apiVersion": resource.gvk.api_version, "kind": kind.kind}
    return resource, [{**each, **named} for each in items]
