"""The members of a set: what Git asks for, compared with what is there.

Rules:

- What can't be meant as it is written becomes a problem; the others go on.
- An object of another set is left alone, unless it says that it moved here from there, and that set's Sync agrees: by what it
  applied to the object, by being in the same namespace, or by being gone.
- A Job that the cluster removes once it has ended runs once for each state of the source.

Pure.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubectl_reconcile.core.annotations import (
    MEMBERS_FROM,
    MOVED_FROM,
    MOVED_TO,
    SOURCE,
    WAVE,
    HookPoint,
    MemberOptions,
)
from kubectl_reconcile.core.health.workload_rules import removes_itself
from kubectl_reconcile.core.manifests import hooks
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import (
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    Severity,
    annotations_of,
    labels_of,
    place_of,
)
from kubectl_reconcile.core.planning.arrangement import DesiredMember, arrange, problem
from kubectl_reconcile.core.planning.builder import BEING_DELETED, PlanBuilder, is_going, unreadable
from kubectl_reconcile.core.planning.endings.updates import lets_go
from kubectl_reconcile.core.planning.hold import hash_of
from kubectl_reconcile.core.planning.kinds import CRD, PRECIOUS, Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import OPEN, Change, Gate, Op, Provenance
from kubectl_reconcile.core.rendering.holding import applied, drawn_now, mixtures
from kubectl_reconcile.core.resources import applyset

# --- what Git asks for --------------------------------------------------------------------------


def wanted(builder: PlanBuilder) -> dict[ObjectRef, DesiredMember]:
    """Return what Git asks for, by reference, and find its order; what can't be meant becomes a problem.

    What an earlier build has settled isn't among it.
    """
    _learn_kinds(builder)
    found: dict[ObjectRef, DesiredMember] = {}
    left_out: set[ObjectRef] = set()
    for located in builder.standing.others:
        each = _read(builder, located)
        if each is None:
            continue
        if each.options.theirs.left_out:
            left_out.add(each.ref)
            continue
        found[each.ref] = _one_of(builder, found[each.ref], each) if each.ref in found else each
        _report_faults(builder, each)
    builder.spared |= left_out - found.keys()
    builder.spare(mixtures(((ref, each.located) for ref, each in found.items()), builder.live))
    usable = {ref: each for ref, each in found.items() if ref not in builder.spared}
    arrange(builder, usable, found)
    return {ref: each for ref, each in usable.items() if ref not in builder.spared}


def _learn_kinds(builder: PlanBuilder) -> None:
    """Add the kinds that this revision's CRDs bring along, or change; take away the versions that these stop to serve."""
    for located in builder.standing.others:
        if located.gvk.kind == CRD.kind and located.gvk.group == CRD.group:
            fresh = kinds_of_crd(located.manifest)
            brought, served = fresh.keys() - builder.kinds.keys(), {gvk.group_kind for gvk in fresh}
            dropped = {gvk for gvk in builder.kinds if gvk.group_kind in served} - fresh.keys()
            is_changed = (bool(dropped) or not brought) and _is_changed(builder, located)
            if brought or is_changed:
                builder.kinds.update(fresh)
            for gvk in dropped if is_changed else ():
                del builder.kinds[gvk]


def _is_changed(builder: PlanBuilder, crd: Located) -> bool:
    """Tell whether a CRD that the cluster has already will be another one."""
    each = _read(builder, crd)
    if each is None or each.options.theirs.left_out or builder.inputs.live.stored(each.ref) is None:
        return False
    change = compare(builder, each)
    return change.op is not Op.UNCHANGED and not change.gate.blocked


def _read(builder: PlanBuilder, located: Located) -> DesiredMember | None:
    manifest = located.manifest
    gvk = located.gvk
    kind = builder.kinds.get(gvk)
    if kind is None:
        is_dropped = gvk in builder.inputs.kinds
        said = f"its CRD stops serving {gvk}" if is_dropped else f"the cluster knows no kind {gvk}"
        problem(builder, located, said, _instead(builder, gvk))
        _spare_namesakes(builder, gvk.group_kind, located.ref.name)
        return None
    ref = _placed(located.ref, kind, builder.inputs.sync.default_namespace)
    if not kind.namespaced and manifest["metadata"].get("namespace"):
        said = f"{ref} is cluster-scoped; its metadata.namespace is ignored"
        problem(builder, located, said, "remove metadata.namespace", Severity.WARNING)
    options = MemberOptions.of(manifest)
    if options.hook and not options.theirs.left_out and (complaint := hooks.complaint_of(manifest)):
        problem(builder, located, f"{ref}: {complaint[0]}", complaint[1])
        builder.spared.add(ref)
        return None
    key = _key(builder, located)
    if options.hook:
        key = f"{key}:{hooks.digest_of(builder.inputs.revision)}"
    return DesiredMember(ref, kind, located, options, _with_contests(builder, ref, key))


