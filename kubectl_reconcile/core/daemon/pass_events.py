"""What happens to a followed Sync, and what is to be done about it, as data.

Vocabulary: an *event* is something that happened, or the result of an instruction; an *instruction* is something to carry
out. ``pass_state`` turns the first into the second.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Plan
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.resources.verification import Verification

# --- events that come from outside --------------------------------------------------------------------------------------


class ClusterFacts(Struct, frozen=True):
    """What a decision needs to know of the cluster and the queue, as of now.

    *waits* says what of another Sync must come true first; empty where nothing must, or nobody asked: it is looked up only where
    ``PassState.is_gated``. *cycle* says by way of which others the Sync waits for itself. *has_lapsed* tells that fields that were left to others are to be
    tried again, *lapses_at_s* when the next will be. *pauses_s* are objects that were corrected so often that they wait, and for
    how long. *has_earlier* tells that nothing was planned yet, and that it is known what was let through before this daemon began.
    *is_current*: others who follow the same repository were told lately that the ref is where it was read.
    """

    waits: str = ""
    cycle: str = ""
    is_contended: bool = False
    has_lapsed: bool = False
    lapses_at_s: float | None = None
    pauses_s: Mapping[ObjectRef, float] = field(default_factory=dict)
    has_earlier: bool = False
    is_current: bool = False


class TurnCame(Struct, frozen=True):
    """It is this Sync's turn; *is_asked* tells that somebody waits for an answer."""

    sync: Sync
    facts: ClusterFacts = field(default_factory=ClusterFacts)
    is_asked: bool = False


class SourceDue(Struct, frozen=True):
    """The source may be due in the middle of a pass, which waits for health and so may take long."""


class SourceCurrent(Struct, frozen=True):
    """Somebody else who follows the same repository was told that the source is where it was read."""


class SpecInvalid(Struct, frozen=True):
    """The Sync can't be meant as it is written."""

    message: str


class ObjectsChanged(Struct, frozen=True):
    """These members changed in the cluster, or came or went, and not by our own hand."""

    refs: frozenset[ObjectRef]


class Pushed(Struct, frozen=True):
    """Somebody says that the source has news."""


class SourceMoved(Struct, frozen=True):
    """Another Sync of the same repository has seen that what this one follows has moved."""


class KindsChanged(Struct, frozen=True):
    """The cluster serves other kinds than before, or other schemas of them."""


class Resumed(Struct, frozen=True):
    """A person ended the contention over fields: they are to be written again."""


class Approved(Struct, frozen=True):
    """A person let through what is held."""


class DependencyChanged(Struct, frozen=True):
    """Another Sync came, went or got another status."""

    ref: ObjectRef


class NamespaceCame(Struct, frozen=True):
    """A namespace was made."""

    name: str


class RightsChanged(Struct, frozen=True):
    """Accounts, roles or bindings changed what *accounts* may do, by the names that the server gives them; None where these aren't known."""

    accounts: frozenset[str] | None = None

    def concerns(self, account: str) -> bool:
        """Tell whether it may have changed what *account* may do."""
        return self.accounts is None or account in self.accounts


class AnnotationRenamed(Struct, frozen=True):
    """An object carries an annotation by the name of an earlier version; nothing follows but that it is told."""

    sentence: str


class HealthChanged(Struct, frozen=True):
    """The members of a Sync are healthy, on their way, or broken (*reason*) otherwise than before."""

    reason: str
    sentence: str


class Forgotten(Struct, frozen=True):
    """The Sync is gone, follows nothing any more, or is another replica's: what was known of it may be old by its return."""


# --- events that are results of instructions ----------------------------------------------------------------------------


class SourceRead(Struct, frozen=True):
    """The source answered; *is_news* tells that it asks for something else than before, or is signed otherwise.

    *verification* is whose signature it has, where the Sync asks for that. *was_passed* tells that the status says of this
    revision, and of the spec as it is, that they were let through already: a daemon before this one saw to that.
    """

    is_news: bool
    verification: Verification | None = None
    was_passed: bool = False


class SourceFailed(Struct, frozen=True):
    """The source can't be read, and *reason* says whose fault that is; or by *verification*, nothing of it may be applied."""

    message: str
    reason: ConditionReason = ConditionReason.SOURCE
    verification: Verification | None = None


class MembersChecked(Struct, frozen=True):
    """Whether all members are in the caches."""

    are_there: bool


class PlanMade(Struct, frozen=True):
    """A plan was made; *members* are those that a file explains, *applied_revision* is what the status says was applied last.

    *contention_changed* tells that other fields than before are left to others; *was_told_anew* that a chart was rendered again, by what it
    looks up in the cluster, so that it may ask for something else in other members, too.
    """

    plan: Plan
    members: frozenset[ObjectRef] = frozenset()
    applied_revision: str = ""
    contention_changed: bool = False
    was_told_anew: bool = False


