"""A plan: everything that one sync would do, as data.

Vocabulary: a *member* is an object that Git asks for under a Sync; a *child* is one that a
domain module asks for under a CR; a *change* is what happens to one object; a *hold* is a
group of deletions that waits for a person. Changes are ordered in *waves*: objects of one wave
are written together, and a wave starts when the one before it is done.

``inputs`` are everything known; ``planner.build`` turns them into a plan. The same inputs give the
same plan, byte for byte.

Pure: values only.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Any, TypeAlias

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Action, Ask, Module, Observation, Owned, outcome_of
from kubectl_reconcile.core.objects import (
    FIELD_MANAGER,
    FieldPath,
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    Problem,
)
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.order import Barrier
from kubectl_reconcile.core.planning.snapshot import Snapshot
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
    """It is deleted and created anew, because the server calls a changed field immutable."""
    DELETE = "delete"
    """Nobody asks for it any more."""
    UNCHANGED = "unchanged"
    """It is as it should be."""
    ACT = "act"
    """A module acts on an external system."""


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one object, and all that the writer and the renderer need to know of it.

    *before* and *after* are whole objects (None: doesn't exist); *intent* is the body to send.
    *blocked* says why the writer must leave it alone; *held* that a person must approve it first;
    *cascade* that the cluster's garbage collector does it. *unsure* marks an update that may
    turn out to be none: the server decides. *takeover* is the JSON patch that hands over what
    client-side tools owned, sent before the body. *waits* says what must be healthy first: a later
    pass writes it. *action* is what a module does to an external system, or the engine to the CR.

    *needs* must be there and healthy first (for a deletion: must be gone first). *hook* says at
    which point of a sync a Job runs. *replaceable* is whether deleting and creating anew is
    allowed. *key* identifies the desired state, for the verdict that it is there already; *foreign*
    is the id of another set that the object belongs to. *labels* are those of an unchanged object, of which nothing else
    is told.
    """

    ref: ObjectRef
    op: Op
    kind: Kind | None = None
    before: Manifest | None = None
    after: Manifest | None = None
    intent: Manifest | None = None
    fields: tuple[FieldChange, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    owner: ObjectRef | None = None
    file: str = ""
    line: int = 0
    manager: str = FIELD_MANAGER
    force: bool = True
    wave: int = 0
    unsure: bool = False
    takeover: tuple[Mapping[str, Any], ...] = ()
    cascade: bool = False
    held: bool = False
    blocked: str = ""
    waits: str = ""
    action: Action | None = None
    needs: tuple[ObjectRef, ...] = ()
    hook: str = ""
    replaceable: bool = False
    key: str = ""
    foreign: str = ""
    labels: Mapping[str, str] | None = None

    @property
    def module(self) -> str:
        """The name of the module that wants it; empty for what comes from Git."""
        prefix = f"{FIELD_MANAGER}-"
        return self.manager.removeprefix(prefix) if self.manager.startswith(prefix) else ""

    @property
    def writes(self) -> bool:
        """Tell whether the writer has something to do here."""
        return self.op is not Op.UNCHANGED and not (self.blocked or self.held or self.cascade or self.waits)


@dataclass(frozen=True, slots=True)
class Hold:
    """Deletions and replacements that wait for a person, and how to let them through."""

    reason: str
    message: str
    refs: tuple[ObjectRef, ...]


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """The status that a module gives its CR. *after* is the apply body for the status subresource.

    *is_first* says that the CR has none yet, so that no module has left anything there to go on from.
    """

    ref: ObjectRef
    kind: Kind
    after: Manifest
    manager: str
    uid: str
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Unobserved:
    """A CR whose module wants to look at an external system before it says anything."""

    module: Module
    cr: Manifest
    owned: Owned


@dataclass(frozen=True, slots=True)
class Contention:
    """A field that *manager* and we kept overwriting, *times* until *since*; it is left alone for a while."""

    ref: ObjectRef
    path: FieldPath
    manager: str
    times: int
    since: str

    def __str__(self) -> str:
        return (
            f"{self.ref}: {self.path}: {self.manager or 'somebody'} overwrote it {self.times} times until {self.since}"
        )


Contentions: TypeAlias = Mapping[ObjectRef, tuple[Contention, ...]]
"""Contended fields by object."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that one sync would do, in apply order.

    *approval* covers what is held alone, so that it stays true while other changes come and go.
    *verdicts* are the objects found unchanged, to be handed to the next build. *members* counts
    what the set holds now. *observed* is what modules were told of external systems; *unobserved*
    are CRs that can't be planned before somebody looks.

    *barriers* are the waves that start only when what came before is healthy, and *awaited* the
    unchanged objects that aren't healthy yet and come before one. *fallbacks* are the hooks that
    run only when the sync fails. *confirmed* tells that the server has tried every change. *settled*
    are the contentions of which nothing is left: the fields are as they should be. *partial* tells that
    a person chose some of the changes, and that there may be others.
    """

    sync: ObjectRef | None
    revision: str
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()
    holds: tuple[Hold, ...] = ()
    statuses: tuple[StatusWrite, ...] = ()
    requeue_after_s: float | None = None
    approval: str = ""
    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    observed: Mapping[ObjectRef, Observation] = field(default_factory=dict)
    unobserved: Mapping[ObjectRef, Unobserved] = field(default_factory=dict)
    members: int = 0
    barriers: Mapping[int, Barrier] = field(default_factory=dict)
    awaited: tuple[Change, ...] = ()
    fallbacks: tuple[Change, ...] = ()
    confirmed: bool = False
    settled: tuple[Contention, ...] = ()
    partial: bool = False

    @property
    def hash(self) -> str:
        """The digest of what goes in and what comes out. Costs a moment for each changed Secret, so ask once."""
        return plan_hash(self.sync, self.revision, self.changes)

    def waves(self) -> Iterator[tuple[Change, ...]]:
        """Yield the changes that the writer has to make, wave by wave."""
        waves: dict[int, list[Change]] = {}
        for change in self.changes:
            if change.writes:
                waves.setdefault(change.wave, []).append(change)
        return (tuple(waves[wave]) for wave in sorted(waves))

    def counts(self) -> Counter[Op]:
        """Count changes by what happens."""
        return Counter(change.op for change in self.changes)

    @property
    def is_clean(self) -> bool:
        """Tell whether a sync would change nothing and nothing is wrong."""
        return not self.problems and all(change.op is Op.UNCHANGED and not change.blocked for change in self.changes)

    def refs(self) -> Iterator[ObjectRef]:
        """Yield every member that exists after the sync, and those that may."""
        members = (change.ref for change in self.changes if change.op is not Op.DELETE and change.owner is None)
        return chain(members, (change.ref for change in self.fallbacks))


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything known. *grouped* is False for a preview of files that belong to no Sync: nothing is pruned then.

    *unsynced* names kinds whose live objects could not be listed; *bases* holds the manifests applied
    last, where they are known; *verdicts* what an earlier build found unchanged; *observed* what is known
    of external systems. *ask* is how modules are called. *whole* is False where *desired* is only a part
    of what Git asks for: then nothing is pruned, no hook runs, and nothing waits for what isn't in the
    part. *sets* names the Syncs behind the ids of other sets. *contentions* are fields to be left alone.
    """

    sync: Sync
    revision: Revision
    desired: Sequence[Located]
    live: Snapshot
    kinds: Mapping[GroupVersionKind, Kind]
    modules: Mapping[GroupVersionKind, Module]
    now: str
    problems: Sequence[Problem] = ()
    unsynced: frozenset[GroupKind] = frozenset()
    bases: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    grouped: bool = True
    observed: Mapping[ObjectRef, Observation] = field(default_factory=dict)
    ask: Ask = outcome_of
    whole: bool = True
    sets: Mapping[str, ObjectRef] = field(default_factory=dict)
    contentions: Contentions = field(default_factory=dict)


def set_id_of(sync: Sync) -> str:
    """Return the id of the ApplySet whose parent is *sync*."""
    return applyset.applyset_id(sync.ref)


def hash_of(text: str) -> str:
    """Return a short digest for comparing, never for security."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def approval_of(refs: Iterable[ObjectRef]) -> str:
    """Return what a person approves by: a digest of exactly these deletions."""
    return hash_of(json.dumps(sorted(refs)))


def approval_of_all(holds: Iterable[Hold]) -> str:
    """Return what lets all of *holds* through; empty where there are none."""
    return ",".join(approval_of(hold.refs) for hold in holds)


def is_approved(sync: Sync, refs: Iterable[ObjectRef]) -> bool:
    """Tell whether a person let exactly these through."""
    return approval_of(refs) in sync.approved_plan.split(",")


def plan_hash(sync: ObjectRef | None, revision: str, changes: Iterable[Change]) -> str:
    """Return the digest of what went in and what comes out.

    It covers what the server held before, but for its own bookkeeping: a status that moves doesn't
    make another plan.
    """
    prints = [fingerprint(change) for change in changes if change.op is not Op.UNCHANGED or change.blocked]
    return hashlib.sha256(json.dumps([sync, revision, prints]).encode()).hexdigest()


def fingerprint(change: Change) -> str:
    """Return the digest of one change: of what, from which state, to which, and whether it may go."""
    facts = [
        change.op,
        change.ref,
        ((change.before or {}).get("metadata") or {}).get("uid"),
        _without_bookkeeping(change.before),
        change.intent,
        bool(change.takeover),
        change.owner,
        change.held,
        bool(change.blocked),
        None if change.action is None else [change.action.key, change.action.verb, change.action.parameters],
    ]
    text = json.dumps(facts, sort_keys=True, default=str).encode()
    if change.ref.kind == "Secret":  # slow to guess at: a plan's fingerprints are shown where Secrets aren't
        return hashlib.pbkdf2_hmac("sha256", text, b"kubectl-reconcile", _GUESSES).hex()
    return hashlib.sha256(text).hexdigest()


_GUESSES = 2_000
_BOOKKEEPING = frozenset({"resourceVersion", "managedFields", "generation", "creationTimestamp", "uid"})


def _without_bookkeeping(manifest: Manifest | None) -> Manifest | None:
    if manifest is None:
        return None
    kept = {name: value for name, value in (manifest.get("metadata") or {}).items() if name not in _BOOKKEEPING}
    return {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": kept}
