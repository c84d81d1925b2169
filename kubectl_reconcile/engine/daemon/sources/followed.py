"""One Sync being followed: its state, its source, and what that asked for.

What is worked on is what was read last, or, while the Sync waits for others, what these let through before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.pass_state import PassState, is_at_rest
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.sync import GitSpec
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.reconcile import Target
from kubectl_reconcile.source.git import GitSource


class NothingReadError(RuntimeError):
    """A set is to be worked on that was never read: a fault of the program."""


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """What the source at *git* said; *earlier* is what was let through before this daemon began, where the newest may have to wait."""

    git: GitSpec
    event: on.SourceRead | on.SourceFailed
    newest: Desired | None = None
    earlier: Desired | None = None


@dataclass(slots=True)
class FollowedSync:
    """One Sync being followed: its state, and what carrying out needs besides, which decides nothing.

    *changed* are the members that changed in the cluster since the last turn. *reading* asks the source, beside all else; *answer* is what
    came of it, for the next turn. *newest* is what the source asked for last, *desired* what the last plan was made of; *earlier* is as for an answer.
    *version* is that of the live Sync as the last turn left it. *same* are the commit that a daemon before this one tried and the first that this
    one read, where they hold the same.
    """

    state: PassState = field(default_factory=PassState)
    target: Target | None = None
    desired: Desired | None = None
    places: Mapping[ObjectRef, Located] = field(default_factory=dict)
    changed: set[ObjectRef] = field(default_factory=set)
    verification: Verification | None = None
    newest: Desired | None = None
    earlier: Desired | None = None
    reading: asyncio.Task[None] | None = None
    answer: SourceAnswer | None = None
    version: str = ""
    same: tuple[str, str] = ("", "")

    def let_go_of_parent(self) -> None:
        """Keep of the live Sync its version alone until the next turn brings it: parsed it is the largest part of all."""
        if self.target is not None and self.target.parent is not None:
            self.version = str(self.target.parent["metadata"].get("resourceVersion") or "")
            self.target.parent = None

    def end_reading(self) -> None:
        """Have the source asked no more: nobody waits for it."""
        if self.reading is not None:
            self.reading.cancel()
        self.reading = self.answer = None

    @property
    def observed(self) -> str:
        """The commit of the ref up to which all is dealt with that concerns the Sync; empty where something isn't, or there are no commits."""
        source = self.target.source if self.target is not None else None
        is_settled = self.answer is None and is_at_rest(self.state)
        return source.tip if isinstance(source, GitSource) and is_settled else ""

    def kind_names(self, recorded: Contents) -> set[str]:
        """Return the names of the kinds that are asked for, whether or not they are served, and of those that were *recorded*."""
        asked = (each.manifests for each in (self.newest, self.desired, self.earlier) if each is not None)
        return {located.gvk.kind for manifests in asked for located in manifests} | {
            each.kind for each in recorded.kinds
        }

    def read(self) -> tuple[Target, Desired]:
        """Return what is followed, and what it asks for.

        Raises:
            NothingReadError: it was never read.
        """
        if self.target is None or self.desired is None:
            raise NothingReadError("a set is to be worked on that was never read")
        return self.target, self.desired

    def told_anew(self, desired: Desired) -> None:
        """Have what is worked on be what a chart asks for by what it finds in the cluster now."""
        if self.earlier is not None and self.earlier is self.desired:
            self.earlier = desired
        elif self.newest is self.desired:
            self.newest = desired
        self.desired = desired

    def find_places(self, made: Plan, desired: Desired) -> None:
        """Note where each member of a plan of the whole set is written down."""
        by_place = {(located.path, located.line): located for located in desired.manifests}
        self.places = {
            change.ref: located
            for change in made.changes
            if (located := by_place.get((change.provenance.file, change.provenance.line))) is not None
        }

    def find_places_again(self, desired: Desired, namespace: str) -> None:
        """Note where each of the same members is written down now; *namespace* is the default one."""
        by_ref = {each.ref._replace(namespace=each.ref.namespace or namespace): each for each in desired.manifests}
        by_ref |= {each.ref: each for each in desired.manifests if each.ref not in by_ref}
        self.places = {ref: by_ref[ref] for ref in self.places if ref in by_ref}
