"""What nobody asks for any more: which members are deleted, which must wait for a person, and in which order they go.

Rules:

- An object is deleted only if it carries our mark, was found in a complete list, and all files were readable and none asks
  for it. In doubt it stays. Where members were applied and can't be listed any more, that is told.
- What carries our marks, though its managedFields were wiped so that nobody knows who wrote them, waits for a person.
- A mark is a claim that anybody can make. What carries it and was never asked for by a revision that was applied is a *stranger*: it counts
  nowhere, holds up nothing, and is deleted only where a person has said so of this very object.
- Deletions beyond what the Sync allows, or of what holds other things, wait for a person. What a deletion takes along counts,
  and where nobody could count it, it waits.
- What was written last goes first: deletions run through waves, phases and dependencies backwards.
- Accounts, roles and bindings go when the Syncs among the members are gone: these delete their own members by them.
- What a Sync can't outlive goes after all else, and its end is waited for by nobody: it waits for the Sync itself.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.manifests.which_files import is_below
from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, Problem, Severity, errors_among
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.endings.cascade import Cascade, Listing, bound_to_go, cascade_of_all
from kubectl_reconcile.core.planning.endings.holds import Doom, asks, others_along
from kubectl_reconcile.core.planning.endings.rewiring import going_in, leave, overtake, part, rewired_by
from kubectl_reconcile.core.planning.hold import Hold, Marked
from kubectl_reconcile.core.planning.inputs import Inputs, Unseen
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, RIGHTS
from kubectl_reconcile.core.planning.order import Place, arranged, cycles_in, in_reverse, place_at
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.planning.rights.writes import grant_command
from kubectl_reconcile.core.planning.snapshot import Stored, is_marked
from kubectl_reconcile.core.resources import applyset
from kubectl_reconcile.core.resources.sync import SYNC, Sync


class Pruning(Struct, frozen=True):
    """What was decided: deletions that must wait, what says that it is a member, and what is *lacking* to know more."""

    holds: tuple[Hold, ...] = ()
    marked: Marked = field(default_factory=Marked)
    lacking: frozenset[Listing] = frozenset()


def prune(builder: PlanBuilder, wanted: Collection[ObjectRef]) -> Pruning:
    """Plan the deletion of members that Git no longer asks for; return what of it must wait. It asks for those *wanted*, and for those that stand."""
    inputs = builder.inputs
    if not (inputs.grouped and inputs.whole):
        return Pruning()
    members = builder.members()
    left = _unasked(builder, members, wanted)
    unasked = {each.ref: each.manifest() for each in left}
    strangers = _strangers(builder, unasked)
    members = [each for each in members if each.ref not in inputs.lookups.strangers]
    found = Pruning(marked=Marked(len(members), unasked, strangers))
    if not inputs.sync.prune:
        return found
    builder.problems += _of_unseen(inputs)
    unclear, staying = _unclear_files(inputs), frozenset(strangers.refs if strangers else ())
    asked = len(builder.standing.members) + len(wanted)
    doomed = {each.ref: each for each in left if each.ref not in staying and _may_go(builder, each, unclear)}
    if not doomed:
        return found
    rewired = rewired_by(builder)
    bodies = {ref: each.manifest() for ref, each in doomed.items()}
    beside = going_in(change for _, change in builder.changes)
    cascade = cascade_of_all(bodies.values(), inputs.lookups.listed, inputs.live, rewired, beside)
    ends = Doom(inputs.sync, bodies, cascade, WantedByGit(wanted, builder.standing.members))
    lost = {ref for ref, body in bodies.items() if applyset.has_lost_its_writer(body)}
    sure = replace(ends, roots={ref: body for ref, body in bodies.items() if ref not in lost})
    holds = (*(_holds(builder, sure, len(members), asked) if sure.roots else ()), *_hold_of_lost(ends, lost))
    held = {ref for hold in holds for ref in hold.refs}
    free = [*(body for ref, body in bodies.items() if ref not in held), *beside]
    leave(builder, bound_to_go(free, inputs.lookups.listed, inputs.live, rewired))
    rewired = rewired_by(builder)
    now = cascade_of_all(free, inputs.lookups.listed, inputs.live, rewired)
    told = cascade_of_all(bodies.values(), inputs.lookups.listed, inputs.live, rewired, beside)
    ends = replace(ends, cascade=told)
    _delete(builder, doomed, held, ends, now)
    part(builder, rewired)
    _refuse_in_what_goes(builder, doomed.keys() - held)
    return replace(found, holds=holds, lacking=frozenset(cascade.lacking))


class WantedByGit(Struct, frozen=True):
    """What Git asks for: what is *wanted* now, and what *stands* as it did."""

    wanted: Collection[ObjectRef]
    stands: Collection[ObjectRef]

    def __contains__(self, ref: object) -> bool:
        """Tell whether Git asks for an object."""
        return ref in self.wanted or ref in self.stands

    def __iter__(self) -> Iterator[ObjectRef]:
        """Yield all that Git asks for."""
        yield from self.wanted
        yield from self.stands

    def __len__(self) -> int:
        """Return how many objects Git asks for."""
        return len(self.wanted) + len(self.stands)


def _unasked(builder: PlanBuilder, members: Sequence[Stored], wanted: Collection[ObjectRef]) -> list[Stored]:
    """Return the members that Git doesn't ask for. What stands is a member: where with those that are *wanted* these are all, none has to be looked at."""
    standing = builder.standing.members
    marked = sum(is_marked(builder.inputs.live, builder.set_id, ref) for ref in wanted)
    if len(members) == len(standing) + marked:
        return []
    return [each for each in members if each.ref not in standing and each.ref not in wanted]


