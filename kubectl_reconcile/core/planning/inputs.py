"""Everything that is known when a plan is built: the source, the cluster, the modules, and what was learned before.

Pure: values only. ``planner.build`` turns them into a plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Module, Observation
from kubectl_reconcile.core.module.call import Ask, outcome_of
from kubectl_reconcile.core.module.inputs import CEILINGS
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef, Problem
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Contentions
from kubectl_reconcile.core.planning.snapshot import Snapshot
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.sync import Sync


class Memory(Struct, frozen=True):
    """What is known besides the source and the cluster.

    *verdicts* are what an earlier build found unchanged; *bases* the manifests applied last, where they are known;
    *contentions* fields to be left alone. *sets* names the Syncs behind the ids of other sets.
    *settled* is True where a sync of this very state has ended well before: what removes itself may be gone since. *installed* is True
    where one of any state has. *informed* is True where *bases* are all that can be known. *applied* is True where this very
    revision has been applied before.
    """

    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    bases: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    contentions: Contentions = field(default_factory=dict)
    sets: Mapping[str, ObjectRef] = field(default_factory=dict)
    settled: bool = False
    installed: bool = False
    informed: bool = False
    applied: bool = False


class Modules(Struct, frozen=True):
    """The domain modules by the kind that they own, how they are called, what is known of their external systems, and how far custom resources may have them go."""

    by_kind: Mapping[GroupVersionKind, Module] = field(default_factory=dict)
    ask: Ask = outcome_of
    observed: Mapping[ObjectRef, Observation] = field(default_factory=dict)
    ceilings: Mapping[str, int] = field(default_factory=lambda: CEILINGS)


class Lookups(Struct, frozen=True):
    """What was asked of the cluster because a first plan called for it.

    *unreadable* says why an object can't be looked at, so that nobody knows whether it exists; *listed* shows what goes
    along with deletions. *gone* are Syncs that objects are to move from and that aren't there any more. *strangers* carry the mark of a
    member, and no revision that was applied is known to have asked for them, though those that would have to are. *recalled* are the manifests applied
    last of what changes: they say why it does. *chart* is what a chart was told in an earlier pass, by what it asked for.
    """

    unreadable: Mapping[ObjectRef, str] = field(default_factory=dict)
    listed: Mapping[Listing, Listed] = field(default_factory=dict)
    gone: frozenset[ObjectRef] = frozenset()
    strangers: frozenset[ObjectRef] = frozenset()
    recalled: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    chart: tuple[str, ...] = ()


class Asked(Struct, frozen=True):
    """What ``questions`` has asked of which objects, Syncs and lookups, whatever was answered; *draws* tells that values were drawn for this plan alone."""

    names: frozenset[ObjectRef] = frozenset()
    updates: frozenset[ObjectRef] = frozenset()
    unasked: frozenset[ObjectRef] = frozenset()
    givers: frozenset[ObjectRef] = frozenset()
    draws: bool = False
    foreign: frozenset[ObjectRef] = frozenset()
    lookups: frozenset[str] = frozenset()
    writes: frozenset[ObjectRef] = frozenset()


class Unseen(Struct, frozen=True):
    """Why something couldn't be listed. *is_refused* tells that whoever looks may not, *is_of_account* that this is a ServiceAccount that lacks the right."""

    why: str
    is_refused: bool = False
    is_of_account: bool = False


class Coverage(Struct, frozen=True):
    """How much of a set the view shows.

    *unsynced* are the kinds whose live objects could not be listed; *places* the namespaces in which the set may have members,
    None where that isn't known, and they may be anywhere. *unread* are kinds that modules read of whole namespaces and that could not be listed there, with
    the reason. *unseen* tells why members of a kind could not be listed in a namespace, or where that is empty anywhere; *recorded* is what the Sync said that
    it has members of. *unavailable* are versions of API groups whose kinds aren't known at the moment, with the reason.
    """

    unsynced: frozenset[GroupKind] = frozenset()
    places: Collection[str] | None = None
    unread: Mapping[tuple[str, GroupKind], str] = field(default_factory=dict)
    unseen: Mapping[tuple[GroupKind, str], Unseen] = field(default_factory=dict)
    recorded: Contents = field(default_factory=Contents)
    unavailable: Mapping[str, str] = field(default_factory=dict)


class Inputs(Struct, frozen=True):
    """Everything known. *grouped* is False for a preview of files that belong to no Sync: nothing is pruned then.

    *whole* is False where *desired* is only a part of what Git asks for: then nothing is pruned, no hook runs, and nothing waits for what isn't in the part.
    *served* are kinds of the cluster that go by the name of one that it doesn't serve as it is asked for. *digest* is that of *desired*, whatever the commit.
    """

    sync: Sync
    revision: Revision
    desired: Sequence[Located]
    live: Snapshot
    kinds: Mapping[GroupVersionKind, Kind]
    now: str
    modules: Modules = field(default_factory=Modules)
    memory: Memory = field(default_factory=Memory)
    lookups: Lookups = field(default_factory=Lookups)
    asked: Asked = field(default_factory=Asked)
    problems: Sequence[Problem] = ()
    coverage: Coverage = field(default_factory=Coverage)
    grouped: bool = True
    whole: bool = True
    served: frozenset[GroupVersionKind] = frozenset()
    digest: str = ""

    def remembering(self, **known: Any) -> Inputs:
        """Return these inputs with more in memory."""
        return replace(self, memory=replace(self.memory, **known))

    def knowing(self, **found: Any) -> Inputs:
        """Return these inputs with more looked up."""
        return replace(self, lookups=replace(self.lookups, **found))

    def observing(self, observed: Mapping[ObjectRef, Observation]) -> Inputs:
        """Return these inputs with more known of external systems."""
        return replace(self, modules=replace(self.modules, observed={**self.modules.observed, **observed}))
