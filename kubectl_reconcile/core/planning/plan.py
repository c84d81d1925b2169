"""A plan: everything that one sync would do, as data.

Vocabulary: a *member* is an object that Git asks for under a Sync; a *child* is one that a
domain module asks for under a CR; a *change* is what happens to one object; a *hold* is a
group of deletions that waits for a person. Changes are ordered in *waves*: objects of one wave
are written together, and a wave starts when the one before it is done.

``planner.build`` turns ``inputs`` into a plan. The same inputs give the same plan, byte for byte.

Pure: values only.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from kubectl_reconcile.core.health.health import Health
from kubectl_reconcile.core.manifests.parse import VariableUse
from kubectl_reconcile.core.manifests.revision import Commit
from kubectl_reconcile.core.module.api import Module, Observation
from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile.core.module.outcome import Action
from kubectl_reconcile.core.objects import FIELD_MANAGER, FieldPath, Manifest, ObjectRef, Problem, errors_among
from kubectl_reconcile.core.planning.endings.cascade import Listing
from kubectl_reconcile.core.planning.hold import Hold, Marked, approval_of_all
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.redaction import redacted, without, without_values
from kubectl_reconcile.core.rendering.unstable import hidden
from kubectl_reconcile.core.rendering.uses import hiding, texts_of
from kubectl_reconcile.core.resources import applyset
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.merge import FieldChange, FieldConflict


class Op(StrEnum):
    """What happens to one object."""

    CREATE = "create"
    """It doesn't exist; it will."""
    UPDATE = "update"
    """It exists, and fields change."""
    REPLACE = "replace"
    """It is deleted and recreated, because the server calls a changed field immutable."""
    DELETE = "delete"
    """Nobody asks for it any more."""
    UNCHANGED = "unchanged"
    """It is as it should be."""
    ACT = "act"
    """A module acts on an external system."""


class Provenance(Struct, frozen=True):
    """Who asks for an object, and where.

    *file* and *line* are its place in the source; *owner* is the CR whose module wants it, None for a member;
    *manager* is the field manager that writes it. *key* identifies the desired state, for the verdict that it is
    there already. *foreign* is another set that the object belongs to: its id, or
    once it is known the name of its Sync. *uses* are where values of variables stand in it. *drawn* are the fields that get a value
    which is drawn when it is applied. *left* is how many fields are left as others have them, though Git asks for something else.
    """

    file: str = ""
    line: int = 0
    owner: ObjectRef | None = None
    manager: str = FIELD_MANAGER
    key: str = ""
    foreign: str = ""
    uses: tuple[VariableUse, ...] = ()
    drawn: tuple[tuple[int | str, ...], ...] = ()
    left: int = 0


