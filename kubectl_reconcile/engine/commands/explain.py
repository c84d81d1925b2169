"""One live object and all that explains it: its Sync, its file and line, the commits, and what the next sync does.

Looked at once, for a person who asks: the plan of the whole Sync is made, so that what is said of one object is
what a sync would do with it. Writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kubectl_reconcile.cluster.cache import Cache
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError, NotFound
from kubectl_reconcile.core.manifests.parse import Located, field_lines
from kubectl_reconcile.core.manifests.revision import Commit
from kubectl_reconcile.core.objects import (
    FieldPath,
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    condition_of,
    controller_of,
    labels_of,
)
from kubectl_reconcile.core.planning.explain import (
    ExplainedField,
    ExplainFacts,
    FieldState,
    as_written,
    explained,
    steps_to,
)
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.resources.applyset import ID, PART_OF, is_marked_by_us
from kubectl_reconcile.core.resources.status import CONTENDED
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.schema import UNKNOWN, Schema
from kubectl_reconcile.engine.api.sync_requests import SYNCS
from kubectl_reconcile.engine.commands import blame, find_object
from kubectl_reconcile.engine.sync import reconcile, targets
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.reconcile import OneShotView, Target
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.errors import SourceError

_MOST_OWNERS = 8
_WHOLE = FieldPath(())


@dataclass(frozen=True, slots=True)
class FieldOrigin:
    """Where a field is asked for: a line of the file, and the commit that put it there."""

    line: int
    commit: Commit | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One object, explained. *asker* is who asks for it in a phrase, *file* where, *trouble* why more can't be told.

    *asks_for_field* tells that a single place of it was meant.
    """

    facts: ExplainFacts
    fields: Sequence[ExplainedField]
    asker: str = ""
    module: str = ""
    file: str = ""
    line: int = 0
    commit: Commit | None = None
    origins: Mapping[FieldPath, FieldOrigin] = field(default_factory=dict)
    trouble: str = ""
    asks_for_field: bool = False

    @property
    def ref(self) -> ObjectRef:
        """Which object it is."""
        return ObjectRef.of(self.facts.live)


async def explain(session: Session, text: str, path: str = "") -> Explanation:
    """Explain the object that *text* means (``deploy/web``), or the field that *text* or *path* names below it.

    Raises:
        NoSuchKind: the cluster serves no such kind.
        ValueError: the path can't be read.
        ApiError: there is no such object, or the server refuses.
    """
    live, rest = await _found(session, text)
    query = IgnoreRule.parse(path or rest) if path or rest else None
    return replace(await _told(session, live, query), asks_for_field=query is not None)


async def _told(session: Session, live: Manifest, query: IgnoreRule | None) -> Explanation:
    schema = await _schema(session, live)
    member = await _member_above(session, live)
    if member is None:
        return _unasked(ExplainFacts(live, schema), query)
    parent = await _parent(session, labels_of(member)[PART_OF])
    if parent is None:
        facts = ExplainFacts(live, schema)
        return Explanation(
            facts, explained(facts, query), "member of a set whose Sync is gone, or can't be seen by you"
        )
    try:
        return await _asked(session, live, schema, parent, query)
    except SourceError as error:
        facts = ExplainFacts(live, schema, Sync.of(parent), unread=True)
        return Explanation(facts, explained(facts, query), _asker(parent, live, member), trouble=str(error))