def _one_of(builder: PlanBuilder, first: DesiredMember, then: DesiredMember) -> DesiredMember:
    """Return which of two manifests of one object counts: of one that is a hook to another tool and a plain one the plain one.

    To Helm, the hook's is there first and the other one stays. So the plain one is written where the hook would be, if that is before all
    else. Of two others neither counts: which is meant, nobody knows.
    """
    hooks_among = [each for each in (first, then) if each.options.theirs.point and not each.options.hook]
    if len(hooks_among) != 1 or any(each.options.hook for each in (first, then)):
        where = place_of(first.path, first.line)
        problem(builder, then.located, f"{then.ref} is also in {where}", "keep one of the two")
        builder.spared.add(then.ref)
        return first
    (hook,) = hooks_among
    kept = then if hook is first else first
    said = f"{hook.ref} is also in {place_of(kept.path, kept.line)}, where it isn't a hook: that one is applied"
    problem(builder, hook.located, said, "keep one of the two", Severity.WARNING)
    if hook.options.theirs.point != HookPoint.PRE_SYNC:
        return kept
    return replace(
        kept, options=replace(kept.options, theirs=replace(kept.options.theirs, point=hook.options.theirs.point))
    )


def _report_faults(builder: PlanBuilder, each: DesiredMember) -> None:
    """Make problems of annotations that can't be meant; an object with one is left alone, but for a wave."""
    for fault in each.options.faults:
        until_then = "0 is used" if fault.name == WAVE else "the object is left alone"
        problem(builder, each.located, f"{each.ref}: {fault.message}", f"{fault.hint}; until then {until_then}")
        if fault.name != WAVE:
            builder.spared.add(each.ref)


def _instead(builder: PlanBuilder, gvk: GroupVersionKind) -> str:
    """Return what to do about a kind that isn't served: name what is served in its place, where there is anything."""
    if why := builder.inputs.coverage.unavailable.get(gvk.api_version):
        service = f"{gvk.version}.{gvk.group}"
        return f"{why}; see kubectl get apiservice {service}"
    served = sorted(each for each in {*builder.inputs.served, *builder.kinds} if _may_be_meant(each, gvk))
    same = [each.api_version for each in served if each.group == gvk.group]
    if same:
        return f"the cluster serves it as {' and '.join(same)}: change apiVersion, and the fields that differ there"
    if served:
        others = " or ".join(each.api_version for each in served)
        return (
            f"the cluster serves {gvk.kind} as {others}: change apiVersion to that, or apply the CRD of this one first"
        )
    return "apply its CRD first, or correct apiVersion"


def _may_be_meant(served: GroupVersionKind, gvk: GroupVersionKind) -> bool:
    """Tell whether a kind that is served may be what was meant by one that isn't: of the same group, or of the same people's."""
    return served.kind == gvk.kind and (served.group == gvk.group or _people_of(served.group) == _people_of(gvk.group))


def _people_of(group: str) -> str:
    """Return whose an API group is, by its domain: Kubernetes' own have none, or k8s.io."""
    domain = ".".join(group.rsplit(".", 2)[-2:]) if "." in group else ""
    return "" if domain == "k8s.io" else domain


def _spare_namesakes(builder: PlanBuilder, kind: GroupKind, name: str) -> None:
    """Keep whatever object an unusable manifest may mean: any of its kind and name."""
    builder.spared.update(
        each.ref for each in builder.members() if each.ref.group_kind == kind and each.ref.name == name
    )


def _placed(ref: ObjectRef, kind: Kind, namespace: str) -> ObjectRef:
    place = (ref.namespace or namespace) if kind.namespaced else ""
    return ref if place == ref.namespace else ref._replace(namespace=place)


def marked(builder: PlanBuilder, each: DesiredMember) -> Manifest:
    """Return the manifest as it is applied: in its namespace, with the marks of a member."""
    manifest, ref = applied(each.located, each.ref, builder.live, builder.problems), each.ref
    if manifest["metadata"].get("namespace", "") != ref.namespace:
        others = {name: value for name, value in manifest["metadata"].items() if name != "namespace"}
        place = {"namespace": ref.namespace} if ref.namespace else {}
        manifest = {**manifest, "metadata": {**others, **place}}
    if each.options.hook:
        manifest = hooks.stamped(manifest, builder.inputs.revision)
    if builder.inputs.grouped:
        return applyset.member(manifest, set_id=builder.set_id, source=each.path)
    return _with_live_marks(manifest, builder.live(ref))


def _with_live_marks(manifest: Manifest, live: Manifest | None) -> Manifest:
    """Keep the marks that a live object carries, so that a preview outside its Sync doesn't strip them."""
    if live is None or applyset.PART_OF not in labels_of(live):
        return manifest
    source = annotations_of(live).get(SOURCE, "")
    return applyset.member(manifest, set_id=labels_of(live)[applyset.PART_OF], source=source)


