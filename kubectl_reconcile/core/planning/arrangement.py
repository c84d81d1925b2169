"""When the members of a set are written: their places, the stages of hooks, and what each waits for.

A namespace or a CRD that is missing is a *foundation*: it comes before whatever is in it, or of its kind. Members that wait for
each other, or for what nobody asks for, are problems and left alone. What is a hook to another tool and isn't a Job is written where
the hook would run; foundations that are missing come before any of what is written before all else.

Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain

from msgspec import Struct

from kubectl_reconcile.core.annotations import DEPENDS_ON, MemberOptions
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import GroupKind, ObjectRef, Problem, Severity
from kubectl_reconcile.core.planning.builder import HOOK_STAGES, PlanBuilder
from kubectl_reconcile.core.planning.kinds import CRD, NAMESPACE, Kind
from kubectl_reconcile.core.planning.order import Stage, arranged, cycles_in


class DesiredMember(Struct, frozen=True):
    """One object that Git asks for; *key* identifies this desired state."""

    ref: ObjectRef
    kind: Kind
    located: Located
    options: MemberOptions
    key: str

    @property
    def path(self) -> str:
        """The file with the object."""
        return self.located.path

    @property
    def line(self) -> int:
        """The line of that file."""
        return self.located.line


def problem(
    builder: PlanBuilder, located: Located, message: str, hint: str, severity: Severity = Severity.ERROR
) -> None:
    """Note what is wrong with a manifest."""
    builder.problems.append(Problem(located.path, max(located.line, 0), message, hint, severity))


def arrange(
    builder: PlanBuilder, usable: Mapping[ObjectRef, DesiredMember], found: Mapping[ObjectRef, DesiredMember]
) -> None:
    """Find the place of each object; those that wait for each other, or for what nobody asks for, are problems."""
    foundations = _missing_foundations(builder, usable)
    builder.when.grounds = bool(foundations)
    phases = {gvk: kind.phase for gvk, kind in builder.kinds.items()}
    for ref, each in usable.items():
        builder.when.places[ref] = (each.options.wave, phases[each.kind.gvk], 0)
        if (stage := HOOK_STAGES.get(each.options.hook or each.options.theirs.point)) is not None:
            builder.when.stages[ref] = stage
        if each.options.depends_on and (targets := _targets(builder, each, found)):
            builder.when.needs[ref] = targets
    _bring_forward(builder, foundations)
    needs: dict[ObjectRef, Sequence[ObjectRef]] = {**builder.when.needs}
    standing = builder.standing.members
    for target in chain.from_iterable(needs.values()):
        if target in standing:
            builder.when.places[target] = standing[target].key[1:]
    for ref in usable if foundations else ():
        for ground in (foundations.get(ref.namespace), foundations.get(ref.group_kind)):
            if ground and builder.when.places[ground] >= builder.when.places[ref]:
                needs[ref] = (*needs.get(ref, ()), ground)
    if needs:
        _break_cycles(builder, usable, needs)
        builder.when.places.update(arranged(builder.when.places, needs))


def _bring_forward(builder: PlanBuilder, foundations: Mapping[str | GroupKind, ObjectRef]) -> None:
    """Put missing CRDs, and the missing namespaces that are needed there, before what is written before all else."""
    before = [ref for ref, stage in builder.when.stages.items() if stage is Stage.BEFORE]
    if not before:
        return
    namespaces = {ref.namespace for ref in before}
    first = min(builder.when.places[ref] for ref in before)[0]
    for name, ground in foundations.items():
        if ground.group_kind == CRD or name in namespaces:
            builder.when.stages[ground] = Stage.BEFORE
            builder.when.places[ground] = (min(first, builder.when.places[ground][0]), *builder.when.places[ground][1:])


def _missing_foundations(builder: PlanBuilder, usable: Iterable[ObjectRef]) -> dict[str | GroupKind, ObjectRef]:
    """Return the namespaces, by name, and the CRDs, by kind, that Git asks for and that don't exist yet."""
    found: dict[str | GroupKind, ObjectRef] = {}
    for ref in usable:
        if ref.kind not in {NAMESPACE.kind, CRD.kind} or builder.inputs.live.stored(ref) is not None:
            continue
        if ref.group_kind == NAMESPACE:
            found[ref.name] = ref
        elif ref.group_kind == CRD:
            plural, _, group = ref.name.partition(".")
            kinds = (kind.gvk.group_kind for kind in builder.kinds.values() if kind.plural == plural)
            found.update((kind, ref) for kind in kinds if kind.group == group)
    return found


def _targets(
    builder: PlanBuilder, each: DesiredMember, found: Mapping[ObjectRef, DesiredMember]
) -> tuple[ObjectRef, ...]:
    """Return what an object waits for. A target that Git doesn't ask for is a problem, unless only a part is looked at."""
    asked = _Asked(found, builder.standing.members)
    targets = [_resolved(target, each, asked) for target in each.options.depends_on]
    for target in targets if builder.inputs.whole else ():
        if target not in asked:
            message = f"{each.ref} depends on {target}, which isn't in this source"
            problem(builder, each.located, message, f"add it, or correct the annotation {DEPENDS_ON}")
            builder.spared.add(each.ref)
    return tuple(target for target in targets if target in asked)


class _Asked(Struct, frozen=True):
    """All that Git asks for: what was *found* in this build, and what was *settled* before it."""

    found: Container[ObjectRef]
    settled: Container[ObjectRef]

    def __contains__(self, ref: ObjectRef) -> bool:
        """Tell whether Git asks for *ref*."""
        return ref in self.found or ref in self.settled


def _resolved(target: ObjectRef, each: DesiredMember, asked: _Asked) -> ObjectRef:
    """Return *target* in the object's own namespace, if it names none and isn't cluster-scoped."""
    if target.namespace or target in asked:
        return target
    near = target._replace(namespace=each.ref.namespace)
    return near if near in asked else target


def _break_cycles(
    builder: PlanBuilder, usable: Mapping[ObjectRef, DesiredMember], needs: dict[ObjectRef, Sequence[ObjectRef]]
) -> None:
    """Leave alone whatever waits for itself, and say how."""
    for cycle in cycles_in(needs):
        first = usable[cycle[0]]
        text = " -> ".join(map(str, cycle))
        problem(builder, first.located, f"these depend on each other: {text}", f"remove one {DEPENDS_ON}")
        for ref in cycle:
            builder.spared.add(ref)
            needs.pop(ref, None)
