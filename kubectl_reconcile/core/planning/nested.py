"""The plans of Syncs that a plan creates, changes or removes: what else happens once it is carried out.

Vocabulary: a Sync is *nested* in a plan that changes it. The plans that lead to it are *above*: from the one that was asked for down to the one that changes
it. What is *at hand* is the revision of a repository that somebody looks at, before it is followed by anybody.

Rules:

- A nested Sync is planned as its own account, by its own source, under its new spec. Of the repository at hand it reads that revision, of any other what it follows.
- What a plan above brings (a namespace, a kind) isn't there yet: what needs it is planned, and marked as not checked by the API server.
- What becomes *public*, as a comment on a request does, tells nothing that its author could not read: no values that a Sync is made to read in the cluster, and of what comes from
  another repository, or with a Secret, just names.
- A request may name any object. Of those that aren't members of the nested Sync no live value is shown, nor anything that is made of one.

Pure: plans in, plans and sentences out.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.objects import (
    GroupVersionKind,
    Manifest,
    ObjectRef,
    labels_of,
    map_at,
    maps_in,
    metadata_of,
)
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.endings.cascade import prunes
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, RIGHTS, Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Change, Nested, Op, Plan
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.credential_scope import Address, NoAddressError
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.helm import LookupPolicy
from kubectl_reconcile.core.resources.source import GitSpec, SourceSpec, chart_settings
from kubectl_reconcile.core.resources.sync import SYNC, Sync

MOST_LEVELS: Final = 5
"""How deep plans are nested below the one that was asked for."""
MOST_SYNCS: Final = 100
"""How many Syncs are planned for one plan, whatever it changes."""
_SHOWN: Final = 4
_DEEPEST: Final = 4
"""How many names of a field a reason has: ``spec.source.helm.values``."""
_WRITES: Final = frozenset({Op.CREATE, Op.UPDATE, Op.REPLACE})


# --- which, and why ---------------------------------------------------------------------------------------------------


def syncs_in(made: Plan) -> list[Change]:
    """Return the changes of Syncs, in the order in which these go ahead: those that depend on others after them, as far as they don't in a circle.

    Where two revisions are compared, also those that stay as they are.
    """
    among = made.changes if made.base else made.acting()
    found = {each.ref: each for each in among if each.ref.group_kind == SYNC.group_kind and each.op is not Op.ACT}
    before = {ref: [one for one in _waits_for(each) if one in found and one != ref] for ref, each in found.items()}
    try:
        return [found[ref] for ref in TopologicalSorter(before).static_order()]
    except CycleError:
        return list(found.values())


def _waits_for(change: Change) -> Iterator[ObjectRef]:
    for each in maps_in(map_at(change.after or {}, "spec").get("dependsOn")):
        yield ObjectRef(*SYNC.group_kind, str(each.get("namespace") or change.ref.namespace), str(each.get("name")))


class Question(Struct, frozen=True):
    """What a Sync would do as *change* leaves it, once what is *made_above* is there."""

    change: Change
    made_above: MadeAbove


def nested_in(made: Plan) -> Generator[Question, Plan | str, tuple[Nested, ...]]:
    """Return what is nested in *made*, each followed by what is nested in that, once all that is yielded is answered by a plan, or by why there is none.

    Where *made* compares two revisions, Syncs that stay as they are are asked about, too: their files may differ. An empty text answers that these don't.
    Nothing else tells then what goes with a Sync that prunes, so that is asked as well.
    """
    walk = _Walk(made.sync)
    yield from walk.below(made, ())
    return tuple(walk.found)


class _Walk:
    """Asks for plan after plan, with what was *found*; what one brings counts as made for those that follow it."""

    def __init__(self, root: ObjectRef | None) -> None:
        self.found: list[Nested] = []
        self._root, self._made, self._asked = root, MadeAbove(), 0

    def below(self, made: Plan, above: tuple[ObjectRef, ...]) -> Generator[Question, Plan | str, None]:
        self._made = self._made.and_by(made)
        for change in syncs_in(made):
            answer = not_planned(change, above, made, self._root) or (yield from self._asked_for(change))
            plan, why = (None, answer) if isinstance(answer, str) else (answer, "")
            if change.op is not Op.UNCHANGED or (plan is not None and not plan.is_clean):
                self.found.append(Nested(change.ref, change.op, above, why_of(change), plan, why))
            if plan is not None:
                yield from self.below(plan, (*above, change.ref))

    def _asked_for(self, change: Change) -> Generator[Question, Plan | str, Plan | str]:
        if self._asked >= MOST_SYNCS and change.op is not Op.UNCHANGED:
            return f"more than {MOST_SYNCS} Syncs change, and this is one of the others"
        self._asked += change.op is not Op.UNCHANGED
        return (yield Question(change, self._made))


def why_of(change: Change) -> tuple[str, ...]:
    """Return what of a Sync changes, in words: ``chart web 1.2.3 → 1.3.0``, ``spec.source.path``; nothing of one that comes or goes."""
    if change.before is None or change.after is None or change.op is Op.DELETE:
        return ()
    before, after = change.before, change.after
    was, now = map_at(chart_settings(before), "chart"), map_at(chart_settings(after), "chart")
    is_moved = bool(was) and was.get("name") == now.get("name") and was.get("version") != now.get("version")
    moved = [f"chart {now['name']} {was.get('version')} → {now.get('version')}"] if is_moved else []
    told = {"spec.source.chart", "spec.source.helm.chart"} if is_moved else set[str]()
    fields = [
        *_differing(map_at(before, "spec"), map_at(after, "spec"), "spec", 1, told),
        *(f"metadata.{name}" for name in ("annotations", "labels") if _of(before, name) != _of(after, name)),
    ]
    return (*moved, *([first_few(fields, _SHOWN)] if fields else []))


def _of(manifest: Manifest, name: str) -> Any:
    return metadata_of(manifest).get(name) or {}


def _differing(before: Any, after: Any, path: str, depth: int, told: set[str]) -> Iterator[str]:
    """Yield the fields that differ, as far down as it helps whoever reads; those that were *told* are left out."""
    if before == after or path in told:
        return
    if depth >= _DEEPEST or not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        yield path
        return
    for name in sorted({**before, **after}):
        yield from _differing(before.get(name), after.get(name), f"{path}.{name}", depth + 1, told)


def not_planned(change: Change, above: Sequence[ObjectRef], made: Plan, root: ObjectRef | None) -> str:
    """Return why there is no plan of a Sync that *made* changes, nested in those *above* below *root*; empty where there is one."""
    if change.op is Op.DELETE:
        return _end_of(change, made)
    if change.gate.blocked:
        return f"it isn't written: {change.gate.blocked}"
    chain = (*([root] if root else ()), *above)
    if change.ref in chain:
        circle = (*chain[chain.index(change.ref) :], change.ref)
        return f"it contains itself: {' → '.join(f'{each.namespace}/{each.name}' for each in circle)}"
    if len(above) >= MOST_LEVELS:
        return f"it is nested more than {MOST_LEVELS} levels deep"
    try:
        sync = Sync.of(change.after or {})
    except SyncSpecError as error:
        return str(error)
    return "it is suspended" if sync.suspend else "" if sync.source else "it follows nothing"


def _end_of(change: Change, made: Plan) -> str:
    """Return what happens to the members of a Sync that is deleted."""
    if not prunes(change.before or {}):
        return "its members stay, and belong to nobody then"
    if made.base:
        return ""
    owners = {each.ref: each.provenance.owner for each in made.changes if each.gate.cascade}
    along = sum(change.ref in _carriers(ref, owners) for ref in owners)
    if not along:
        return "nothing is deleted along with it"
    return f"{along} {'object is' if along == 1 else 'objects are'} deleted along with it"


def _carriers(ref: ObjectRef, owners: Mapping[ObjectRef, ObjectRef | None]) -> Iterator[ObjectRef]:
    """Yield what takes an object along, and what takes that along."""
    seen: set[ObjectRef] = set()
    at: ObjectRef | None = owners[ref]
    while at is not None and at not in seen:
        yield at
        seen.add(at)
        at = owners.get(at)


# --- what is at hand --------------------------------------------------------------------------------------------------


class AtHand(Struct, frozen=True):
    """The repository of which a revision is looked at: *urls* are its names, and *git* says what of it is followed; None where it may be any branch."""

    urls: frozenset[str] = frozenset()
    git: GitSpec | None = None

    def is_read_by(self, source: SourceSpec) -> bool:
        """Tell whether what a Sync follows is what will be at the revision at hand."""
        git = source.git
        if git is None or not any(is_same_repository(git.url, url) for url in self.urls):
            return False
        if self.git is None:
            return not (git.tag or git.semver or git.commit)
        mine, theirs = self.git, git
        is_pinned_alike = (mine.tag, mine.semver, mine.commit) == (theirs.tag, theirs.semver, theirs.commit)
        return is_pinned_alike and (mine.branch == theirs.branch or {mine.branch, theirs.branch} <= _DEFAULTS)


_DEFAULTS: Final = frozenset({"", "main", "master"})
"""Names of the branch that is followed where none is named."""


def is_same_repository(one: str, other: str) -> bool:
    """Tell whether two URLs are those of one repository, however it is reached: over HTTPS or SSH, with ``.git`` or without."""
    return one == other or _repository(one) == _repository(other)


def _repository(url: str) -> tuple[str, ...]:
    try:
        address = Address.of(url)
    except NoAddressError:
        return ("", url.removeprefix("file://").rstrip("/").removesuffix(".git"))
    steps = address.steps[1:] if address.steps[:1] == ("~",) else address.steps
    port = "" if address.scheme == "ssh" or address.port in {80, 443} else str(address.port)
    return (address.host, port, *steps[:-1], *(each.removesuffix(".git") for each in steps[-1:]))


# --- what isn't there yet ---------------------------------------------------------------------------------------------


class MadeAbove(Struct, frozen=True):
    """What plans bring that go ahead first: *namespaces* and *kinds* that aren't there yet, and whether what accounts may do *changes_rights*."""

    namespaces: frozenset[str] = frozenset()
    kinds: Mapping[GroupVersionKind, Kind] = field(default_factory=dict)
    changes_rights: bool = False

    def and_by(self, made: Plan) -> Self:
        """Return the same with what *made* brings."""
        written = [each for each in made.acting() if each.op in _WRITES and not each.gate.blocked]
        namespaces = {each.ref.name for each in written if each.ref.group_kind == NAMESPACE and each.op is Op.CREATE}
        kinds = {gvk: kind for each in written if each.ref.group_kind == CRD for gvk, kind in _brought(each)}
        gives = any(each.ref.group_kind in RIGHTS for each in written)
        return replace(
            self,
            namespaces=self.namespaces | namespaces,
            kinds={**self.kinds, **kinds},
            changes_rights=self.changes_rights or gives,
        )

    def lacked_by(self, change: Change) -> str:
        """Return what isn't there yet for the server to check a change; empty where all is."""
        if change.op not in _WRITES:
            return ""
        if change.ref.namespace in self.namespaces:
            return f"namespace {change.ref.namespace}"
        return f"kind {change.ref.group_kind}" if change.kind and change.kind.gvk in self.kinds else ""