async def _found(session: Session, text: str) -> tuple[Manifest, str]:
    """Return the object that *text* begins with, and the field after it. A name may hold dots, so may a field."""
    kind, _, rest = text.partition("/")
    resource = find_object.resource_of(session, kind)
    if not rest:
        raise ApiError(f"{text} names no object: write KIND/NAME, such as deploy/web.spec.replicas")
    namespace = session.client.namespace if resource.namespaced else ""
    missing: NotFound | None = None
    for name, path in _splits(rest):
        try:
            return await session.client.get(resource.path(namespace, name)), path
        except NotFound as error:
            missing = missing or error
    raise missing or ApiError(f"{text} names no object")


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to part a name from the field after it, the likeliest first."""
    ends = [at for at, letter in enumerate(text) if letter in ".["]
    likely = [at for at in ends if text[at:].startswith(_LIKELY)]
    for at in [*likely, len(text), *(at for at in reversed(ends) if at not in likely)]:
        if text[:at]:
            yield text[:at], text[at:]


_LIKELY = (".spec", ".metadata", ".data", ".status", ".stringData", ".rules", ".subjects", ".type")


async def _schema(session: Session, live: Manifest) -> Schema:
    gvk = GroupVersionKind.of(live)
    kinds = await session.kinds([gvk])
    return kinds[gvk].schema if gvk in kinds else UNKNOWN


def _unasked(facts: ExplainFacts, query: IgnoreRule | None) -> Explanation:
    owner = controller_of(facts.live)
    asker = f"made by {owner['kind']}/{owner['name']}" if owner else "belongs to no Sync"
    return Explanation(facts, explained(facts, query), asker)


async def _member_above(session: Session, live: Manifest) -> Manifest | None:
    """Return the member of a set that an object is, or is owned by; None where there is none."""
    here = live
    for _ in range(_MOST_OWNERS):
        if PART_OF in labels_of(here) and is_marked_by_us(here):
            return here
        above = await _owner(session, controller_of(here), ObjectRef.of(here).namespace)
        if above is None:
            return None
        here = above
    return None


async def _parent(session: Session, set_id: str) -> Manifest | None:
    places = (f"{SYNCS}/syncs", f"{SYNCS}/namespaces/{session.client.namespace}/syncs")
    for place in places:
        try:
            items, _ = await session.client.list(place, labelSelector=f"{ID}={set_id}")
        except ApiError:
            continue
        return items[0] if items else None
    return None


def _contended(holder: Manifest | None, ref: ObjectRef) -> list[str]:
    """Return what a Sync, or the CR above a child, says of fields of *ref* that are left to somebody for a while."""
    said = str((condition_of(holder or {}, CONTENDED) or {}).get("message") or "")
    return [text for text in said.split("; ") if text.startswith(f"{ref}: ")]


async def _owner(session: Session, owner: Manifest | None, namespace: str) -> Manifest | None:
    if owner is None:
        return None
    group = owner["apiVersion"].rpartition("/")[0]
    resource: Resource | None = session.resource(GroupKind(group, owner["kind"]))
    if resource is None:
        return None
    try:
        return await session.client.get(resource.path(namespace if resource.namespaced else "", owner["name"]))
    except ApiError:
        return None


def _asker(parent: Manifest, live: Manifest, member: Manifest) -> str:
    metadata = parent["metadata"]
    name = f"Sync {metadata['namespace']}/{metadata['name']}"
    return f"member of {name}" if member is live else f"below {ObjectRef.of(member)}, a member of {name}"


async def _asked(
    session: Session, live: Manifest, schema: Schema, parent: Manifest, query: IgnoreRule | None
) -> Explanation:
    """Explain an object of a Sync by the plan of that Sync's next pass."""
    metadata, ref = parent["metadata"], ObjectRef.of(live)
    own = Sync.of(parent)
    if own.git is None:
        facts = ExplainFacts(live, schema, own)
        asker = f"member of Sync {metadata['namespace']}/{metadata['name']}, which is kept by hand"
        return Explanation(facts, explained(facts, query), asker)
    target = await targets.sync_target(session, metadata["name"], metadata["namespace"])
    desired = await reconcile.read(target)
    made = await reconcile.plan_for(session, target, desired, OneShotView(Cache(session.client)))
    change = next((each for each in made.changes if each.ref == ref), None)
    located = (
        None
        if change is None or change.provenance.owner
        else _located(desired, change.provenance.file, change.provenance.line)
    )
    holder = parent if located else await _owner(session, controller_of(live), ref.namespace)
    facts = ExplainFacts(
        live, schema, target.sync, located.manifest if located else None, change, _contended(holder, ref)
    )
    fields = explained(facts, query)
    if change is None:
        return Explanation(facts, fields, _by_controller(live, parent))
    if change.module:
        asker = f"wanted by module {change.module} for {change.provenance.owner}, of Sync {own.namespace}/{own.name}"
        return Explanation(facts, fields, asker, module=change.module)
    asker = f"member of Sync {own.namespace}/{own.name}"
    if located is None:
        return Explanation(facts, fields, f"{asker}, which asks for it no more")
    whose, origins = await asyncio.to_thread(_origins, target, made, located, facts, fields)
    return Explanation(facts, fields, asker, "", located.path, located.line, whose, origins)


def _by_controller(live: Manifest, parent: Manifest) -> str:
    owner = controller_of(live)
    metadata = parent["metadata"]
    of = f"of Sync {metadata['namespace']}/{metadata['name']}"
    return f"made by {owner['kind']}/{owner['name']}, {of}" if owner else f"no longer {of}"


def _located(desired: Desired, file: str, line: int) -> Located | None:
    return next((each for each in desired.manifests if (each.path, each.line) == (file, line)), None)


def _origins(
    target: Target, made: Plan, located: Located, facts: ExplainFacts, fields: Sequence[ExplainedField]
) -> tuple[Commit | None, dict[FieldPath, FieldOrigin]]:
    """Return who changed the object last, and where each field that Git states comes from. Blocks while git is asked."""
    written = {each.path: as_written(each.path, located.manifest) for each in fields}
    stated = {path: steps_to(place, located.manifest, facts.schema) for path, place in written.items()}
    removed = {each.path for each in fields if each.standing in {FieldState.GIT, FieldState.BOTH}}
    revision = target.source.revision()
    content = target.source.read(revision.files[located.path]) if located.path in revision.files else b""
    lines = field_lines(content, located, set(stated.values())) if content else {}
    life: Sequence[blame.Version] = ()
    if isinstance(target.source, blame.History):
        ref = ObjectRef.of(facts.live)
        life = blame.lives_of(target.source, located.path, made.revision, [ref], target.sync.default_namespace)[ref]
    origins = {
        path: FieldOrigin(lines.get(steps, located.line), blame.who_changed(life, written[path], facts.schema))
        for path, steps in stated.items()
        if len(steps) == len(path) or path in removed
    }
    return blame.who_changed(life, _WHOLE, facts.schema), origins
