"""What nobody asks for any more: which members are deleted, which must wait for a person, and in which order they go.

Rules:

- An object is deleted only if it carries our mark, was found in a complete list, and all files were readable and none asks
  for it. In doubt it stays.
- Deletions beyond what the Sync allows, or of what holds other things, wait for a person. What a deletion takes along counts,
  and where nobody could count it, it waits.
- What was written last goes first: deletions run through waves, phases and dependencies backwards.
- Accounts, roles and bindings go when the Syncs among the members are gone: these delete their own members by them.
- What a Sync can't outlive goes after all else, and its end is waited for by nobody: it waits for the Sync itself.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.manifests.files import is_below
from kubectl_reconcile.core.objects import ObjectRef, errors_among
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.cascade import Cascade, Listing, cascade_of, taken_along, uncounted_in
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, PRECIOUS, RIGHTS
from kubectl_reconcile.core.planning.order import Place, arranged, cycles_in, in_reverse
from kubectl_reconcile.core.planning.plan import Hold, Plan, is_approved
from kubectl_reconcile.core.planning.snapshot import Stored, is_marked
from kubectl_reconcile.core.resources import applyset
from kubectl_reconcile.core.resources.sync import SYNC, Sync


class Pruning(Struct, frozen=True):
    """What was decided: deletions that must wait, how many *members* there are, and what is *lacking* to know more."""

    holds: tuple[Hold, ...] = ()
    members: int = 0
    lacking: frozenset[Listing] = frozenset()


def prune(builder: PlanBuilder, wanted: Collection[ObjectRef]) -> Pruning:
    """Plan the deletion of members that Git no longer asks for; return what of it must wait. It asks for those *wanted*, and for those that stand."""
    inputs = builder.inputs
    if not (inputs.grouped and inputs.whole):
        return Pruning()
    members = builder.members()
    if not inputs.sync.prune:
        return Pruning(members=len(members))
    unclear = _unclear_files(inputs)
    asked, left = len(builder.standing.members) + len(wanted), _unasked(builder, members, wanted)
    doomed = {each.ref: each for each in left if _may_go(builder, each, unclear)}
    if not doomed:
        return Pruning(members=len(members))
    cascades = {ref: cascade_of(each.manifest(), inputs.lookups.listed, inputs.live) for ref, each in doomed.items()}
    risky = [ref for ref, each in doomed.items() if _asks(each) or _is_risky(ref, cascades[ref])]
    holds = tuple(_holds(builder, cascades, risky, len(members), asked))
    _delete(builder, doomed, {ref for hold in holds for ref in hold.refs}, cascades)
    return Pruning(holds, len(members), frozenset(listing for each in cascades.values() for listing in each.lacking))


def _unasked(builder: PlanBuilder, members: Sequence[Stored], wanted: Collection[ObjectRef]) -> list[Stored]:
    """Return the members that Git doesn't ask for. What stands is a member: where with those that are *wanted* these are all, none has to be looked at."""
    standing = builder.standing.members
    marked = sum(is_marked(builder.inputs.live, builder.set_id, ref) for ref in wanted)
    if len(members) == len(standing) + marked:
        return []
    return [each for each in members if each.ref not in standing and each.ref not in wanted]


def remove_all(builder: PlanBuilder) -> None:
    """Plan the deletion of every member, as the deletion of their Sync asks for; nothing waits for consent."""
    unclear = _unclear_files(builder.inputs)
    members = (each for each in builder.members() if not _asks(each))
    going = {each.ref: each for each in members if _may_go(builder, each, unclear)}
    _delete(builder, going, frozenset(), {})


def holders_of(sync: Sync, daemon_namespace: str = "") -> frozenset[ObjectRef]:
    """Return what ends with *sync* or its daemon: their namespaces, and the kind Sync.

    Where one of them is a member, its end waits for our finalizer on the Sync, so the finalizer must not wait for it.
    """
    namespaces = {sync.namespace, daemon_namespace} - {""}
    crd = ObjectRef(CRD.group, CRD.kind, "", f"syncs.{SYNC.group}")
    return frozenset({crd, *(ObjectRef(NAMESPACE.group, NAMESPACE.kind, "", name) for name in namespaces)})


def without_rights(made: Plan) -> tuple[Plan, Plan]:
    """Return *made* in two plans: without the deletion of what says what accounts may do, and that alone."""
    return parted(made, {change.ref for change in made.changes if change.ref.group_kind in RIGHTS})