def _brought(crd: Change) -> Iterator[tuple[GroupVersionKind, Kind]]:
    """Yield the kinds that a CRD serves once it is written, and didn't before."""
    before = kinds_of_crd(crd.before) if crd.before else {}
    return (each for each in kinds_of_crd(crd.after or {}).items() if each[0] not in before)


def parted(made: Plan, above: MadeAbove) -> tuple[Plan, tuple[Change, ...]]:
    """Return *made* without what the server can't check before what is *above* is carried out, or mustn't, and these changes; the plan says it of each."""
    aside, remarks = [], dict(made.remarks)
    for change in made.acting():
        if (lack := above.lacked_by(change)) or (change.ref in made.remarks and change.op in _WRITES):
            aside.append(change)
            why = f": {lack} isn't there yet" if lack else ""
            remarks[change.ref] = (*remarks.get(change.ref, ()), f"not checked by the API server{why}")
    left = set(map(id, aside))
    kept = made.with_changes(each for each in made.changes if id(each) not in left)
    return replace(kept, remarks=remarks), tuple(aside)


def together(judged: Plan, aside: Sequence[Change]) -> Plan:
    """Return a plan, as the server has *judged* it, with what it wasn't asked about."""
    if not aside:
        return judged
    changes = sorted((*judged.changes, *aside), key=lambda each: each.gate.wave)
    return replace(judged.with_changes(changes), confirmed=False)


