"""One live object and all that explains it: its Sync, its file and line, the commits, and what the next sync does.

Looked at once, for a person who asks: the plan of the whole Sync is made, so that what is said of one object is
what a sync would do with it. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import Struct

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
    map_at,
)
from kubectl_reconcile.core.planning.outlook.explain import (
    ExplainedField,
    ExplainFacts,
    FieldState,
    as_written,
    explained,
    steps_to,
    was_applied,
)
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.rendering.origins import ValueOrigin
from kubectl_reconcile.core.rendering.uses import texts_of
from kubectl_reconcile.core.resources.applyset import ID, PART_OF, applyset_id, is_marked_by_us
from kubectl_reconcile.core.resources.substitute import Holder
from kubectl_reconcile.core.resources.sync import CONTENDED, Sync
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.schema import UNKNOWN, Schema
from kubectl_reconcile.engine.api.sync_requests import SYNCS
from kubectl_reconcile.engine.commands import blame, find_object
from kubectl_reconcile.engine.commands.overlays import OverlayOrigins, is_overlay
from kubectl_reconcile.engine.sync import reconcile, targets
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import verification_of
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.view import OneShotView
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.running.threads import in_thread

_MOST_OWNERS = 8
_WHOLE = FieldPath(())
_BY_HAND = ", which is applied by hand"


class FieldOrigin(Struct, frozen=True):
    """Where a field is asked for: a line of the file, and the commit that put it there; for what is *rendered*, of which file."""

    line: int
    commit: Commit | None
    rendered: ValueOrigin | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One object, explained. *asker* is who asks for it in a phrase, *sync* the one that it belongs to, *file* where, *trouble* why more isn't known.

    *made* is of what the artifact was made that its Sync follows, as whoever pushed it says. *verification* is whose signature what its Sync follows has, where that is asked for. *asks_for_field* tells that a single
    place of it was meant. *secrets* are texts that variables brought from Secrets, which nobody may see; *may_hold_secrets* tells that
    there may be some, and that nobody knows which.
    """

    facts: ExplainFacts
    fields: Sequence[ExplainedField]
    asker: str = ""
    module: str = ""
    file: str = ""
    line: int = 0
    commit: Commit | None = None
    made: Commit | None = None
    origins: Mapping[FieldPath, FieldOrigin] = field(default_factory=dict)
    trouble: str = ""
    verification: Verification | None = None
    asks_for_field: bool = False
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    may_hold_secrets: bool = False
    sync: Manifest | None = field(default=None, repr=False)

    @property
    def ref(self) -> ObjectRef:
        """Which object it is."""
        return ObjectRef.of(self.facts.live)


class FilesAsked(Struct, frozen=True):
    """A folder or file that asks for the object, instead of what its Sync follows."""

    path: Path
    recursive: bool = True


async def explain(session: Session, text: str, path: str = "", files: FilesAsked | None = None) -> Explanation:
    """Explain the object that *text* means (``deploy/web``), or the field that *text* or *path* names below it.

    With *files*, these say what is asked for, under the rules of the Sync that the object belongs to.

    Raises:
        NoSuchKind: the cluster serves no such kind.
        ValueError: the path can't be read.
        SourceError: *files* can't be read.
        ApiError: there is no such object, or the server refuses.
    """
    live, rest = await _found(session, text)
    query = IgnoreRule.parse(path or rest) if path or rest else None
    return replace(await _told(session, live, query, files), asks_for_field=query is not None)


