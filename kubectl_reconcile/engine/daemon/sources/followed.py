"""One Sync being followed: its state, its source, and what that asked for.

What is worked on is what was read last, or, while the Sync waits for others, what these let through before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import attrgetter, is_not
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.pass_phase import is_at_rest
from kubectl_reconcile.core.daemon.pass_state import PassState
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.source import SourceSpec
from kubectl_reconcile.core.resources.verification import Verification
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.reconcile import Done
from kubectl_reconcile.engine.sync.target import NOTHING_KNOWN, PassMemory, Target

_PLACE: Final = attrgetter("path", "line")
_PLACE_OF_CHANGE: Final = attrgetter("provenance.file", "provenance.line")
_REF: Final = attrgetter("ref")
_STRANGE_S: Final = 30.0
"""How often what nobody asks for has a set looked at, in seconds: anybody may mark things as its members, and change these without end."""
_MOST_STRANGE: Final = 100


class NothingReadError(RuntimeError):
    """A set is to be worked on that was never read: a fault of the program."""


class SourceAnswer(Struct, frozen=True):
    """What a *source* said; *earlier* is what was let through before this daemon began, where the newest may have to wait."""

    source: SourceSpec
    event: on.SourceRead | on.SourceFailed
    newest: Desired | None = None
    earlier: Desired | None = None


class ChangedMembers(Struct):
    """What changed in the cluster since it was looked at last. What is *strange* isn't asked for, and is looked at from *strange_at_s* on."""

    members: set[ObjectRef] = field(default_factory=set)
    strange: set[ObjectRef] = field(default_factory=set)
    strange_at_s: float = 0.0

    def note(self, ref: ObjectRef, *, is_known: bool) -> None:
        """Note a change of something that *is_known* as a member, or only says so."""
        if is_known:
            self.members.add(ref)
        elif len(self.strange) < _MOST_STRANGE:
            self.strange.add(ref)

    def is_there(self, now_s: float) -> bool:
        """Tell whether something has changed that is to be looked at now."""
        return bool(self.members or (self.strange and now_s >= self.strange_at_s))

    def take(self, now_s: float) -> frozenset[ObjectRef]:
        """Return what has changed and is to be looked at now, once."""
        changed, self.members = frozenset(self.members), set()
        if self.strange and now_s >= self.strange_at_s:
            changed |= self.strange
            self.strange, self.strange_at_s = set(), now_s + _STRANGE_S
        return changed


