"""What must be known before a plan is the last word, and what its answers change.

A first plan is made of what is cached. It calls for more: whether what it would create is there already, what deletions would take
along, what was applied last. ``decide`` returns the plan where nothing is left to ask, and else *questions*; ``take`` puts the
answers among the inputs. Whoever plans builds, asks and answers until there is a plan.

Rules:

- Of each subject a question is asked once, whatever the answer, so there is an end. A custom resource that turns out to exist is another subject than one that is new.
- What others depend on is asked first: what is outside the cluster; what is there by name; what decides over updates and deletions; what deletions take along;
  the reasons of what is left. Last comes who keeps overwriting what is about to be written, since that is remembered.
- Questions of one round don't depend on one another, and may be answered in any order.
- An answer that changes no judgement doesn't have the plan built again.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, labels_of
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.namespaces import made_for
from kubectl_reconcile.core.planning.plan import Change, Contention, Contentions, Op, Plan, Unobserved, set_id_of
from kubectl_reconcile.core.planning.planner import explain
from kubectl_reconcile.core.planning.snapshot import Objects, Overlay
from kubectl_reconcile.core.rendering.lookups import about
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom
from kubectl_reconcile.core.ssa.managed_fields import entry_of


class Questions(Struct, frozen=True):
    """What must be known first; in each round of questions most of these are empty.

    - *outside*: what modules find in external systems for these custom resources
    - *names*: which of these objects, which are to be created, are there; of all but the *sure* ones the server may judge that when they are written
    - *updates*: what was applied last of these, and in which fields; it *recalls* which fields may go, and *informs* rules about drift
    - *unasked*: which of these, which say that they are members, no revision has asked for
    - *givers*: which of these Syncs, from which objects are to move here, are gone
    - *draws*: whether what was drawn by chance was drawn for this plan alone
    - *along*: what deletions take along
    - *foreign*: which Syncs are behind the sets that these objects belong to
    - *lookups*: whether a chart would find the same if it looked this up now
    - *writes*: which fields of these somebody keeps overwriting, and that *settled* ones aren't overwritten any more
    """

    outside: Mapping[ObjectRef, Unobserved] = field(default_factory=dict)
    names: Sequence[tuple[ObjectRef, Kind]] = ()
    sure: frozenset[ObjectRef] = frozenset()
    updates: Sequence[Change] = ()
    recalls: bool = False
    informs: bool = False
    unasked: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    givers: frozenset[ObjectRef] = frozenset()
    draws: bool = False
    along: frozenset[Listing] = frozenset()
    foreign: Mapping[ObjectRef, str] = field(default_factory=dict)
    lookups: tuple[str, ...] = ()
    writes: Sequence[Change] = ()
    settled: tuple[Contention, ...] = ()

    def __bool__(self) -> bool:
        return any(asdict(self).values())

    def counts(self) -> dict[str, int]:
        """Return the questions that are asked, by name, and of how many subjects each is."""
        return {name: len(each) if hasattr(each, "__len__") else 1 for name, each in asdict(self).items() if each}


class Answers(Struct, frozen=True):
    """What was found out; what is empty says that there is nothing of that.

    *found* are objects that are there, *unreadable* says of which that can't be known, and why. *recalled* are manifests that were applied last. *desired* is what
    the source asks for with other values drawn. *sets* are Syncs by the ids of their sets. *contentions* are all fields to be left alone, None where none has
    come up. *begun* is what is known from the beginning, since a chart asks for something else now.
    """

    observed: Mapping[ObjectRef, Observation] = field(default_factory=dict)
    found: Objects = field(default_factory=Objects)
    unreadable: Mapping[ObjectRef, str] = field(default_factory=dict)
    recalled: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    strangers: frozenset[ObjectRef] = frozenset()
    gone: frozenset[ObjectRef] = frozenset()
    desired: Sequence[Located] | None = None
    listed: Mapping[Listing, Listed] = field(default_factory=dict)
    sets: Mapping[str, ObjectRef] = field(default_factory=dict)
    contentions: Contentions | None = None
    begun: Inputs | None = None

    @property
    def is_judged_by(self) -> bool:
        """Tell whether a plan may do something else by this; else only what is said of it is another."""
        return bool(
            self.observed or self.found or self.unreadable or self.strangers or self.gone or self.listed
        ) or not (self.desired is None and self.contentions is None)


def decide(inputs: Inputs, made: Plan) -> Plan | Questions:
    """Return *made*, which was built of *inputs*, where all that it depends on is known; else what must be known first."""
    return next(filter(None, (asked(inputs, made) for asked in _ROUNDS)), made)


def take(inputs: Inputs, made: Plan, asked: Questions, said: Answers) -> tuple[Inputs, Plan | None]:
    """Return *inputs* with the answers to what was *asked* of *made*, and the plan as far as it stands: None where it must be built again."""
    if said.begun is not None:
        return said.begun, None
    known = _learned(_noted(inputs, asked), said)
    is_recalled = asked.informs or (asked.recalls and bool(said.recalled))
    if is_recalled:
        known = known.remembering(bases=known.lookups.recalled, informed=asked.informs)
    if is_recalled or said.is_judged_by:
        return known.remembering(verdicts=made.verdicts), None
    return known, explain(known, made, {*(each.ref for each in asked.updates), *asked.foreign})


def explained(inputs: Inputs, made: Plan) -> Plan:
    """Return a plan that was just built of *inputs* with the reasons that are known by now."""
    return explain(inputs, made, inputs.asked.updates | inputs.asked.foreign)


# --- what is asked, round by round ---------------------------------------------------------------


def _outside(inputs: Inputs, made: Plan) -> Questions:
    known = inputs.modules.observed
    return Questions(outside={ref: each for ref, each in made.outcomes.unobserved.items() if ref not in known})


def _names(inputs: Inputs, made: Plan) -> Questions:
    creates = (each for each in made.acting() if each.op is Op.CREATE and each.ref not in inputs.asked.names)
    names = [(each.ref, each.kind) for each in creates if each.kind]
    if not names:
        return Questions()
    is_all_sure = any(change.gate.hook for change in made.changes)
    # who may not make a namespace that is there already would be refused
    sure = [ref for ref, _ in names] if is_all_sure else [each.ref for each in made_for(made)]
    return Questions(names=names, sure=frozenset(sure))


def _endings(inputs: Inputs, made: Plan) -> Questions:
    updates, set_id = _updates(inputs, made), set_id_of(inputs.sync)
    recalls = any(_is_forgotten(each, set_id) for each in updates)
    drawn = (each.provenance.drawn for each in (*made.acting(), *made.schedule.fallbacks))
    return Questions(
        updates=updates if recalls else (),
        recalls=recalls,
        unasked={ref: each for ref, each in made.marked.unasked.items() if ref not in inputs.asked.unasked},
        givers=_givers(inputs, made) - inputs.asked.givers,
        draws=not inputs.asked.draws and any(drawn),
    )


def _along(inputs: Inputs, made: Plan) -> Questions:
    return Questions(along=made.lacking - inputs.lookups.listed.keys())


def _reasons(inputs: Inputs, made: Plan) -> Questions:
    foreign = {each.ref: each.provenance.foreign for each in made.acting() if each.provenance.foreign}
    chart = (
        about(inputs.lookups.chart, (each.ref for each in made.acting() if each.writes)) if inputs.lookups.chart else ()
    )
    return Questions(
        updates=_updates(inputs, made),
        informs=not inputs.memory.informed and any(rule.of is IgnoreFrom.DRIFT for rule in inputs.sync.ignore),
        foreign={ref: set_id for ref, set_id in foreign.items() if ref not in inputs.asked.foreign},
        lookups=tuple(each for each in chart if each not in inputs.asked.lookups),
    )


def _writes(inputs: Inputs, made: Plan) -> Questions:
    known = inputs.asked.writes
    return Questions(
        writes=[each for each in made.acting() if each.op is Op.UPDATE and each.writes and each.ref not in known],
        settled=tuple(each for each in made.settled if each.ref not in known),
    )


_Round: TypeAlias = Callable[[Inputs, Plan], Questions]
_ROUNDS: Final[Sequence[_Round]] = (_outside, _names, _endings, _along, _reasons, _writes)
"""Each is asked once those before it have nothing left to ask."""


def _updates(inputs: Inputs, made: Plan) -> list[Change]:
    """Return the updates of members of which it wasn't asked yet what was applied last."""
    return [
        each for each in made.acting()
        if each.op is Op.UPDATE and each.before is not None and not each.is_child and each.ref not in inputs.asked.updates
    ]  # fmt: skip


