"""What belongs to a Sync, or to one object: members, and all that they own, down to the pods.

Vocabulary: a *relative* is a live object with those that it owns, by the uid in their owner references: a Deployment
has ReplicaSets, those have pods, a custom resource has what its module made.

Any kind may own any other, so all that the server serves in the namespaces concerned is looked through, by metadata
alone; whole objects are fetched of those that belong. A mark alone makes nobody a member: what the Sync's status calls unasked is no
relative, and is named instead. What may not be listed, or can't be since whoever serves or converts it is down, is
passed over, and named.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound, ServerError
from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.health import Health
from kubectl_reconcile.core.health.silence import expected_of
from kubectl_reconcile.core.health.summary import member_health
from kubectl_reconcile.core.module.inputs import INSTANCE_LABEL
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef, labels_of, map_at
from kubectl_reconcile.core.planning.kinds import CLAIM
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents, applyset_id, is_marked_by_us, may_be_member
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.sync.session import Session

_AT_ONCE = 16
_FEW = 8
"""Up to so many objects of one kind and namespace are asked for by name; beyond, the collection is listed."""
_NEVER_OWNED = frozenset({GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")})
_ORDER = ("Namespace", "CustomResourceDefinition")


_Sets: TypeAlias = Mapping[str, Sequence[Manifest]]
"""Members by the uid of their Sync."""

_Judge: TypeAlias = Callable[[Manifest], Health]


class OwnedObject(Struct, frozen=True):
    """A live object, how it is, and what it owns, in order of kind and name."""

    manifest: Manifest
    health: Health
    children: tuple[OwnedObject, ...] = ()

    @property
    def ref(self) -> ObjectRef:
        """Which object it is."""
        return ObjectRef.of(self.manifest)


class OwnerTree(Struct):
    """A root with all that belongs to it. *unseen* are the kinds that could not be listed, *unasked* is what only says that it belongs to it."""

    root: OwnedObject
    unseen: tuple[GroupKind, ...] = ()
    unasked: tuple[ObjectRef, ...] = ()


async def of_sync(session: Session, sync: Manifest) -> OwnerTree:
    """Return a Sync with its members and what these own.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    look = _Lookup(session, _rules_of(session, sync))
    contents = Contents.recorded(sync)
    members = await look.members(sync)
    sets, namespaces = await look.child_sets(members, sync)
    return await look.family(sync, members, contents.namespaces | namespaces, sets)


async def members_of(session: Session, sync: Manifest) -> tuple[list[Manifest], tuple[GroupKind, ...]]:
    """Return the live members of a Sync, wherever they are, and the kinds that could not be listed.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    look = _Lookup(session, HealthRules())
    members = await look.members(sync)
    return members, tuple(sorted(look.unseen))


async def of_object(session: Session, manifest: Manifest) -> OwnerTree:
    """Return one object with what it owns.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    namespace = ObjectRef.of(manifest).namespace
    look = _Lookup(session, HealthRules(kinds=session.modules.health))
    return await look.family(manifest, None, frozenset({namespace} if namespace else ()))


def health_of(session: Session, manifest: Manifest, sync: Manifest | None) -> Health:
    """Return how one object is by itself, by the rules of its *sync*, if it has one."""
    rules = _rules_of(session, sync) if sync is not None else HealthRules(kinds=session.modules.health)
    return _Lookup(session, rules).judge([manifest])(manifest)


def _rules_of(session: Session, sync: Manifest) -> HealthRules:
    """Return how the members of a Sync are judged; what can't be meant as it is written adds nothing."""
    try:
        return session.health_of(Sync.of(sync))
    except SyncSpecError:
        return HealthRules(kinds=session.modules.health)


