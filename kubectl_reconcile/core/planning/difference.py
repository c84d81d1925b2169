"""Planning by difference: what neither Git nor the cluster has touched since the last plan isn't looked at again.

A plan is a function of its inputs, so what is judged by the same inputs is judged the same. A member is *settled* where it is as it
should be, nothing is told of it, and nothing of it concerns any other: no hook, no dependency, no value of a variable, no kind that
it brings along. What a build finds settled is its *footing*, which the next one stands on: of ten thousand members it looks at
those that a push or the cluster has changed, and at all that aren't settled.

Rules:

- The plan is the same as one without a footing, but for the time that it takes. In doubt all is looked at.
- A footing holds under the same settings and for the very same kinds; another schema is another kind.
- Members of other files than those that changed are told apart by which manifests they are, not by what these hold.
- Few members have no footing: to look at them costs less than to remember them.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.arrangement import DesiredMember
from kubectl_reconcile.core.planning.builder import PlanBuilder, Settled, Standing
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import CRD, Kind
from kubectl_reconcile.core.planning.members import as_before
from kubectl_reconcile.core.planning.order import Stage, key_of
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.planning.snapshot import Moment

LEAST_MEMBERS = 200
"""From so many members on a build leaves a footing."""


@dataclass(frozen=True, slots=True)
class Footing:
    """What a build leaves to the next: which members are *settled*, and by what.

    *numbers* tell which member a manifest of the source is, by the manifest's identity; *desired* keeps those alive.
    """

    ground: tuple[object, ...]
    kinds: Mapping[GroupVersionKind, Kind]
    desired: Sequence[Located]
    files: Mapping[str, str]
    stamps: Mapping[str, str]
    moment: Moment
    settled: Mapping[ObjectRef, Settled]
    numbers: Mapping[int, ObjectRef]
    verdicts: Mapping[ObjectRef, tuple[str, str]]


def stand_on(builder: PlanBuilder, footing: Footing | None) -> None:
    """Have *builder* leave alone what was found settled and hasn't been touched since; all is looked at where that isn't known."""
    inputs = builder.inputs
    if footing is None or not _holds(builder, footing):
        return
    changed = inputs.live.changed_since(footing.moment)
    if changed is None:
        return
    touched = {*changed, *inputs.memory.contentions}
    files = _changed(footing.files, inputs.revision.files) | _changed(footing.stamps, inputs.revision.stamps)
    known = footing.numbers
    rest = [
        each for each in inputs.desired if (ref := known.get(id(each))) is None or ref in touched or each.path in files
    ]
    gone = known.keys() - (set(map(id, inputs.desired)) - set(map(id, rest)))
    builder.standing = Standing(rest, dict(footing.settled), dict(known))
    builder.verdicts = dict(footing.verdicts)
    for number in gone:
        ref = builder.standing.numbers.pop(number)
        del builder.standing.members[ref], builder.verdicts[ref]


def has_slipped(builder: PlanBuilder, wanted: Mapping[ObjectRef, DesiredMember]) -> bool:
    """Tell whether what was read concerns settled members after all, so that all must be looked at.

    That is where it asks for one of them as well, spares one, brings their kinds along as other ones, or is what all else of its
    namespace or kind must wait for.
    """
    settled = builder.standing.members
    if not settled:
        return False
    inputs = builder.inputs
    return (
        not settled.keys().isdisjoint(wanted)
        or not settled.keys().isdisjoint(builder.spared)
        or builder.when.grounds
        or any(inputs.kinds.get(gvk) is not kind for gvk, kind in builder.kinds.items())
    )


def footing_of(builder: PlanBuilder, wanted: Mapping[ObjectRef, DesiredMember], made: Plan) -> Footing | None:
    """Return what the next build may stand on, *builder* having *made* a plan of these members; None where there is nothing worth it."""
    inputs = builder.inputs
    if not _may_stand(inputs) or len(inputs.desired) < LEAST_MEMBERS:
        return None
    settled, numbers = dict(builder.standing.members), dict(builder.standing.numbers)
    waves = {change.ref: change.gate.wave for change in made.changes if change.ref in wanted}
    for ref, each in wanted.items():
        if _is_settled(builder, each):
            key = key_of(
                Stage.WRITE, (each.options.wave, each.kind.phase, 0)
            )  # wherever it stood behind what was missing
            settled[ref] = Settled(key, as_before(each, ()).in_wave(waves[ref]))
            numbers[id(each.located)] = ref
    kinds = {kind.gvk: kind for each in settled.values() if (kind := each.change.kind) is not None}
    moment = inputs.live.moment({gvk.group_kind for gvk in kinds})
    if moment is None:
        return None
    verdicts = {ref: builder.verdicts[ref] for ref in settled}
    revision = inputs.revision
    return Footing(
        _ground(builder), kinds, inputs.desired, revision.files, revision.stamps, moment, settled, numbers, verdicts
    )


def _may_stand(inputs: Inputs) -> bool:
    """Tell whether members can be told apart from all else: modules make others of them, and what was applied last is told of each."""
    return inputs.whole and not inputs.modules.by_kind and not inputs.memory.bases


def _holds(builder: PlanBuilder, footing: Footing) -> bool:
    inputs = builder.inputs
    return (
        _may_stand(inputs)
        and _ground(builder) == footing.ground
        and all(inputs.kinds.get(gvk) is kind for gvk, kind in footing.kinds.items())
        and footing.verdicts.items() <= inputs.memory.verdicts.items()
    )


def _ground(builder: PlanBuilder) -> tuple[object, ...]:
    """Return the settings that a judgement depends on."""
    return builder.marks, builder.inputs.grouped


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return the keys whose values aren't the same in both."""
    return set() if before is after else {key for key, _ in before.items() ^ after.items()}


def _is_settled(builder: PlanBuilder, each: DesiredMember) -> bool:
    """Tell whether a member is as it should be, and nothing of it concerns any other."""
    ref, located, options = each.ref, each.located, each.options
    is_alone = not (options.depends_on or options.faults or options.moved_from or options.moved_to)
    is_plain = not (located.drawn or located.uses or ref in builder.inputs.memory.contentions)
    return (
        ref in builder.verdicts
        and ref not in builder.when.stages
        and options.hook is None
        and is_alone
        and is_plain
        and ref.group_kind != CRD
        and builder.inputs.kinds.get(each.kind.gvk) is each.kind
        and (each.kind.namespaced or not located.manifest["metadata"].get("namespace"))
    )