def _is_forgotten(change: Change, set_id: str) -> bool:
    """Tell whether it isn't recorded any more that a member that changes was applied, or by anybody: what was applied last tells which fields may go."""
    before = change.before or {}
    return labels_of(before).get(PART_OF) == set_id and entry_of(before, change.provenance.manager) is None


def _givers(inputs: Inputs, made: Plan) -> frozenset[ObjectRef]:
    """Return the Syncs of other namespaces that objects of a plan are to move from and that hold them still."""
    blocked = {(each.provenance.file, each.provenance.line) for each in made.acting() if each.provenance.foreign}
    located = (each for each in inputs.desired if (each.path, each.line) in blocked) if blocked else ()
    origins = {MemberOptions.of(each.manifest).moved_from or inputs.sync.members_from for each in located}
    return frozenset(each for each in origins if each is not None and each.namespace != inputs.sync.namespace)


# --- what is known by the answers ----------------------------------------------------------------


def _noted(inputs: Inputs, asked: Questions) -> Inputs:
    """Return *inputs* with what was asked: that isn't asked again."""
    before = inputs.asked
    return replace(inputs, asked=replace(
        before,
        names=before.names.union(ref for ref, _ in asked.names),
        updates=before.updates.union(each.ref for each in asked.updates),
        unasked=before.unasked | asked.unasked.keys(),
        givers=before.givers | asked.givers,
        draws=before.draws or asked.draws,
        foreign=before.foreign | asked.foreign.keys(),
        lookups=before.lookups.union(asked.lookups),
        writes=before.writes.union(each.ref for each in asked.writes).union(each.ref for each in asked.settled),
    ))  # fmt: skip