async def explain_live(session: Session, live: Manifest) -> Explanation:
    """Explain an object as it was read a moment ago.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    return await _told(session, live, None, None)


async def _told(session: Session, live: Manifest, query: IgnoreRule | None, files: FilesAsked | None) -> Explanation:
    member = await _member_above(session, live)
    parent = await _parent(session, member) if member is not None else None
    seen = _Seen(live, await _schema(session, live), query, member, parent)
    found = await _by_files(session, seen, files) if files is not None else await _by_sync(session, seen)
    return replace(found, sync=parent)


async def _by_sync(session: Session, seen: _Seen) -> Explanation:
    """Return what is known by the source that its Sync follows, or, where there is none, by who owns its fields."""
    parent = seen.parent
    if parent is None or Sync.of(parent).source is None:
        return seen.by_owners(seen.unread)
    try:
        target = await targets.sync_target(session, *_name_of(parent))
        found = await _asked(session, seen, target)
        return replace(found, verification=verification_of(target))
    except SourceError as error:
        return replace(seen.by_owners(seen.unread), trouble=str(error))


class _Seen(Struct, frozen=True):
    """What the cluster says about one object. *member* is what it is or is below of, *parent* that one's Sync."""

    live: Manifest
    schema: Schema
    query: IgnoreRule | None
    member: Manifest | None
    parent: Manifest | None

    @property
    def asker(self) -> str:
        """Who asks for it, as far as its labels and owners tell."""
        if self.member is None:
            owner = controller_of(self.live)
            return f"made by {owner['kind']}/{owner['name']}" if owner else "belongs to no Sync"
        if self.parent is None:
            return "member of a Sync that is gone, or that you may not see"
        sync = f"Sync {'/'.join(reversed(_name_of(self.parent)))}"
        kept = "" if map_at(self.parent, "spec").get("source") else _BY_HAND
        if self.member is self.live:
            return f"member of {sync}{kept}"
        return f"below {ObjectRef.of(self.member)}, a member of {sync}{kept}"

    @property
    def unread(self) -> str:
        """Why it isn't known what is asked for; empty where nobody does, as for what a controller makes of a member."""
        sync = Sync.of(self.parent) if self.parent is not None else None
        if self.member is None or not (self.member is self.live or was_applied(self.live, sync)):
            return ""
        if sync is None:
            return "its Sync would tell"
        if sync.source is not None:
            return "Git can't be read"
        return f"Sync {sync.namespace}/{sync.name} is applied by hand, so explain needs its files (-f FOLDER)"

    def by_owners(self, unread: str) -> Explanation:
        """Return what can be said where nothing says what is asked for; *unread* is why, empty if nobody asks."""
        sync = Sync.of(self.parent) if self.parent is not None else None
        facts = ExplainFacts(self.live, self.schema, sync, unread=unread)
        return Explanation(
            facts, explained(facts, self.query), self.asker, may_hold_secrets=self._may_hold_secrets(sync)
        )

    def with_secrets(self, found: Explanation, made: Plan) -> Explanation:
        """Return *found* with the values of Secrets that variables bring into the object, or into the member above it."""
        refs = {found.ref, *([ObjectRef.of(self.member)] if self.member is not None else [])}
        changes = [each for each in made.changes if each.ref in refs]
        known = any(each.op is not Op.DELETE for each in changes)
        texts = texts_of(use for each in changes for use in each.provenance.uses)
        return replace(found, secrets=texts, may_hold_secrets=not known and self._may_hold_secrets(found.facts.sync))

    def _may_hold_secrets(self, sync: Sync | None) -> bool:
        """Tell whether values of Secrets may stand in it: as its Sync says, or where a mark says that there is one which isn't seen."""
        return _takes_secrets(sync) or (self.member is not None and self.parent is None)


def _name_of(sync: Manifest) -> tuple[str, str]:
    return sync["metadata"]["name"], sync["metadata"]["namespace"]


def _takes_secrets(sync: Sync | None) -> bool:
    """Tell whether variables of a Sync, or its chart, have values of Secrets."""
    holders = sync.source.holders if sync is not None and sync.source is not None else ()
    return any(holder is Holder.SECRET for holder, _ in holders)


async def _by_files(session: Session, seen: _Seen, files: FilesAsked) -> Explanation:
    """Explain an object by the plan of a sync of *files*."""
    name, namespace = _name_of(seen.parent) if seen.parent is not None else ("", session.client.namespace)
    target = await targets.folder_target(session, files.path, name, namespace, recursive=files.recursive)
    found = await _asked(session, seen, target)
    return found if found.facts.change else seen.by_owners(f"it isn't in {files.path}")


async def _found(session: Session, text: str) -> tuple[Manifest, str]:
    """Return the object that *text* begins with, and the field after it. A name may hold dots, so may a field."""
    kind, _, rest = text.partition("/")
    resource = find_object.resource_of(session, kind)
    if not rest:
        raise ApiError(f"{text} isn't an object: write KIND/NAME, such as deploy/web.spec.replicas")
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