def parted(made: Plan, holders: Collection[ObjectRef]) -> tuple[Plan, Plan]:
    """Return *made* in two plans: without the deletion of *holders*, and that alone."""
    first = tuple(change for change in made.changes if change.ref not in holders)
    last = tuple(change.gated(needs=()) for change in made.changes if change.ref in holders)
    return made.with_changes(first), made.with_changes(last)


def _delete(
    builder: PlanBuilder,
    doomed: Mapping[ObjectRef, Stored],
    held: Collection[ObjectRef],
    cascades: Mapping[ObjectRef, Cascade],
) -> None:
    places, first = _backwards(builder, doomed)
    going = next((each.ref for each in builder.members() if _is_going_sync(each)), None)
    shown = set(doomed)
    for ref, each in doomed.items():
        waits = f"the end of {going}" if going and ref.group_kind in RIGHTS else ""
        change = builder.deletion(each).gated(held=ref in held, needs=first.get(ref, ()), waits=waits)
        builder.add(change, places[ref], deleting=True)
        for below, (manifest, carrier) in cascades[ref].taken.items() if ref in cascades else ():
            if below not in shown:
                shown.add(below)
                builder.add_cascade(below, manifest, carrier, places[ref], held=ref in held)


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
    return applyset.is_marked_by_us(manifest, builder.inputs.sync.field_manager)


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


def _holds(
    builder: PlanBuilder, cascades: Mapping[ObjectRef, Cascade], risky: Sequence[ObjectRef], members: int, asked: int
) -> Iterator[Hold]:
    refs, sync = tuple(sorted(cascades)), builder.inputs.sync
    if not refs or is_approved(sync, refs):
        return
    along = _along(refs, cascades)
    gone = len(refs) + len(along)
    if errors_among(builder.inputs.problems):
        message = "some files can't be used, and an object may have moved into one of them"
        yield Hold("UnreadableFiles", message, refs, along)
    elif not asked:
        yield Hold("EmptySource", "no manifest is left at this path; every member would be deleted", refs, along)
    elif not (sync.max_deletes.allows(gone, members) or sync.max_deletes.allows(gone, _extent(builder))):
        others = f", and with them {len(along)} other object{'s' if len(along) > 1 else ''}" if along else ""
        message = f"{len(refs)} of {members} members would be deleted{others}, more than spec.maxDeletes allows"
        yield Hold("TooManyDeletes", message, refs, along)
    elif risky and not is_approved(sync, found := tuple(sorted(risky))):
        yield _risky_hold(found, cascades)


def _extent(builder: PlanBuilder) -> int:
    """Return how many objects the set is, as deletions are counted: its members, and all that is known to go with them."""
    inputs = builder.inputs
    members = [each.manifest() for each in builder.members()]
    refs = {ObjectRef.of(each) for each in members}
    cascades = (cascade_of(each, inputs.lookups.listed, inputs.live) for each in members)
    return len(refs) + len(taken_along(refs, cascades))


def _along(refs: Collection[ObjectRef], cascades: Mapping[ObjectRef, Cascade]) -> tuple[ObjectRef, ...]:
    return taken_along(refs, (cascades[ref] for ref in refs))


def _asks(each: Stored) -> bool:
    """Tell whether an object says itself that a person must agree to its deletion."""
    return MemberOptions.of(each.manifest()).theirs.asks


def _is_risky(ref: ObjectRef, cascade: Cascade) -> bool:
    """Tell whether data may go with an object, or nobody knows what."""
    precious = any(each.group_kind in PRECIOUS for each in (ref, *cascade.taken))
    return precious or bool(cascade.uncounted)


def _risky_hold(refs: tuple[ObjectRef, ...], cascades: Mapping[ObjectRef, Cascade]) -> Hold:
    along = _along(refs, cascades)
    unknown = uncounted_in(cascades[ref] for ref in refs)
    more = f"; uncounted, because they can't be listed: {first_few(unknown, _SHOWN)}" if unknown else ""
    if any(ref.group_kind in PRECIOUS for ref in (*refs, *along)):
        return Hold("NeedsConsent", f"deleting these deletes everything in them, too{more}", refs, along)
    if not unknown:
        return Hold("NeedsConsent", "these are annotated so that a person must approve their deletion", refs, along)
    return Hold("Uncounted", f"it isn't known which other objects are deleted with these{more}", refs, along)


_SHOWN = 5