class FollowedSync(Struct):
    """One Sync being followed: its state, and what carrying out needs besides, which decides nothing.

    *changed* are the members that changed in the cluster since the last turn. *leaving* are members that nobody asks for any more. *reading* asks the source, beside all else; *answer* is what
    resulted, for the next turn. *newest* is what the source asked for last, *desired* what the last plan was made of; *earlier* is as for an answer.
    *version* is that of the live Sync as the last turn left it, and *memory* what the last pass leaves to the next. *same* are the commit that a daemon before this one tried and the first that this
    one read, where they hold the same.
    """

    state: PassState = field(default_factory=PassState)
    target: Target | None = None
    desired: Desired | None = None
    places: Mapping[ObjectRef, Located] = field(default_factory=dict)
    changed: ChangedMembers = field(default_factory=ChangedMembers)
    leaving: frozenset[ObjectRef] = frozenset()
    verification: Verification | None = None
    newest: Desired | None = None
    earlier: Desired | None = None
    reading: asyncio.Task[None] | None = None
    answer: SourceAnswer | None = None
    version: str = ""
    memory: PassMemory = NOTHING_KNOWN
    same: tuple[str, str] = ("", "")
    _placed: tuple[Located, ...] = ()

    def note_changed(self, ref: ObjectRef) -> bool:
        """Note that what is marked as a member changed; tell whether it is one, as far as is known."""
        is_known = self.desired is None or ref in self.places or ref in self.leaving
        self.changed.note(ref, is_known=is_known)
        return is_known

    def asked_of_kind(self, kind: GroupKind, namespace: str) -> set[ObjectRef]:
        """Return which objects of a kind the source asks for; *namespace* is that of those that say none."""
        manifests = self.newest.manifests if self.newest is not None else ()
        refs = (each.ref for each in manifests if each.gvk.group_kind == kind)
        return {ref._replace(namespace=ref.namespace or namespace) for ref in refs}

    def let_go_of_parent(self) -> None:
        """Keep of the live Sync its version alone until the next turn brings it: parsed it is the largest part of all."""
        if self.target is not None and self.target.parent is not None:
            self.version = str(self.target.parent["metadata"].get("resourceVersion") or "")
            self.target = replace(self.target, parent=None)

    def end_reading(self) -> None:
        """Have the source asked no more: nobody waits for it."""
        if self.reading is not None:
            self.reading.cancel()
        self.reading = self.answer = None

    @property
    def observed(self) -> str:
        """The commit of the ref up to which everything is processed that concerns the Sync; empty where something isn't, or there are no commits."""
        source = self.target.source.followed if self.target is not None else None
        is_settled = self.answer is None and is_at_rest(self.state)
        return source.tip if source is not None and is_settled else ""

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
        self.leaving = frozenset(each.ref for each in made.acting() if each.op is Op.DELETE)
        known, before, self._placed = self.places, self._placed, desired.manifests
        self.places = _places_after(known, before, desired.manifests, made) or _places_in(
            desired.manifests, made.changes
        )

    def find_places_again(self, desired: Desired, namespace: str) -> None:
        """Note where each of the same members is written down now; *namespace* is the default one."""
        self.places, self._placed = self.places_by(desired, namespace), ()

    def places_by(self, desired: Desired, namespace: str) -> Mapping[ObjectRef, Located]:
        """Return where each of the same members is written down in *desired*; *namespace* is the default one."""
        by_ref = {each.ref._replace(namespace=each.ref.namespace or namespace): each for each in desired.manifests}
        by_ref |= {each.ref: each for each in desired.manifests if each.ref not in by_ref}
        return {ref: by_ref[ref] for ref in self.places if ref in by_ref}

    def take(self, done: Done) -> None:
        """Take in how a plan was carried out: the Sync as that left it, and what the next pass goes on from."""
        self.memory = done.memory
        if self.target is not None:
            self.target = replace(self.target, parent=done.target.parent)

    def forget(self) -> None:
        """Forget what was read, and what follows from that."""
        self.desired = self.newest = self.earlier = None
        self.memory = NOTHING_KNOWN
        self.places, self._placed, self.leaving = {}, (), frozenset()


def _places_in(manifests: Sequence[Located], changes: Sequence[Change]) -> dict[ObjectRef, Located]:
    """Return which of these manifests asks for which of the members that *changes* are about."""
    by_place = dict(zip(map(_PLACE, manifests), manifests, strict=True))
    located = map(by_place.get, map(_PLACE_OF_CHANGE, changes))
    return {ref: each for ref, each in zip(map(_REF, changes), located, strict=True) if each is not None}


def _places_after(
    known: Mapping[ObjectRef, Located], before: Sequence[Located], manifests: Sequence[Located], made: Plan
) -> Mapping[ObjectRef, Located] | None:
    """Return which of the *manifests* asks for which member by where these are *known* to be among those *before*; None where all must be looked at.

    That is where the plan isn't about the same members, each in the same place: mostly a push changes what a few hold.
    """
    acting = made.acting()
    is_same_set = len(known) == len(made.changes) - len(acting) + sum(change.ref in known for change in acting)
    is_known = all(change.ref in known for change in acting if change.op is not Op.DELETE)
    if not known or not is_same_set or not is_known or len(before) != len(manifests):
        return None
    is_other = list(map(is_not, before, manifests))
    fresh = tuple(compress(manifests, is_other))
    files = {each.path for each in fresh}
    found = _places_in(fresh, [change for change in made.changes if change.provenance.file in files])
    replaced = set(map(id, compress(before, is_other)))
    return {**known, **found} if {id(known.get(ref)) for ref in found} == replaced else None
