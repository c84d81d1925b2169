"""One followed Sync between two events: what is under way for it, what is known of it, and what must hold.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.daemon.drift import Drift, deleted_in
from kubectl_reconcile.core.daemon.source_state import SourceState
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import DriftPolicy, Sync

RIGHTS_S: Final = 30.0
"""How often news of rights have a Sync try again what was refused, at most, in seconds: anybody may make accounts and roles somewhere."""


class PassPhase(StrEnum):
    """What is under way."""

    IDLE = "idle"
    """Nothing."""
    CHECKING = "checking"
    """It is looked whether all members are in the caches."""
    ON_SET = "on-set"
    """All that Git asks for is planned and written."""
    ON_OBJECTS = "on-objects"
    """What changed in the cluster is planned and written."""


class RightsLack(Struct, frozen=True):
    """Whether something *is_denied* for want of rights, and *from_s* when on news of rights are a reason to try again."""

    is_denied: bool = False
    from_s: float = 0.0


class InvariantError(AssertionError):
    """A state that can't be; the message says why."""


class PassState(Struct, frozen=True):
    """One Sync between two events. *sync* is None as long as nothing is known: then all else is as it is at first.

    *is_due* tells that the set is, from *retry_s* on. *members* are those that a file explains; *dirty* ones changed in the
    cluster, *under_way* ones are being looked at. *drift* is what is left alone. *settled* is what the last pass over the set
    found if all was well and nothing but members can have changed since; *told* the reason told last. *missing* are
    namespaces in which objects were refused, for want of them if they come only later; *rights* tells whether something was for want of rights. *is_gated* tells that a new revision or
    spec hasn't been let through by what the Sync depends on.
    """

    phase: PassPhase = PassPhase.IDLE
    sync: Sync | None = None
    source: SourceState = field(default_factory=SourceState)
    is_asked: bool = False
    is_due: bool = True
    retry_s: float = 0.0
    members: frozenset[ObjectRef] = frozenset()
    dirty: frozenset[ObjectRef] = frozenset()
    under_way: frozenset[ObjectRef] = frozenset()
    drift: Drift = field(default_factory=dict)
    settled: Report | None = None
    told: ConditionReason | None = None
    missing: frozenset[str] = frozenset()
    rights: RightsLack = field(default_factory=RightsLack)
    is_gated: bool = True

    def telling(self, report: Report) -> PassState:
        """Return the state in which this is told."""
        return replace(self, told=report.reason, rights=replace(self.rights, is_denied=report.is_of_rights))

    def validate(self) -> None:
        """Return if the state can be.

        Raises:
            InvariantError: it can't; the message says why.
        """
        broken = [sentence for sentence, holds in _INVARIANTS.items() if not holds(self)]
        if broken:
            raise InvariantError(f"{'; '.join(broken)}: {self}")


def is_at_rest(state: PassState) -> bool:
    """Tell whether a turn would do nothing but ask the source, however late it came."""
    is_idle = state.phase is PassPhase.IDLE and not (state.is_due or state.is_asked or state.is_gated or state.dirty)
    source, looks_for_deleted = state.source, bool(deleted_in(state.drift))
    return (
        is_idle
        and not looks_for_deleted
        and state.sync is not None
        and source.is_open
        and not (source.is_reading or source.is_awaited)
    )


_INVARIANTS: Final[Mapping[str, Callable[[PassState], bool]]] = {
    "of a Sync that isn't followed something is known": lambda state: (
        state.sync is not None or replace(state, told=None, rights=RightsLack()) == PassState()
    ),
    "somebody asked, and nothing is under way": lambda state: not state.is_asked or state.phase is not PassPhase.IDLE,
    "objects are under way in no pass over objects": lambda state: (
        bool(state.under_way) == (state.phase is PassPhase.ON_OBJECTS)
    ),
    "an object is dirty that no file explains": lambda state: state.dirty <= state.members,
    "members are worked on before the source was ever read": lambda state: (
        state.source.is_read or state.phase is PassPhase.IDLE
    ),
    "members are known before the source was ever read": lambda state: state.source.is_read or not state.members,
    "the source answered and was never read": lambda state: state.source.is_read or not state.source.is_open,
    "the source may have changed: it wasn't checked": lambda state: state.source.validates(),
    "the set is due, and settled": lambda state: not (state.is_due and state.settled),
    "what is settled isn't Synced": lambda state: (
        state.settled is None or state.settled.reason is ConditionReason.SYNCED
    ),
    "drift is left that is to be corrected": lambda state: (
        not state.drift or (state.sync is not None and state.sync.drift is not DriftPolicy.CORRECT)
    ),
}