class Gate(Struct, frozen=True):
    """When the writer may touch an object, what keeps it from it, and how far it may go.

    *wave* counts the places of the plan, *hook* says at which point of a sync a Job runs. *needs* must be there and
    healthy first (for a deletion: must be gone first). *waits* says what must be healthy before a later pass writes it.

    *blocked* says why the writer must leave it alone; *held* that a person must approve it first; *cascade* that the
    cluster's garbage collector does it. *replaceable* is whether deleting and recreating is allowed; *force* whether
    fields are taken from their managers. *denied* says which right is missing to whoever writes it, as far as a preview could
    ask: it doesn't count for the plan's hash, for that mustn't depend on who asks. *grace_s* is how many seconds a pod that is deleted has to end, None for its own.
    """

    wave: int = 0
    hook: str = ""
    needs: tuple[ObjectRef, ...] = ()
    waits: str = ""
    blocked: str = ""
    held: bool = False
    cascade: bool = False
    replaceable: bool = False
    force: bool = True
    denied: str = ""
    grace_s: int | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether nothing keeps the writer from it."""
        return not (self.blocked or self.held or self.cascade or self.waits)


BY_GIT: Final = Provenance()
"""A member of which nothing else is told."""

OPEN: Final = Gate()
"""Nothing to wait for."""


@functools.cache
def _open_in(wave: int) -> Gate:
    """Return the gate of all that only its wave holds up: most of ten thousand changes share a few of them."""
    return Gate(wave)


class Change(Struct, frozen=True):
    """What happens to one object, and all that the writer and the renderer need to know of it.

    *before* and *after* are whole objects (None: doesn't exist); *intent* is the body to send. *unsure* marks an
    update that may turn out to be none: the server decides. *takeover* is the JSON patch that hands over what
    client-side tools owned, sent before the body. *action* is what a module does to an external system, or the
    engine to the CR. *labels* are those of an unchanged object, of which nothing else is told.
    """

    ref: ObjectRef
    op: Op
    kind: Kind | None = None
    before: Manifest | None = None
    after: Manifest | None = None
    intent: Manifest | None = None
    fields: Sequence[FieldChange] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    unsure: bool = False
    takeover: tuple[Mapping[str, Any], ...] = ()
    action: Action | None = None
    labels: Mapping[str, str] | None = None
    provenance: Provenance = BY_GIT
    gate: Gate = OPEN

    @property
    def module(self) -> str:
        """The name of the module that wants it; empty for what comes from Git."""
        prefix, manager = f"{FIELD_MANAGER}-", self.provenance.manager
        return manager.removeprefix(prefix) if manager.startswith(prefix) else ""

    @property
    def is_child(self) -> bool:
        """Whether a module asks for it, and no manifest."""
        return self.provenance.owner is not None

    @property
    def writes(self) -> bool:
        """Tell whether the writer has something to do here."""
        return self.op is not Op.UNCHANGED and self.gate.is_open

    @property
    def is_quiet(self) -> bool:
        """Tell whether there is nothing to say of it: it is as it should be, and nothing keeps it from that."""
        return self.op is Op.UNCHANGED and not self.gate.blocked

    def in_wave(self, wave: int) -> Change:
        """Return this change in its place. Ten thousand are made for each plan: a copy field by field costs least."""
        gate = self.gate
        if gate.wave == wave:
            return self
        if gate is OPEN:
            gate = _open_in(wave)
        else:
            gate = Gate(
                wave, gate.hook, gate.needs, gate.waits, gate.blocked, gate.held, gate.cascade, gate.replaceable,
                gate.force, gate.denied, gate.grace_s,
            )  # fmt: skip
        return Change(
            self.ref, self.op, self.kind, self.before, self.after, self.intent, self.fields, self.conflicts,
            self.unsure, self.takeover, self.action, self.labels, self.provenance, gate,
        )  # fmt: skip

    def told(self, text: str) -> str:
        """Return what may be told of it: *text* without values of Secrets, the object's own and those of variables."""
        return without(redacted(text, self.intent, self.before), texts_of(self.provenance.uses))

    def gated(self, **changed: Any) -> Change:
        """Return this change with another gate."""
        return replace(self, gate=replace(self.gate, **changed))

    def attributed(self, **changed: Any) -> Change:
        """Return this change with another provenance."""
        return replace(self, provenance=replace(self.provenance, **changed))


class StatusWrite(Struct, frozen=True):
    """The status, as an apply body, that a module gives its CR, judged by *version*; *is_first*: there is none to go on from."""

    ref: ObjectRef
    kind: Kind
    after: Manifest
    manager: str
    uid: str
    is_first: bool = False
    version: str = ""


class Unobserved(Struct, frozen=True):
    """A CR whose module wants to look at an external system before it says anything."""

    module: Module
    cr: Manifest
    owned: Owned


class Contention(Struct, frozen=True):
    """A field that *manager* and we kept overwriting, *times* until *since*; it is left alone *until* then."""

    ref: ObjectRef
    path: FieldPath
    manager: str
    times: int
    since: str
    until: str = ""

    def __str__(self) -> str:
        left = f", so it is left alone until {self.until}" if self.until else ""
        who = self.manager or "somebody"
        return f"{self.ref}: {self.path}: {who} overwrote it {self.times} times until {self.since}{left}"


Contentions: TypeAlias = Mapping[ObjectRef, tuple[Contention, ...]]
"""Contended fields by object."""


class Unhealthy(Struct, frozen=True):
    """An object that wasn't well when the plan was made; it tells readers of the risk, and changes nothing of the plan."""

    ref: ObjectRef
    health: Health

    def __str__(self) -> str:
        return f"{self.ref}: {self.health}"


class Schedule(Struct, frozen=True):
    """What the writer waits for between waves.

    *barriers* are the waves that start only when what came before is healthy, and *awaited* the unchanged objects
    that aren't healthy yet and come before one. *fallbacks* are the hooks that run only when the sync fails.
    """

    barriers: frozenset[int] = frozenset()
    awaited: tuple[Change, ...] = ()
    fallbacks: tuple[Change, ...] = ()


class Outcomes(Struct, frozen=True):
    """What modules said besides the children that they want.

    *observed* is what they were told of external systems; *unobserved* are CRs that can't be planned before
    somebody looks. *is_urgent* tells that somebody waits for what follows.
    """

    statuses: tuple[StatusWrite, ...] = ()
    requeue_after_s: float | None = None
    observed: Mapping[ObjectRef, Observation] = field(default_factory=dict)
    unobserved: Mapping[ObjectRef, Unobserved] = field(default_factory=dict)
    is_urgent: bool = False


class _Changes(tuple[Change, ...]):  # noqa: SLOT001 - what is looked for once has to be kept
    """The changes of a plan; which of them act is looked for once, since many ask."""

    @functools.cached_property
    def acting(self) -> tuple[Change, ...]:
        return tuple(change for change in self if change.op is not Op.UNCHANGED)


class Plan(Struct, frozen=True):
    """Everything that one sync would do, in apply order.

    *verdicts* are the objects found unchanged, to be handed to the next build. *marked* tells what says that it is of the set. *confirmed* tells that the server has tried every change. *settled* are the contentions of which nothing is
    left: the fields are as they should be. *partial* tells that a person chose some of the changes, and that there
    may be others. *lacking* must be listed, and the plan built once more, before it is known what deletions take along.
    *unhealthy* are objects that aren't well before the sync, in previews alone. *digest* is that of all that the source asks for, empty for a plan
    of a part of it; *commit* is the one that it is at. *nested* are the plans of Syncs that it changes, in previews alone; *remarks* are what else is
    to be said of single objects of a nested plan. *base* is the revision that it compares with, where that isn't done with the cluster.
    """

    sync: ObjectRef | None
    revision: str
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()
    holds: tuple[Hold, ...] = ()
    marked: Marked = field(default_factory=Marked)
    outcomes: Outcomes = field(default_factory=Outcomes)
    schedule: Schedule = field(default_factory=Schedule)
    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    settled: tuple[Contention, ...] = ()
    lacking: frozenset[Listing] = frozenset()
    confirmed: bool = False
    partial: bool = False
    unhealthy: tuple[Unhealthy, ...] = ()
    digest: str = ""
    commit: Commit | None = None
    nested: tuple[Nested, ...] = ()
    remarks: Mapping[ObjectRef, tuple[str, ...]] = field(default_factory=dict)
    base: str = ""

    @property
    def hash(self) -> str:
        """The digest of what goes in and what comes out, nested plans included. Costs a moment for each changed Secret, so ask once."""
        own = plan_hash(self.sync, self.revision, self.changes)
        return with_nested_hashes(own, self.nested) if self.nested else own

    @property
    def approval(self) -> str:
        """What a person lets the held changes through by; covers what is held alone, so it stays true while others come and go."""
        return approval_of_all(self.holds)

    @property
    def waiting(self) -> tuple[Hold, ...]:
        """All that a person may let through: what is held, and the deletion of strangers, which holds up nothing."""
        strangers = self.marked.strangers
        return self.holds if strangers is None else (*self.holds, strangers)

    @property
    def members(self) -> int:
        """How many objects the set holds now."""
        return self.marked.members

    def __post_init__(self) -> None:
        if not isinstance(self.changes, _Changes):
            force_setattr(self, "changes", _Changes(self.changes))

    def with_changes(self, changes: Iterable[Change]) -> Plan:
        """Return this plan with other changes."""
        return replace(self, changes=tuple(changes))

    def acting(self) -> tuple[Change, ...]:
        """Return the changes of objects that aren't as they should be: of ten thousand mostly a few."""
        return cast("_Changes", self.changes).acting

    def with_nested_plans(self) -> tuple[Plan, ...]:
        """Return this plan, and those that are nested in it."""
        return (self, *(each.plan for each in self.nested if each.plan is not None))

    def waves(self) -> Iterator[tuple[Change, ...]]:
        """Yield the changes that the writer has to make, wave by wave."""
        waves: dict[int, list[Change]] = {}
        for change in self.acting():
            if change.writes:
                waves.setdefault(change.gate.wave, []).append(change)
        return (tuple(waves[wave]) for wave in sorted(waves))

    def counts(self) -> Counter[Op]:
        """Count changes by what happens."""
        return Counter(change.op for change in self.changes)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems because of which something can't be used."""
        return errors_among(self.problems)

    @property
    def is_clean(self) -> bool:
        """Tell whether a sync would change nothing and nothing is wrong; warnings are no harm."""
        return not self.errors and all(change.is_quiet for change in self.changes)

    def refs(self) -> Iterator[ObjectRef]:
        """Yield every member that exists after the sync, and those that may."""
        members = (
            change.ref for change in self.changes if change.op is not Op.DELETE and change.provenance.owner is None
        )
        return chain(members, (change.ref for change in self.schedule.fallbacks))


class Nested(Struct, frozen=True):
    """A Sync that a plan creates, changes or removes, as *op* says: what it would do then by a *plan* of its own, or why there is none.

    *above* are the nested Syncs that contain it, from the top down. *why* is what of it changes, in words. *not_planned* says why there is no plan.
    """

    sync: ObjectRef
    op: Op
    above: tuple[ObjectRef, ...] = ()
    why: tuple[str, ...] = ()
    plan: Plan | None = None
    not_planned: str = ""

    @property
    def depth(self) -> int:
        """How many other nested Syncs contain it."""
        return len(self.above)


def set_id_of(sync: Sync) -> str:
    """Return the id of the ApplySet whose parent is *sync*."""
    return applyset.applyset_id(sync.ref)


def plan_hash(sync: ObjectRef | None, revision: str, changes: Iterable[Change]) -> str:
    """Return the digest of what went in and what comes out.

    It covers what the server held before, but for its own bookkeeping: a status that moves doesn't
    create a new plan.
    """
    prints = [fingerprint(change) for change in changes if not change.is_quiet]
    return hashlib.sha256(json.dumps([sync, revision, prints]).encode()).hexdigest()


def with_nested_hashes(own: str, nested: Iterable[Nested]) -> str:
    """Return the one digest over a plan, of which *own* is that of its changes, and all that are *nested* in it."""
    below = [[each.above, each.sync, each.op, each.plan.hash if each.plan else ""] for each in nested]
    return hashlib.sha256(json.dumps([own, below]).encode()).hexdigest()


def fingerprint(change: Change) -> str:
    """Return the digest of one change: of what, from which state, to which, and whether it may go.

    Fingerprints are shown where Secrets aren't, in plan files and reviews, and whoever has one can try values for as long as they
    like: a PIN is found in seconds however slow the digest. A key would have to be known to everybody who previews and to
    nobody else who reads plans, and there is no such thing. So no value of a Secret goes in. What the live one
    holds is told by its uid and version, which the server changes with each write; what it is to hold is told by the
    revision, which the plan's hash covers, and by which keys there are.
    """
    secrets = texts_of(change.provenance.uses)
    hides = change.ref.kind == "Secret" or bool(secrets)
    facts = [
        change.op,
        change.ref,
        ((change.before or {}).get("metadata") or {}).get("uid"),
        _told_apart_by(change.before) if hides else _without_bookkeeping(change.before),
        without_values(change.intent)
        if change.ref.kind == "Secret"
        else hiding(hidden(change.intent, change.provenance.drawn), secrets, "***"),
        bool(change.takeover),
        change.provenance.owner,
        change.gate.held,
        bool(change.gate.blocked),
        None if change.action is None else [change.action.key, change.action.verb, change.action.parameters],
    ]
    text = json.dumps(facts, sort_keys=True, default=str).encode()
    return hashlib.sha256(text).hexdigest()


_BOOKKEEPING = frozenset({"resourceVersion", "managedFields", "generation", "creationTimestamp", "uid"})


def _told_apart_by(live: Manifest | None) -> list[Any] | None:
    metadata = (live or {}).get("metadata") or {}
    return None if live is None else [metadata.get("uid"), metadata.get("resourceVersion")]


def _without_bookkeeping(manifest: Manifest | None) -> Manifest | None:
    if manifest is None:
        return None
    kept = {name: value for name, value in (manifest.get("metadata") or {}).items() if name not in _BOOKKEEPING}
    return {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": kept}