def _key(builder: PlanBuilder, located: Located) -> str:
    """Return what identifies a desired state: the file's content, the place in it, and how it is marked."""
    blob = builder.inputs.revision.files.get(located.path, "")
    stamp = builder.inputs.revision.stamps.get(located.path, "")
    return f"{blob}:{located.path}:{located.line}:{builder.marks}{f':{stamp}' if stamp else ''}"


def _with_contests(builder: PlanBuilder, ref: ObjectRef, key: str) -> str:
    """Return *key* for a desired state of which some fields are left to others."""
    contentions = builder.inputs.memory.contentions.get(ref)
    return f"{key}:{hash_of(repr([contention.path for contention in contentions]))}" if contentions else key


# --- what happens to it -------------------------------------------------------------------------


def explained(builder: PlanBuilder, change: Change, located: Located) -> Change:
    """Return *change* of a member as it reads once more is known: the reasons of its fields, and whose the object is."""
    if change.kind is None:
        return change
    options = MemberOptions.of(located.manifest)
    again = compare(builder, DesiredMember(change.ref, change.kind, located, options, change.provenance.key))
    change = replace(change, fields=again.fields)
    if not change.provenance.foreign:
        return change
    is_seen = again.provenance.foreign in builder.inputs.memory.sets
    foreign = _name_of_set(builder, again.provenance.foreign) if is_seen else change.provenance.foreign
    return change.gated(blocked=again.gate.blocked).attributed(foreign=foreign)


def compare(builder: PlanBuilder, each: DesiredMember) -> Change:
    """Return what happens to one object that Git asks for."""
    stored = builder.inputs.live.stored(each.ref)
    verdict = (each.key, stored.resource_version) if stored else None
    needs = builder.when.needs.get(each.ref, ())
    if verdict and builder.inputs.memory.verdicts.get(each.ref) == verdict:
        builder.verdicts[each.ref] = verdict
        return as_before(each, needs)
    live = stored.manifest() if stored else None
    if why := builder.inputs.lookups.unreadable.get(each.ref):
        return Change(
            each.ref, Op.UNCHANGED, each.kind, provenance=Provenance(each.path, each.line), gate=unreadable(why)
        )
    change = _judged(builder, each, marked(builder, each), live)
    if change.op is Op.UNCHANGED and not change.gate.blocked:
        if verdict:
            builder.verdicts[each.ref] = verdict
        change = change.attributed(file=each.path, line=each.line)
        return change.gated(needs=needs) if needs else change
    replaceable = change.gate.replaceable or (not change.gate.hook and _is_replaceable(builder, each))
    change = change.attributed(file=each.path, line=each.line, key=each.key, drawn=drawn_now(each.located, live))
    return _waiting_in_vain(builder, change.gated(needs=needs, replaceable=replaceable))


def as_before(each: DesiredMember, needs: tuple[ObjectRef, ...]) -> Change:
    """Return that an object is as an earlier build found it."""
    manifest, hook = each.located.manifest, each.options.hook or ""
    gate = Gate(hook=hook, needs=needs) if hook or needs else OPEN
    provenance = Provenance(each.path, each.line)
    return Change(each.ref, Op.UNCHANGED, each.kind, labels=labels_of(manifest), provenance=provenance, gate=gate)


def _judged(builder: PlanBuilder, each: DesiredMember, manifest: Manifest, live: Manifest | None) -> Change:
    """Return the change of one object, by what it says of itself and by whom it belongs to."""
    other = _other_set(builder, each, live)
    if (home := each.options.moved_to) and (live is None or other == applyset.applyset_id(home)):
        return Change(each.ref, Op.UNCHANGED, each.kind)  # it has moved, or there is nothing to move
    if other and not home and MemberOptions.of(live or {}).moved_from == builder.inputs.sync.ref:
        return Change(each.ref, Op.UNCHANGED, each.kind)  # it has moved there: its new home says so
    if live is None and builder.inputs.memory.settled and removes_itself(manifest):
        return Change(each.ref, Op.UNCHANGED, each.kind)  # it has run; to run it again would be to run it forever
    rules = builder.inputs.sync
    if hook := each.options.hook:
        change = _hook(builder, each, manifest, live, hook)
    else:
        base = builder.inputs.memory.bases.get(each.ref)
        provenance = Provenance(manager=rules.field_manager, uses=each.located.uses)
        policy = each.options.conflicts
        change = builder.judge(
            each.ref,
            each.kind,
            manifest,
            live,
            rules=rules,
            base=base,
            provenance=provenance,
            policy=policy,
            adopting=_is_adopted(builder, live),
        )
        if change.gate.blocked == BEING_DELETED and lets_go(change):
            change = replace(change, op=Op.REPLACE).gated(blocked="")
        if live is not None and change.is_quiet and is_going(live) and not removes_itself(manifest):
            change = change.gated(blocked=BEING_DELETED)
    if other:
        blocked = replace(change, op=Op.UPDATE).gated(blocked=_belongs_elsewhere(builder, each, other))
        return blocked.attributed(foreign=other)
    if not builder.inputs.grouped and change.op is not Op.UNCHANGED and live is not None:
        return change.attributed(foreign=labels_of(live).get(applyset.PART_OF, ""))
    return change


