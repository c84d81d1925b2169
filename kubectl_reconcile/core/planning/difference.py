"""Planning by difference: what neither Git nor the cluster has touched since the last plan isn't looked at again.

A plan is a function of its inputs, so what is judged by the same inputs is judged the same. A member is *settled* where it is as it
should be, nothing is reported about it, and it concerns no other: no hook, no dependency, no value of a variable, no kind that
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
from operator import eq

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.arrangement import DesiredMember
from kubectl_reconcile.core.planning.builder import PlanBuilder, Settled, Standing, merged
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import CRD
from kubectl_reconcile.core.planning.members import as_before
from kubectl_reconcile.core.planning.order import Stage, key_of
from kubectl_reconcile.core.planning.snapshot import Moment, is_marked

LEAST_MEMBERS = 200
"""From so many members on a build leaves a footing."""
_APART = -1
"""The wave of a place whose members weren't all in one: the next build puts each where it belongs."""


class Footing(Struct, frozen=True):
    """What a build leaves to the next: which members are settled (*standing*), and by what.

    *desired* keeps the manifests alive by whose identities members are known.
    """

    ground: tuple[object, ...]
    desired: Sequence[Located]
    files: Mapping[str, str]
    stamps: Mapping[str, str]
    moment: Moment
    standing: Standing
    verdicts: Mapping[ObjectRef, tuple[str, str]]


def stand_on(builder: PlanBuilder, footing: Footing | None) -> None:
    """Have *builder* leave alone what was found settled and hasn't been touched since; all is looked at where that isn't known."""
    inputs = builder.inputs
    if footing is None or not _holds(builder, footing):
        return
    changed = inputs.live.changed_since(footing.moment)
    if changed is None:
        return
    before = footing.standing
    touched = before.members.keys() & {*changed, *inputs.memory.contentions}
    files = _changed(footing.files, inputs.revision.files) | _changed(footing.stamps, inputs.revision.stamps)
    here = set(map(id, inputs.desired))
    concerned = (here - before.numbers.keys()) | {before.members[ref].number for ref in touched}
    rest = [each for each in inputs.desired if id(each) in concerned or each.path in files]
    gone = (before.numbers.keys() - here) | (before.numbers.keys() & set(map(id, rest)))
    builder.standing = replace(
        before, others=rest, members=dict(before.members), numbers=dict(before.numbers), ordered=list(before.ordered),
        keys=before.keys.copy(),
    )  # fmt: skip
    builder.verdicts = dict(footing.verdicts)
    for ref in builder.standing.let_go(gone):
        del builder.verdicts[ref]


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
        or not inputs.kinds.keys() <= builder.kinds.keys()
    )


def footing_of(builder: PlanBuilder, wanted: Mapping[ObjectRef, DesiredMember]) -> Footing | None:
    """Return what the next build may stand on, *builder* having made a plan of these members; None where there is nothing worth it."""
    inputs = builder.inputs
    if not _may_stand(inputs) or len(inputs.desired) < LEAST_MEMBERS:
        return None
    standing = _with_settled(builder, wanted)
    moment = inputs.live.moment({gvk.group_kind for gvk in standing.kinds})
    if moment is None:
        return None
    verdicts = dict(builder.verdicts)
    for ref in verdicts.keys() - standing.members.keys():
        del verdicts[ref]
    revision = inputs.revision
    return Footing(_ground(builder), inputs.desired, revision.files, revision.stamps, moment, standing, verdicts)


def _with_settled(builder: PlanBuilder, wanted: Mapping[ObjectRef, DesiredMember]) -> Standing:
    """Return what stood before, and of the *wanted* members those that are settled now."""
    before = builder.standing
    members, numbers, keys = dict(before.members), dict(before.numbers), before.keys.copy()
    waves, kinds = dict(before.waves), dict(before.kinds)
    waves_now = {change.ref: builder.when.index[key] for key, change in builder.changes}
    for ref, each in wanted.items():
        if _is_settled(builder, each):
            key = key_of(
                Stage.WRITE, (each.options.wave, each.kind.phase, 0)
            )  # wherever it stood behind what was missing
            change = as_before(each, ()).in_wave(waves_now[ref])
            members[ref] = Settled(key, change, id(each.located))
            numbers[id(each.located)] = ref
            keys[key] += 1
            kinds[each.kind.gvk] = each.kind
            if waves.setdefault(key, change.gate.wave) != change.gate.wave:
                waves[key] = _APART
    ordered = merged(before.ordered, [members[ref].change for ref in wanted if ref in members])
    return Standing((), members, numbers, ordered, keys, waves, kinds)


def _may_stand(inputs: Inputs) -> bool:
    """Tell whether members can be told apart from all else: modules make others of them, and what was applied last is reported for each."""
    return inputs.whole and not inputs.modules.by_kind and not inputs.memory.bases


def _holds(builder: PlanBuilder, footing: Footing) -> bool:
    inputs = builder.inputs
    return (
        _may_stand(inputs)
        and _ground(builder) == footing.ground
        and all(inputs.kinds.get(gvk) is kind for gvk, kind in footing.standing.kinds.items())
        and all(map(eq, footing.verdicts.values(), map(inputs.memory.verdicts.get, footing.verdicts)))
    )


def _ground(builder: PlanBuilder) -> tuple[object, ...]:
    """Return the settings that a judgement depends on."""
    return builder.marks, builder.inputs.grouped


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return the keys whose values aren't the same in both."""
    if before is after:
        return set()
    return {key for key, value in after.items() if before.get(key) != value} | (before.keys() - after.keys())


def _is_settled(builder: PlanBuilder, each: DesiredMember) -> bool:
    """Tell whether a member is as it should be, and nothing of it concerns any other."""
    ref, located, options = each.ref, each.located, each.options
    is_alone = not (options.depends_on or options.faults or options.moved_from or options.moved_to)
    is_plain = not (located.drawn or located.uses or ref in builder.inputs.memory.contentions)
    return (
        ref in builder.verdicts
        and (not builder.inputs.grouped or is_marked(builder.inputs.live, builder.set_id, ref))
        and ref not in builder.when.stages
        and options.hook is None
        and is_alone
        and is_plain
        and ref.group_kind != CRD
        and builder.inputs.kinds.get(each.kind.gvk) is each.kind
        and (each.kind.namespaced or not located.manifest["metadata"].get("namespace"))
    )