# --- what isn't shown -------------------------------------------------------------------------------------------------


def without_others_values(made: Plan, sync: ObjectRef) -> Plan:
    """Return *made*, a plan of *sync*, without live values of objects that aren't its members, of which nothing is told but whose they are."""
    set_id = applyset_id(sync)
    hidden = {id(each): each for each in made.acting() if each.before is not None and not _is_ours(each, set_id)}
    if not hidden:
        return made
    told = {
        each.ref: (f"exists, and belongs to {_whose(each)}: its values aren't shown",)
        for each in hidden.values()
        if not each.gate.cascade
    }
    changes = (_without_live(each) if id(each) in hidden else each for each in made.changes)
    return replace(made.with_changes(changes), remarks={**made.remarks, **told})


def _whose(change: Change) -> str:
    marked = labels_of(change.before or {}).get(PART_OF)
    return change.provenance.foreign or ("another Sync" if marked else "no Sync")


def _is_ours(change: Change, set_id: str) -> bool:
    """Tell whether the live object of a change is the Sync's to show: a member, or what a module made for one."""
    before, owner = change.before or {}, change.provenance.owner
    if labels_of(before).get(PART_OF) == set_id:
        return True
    if owner is None or change.gate.cascade:
        return False
    owned = maps_in(metadata_of(before).get("ownerReferences"))
    return any((each.get("kind"), each.get("name")) == (owner.kind, owner.name) for each in owned)