def _strangers(builder: PlanBuilder, unasked: Mapping[ObjectRef, Manifest]) -> Hold | None:
    """Return that the deletion of strangers waits for a person; None where there are none, or somebody has agreed to that of all of them."""
    found = {ref: manifest for ref, manifest in unasked.items() if ref in builder.inputs.lookups.strangers}
    ends = Doom(builder.inputs.sync, found, Cascade(), ())
    if not found or ends.is_approved(found):
        return None
    return ends.hold("NeverAsked", "no revision that was applied is known to have asked for them", found)


def remove_all(builder: PlanBuilder) -> None:
    """Plan the deletion of every member, as the deletion of their Sync asks for; nothing waits for consent."""
    unclear = _unclear_files(builder.inputs)
    strangers = builder.inputs.lookups.strangers
    members = (
        each for each in builder.members() if each.ref not in strangers and not _waits_for_a_person(each.manifest())
    )
    going = {each.ref: each for each in members if _may_go(builder, each, unclear)}
    _delete(builder, going, frozenset(), Doom(builder.inputs.sync, {}, Cascade(), ()), Cascade())


def _waits_for_a_person(manifest: Manifest) -> bool:
    return asks(manifest) or applyset.has_lost_its_writer(manifest)


def holders_of(sync: Sync, daemon_namespace: str = "", above: Iterable[ObjectRef] = ()) -> frozenset[ObjectRef]:
    """Return what ends with *sync* or its daemon: their namespaces, the kind Sync, the Sync itself, and those *above* it, whose member it is.

    Where one of them is a member, its end waits for our finalizer on the Sync, so the finalizer must not wait for it.
    """
    namespaces = {sync.namespace, daemon_namespace} - {""}
    crd = ObjectRef(CRD.group, CRD.kind, "", f"syncs.{SYNC.group}")
    spaces = (ObjectRef(NAMESPACE.group, NAMESPACE.kind, "", name) for name in namespaces)
    return frozenset({crd, sync.ref, *above, *spaces})


def without_rights(made: Plan) -> tuple[Plan, Plan]:
    """Return *made* in two plans: without the deletion of what says what accounts may do, and that alone."""
    return parted(made, {change.ref for change in made.changes if change.ref.group_kind in RIGHTS})


def parted(made: Plan, holders: Collection[ObjectRef]) -> tuple[Plan, Plan]:
    """Return *made* in two plans: without the deletion of *holders*, and that alone."""
    first = tuple(change for change in made.changes if change.ref not in holders)
    last = tuple(change.gated(needs=()) for change in made.changes if change.ref in holders)
    return made.with_changes(first), made.with_changes(last)