class Applied(Struct, frozen=True):
    """A plan was carried out. *written* are the changes that wrote something, *has_failed* tells that some could not be.

    *missing_namespaces* are those in which objects were refused, for want of them if they come only later.
    """

    report: Report
    written: tuple[Change, ...] = ()
    has_failed: bool = False
    missing_namespaces: frozenset[str] = frozenset()
    duration_s: float = 0.0


class PassInterrupted(Struct, frozen=True):
    """The daemon was told to end, or the Sync became another replica's, in the middle of a pass."""


class PassFailed(Struct, frozen=True):
    """A pass came to nothing; *is_answer* tells whether whoever asked need not be answered by a further one."""

    reason: ConditionReason
    message: str
    is_answer: bool = False


class RetryScheduled(Struct, frozen=True):
    """What failed is tried again after a while."""

    retry: Retry
    after_s: float


Event: TypeAlias = (
    TurnCame | SourceDue | SourceCurrent | SpecInvalid | ObjectsChanged | Pushed | SourceMoved | KindsChanged | Resumed | Approved | DependencyChanged | NamespaceCame | RightsChanged
    | Forgotten | SourceRead | SourceFailed | MembersChecked | PlanMade | Applied | PassInterrupted | PassFailed | RetryScheduled
)  # fmt: skip


# --- instructions -------------------------------------------------------------------------------------------------------


class ReadSource(Struct, frozen=True):
    """Ask the source for news, beside all else: ``SourceRead`` or ``SourceFailed``. Credentials are read again where it is *opened*.

    That is at first, after a failure, and whenever somebody asks for a sync; who does may wait for it (*is_awaited*). An answer
    that another Sync of the repository was given will do from *since_s* on.
    """

    opened: bool
    is_awaited: bool = False
    since_s: float = 0.0


class CheckMembers(Struct, frozen=True):
    """See whether all members are in the caches: ``MembersChecked``."""


class PlanSet(Struct, frozen=True):
    """Plan the whole set: ``PlanMade``. One that *is_earlier* is as it was let through before this daemon began.

    *unseen*: what is new is planned without a look whether something of its name is there.
    """

    is_earlier: bool = False
    unseen: bool = False


class PlanObjects(Struct, frozen=True):
    """Plan these members alone: ``PlanMade``."""

    refs: frozenset[ObjectRef]


class ApplySet(Struct, frozen=True):
    """Carry out the plan of the whole set, and record what it holds: ``Applied`` or ``PassInterrupted``.

    Where it was made *unseen* the server judges what is new; where it finds something there, that is looked at and planned again.
    *announced* is how many objects are to be written, where that is told should it take a while.
    """

    plan: Plan
    unseen: bool = False
    announced: int = 0


class ApplyObjects(Struct, frozen=True):
    """Carry out the plan of some members: ``Applied`` or ``PassInterrupted``."""

    plan: Plan


class Scope(StrEnum):
    """What a report is about, or what is tried again."""

    SYNC = "sync"
    """The Sync itself: it can't be looked at, or needn't be."""
    SOURCE = "source"
    """What it follows."""
    SET = "set"
    """A pass over all its members."""
    OBJECTS = "objects"
    """A pass over some."""
    BROKEN_OFF = "broken-off"
    """A pass that broke off."""


class Tell(Struct, frozen=True):
    """Write how it went onto the Sync, and which request that answers."""

    report: Report
    scope: Scope
    answers: str = ""


class Retry(Struct, frozen=True):
    """Try again after a delay that grows with each failure up to *cap_s*: ``RetryScheduled``."""

    scope: Scope
    priority: Priority
    cap_s: float
    message: str = ""


class ForgetFailures(Struct, frozen=True):
    """All went well, or what may fix a failure has come: the next failure is the first, which is tried again soon.

    What has come isn't always in force when a watch shows it: the API server's authorizer takes a new binding from a watch of its own.
    """


class LookAgain(Struct, frozen=True):
    """Have another turn, at the earliest after so many seconds."""

    priority: Priority
    after_s: float = 0.0


class DriftPutBack(Struct, frozen=True):
    """Count and tell that drift was corrected."""

    ref: ObjectRef
    note: str


class NotePutBack(Struct, frozen=True):
    """Note on the Sync what drift was corrected in a pass."""

    put_back: tuple[DriftPutBack, ...]


class DriftLeft(Struct, frozen=True):
    """Report drift that is left alone."""

    ref: ObjectRef
    note: str


Instruction: TypeAlias = (
    ReadSource | CheckMembers | PlanSet | PlanObjects | ApplySet | ApplyObjects | Tell | Retry | ForgetFailures
    | LookAgain | DriftPutBack | NotePutBack | DriftLeft
)  # fmt: skip
