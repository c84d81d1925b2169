"""One call of a domain module: what it is shown of its CR, and what is made of its answer.

A module sees its CR, the children that it made, and what it says it reads, all of it live; what external systems say was
looked at before, by others. A fault of the module, or a spec that it refuses, is a problem of this CR alone, and leaves
everything of the CR as it is.

Pure: modules are pure functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.module.api import Module, Observation
from kubectl_reconcile.core.module.call import ModuleError, outcome_of_invalid, outcome_of_refused_end
from kubectl_reconcile.core.module.inputs import INSTANCE_LABEL, Context, Owned, Reads
from kubectl_reconcile.core.module.outcome import Outcome, kept_status
from kubectl_reconcile.core.module.published import age_s
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.objects import Condition, GroupKind, Manifest, ObjectRef, Problem, Severity, labels_of
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Provenance, Unobserved
from kubectl_reconcile.core.planning.snapshot import Snapshot, Stored

BY_DAEMON = "the daemon, because the pods can't be reached from here"
"""What changes wait for that are planned on facts which somebody else found out."""

NOTHING_UNREAD: Final[Mapping[tuple[str, GroupKind], str]] = MappingProxyType({})


class Parent(Struct, frozen=True):
    """A CR whose module is asked: as it will be (*cr*) and as it is (*live*, None: not yet).

    *waits* says what must happen before it is as it will be.
    """

    module: Module
    kind: Kind
    ref: ObjectRef
    cr: Manifest
    live: Manifest | None
    order: tuple[int, ...]
    depth: int = 0
    waits: str = ""

    @property
    def uid(self) -> str:
        """The live CR's uid, empty where there is none yet."""
        return self.live["metadata"]["uid"] if self.live is not None else ""

    @property
    def wants(self) -> Provenance:
        """What its module asks for, is asked for by it."""
        return Provenance(owner=self.ref, manager=self.module.manager)

    @property
    def is_going(self) -> bool:
        """Tell whether the live CR is being deleted."""
        return self.live is not None and bool(self.live["metadata"].get("deletionTimestamp"))

    def place(self, steps: int) -> tuple[int, ...]:
        """Return where something stands in the order of writing: so many steps after the CR, before the next wave."""
        return (*self.order[:-1], self.order[-1] + steps)


def ask(builder: PlanBuilder, parent: Parent, owned: Sequence[Stored]) -> Outcome | None:
    """Return the module's outcome; a fault of the module is a problem of this CR alone."""
    view = owned_view(builder.inputs.live, parent.module, parent.cr, owned, builder.inputs.coverage.unread)
    seen = _observation(builder, parent, view)
    if seen is None:
        return None
    modules = builder.inputs.modules
    ends_refused = seen.is_refused and bool(parent.cr["metadata"].get("deletionTimestamp"))
    unobserved = "" if ends_refused else seen.error
    context = Context(builder.inputs.now, parent.module.name, parent.cr, unobserved, modules.ceilings)
    try:
        outcome = modules.ask(parent.module, parent.cr, view, seen.facts, context)
    except SpecError as error:
        fault(builder, parent, str(error), "correct the field; until then everything stays as it is")
        return outcome_of_invalid(parent.cr, error)
    except ModuleError as error:
        if ends_refused:
            return outcome_of_refused_end(parent.module, parent.cr, view, seen.error)
        fault(builder, parent, str(error), "its children are left alone until the module is fixed")
        return _outcome_of_broken(parent.cr, error)
    if unobserved:
        fault(
            builder,
            parent,
            f"its external system can't be observed: {unobserved}",
            "it is observed again, at growing intervals",
        )
        return replace(outcome, actions=(), keep_children=True, finalized=False)
    for text in outcome.warnings:
        warn(builder, parent, text)
    if seen.as_of:
        _tell_age(builder, parent, seen)
    if seen.unheard:
        hint = "try again: steps may be missing, and none are foreseen"
        warn(builder, parent, f"ready, but silent: {seen.unheard}", hint)
    return outcome


def is_recalled(builder: PlanBuilder, parent: Parent) -> bool:
    """Tell whether what is known of the parent's pods was found out by somebody else, and some time ago."""
    seen = builder.inputs.modules.observed.get(parent.ref)
    return seen is not None and bool(seen.as_of)