def _delete(
    builder: PlanBuilder, doomed: Mapping[ObjectRef, Stored], held: Collection[ObjectRef], ends: Doom, now: Cascade
) -> None:
    """Plan the deletion of what is *doomed*, and of what goes along; of that, what doesn't go *now* is held."""
    places, first = _backwards(builder, doomed)
    strangers = builder.inputs.lookups.strangers
    going = next((each.ref for each in builder.members() if each.ref not in strangers and _is_going_sync(each)), None)
    for ref, each in doomed.items():
        waits = f"the end of {going}" if going and ref.group_kind in RIGHTS else ""
        change = builder.deletion(each).gated(held=ref in held, needs=first.get(ref, ()), waits=waits)
        builder.add(change, places[ref], deleting=True)
    overtake(builder, [ref for ref in now.taken if ref in ends.asked])
    at = {change.ref: place_at(key) for key, change in builder.changes if change.op is Op.DELETE}
    known = {change.ref for _, change in builder.changes if change.gate.cascade}
    for below, (manifest, carrier) in ends.cascade.taken.items():
        goes = below in now.taken
        if below not in known and (goes or below not in ends.asked):
            builder.add_cascade(below, manifest, carrier, at[ends.cascade.roots[below]], held=not goes)


def _refuse_in_what_goes(builder: PlanBuilder, going: Collection[ObjectRef]) -> None:
    """Leave alone what would be created in a namespace, or of a kind, that goes in this very sync."""
    namespaces = {ref.name for ref in going if ref.group_kind == NAMESPACE}
    kinds = {ref.name for ref in going if ref.group_kind == CRD}
    for at, (key, change) in enumerate(builder.changes) if namespaces or kinds else ():
        if change.op is not Op.CREATE or change.gate.blocked or change.kind is None:
            continue
        crd = f"{change.kind.plural}.{change.ref.group}"
        if change.ref.namespace in namespaces or crd in kinds:
            what = f"Namespace {change.ref.namespace}" if change.ref.namespace in namespaces else f"CRD {crd}"
            why = f"its {what} is deleted by this sync, since Git doesn't ask for it any more"
            builder.changes[at] = key, change.gated(blocked=why)


def _backwards(
    builder: PlanBuilder, doomed: Mapping[ObjectRef, Stored]
) -> tuple[dict[ObjectRef, Place], dict[ObjectRef, tuple[ObjectRef, ...]]]:
    """Return the places of what goes, by what the live objects say, and what must be gone before each."""
    places: dict[ObjectRef, Place] = {}
    needs: dict[ObjectRef, Sequence[ObjectRef]] = {}
    rights = sorted(ref for ref in doomed if ref.group_kind in RIGHTS)
    for ref, each in doomed.items():
        options = MemberOptions.of(each.manifest())
        places[ref] = (options.wave, builder.phase(ref), 0)
        there = [near for target in options.depends_on if (near := _near(target, ref, doomed))]
        there += rights if ref.group_kind == SYNC.group_kind else ()
        if there:
            needs[ref] = there
    for cycle in cycles_in(needs):
        for ref in cycle:
            needs.pop(ref, None)
    return {**places, **arranged(places, needs)}, in_reverse(needs)


def _is_going_sync(each: Stored) -> bool:
    return each.ref.group_kind == SYNC.group_kind and bool(each.manifest()["metadata"].get("deletionTimestamp"))


def _near(target: ObjectRef, ref: ObjectRef, doomed: Iterable[ObjectRef]) -> ObjectRef | None:
    return next((each for each in (target, target._replace(namespace=ref.namespace)) if each in doomed), None)


def _may_go(builder: PlanBuilder, each: Stored, unclear: Unclear) -> bool:
    if each.ref in builder.spared or each.ref.group_kind in builder.inputs.coverage.unsynced:
        return False
    manifest = each.manifest()
    options = MemberOptions.of(manifest)
    if options.kept or unclear.has(options.source) or manifest["metadata"].get("deletionTimestamp"):
        return False
    return applyset.is_marked_by_us(manifest, builder.inputs.sync.field_manager) or applyset.has_lost_its_writer(
        manifest
    )


