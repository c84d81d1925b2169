"""Children that stay when their custom resource goes, whoever deletes it: they carry no owner, so that nothing takes them along.

Vocabulary: a module *keeps* some of its children. One that still carries an owner, since it was made before that was so, or since the custom resource said otherwise,
is *freed*: at once, whatever else the custom resource waits for, and also where its spec is refused. One that isn't wanted any more is *dropped*: it goes only when its module names it.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from kubectl_reconcile.core.annotations import MODULE_LABEL
from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile.core.module.outcome import key_of
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, controller_of, labels_of, map_at
from kubectl_reconcile.core.planning.builder import NO_RULES, PlanBuilder
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.module_call import Parent, fault
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.planning.snapshot import Stored
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.lookup import extract
from kubectl_reconcile.core.ssa.managed_fields import entry_of


def to_be_freed(parent: Parent, owned: Sequence[Stored]) -> tuple[Stored, ...]:
    """Return those of the children of *parent* that carry an owner and are to stay when it goes. What others have bound to it isn't among them."""
    module = parent.module
    if not module.keeps:
        return ()
    found = ((each, each.manifest()) for each in owned)
    return tuple(each for each, live in found if module.holds(parent.cr, live) and _is_ours(live, parent))


def _is_ours(live: Manifest, parent: Parent) -> bool:
    is_marked = labels_of(live).get(MODULE_LABEL) == parent.module.name
    return is_marked or entry_of(live, parent.module.manager) is not None


def free(
    builder: PlanBuilder,
    parent: Parent,
    bound: Iterable[Stored],
    planned: Collection[ObjectRef],
    place: tuple[int, ...],
) -> None:
    """Have children that stay carry no owner any more; those that are *planned* already are written without one."""
    for each in bound:
        live = each.manifest()
        if not _is_free_to_go(live, parent):
            hint = f"remove metadata.ownerReferences of {each.ref}"
            fault(
                builder,
                parent,
                f"{each.ref} is to stay when {parent.ref} goes, and has its owner from somebody else",
                hint,
            )
        elif each.ref not in planned and (change := freed(builder, parent, each.ref, live)) is not None:
            builder.add(change, place)


def _is_free_to_go(live: Manifest, parent: Parent) -> bool:
    """Tell whether the owner of a child is its module's to take away: whoever states a field takes it away by not stating it."""
    stated = map_at(entry_of(live, parent.module.manager) or {}, "fieldsV1", "f:metadata", "f:ownerReferences")
    return any(f'"{parent.uid}"' in key for key in stated)


def freed(builder: PlanBuilder, parent: Parent, ref: ObjectRef, live: Manifest) -> Change | None:
    """Return the change by which a *live* child carries no owner any more that is to stay when *parent* goes; None where there is nothing to do, or no way."""
    is_bound = (controller_of(live) or {}).get("uid") == parent.uid and parent.module.holds(parent.cr, live)
    kind = builder.kinds.get(GroupVersionKind.of(live))
    if not is_bound or kind is None or live["metadata"].get("deletionTimestamp"):
        return None
    if (body := _freed_body(live, kind, parent.module.manager)) is None:
        return None
    change = builder.judge(ref, kind, body, live, rules=NO_RULES, provenance=parent.wants)
    return None if change.op is Op.UNCHANGED else change.gated(waits=parent.waits)


def _freed_body(live: Manifest, kind: Kind, manager: str) -> Manifest | None:
    """Return what *manager* has stated of a *live* child, without an owner: applied, it leaves all but the owner as it is. None where that isn't known."""
    entry = entry_of(live, manager)
    try:
        body = extract(live, FieldSet.of_wire(map_at(entry, "fieldsV1")), kind.schema.root) if entry else None
    except ValueError:  # an entry that no server writes
        return None
    if not isinstance(body, dict):
        return None
    metadata = {name: value for name, value in map_at(body, "metadata").items() if name != "ownerReferences"}
    named = {name: live["metadata"][name] for name in ("name", "namespace") if live["metadata"].get(name)}
    return {**body, "apiVersion": kind.gvk.api_version, "kind": kind.gvk.kind, "metadata": {**metadata, **named}}


def unwanted(
    builder: PlanBuilder, parent: Parent, owned: Sequence[Stored], bound: Sequence[Stored], keys: Collection[str]
) -> Iterator[Stored]:
    """Yield the children that go unless they are wanted: of those that stay only what *keys* name, which the module drops."""
    stays = {each.ref for each in bound if key_of(each.manifest()) not in keys}
    yield from (each for each in owned if each.ref not in stays)
    yield from _dropped(builder, parent, keys)


def _dropped(builder: PlanBuilder, parent: Parent, keys: Iterable[str]) -> Iterator[Stored]:
    """Yield the live objects that *keys* name: children of *parent* that carry no owner. What belongs to anybody else isn't among them."""
    context = Context("", parent.module.name, parent.cr)
    for key in keys:
        kind, _, name = key.partition("/")
        for gvk in parent.module.owns:
            ref = ObjectRef(gvk.group, gvk.kind, parent.ref.namespace, name)
            found = builder.inputs.live.stored(ref) if str(gvk.group_kind) == kind else None
            if found is not None and controller_of(manifest := found.manifest()) is None and context.sees(manifest):
                yield found