class _Lookup(Struct):
    """One look at the cluster, whose objects are judged by *rules*."""

    session: Session
    rules: HealthRules
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    unseen: set[GroupKind] = field(default_factory=set)
    unasked: set[ObjectRef] = field(default_factory=set)

    async def members(self, sync: Manifest) -> list[Manifest]:
        """Return the live members of a Sync, whole."""
        contents, set_id = Contents.recorded(sync), applyset_id(ObjectRef.of(sync))
        told = frozenset(map(str, map_at(sync, "status").get("unasked") or ()))
        resources = [found for kind in sorted(contents.kinds) if (found := self.session.resource(kind))]
        lists = await asyncio.gather(*(self._members(resource, contents, set_id) for resource in resources))
        places = contents.namespaces
        placed = (each for items in lists for each in items if may_be_member(ObjectRef.of(each), places))
        marked = [each for each in placed if is_marked_by_us(each)]
        self.unasked.update(ref for each in marked if str(ref := ObjectRef.of(each)) in told)
        return [each for each in marked if ObjectRef.of(each) not in self.unasked]

    async def _members(self, resource: Resource, contents: Contents, set_id: str) -> list[Manifest]:
        """Return the members of one kind; who may not list them everywhere gets those of each namespace by itself."""
        selector = f"{PART_OF}={set_id}"
        try:
            return await self._list(resource, "", selector)
        except ServerError:
            self.unseen.add(resource.gvk.group_kind)
            return []
        except Forbidden:
            pass
        found: list[Manifest] = []
        for namespace in sorted(contents.namespaces) if resource.namespaced else ():
            try:
                found += await self._list(resource, namespace, selector)
            except (Forbidden, ServerError):
                self.unseen.add(resource.gvk.group_kind)
        if not resource.namespaced:
            self.unseen.add(resource.gvk.group_kind)
        return found

    async def child_sets(self, members: Iterable[Manifest], root: Manifest) -> tuple[_Sets, frozenset[str]]:
        """Return the members of the Syncs among *members*, and of those among these, and the namespaces that they are in."""
        sets: dict[str, list[Manifest]] = {}
        namespaces: frozenset[str] = frozenset()
        seen, queue = {root["metadata"]["uid"]}, list(members)
        while queue:
            each = queue.pop()
            uid, ref = each["metadata"]["uid"], ObjectRef.of(each)
            if ref.group_kind != SYNC.group_kind or uid in seen:
                continue
            seen.add(uid)
            sets[uid] = await self.members(each)
            namespaces |= Contents.recorded(each).namespaces
            queue += sets[uid]
        return sets, namespaces

    async def family(
        self, root: Manifest, members: list[Manifest] | None, namespaces: frozenset[str], sets: _Sets | None = None
    ) -> OwnerTree:
        """Return *root* with *members*, or with what it owns itself, and all that these own; *sets* are of child Syncs."""
        owned, sets = await self._owned(namespaces), sets or {}
        tops = [root] if members is None else members
        known = [*tops, *(each for found in sets.values() for each in found)]
        wanted = _below(owned, [each["metadata"]["uid"] for each in known])
        whole = {each["metadata"]["uid"]: each for each in await self._whole(wanted)}
        judge = self.judge([root, *known, *whole.values()])
        relatives = tuple(_relative(each, owned, whole, sets, judge) for each in sorted(tops, key=_order))
        top = relatives[0] if members is None else OwnedObject(root, judge(root), relatives)
        return OwnerTree(top, tuple(sorted(self.unseen)), tuple(sorted(self.unasked)))

    def judge(self, found: Iterable[Manifest]) -> _Judge:
        """Return what judges objects of a family by themselves, a member as its Sync does; *found* are all of them."""
        spoken, now = {GroupVersionKind.of(each).group_kind for each in found if each.get("status")}, now_text()

        def judge(manifest: Manifest) -> Health:
            gvk = GroupVersionKind.of(manifest)
            resource = self.session.discovery.find(gvk.api_version, gvk.kind)
            has_status = resource is not None and resource.has_status
            expected = expected_of(gvk.group_kind, has_status=has_status, spoken=spoken)
            if PART_OF in labels_of(manifest):
                return member_health(self.rules, manifest, expected=expected, now=now)
            return self.rules.judge(manifest, expected=expected, now=now)

        return judge

    async def _owned(self, namespaces: frozenset[str]) -> dict[str, list[tuple[str, Resource, ObjectRef]]]:
        """Return what there is with an owner, by the owner's uid: uid, resource and reference of each. A volume claim that a module keeps when its CR goes has none, and is told of the CR by its labels."""
        kinds = [
            each
            for each in self.session.discovery.resources
            if each.preferred and each.namespaced and "list" in each.verbs and each.gvk.group_kind not in _NEVER_OWNED
        ]
        lists = await asyncio.gather(
            *(self._metadata(resource, namespace) for resource in kinds for namespace in sorted(namespaces))
        )
        owned: dict[str, list[tuple[str, Resource, ObjectRef]]] = defaultdict(list)
        kept: dict[tuple[str, str, str], list[tuple[str, Resource, ObjectRef]]] = defaultdict(list)
        uids: dict[tuple[str, str, str], str] = {}
        for resource, items in lists:
            for item in items:
                metadata = item["metadata"]
                gvk = resource.gvk
                ref = ObjectRef(gvk.group, gvk.kind, metadata.get("namespace", ""), metadata["name"])
                owners = metadata.get("ownerReferences") or ()
                for owner in owners:
                    owned[owner.get("uid", "")].append((metadata["uid"], resource, ref))
                uids[ref.namespace, gvk.kind.lower(), ref.name] = metadata["uid"]
                marks = labels_of(item)
                if not owners and MODULE_LABEL in marks and gvk.group_kind == CLAIM:
                    kept[ref.namespace, marks[MODULE_LABEL], marks.get(INSTANCE_LABEL, "")].append(
                        (metadata["uid"], resource, ref)
                    )
        for which, found in kept.items():
            if which in uids:
                owned[uids[which]] += found
        return owned

    async def _metadata(self, resource: Resource, namespace: str) -> tuple[Resource, list[Manifest]]:
        async with self.slots:
            try:
                found, _ = await self.session.client.metadata(resource.collection(namespace))
            except (Forbidden, NotFound, ServerError):
                self.unseen.add(resource.gvk.group_kind)
                return resource, []
            except ApiError as error:
                if error.status == 405:  # a kind that is listed among those that can be, and can't
                    return resource, []
                raise
        return resource, list(found)

    async def _whole(self, wanted: Iterable[tuple[Resource, ObjectRef]]) -> list[Manifest]:
        """Return the live objects of *wanted*; those that have gone meanwhile are left out."""
        groups: dict[tuple[Resource, str], list[ObjectRef]] = defaultdict(list)
        for resource, ref in wanted:
            groups[resource, ref.namespace].append(ref)
        found = await asyncio.gather(*(self._group(*place, refs) for place, refs in groups.items()))
        return [each for group in found for each in group]

    async def _group(self, resource: Resource, namespace: str, refs: Sequence[ObjectRef]) -> list[Manifest]:
        """Return objects of one kind and namespace: one by one, or where they are many by a list."""
        if len(refs) > _FEW:
            names = {ref.name for ref in refs}
            try:
                return [each for each in await self._list(resource, namespace) if each["metadata"]["name"] in names]
            except (Forbidden, ServerError):
                pass  # who may get but not list still gets an answer
        found = await asyncio.gather(*(self._get(resource, ref) for ref in refs))
        return [each for each in found if each]

    async def _get(self, resource: Resource, ref: ObjectRef) -> Manifest | None:
        async with self.slots:
            try:
                return await self.session.client.get(resource.path(ref.namespace, ref.name))
            except NotFound:
                return None
            except (Forbidden, ServerError):
                self.unseen.add(ref.group_kind)
                return None

    async def _list(self, resource: Resource, namespace: str, selector: str | None = None) -> list[Manifest]:
        async with self.slots:
            try:
                items, _ = await self.session.client.list(resource.collection(namespace), labelSelector=selector)
            except NotFound:  # the kind went a moment ago
                return []
        return list(items)