class Unclear(Struct, frozen=True):
    """Files that may still ask for what they once asked for, though nobody can read them as they are now."""

    files: frozenset[str]
    folders: frozenset[str]

    def has(self, path: str) -> bool:
        """Tell whether the file at *path* is one of them."""
        return bool(path) and (path in self.files or is_below(path, self.folders))


def _unclear_files(inputs: Inputs) -> Unclear:
    wrong = {each.path for each in errors_among(inputs.problems)}
    return Unclear(frozenset(wrong & inputs.revision.files.keys()), frozenset(inputs.revision.unrendered))


def _of_unseen(inputs: Inputs) -> Iterator[Problem]:
    """Yield where members were applied and can't be seen any more: what Git doesn't ask for there isn't found, let alone deleted.

    Where a person looks at what an account applies, that says nothing about what the account may see, and is a warning.
    """
    sync, coverage = inputs.sync, inputs.coverage
    recorded = coverage.recorded
    unseen = {**coverage.unseen, **_behind_servers_that_are_down(inputs)}
    for (kind, place), found in sorted(unseen.items(), key=itemgetter(0)):
        if kind not in recorded.kinds or (place and place not in recorded.places_of(kind)):
            continue
        where = f"{kind} in namespace {place}" if place else str(kind)
        is_sure = recorded.is_detailed or not place
        is_of_a_person = sync.source is not None and found.is_refused and not found.is_of_account
        yield Problem(
            f"Sync {sync.namespace}/{sync.name}",
            0,
            f"{where} can't be listed, so what Git doesn't ask for any more may be left there: {found.why}",
            f"{grant_command(sync)} shows what its account needs" if found.is_of_account else "",
            Severity.ERROR if is_sure and not is_of_a_person else Severity.WARNING,
            in_source=False,
        )


def _behind_servers_that_are_down(inputs: Inputs) -> dict[tuple[GroupKind, str], Unseen]:
    """Return the kinds of members that nobody serves while a server behind their group doesn't answer, and why: they aren't gone."""
    unavailable, known = inputs.coverage.unavailable, {gvk.group_kind for gvk in inputs.kinds}
    down = {name.rpartition("/")[0]: f"{name} isn't available: {why}" for name, why in unavailable.items()}
    lost = inputs.coverage.recorded.kinds - known
    return {(kind, ""): Unseen(down[kind.group]) for kind in lost if kind.group in down}


def _holds(builder: PlanBuilder, ends: Doom, members: int, asked: int) -> Iterator[Hold]:
    roots, sync, along = ends.roots, builder.inputs.sync, len(ends.cascade.taken)
    if ends.is_approved(roots):
        return
    if any(each.in_source for each in errors_among(builder.inputs.problems)):
        message = "some files can't be used, and an object may have moved into one of them"
        yield ends.hold("UnreadableFiles", message, roots)
    elif not asked:
        yield ends.hold("EmptySource", "no manifest is left at this path; every member would be deleted", roots)
    elif not (sync.max_deletes.allows(ends.number, members) or sync.max_deletes.allows(ends.number, _extent(builder))):
        message = (
            f"{len(roots)} of {members} members would be deleted{others_along(along)}, more than spec.maxDeletes allows"
        )
        yield ends.hold("TooManyDeletes", message, roots)
    elif hold := ends.consent("deleting"):
        yield hold


def _hold_of_lost(ends: Doom, lost: Collection[ObjectRef]) -> Iterator[Hold]:
    """Yield what nobody is recorded to have applied any more: it may be somebody else's by now, and is never deleted without a person."""
    if lost and not ends.is_approved(lost):
        message = "their managedFields were lost, so it isn't recorded any more that this Sync applied them"
        yield ends.hold("OwnersLost", message, tuple(sorted(lost)))


def _extent(builder: PlanBuilder) -> int:
    """Return how many objects the set is, as deletions are counted: its members, and all that is known to go with them."""
    inputs = builder.inputs
    members = {each.ref: each.manifest() for each in builder.members() if each.ref not in inputs.lookups.strangers}
    return len(members) + len(cascade_of_all(members.values(), inputs.lookups.listed, inputs.live).taken)