async def _parent(session: Session, member: Manifest) -> Manifest | None:
    """Return the Sync that *member* says it belongs to: of the whole cluster, or of the namespaces that are at hand for who sees no more."""
    set_id, namespace = labels_of(member)[PART_OF], ObjectRef.of(member).namespace
    near = dict.fromkeys(filter(None, (namespace, session.client.namespace)))
    for place in (f"{SYNCS}/syncs", *(f"{SYNCS}/namespaces/{each}/syncs" for each in near)):
        try:
            items, _ = await session.client.list(place, labelSelector=f"{ID}={set_id}")
        except ApiError:
            continue
        # Whoever writes a Sync may give it the label of another one's set.
        if found := next((each for each in items if applyset_id(ObjectRef.of(each)) == set_id), None):
            return found
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


async def _asked(session: Session, seen: _Seen, target: Target) -> Explanation:
    """Explain an object by the plan of the next sync of *target*."""
    desired = await reconcile.read(session, target)
    made = (await reconcile.plan_for(session, target, desired, OneShotView(Cache(session.client)))).plan
    found = seen.with_secrets(await _planned(session, seen, target, desired, made), made)
    return found if target.source.history is not None else replace(found, made=desired.revision.commit)


async def _planned(session: Session, seen: _Seen, target: Target, desired: Desired, made: Plan) -> Explanation:
    live, schema, ref = seen.live, seen.schema, ObjectRef.of(seen.live)
    change = next((each for each in made.changes if each.ref == ref), None)
    located = (
        None
        if change is None or change.provenance.owner
        else _located(desired, change.provenance.file, change.provenance.line)
    )
    holder = seen.parent if located else await _owner(session, controller_of(live), ref.namespace)
    facts = ExplainFacts(
        live, schema, target.sync, located.manifest if located else None, change, _contended(holder, ref)
    )
    fields = explained(facts, seen.query)
    if change is None:
        return Explanation(facts, fields, _by_controller(seen))
    if change.module:
        asker = f"wanted by module {change.module} for {change.provenance.owner}{_of_sync(seen)}"
        return Explanation(facts, fields, asker, module=change.module)
    if located is None:
        and_ = " and" if seen.asker.endswith(_BY_HAND) else ", which"
        return Explanation(facts, fields, f"{seen.asker}{and_} no longer asks for it")
    if located.line < 0 and is_overlay(desired.revision):
        overlay = OverlayOrigins(target, desired.revision)
        return await in_thread(_rendered, Explanation(facts, fields, seen.asker), located, overlay)
    whose, origins = await in_thread(_origins, target, made, located, facts, fields)
    return Explanation(facts, fields, seen.asker, "", located.path, located.line, whose, origins=origins)


def _rendered(found: Explanation, located: Located, overlay: OverlayOrigins) -> Explanation:
    """Return *found* with the lines that an overlay's object and its fields come from, and their commits. Blocks while git is asked."""
    facts = found.facts
    written = {each.path: as_written(each.path, located.manifest) for each in found.fields}
    steps = {path: steps_to(place, located.manifest, facts.schema) for path, place in written.items()}
    lines = {
        path: origin
        for path, each in steps.items()
        if len(each) == len(path) and (origin := overlay.of(located, each)) is not None
    }
    own = overlay.of_object(located)
    commits = overlay.commits([origin.at for origin in lines.values()] + ([own] if own is not None else []))
    origins = {path: FieldOrigin(origin.at.line, commits.get(origin.at), origin) for path, origin in lines.items()}
    newest = max(commits.values(), key=lambda commit: commit.committed_at, default=None)
    file, line = (own.file, own.line) if own is not None else (located.path, located.line)
    return replace(found, file=file, line=line, commit=newest, origins=origins)


def _of_sync(seen: _Seen) -> str:
    return f", of Sync {'/'.join(reversed(_name_of(seen.parent)))}" if seen.parent is not None else ""


def _by_controller(seen: _Seen) -> str:
    owner = controller_of(seen.live)
    if owner is None:
        return f"no longer{_of_sync(seen).removeprefix(',')}" if seen.parent is not None else seen.asker
    return f"made by {owner['kind']}/{owner['name']}{_of_sync(seen)}"


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
    if (
        history := target.source.history
    ) is not None and located.line > 0:  # what is rendered stands in no file as it is
        ref = ObjectRef.of(facts.live)
        namespace, reader = target.sync.default_namespace, target.reader
        life = blame.lives_of(history, located.path, made.revision, [ref], namespace, reader=reader)[ref]
    origins = {
        path: FieldOrigin(lines.get(steps, located.line), blame.who_changed(life, written[path], facts.schema))
        for path, steps in stated.items()
        if len(steps) == len(path) or path in removed
    }
    return blame.who_changed(life, _WHOLE, facts.schema), origins
