"""What is done for an etcd cluster, one step at a time.

Pure: values only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kubectl_reconcile_operators.volumes import END_VOLUME


class Do(StrEnum):
    """What a step does."""

    NOTHING = "nothing"
    """All is as specified."""
    WAIT = "wait"
    """Something under way must come to its end."""
    STOP = "stop"
    """Only a person can continue."""
    CREATE_POD = "create-pod"
    """With its volume, if it is to have one."""
    CREATE_ALONE = "create-alone"
    """On its volume, as the only member of what was a larger cluster."""
    CREATE_VOLUME = "create-volume"
    """Without its pod, for somebody to write to."""
    DELETE_POD = "delete-pod"
    DELETE_VOLUME = "delete-volume"
    KEEP_VOLUME = "keep-volume"
    """Of a slot whose member isn't wanted any more, or was removed by somebody: nobody starts on it any more."""
    END_VOLUME = END_VOLUME
    """Give up such a volume, with what is on it: an action that changes nothing but what follows."""
    PUT_ASIDE = "put-aside"
    """All volumes but the slot's: nobody starts on them any more, and nobody deletes them."""
    ADD = "add"
    """Add a learner."""
    PROMOTE = "promote"
    MOVE_LEADER = "move-leader"
    REMOVE = "remove"
    RECOVER = "recover"
    """Let one member's data go on alone: an action that changes nothing but what follows."""
    ACCEPT = "accept"
    """Take what answers for the cluster, though it doesn't know those who voted last: an action that changes nothing but what follows."""
    REPLACE = "replace"
    """Give up all data for a backup: an action that changes nothing but what follows."""
    BACK_UP = "back-up"
    """Make an EtcdBackup, for an upgrade to wait for."""
    MAKE_ROOM = "make-room"
    """Give up the history where the quota is used up: an action that changes nothing but what follows."""
    COMPACT = "compact"
    """Cut the history."""
    DEFRAGMENT = "defragment"
    """Rewrite the file of one member without what is free in it."""
    DISARM = "disarm"
    """Take back the alarm of the quota."""
    MAKE_AUTHORITY = "make-authority"
    """Draw the key that certificates are signed by, where there is none that is of use."""
    ADD_AUTHORITY = "add-authority"
    """Draw the key that follows, to be trusted before it signs."""
    USE_AUTHORITY = "use-authority"
    """Sign by the key that follows."""
    DROP_AUTHORITY = "drop-authority"
    """Trust the authority no longer that signed before."""
    ISSUE = "issue"
    """Issue a certificate, or renew it."""
    TRUST = "trust"
    """Write into a Secret what is trusted."""


ON_SECRETS = frozenset({Do.MAKE_AUTHORITY, Do.ADD_AUTHORITY, Do.USE_AUTHORITY, Do.DROP_AUTHORITY, Do.ISSUE, Do.TRUST})
"""Steps on a Secret: *slot* is its name, *member* its kind."""


class Why(StrEnum):
    """What a step is for; conditions are called by these."""

    CREATING = "Creating"
    RECOVERING = "Recovering"
    SCALING = "Scaling"
    UPGRADING = "Upgrading"
    SETTLED = "Settled"


@dataclass(frozen=True, slots=True)
class EtcdStep:
    """The one thing to do. *slot* and *member* say with what, *text* says it to people, *reason* is a word for a condition.

    *seed* marks the first pod of all. *situation* is what conditions say where that is more than the step. *occasion* tells
    the one time that a step is taken from others; without one it may be due again.
    """

    do: Do
    why: Why
    text: str
    slot: str = ""
    member: str = ""
    reason: str = ""
    seed: bool = False
    needs_approval: bool = False
    situation: str = ""
    occasion: str = ""

    @property
    def key(self) -> str:
        """What the journal calls it by."""
        about = self.slot if self.do is Do.ADD else self.member
        return "-".join(filter(None, (self.do.value, about, self.occasion)))

    @property
    def told(self) -> str:
        """What conditions say."""
        return self.situation or self.text


SETTLED = EtcdStep(Do.NOTHING, Why.SETTLED, "")