def _below(
    owned: Mapping[str, list[tuple[str, Resource, ObjectRef]]], uids: Iterable[str]
) -> list[tuple[Resource, ObjectRef]]:
    """Return all that the objects with these *uids* own, and what that owns, each once."""
    found: dict[str, tuple[Resource, ObjectRef]] = {}
    queue = list(uids)
    while queue:
        for uid, resource, ref in owned.get(queue.pop(), ()):
            if uid not in found:
                found[uid] = (resource, ref)
                queue.append(uid)
    return list(found.values())


def _relative(
    manifest: Manifest,
    owned: Mapping[str, list[tuple[str, Resource, ObjectRef]]],
    whole: Mapping[str, Manifest],
    sets: _Sets,
    judge: _Judge,
    above: frozenset[str] = frozenset(),
) -> OwnedObject:
    """Return *manifest* with what it owns, a Sync with its members; what is below itself isn't followed round."""
    uid = manifest["metadata"]["uid"]
    line = above | {uid}
    children = [whole[each] for each, _, _ in owned.get(uid, ()) if each in whole]
    below = {each["metadata"]["uid"]: each for each in (*children, *sets.get(uid, ()))}
    shown = sorted((each for key, each in below.items() if key not in line), key=_order)
    relatives = tuple(_relative(each, owned, whole, sets, judge, line) for each in shown)
    return OwnedObject(manifest, judge(manifest), relatives)


def _order(manifest: Manifest) -> tuple[bool, ObjectRef]:
    ref = ObjectRef.of(manifest)
    return ref.kind not in _ORDER, ref