def _is_adopted(builder: PlanBuilder, live: Manifest | None) -> bool | None:
    """Tell whether a live object isn't a member of this Sync yet; None where membership isn't kept."""
    if live is None or not builder.inputs.grouped:
        return None
    return labels_of(live).get(applyset.PART_OF) != builder.set_id


def _hook(builder: PlanBuilder, each: DesiredMember, manifest: Manifest, live: Manifest | None, hook: str) -> Change:
    """Return the run of a hook, or that it has run for this state of the source already."""
    memory, occasion = builder.inputs.memory, each.options.theirs.occasion
    if hooks.has_run(live, manifest, occasion, installed=memory.installed, settled=memory.settled):
        return Change(each.ref, Op.UNCHANGED, each.kind, gate=Gate(hook=hook))
    rules = builder.inputs.sync
    provenance = Provenance(manager=rules.field_manager, uses=each.located.uses)
    change = builder.judge(each.ref, each.kind, manifest, None, rules=rules, provenance=provenance)
    op = Op.CREATE if live is None else Op.REPLACE
    return replace(change, op=op, before=live).gated(hook=hook, replaceable=True)


def _is_replaceable(builder: PlanBuilder, each: DesiredMember) -> bool:
    """Tell whether an object may be deleted and recreated; what holds other things only says so itself."""
    asked = each.options.replace
    return builder.inputs.sync.replace and each.ref.group_kind not in PRECIOUS if asked is None else asked


def _waiting_in_vain(builder: PlanBuilder, change: Change) -> Change:
    """Block an object whose target is left alone itself."""
    lost = next((target for target in change.gate.needs if target in builder.spared), None)
    if lost is None or change.gate.blocked:
        return change
    return change.gated(blocked=f"it depends on {lost}, which can't be used as it is")


def _other_set(builder: PlanBuilder, each: DesiredMember, live: Manifest | None) -> str:
    """Return the id of another set that a live object belongs to, unless it moved here from there."""
    other = labels_of(live).get(applyset.PART_OF) if live is not None and builder.inputs.grouped else None
    if other in {None, builder.set_id}:
        return ""
    origin = _origin(builder, each)
    is_from_there = origin is not None and applyset.set_of(origin) == other
    return "" if is_from_there and origin and _is_given(builder, origin, live or {}) else str(other)


def _origin(builder: PlanBuilder, each: DesiredMember) -> ObjectRef | None:
    """Return the Sync that an object is to come from: its own word, or that of the Sync for all of its objects."""
    return each.options.moved_from or builder.inputs.sync.members_from


def _is_given(builder: PlanBuilder, giver: ObjectRef, live: Manifest) -> bool:
    """Tell whether *giver* lets an object of its set go to this Sync: both must say so, or anybody could take it.

    In one namespace both are the same people's. Of a giver that is gone nobody is left to ask.
    """
    own = builder.inputs.sync.ref
    is_near = giver.namespace == own.namespace
    return is_near or giver in builder.inputs.lookups.gone or MemberOptions.of(live).moved_to == own


def _name_of_set(builder: PlanBuilder, set_id: str) -> str:
    sync = builder.inputs.memory.sets.get(set_id)
    return f"Sync {sync.namespace}/{sync.name}" if sync else f"another set, {set_id}"


def _belongs_elsewhere(builder: PlanBuilder, each: DesiredMember, other: str) -> str:
    sync, giver = builder.inputs.memory.sets.get(other), _origin(builder, each)
    if giver is not None and applyset.set_of(giver) == other:
        own = builder.inputs.sync
        known = f"Sync {giver.namespace}/{giver.name}, which" if giver.namespace else f"the set {other}, whose Sync"
        return (
            f"it belongs to {known} hasn't released it; "
            f"annotate it there with {MOVED_TO}: {own.namespace}/{own.name}, or remove it there first"
        )
    if sync is None:
        return (
            f"it belongs to {_name_of_set(builder, other)}, whose Sync isn't seen; if that was renamed or is gone, "
            f"annotate this object with {MOVED_FROM}, or this Sync with {MEMBERS_FROM}: {other}"
        )
    return f"it belongs to {_name_of_set(builder, other)}; to move it here, annotate it with {MOVED_FROM}: {sync.namespace}/{sync.name}, or remove it there first"