def _learned(inputs: Inputs, said: Answers) -> Inputs:
    """Return *inputs* with all that was said."""
    if said.found:
        inputs = _seen_again(replace(inputs, live=Overlay(inputs.live, said.found)), said.found)
    if said.desired is not None:
        inputs = replace(inputs, desired=said.desired)
    if said.contentions is not None:
        inputs = inputs.remembering(contentions=said.contentions)
    before = inputs.lookups
    return inputs.observing(said.observed).remembering(sets={**inputs.memory.sets, **said.sets}).knowing(
        unreadable={**before.unreadable, **said.unreadable}, listed={**before.listed, **said.listed}, gone=before.gone | said.gone,
        strangers=before.strangers | said.strangers, recalled={**before.recalled, **said.recalled},
    )  # fmt: skip


def _seen_again(inputs: Inputs, found: Objects) -> Inputs:
    """Return *inputs* without what was observed of CRs that were thought to be new, and so to have no pods to be asked."""
    fresh = set(_publishing(inputs, found))
    observed = {ref: seen for ref, seen in inputs.modules.observed.items() if ref not in fresh}
    return replace(inputs, modules=replace(inputs.modules, observed=observed))


def _publishing(inputs: Inputs, found: Objects) -> Iterator[ObjectRef]:
    for ref in inputs.modules.observed:
        stored = found.stored(ref)
        module = inputs.modules.by_kind.get(GroupVersionKind.of(stored.manifest())) if stored else None
        if module is not None and module.publishes:
            yield ref