def _without_live(change: Change) -> Change:
    after = None if change.after is None else change.intent
    return replace(
        change, before=_identity(change.before), after=after, fields=(), conflicts=(), takeover=(), unsure=False
    )


# --- what isn't for everybody -----------------------------------------------------------------------------------------


def newly_read(before: Sync | None, after: Sync) -> tuple[str, ...]:
    """Return what of the cluster goes into the objects of a Sync that didn't before: what a request names there, its author may not be allowed to read."""
    held = _holders(after) - (_holders(before) if before else frozenset())
    looks_up = after.source is not None and after.source.helm.lookup is LookupPolicy.CLUSTER
    return (*sorted(held), *(["what its chart looks up"] if looks_up else []))


def _holders(sync: Sync) -> frozenset[str]:
    found = sync.source.holders if sync.source else ()
    return frozenset(f"{kind} {sync.namespace}/{name}" for kind, name in found)


def is_elsewhere(source: SourceSpec, at_hand: AtHand) -> bool:
    """Tell whether a Sync reads what whoever reads the repository at hand may not be allowed to."""
    is_other = (source.git is not None or source.oci is not None) and not at_hand.is_read_by(source)
    return is_other or bool(source.chart and source.chart.secret)


def names_only(made: Plan) -> Plan:
    """Return *made* with the names of objects, and nothing of what is in them."""
    problems = tuple(replace(each, path="", line=0, message=_NOT_TOLD, hint="") for each in made.problems)
    told = {each.ref: (*made.remarks.get(each.ref, ()), _NOT_SHOWN) for each in made.acting()}
    changes = (each if each.is_quiet else _named(each) for each in made.changes)
    return replace(made.with_changes(changes), problems=tuple(dict.fromkeys(problems)), remarks=told)


_NOT_SHOWN: Final = "its content isn't shown: it comes from another repository"
_NOT_TOLD: Final = "something is wrong in another repository, which isn't told here"


def _named(change: Change) -> Change:
    bare = replace(
        change, before=_identity(change.before), after=_identity(change.after), intent=_identity(change.intent)
    )
    gate = replace(
        change.gate,
        blocked="it is blocked" if change.gate.blocked else "",
        denied=change.gate.denied and "it is refused",
    )
    action = replace(change.action, summary="", parameters={}, precondition=None) if change.action else None
    return replace(bare, fields=(), conflicts=(), takeover=(), unsure=False, gate=gate, action=action)


def _identity(manifest: Manifest | None) -> Manifest | None:
    if manifest is None:
        return None
    named = {name: metadata_of(manifest)[name] for name in ("name", "namespace") if name in metadata_of(manifest)}
    return {**{name: manifest[name] for name in ("apiVersion", "kind") if name in manifest}, "metadata": named}