def _tell_age(builder: PlanBuilder, parent: Parent, seen: Observation) -> None:
    message = f"its pods, as the daemon observed them {age_s(seen, builder.inputs.now):.0f} s ago: {seen.unreached}"
    warn(builder, parent, message, "the daemon decides the next steps")


def _outcome_of_broken(cr: Manifest, error: ModuleError) -> Outcome:
    conditions = (Condition("Stalled", "True", "ModuleFailed", str(error)),)
    return Outcome(status=kept_status(cr), conditions=conditions, keep_children=True)


def _observation(builder: PlanBuilder, parent: Parent, view: Owned) -> Observation | None:
    """Return what is known of external systems, None where somebody must look first."""
    if parent.module.observe is None:
        return Observation()
    seen = builder.inputs.modules.observed.get(parent.ref)
    if seen is None:
        builder.outcomes.unobserved[parent.ref] = Unobserved(parent.module, parent.cr, view)
    return seen


def children_of(live: Snapshot, cr: Manifest) -> Sequence[Stored]:
    """Return the live objects that *cr* controls.

    Those of other namespaces aren't its children, whatever they say: an owner reference is anybody's to write.
    """
    uid, place = cr["metadata"].get("uid") or "", cr["metadata"].get("namespace") or ""
    found = live.owned_by(uid) if uid else ()
    return tuple(each for each in found if not place or each.ref.namespace == place)


def owned_view(
    live: Snapshot, module: Module, cr: Manifest, owned: Sequence[Stored] | None = None,
    unread: Mapping[tuple[str, GroupKind], str] = NOTHING_UNREAD,
) -> Owned:  # fmt: skip
    """Return what *module* is shown of the live objects around *cr*; *unread* is what could not be listed, by namespace."""
    children = owned if owned is not None else children_of(live, cr)
    context = Context(now="", module=module.name, cr=cr)
    found = {
        ObjectRef.of(each): each
        for reads in module.reads
        for each in _read_by(live, reads, context)
        if not reads.on_request and not reads.whole_namespace
    }
    whole = {reads.gvk.group_kind for reads in module.reads if reads.whole_namespace and context.namespace}
    around = (each for kind in sorted(whole) for each in live.of_kind(kind, context.namespace))
    known = {*found, *(each.ref for each in children)}
    return Owned(
        children=[each.manifest() for each in children],
        read=found.values(),
        around=(each for each in around if each.ref not in known),
        unread={
            str(kind): unread[context.namespace, kind] for kind in sorted(whole) if (context.namespace, kind) in unread
        },
    )


def _read_by(live: Snapshot, reads: Reads, context: Context) -> Iterator[Manifest]:
    """Yield the objects that belong to the CR without being its children."""
    kind = reads.gvk.group_kind
    if reads.of is None:
        for each in live.labelled(INSTANCE_LABEL, context.name()):
            if each.ref.group_kind == kind and context.sees(manifest := each.manifest()):
                yield manifest
        return
    select = reads.of(context.cr)
    candidates = [live.stored(ObjectRef(kind.group, kind.kind, context.namespace, name)) for name in select.names]
    for key, value in list(select.labels.items())[:1]:
        candidates += live.labelled(key, value)
    if select.path:
        candidates += live.of_kind(kind, context.namespace)
    for found in candidates:
        if found and found.ref.group_kind == kind and found.ref.namespace in {context.namespace, ""}:
            manifest = found.manifest()
            if select.matches(manifest) and reads.labels.items() <= labels_of(manifest).items():
                yield manifest


def fault(builder: PlanBuilder, parent: Parent, message: str, hint: str) -> None:
    """Note what is wrong with a CR, or with its module."""
    builder.problems.append(Problem(str(parent.ref), 0, message, hint, in_source=False))


def warn(builder: PlanBuilder, parent: Parent, message: str, hint: str = "") -> None:
    """Note what somebody should know of a CR, and nothing is kept from happening by."""
    builder.problems.append(Problem(str(parent.ref), 0, message, hint, severity=Severity.WARNING, in_source=False))
