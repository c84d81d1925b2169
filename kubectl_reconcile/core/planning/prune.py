"""What nobody asks for any more: which members are deleted, which must wait for a person, and in which order they go.

Rules:

- An object is deleted only if it carries our mark, was found in a complete list, and all files were readable and none asks
  for it. In doubt it stays.
- Deletions beyond what the Sync allows, or of what holds other things, wait for a person.
- What was written last goes first: deletions run through waves, phases and dependencies backwards.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.manifests.files import is_below
from kubectl_reconcile.core.objects import ObjectRef, errors_among
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.kinds import PRECIOUS
from kubectl_reconcile.core.planning.order import Place, arranged, cycles_in, in_reverse
from kubectl_reconcile.core.planning.plan import Hold, is_approved
from kubectl_reconcile.core.planning.snapshot import Stored
from kubectl_reconcile.core.resources import applyset


def prune(builder: PlanBuilder, asked: Collection[ObjectRef]) -> tuple[Hold, ...]:
    """Plan the deletion of members that Git no longer asks for; return those that must wait."""
    if not (builder.inputs.grouped and builder.inputs.whole):
        return ()
    members = builder.inputs.live.labelled(applyset.PART_OF, builder.set_id)
    builder.members = len(members)
    if not builder.inputs.sync.prune:
        return ()
    doomed = {each.ref: each for each in members if each.ref not in asked and _may_go(builder, each)}
    holds = tuple(_holds(builder, doomed, len(members), len(asked)))
    _delete(builder, doomed, {ref for hold in holds for ref in hold.refs})
    return holds


def remove_all(builder: PlanBuilder) -> None:
    """Plan the deletion of every member, as the deletion of their Sync asks for; nothing waits for consent."""
    members = builder.inputs.live.labelled(applyset.PART_OF, builder.set_id)
    _delete(builder, {each.ref: each for each in members if _may_go(builder, each)}, frozenset())


def _delete(builder: PlanBuilder, doomed: Mapping[ObjectRef, Stored], held: Collection[ObjectRef]) -> None:
    places, first = _backwards(builder, doomed)
    for ref, each in doomed.items():
        change = builder.deletion(each).gated(held=ref in held, needs=first.get(ref, ()))
        builder.add(change, places[ref], deleting=True)
        builder.cascade(each, places[ref])


def _backwards(
    builder: PlanBuilder, doomed: Mapping[ObjectRef, Stored]
) -> tuple[dict[ObjectRef, Place], dict[ObjectRef, tuple[ObjectRef, ...]]]:
    """Return the places of what goes, by what the live objects say, and what must be gone before each."""
    places: dict[ObjectRef, Place] = {}
    needs: dict[ObjectRef, Sequence[ObjectRef]] = {}
    for ref, each in doomed.items():
        options = MemberOptions.of(each.manifest())
        places[ref] = (options.wave, builder.phase(ref), 0)
        if there := [near for target in options.depends_on if (near := _near(target, ref, doomed))]:
            needs[ref] = there
    for cycle in cycles_in(needs):
        for ref in cycle:
            needs.pop(ref, None)
    return {**places, **arranged(places, needs)}, in_reverse(needs)


def _near(target: ObjectRef, ref: ObjectRef, doomed: Iterable[ObjectRef]) -> ObjectRef | None:
    return next((each for each in (target, target._replace(namespace=ref.namespace)) if each in doomed), None)


def _may_go(builder: PlanBuilder, each: Stored) -> bool:
    if each.ref in builder.spared or each.ref.group_kind in builder.inputs.unsynced:
        return False
    manifest = each.manifest()
    options = MemberOptions.of(manifest)
    if options.kept or _is_unclear(builder, options.source) or manifest["metadata"].get("deletionTimestamp"):
        return False
    return applyset.is_marked_by_us(manifest, builder.inputs.sync.field_manager)


def _is_unclear(builder: PlanBuilder, path: str) -> bool:
    """Tell whether the file that asked for an object may still do so, though nobody can read it as it is now."""
    inputs = builder.inputs
    if not path:
        return False
    if is_below(path, inputs.revision.unrendered):
        return True
    return path in inputs.revision.files and any(each.path == path for each in errors_among(inputs.problems))


def _holds(builder: PlanBuilder, doomed: Iterable[ObjectRef], members: int, asked: int) -> Iterator[Hold]:
    refs, sync = tuple(sorted(doomed)), builder.inputs.sync
    if not refs or is_approved(sync, refs):
        return
    if errors_among(builder.inputs.problems):
        yield Hold("UnreadableFiles", "some files can't be used, and an object may have moved into one of them", refs)
    elif not asked:
        yield Hold("EmptySource", "no manifest is left at this path; every member would go", refs)
    elif not sync.max_deletes.allows(len(refs), members):
        message = f"{len(refs)} of {members} members would go, more than spec.maxDeletes allows"
        yield Hold("TooManyDeletes", message, refs)
    elif (precious := tuple(ref for ref in refs if ref.group_kind in PRECIOUS)) and not is_approved(sync, precious):
        yield Hold("NeedsConsent", "deleting these takes with it whatever they hold", precious)
