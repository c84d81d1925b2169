"""Steps: what can be done for a Kafka, and how a step is told to people.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.volumes import END_VOLUME


class Do(StrEnum):
    """What a step does."""

    NOTHING = "nothing"
    """All is as specified."""
    WAIT = "wait"
    """Something under way must come to its end."""
    STOP = "stop"
    """Only a person can continue."""
    CREATE_PODS = "create-pods"
    """With their volumes, where there are none yet."""
    DELETE_POD = "delete-pod"
    SET_CONFIG = "set-config"
    """Give all brokers settings that they take on while they run."""
    MAKE_TOPIC = "make-topic"
    GROW_TOPIC = "grow-topic"
    SET_TOPIC = "set-topic"
    """Set the configuration of a topic."""
    DELETE_TOPIC = "delete-topic"
    ALLOW_RESTART = "allow-restart"
    """A decision of somebody: partitions may be away for the time of a restart."""
    ALLOW_MOVES = "allow-moves"
    """A decision of somebody: partitions may move as proposed."""
    MOVE = "move-partitions"
    """Have partitions stand elsewhere, at no more than a certain speed."""
    CANCEL = "cancel-moves"
    THROTTLE = "set-throttle"
    """Have what moves already move at another speed."""
    UNTHROTTLE = "take-throttle-off"
    UNREGISTER = "unregister-broker"
    """Have the cluster forget a broker that is gone."""
    END_VOLUME = END_VOLUME
    """A decision of somebody: the volume of a broker that isn't wanted any more is given up."""
    DELETE_VOLUME = "delete-volume"
    REMOVE_VOTER = "remove-voter"
    """Have a controller that lost its volume no longer counted among those that vote."""
    ADD_VOTER = "add-voter"
    RAISE_LEVEL = "raise-metadata-version"
    """Have the cluster write its metadata in a newer version, for good."""
    ELECT = "elect-leaders"
    """Have partitions led by the brokers that they prefer."""
    MAKE_AUTHORITY = "make-authority"
    """This and the next five are steps on the Kafka's own certificates, see `CertificateDo`."""
    ADD_AUTHORITY = "add-authority"
    USE_AUTHORITY = "use-authority"
    DROP_AUTHORITY = "drop-authority"
    ISSUE = "issue"
    TRUST = "trust"
    MAKE_SECRET = "make-secret"  # noqa: S105 - a verb
    """Make the Secret of a user, with a random password."""
    SET_USER = "set-user"
    """Have a user log in with the password of its Secret."""
    LOCK_USER = "lock-user"
    """Give a user a password that nobody knows."""
    RELOAD = "reload-certificates"
    """Have a broker read the certificates of its listeners again."""


ON_OWN_SECRETS = frozenset(Do(each.value) for each in CertificateDo)
"""Steps on the Kafka's own certificates."""
ON_ACCESS = ON_OWN_SECRETS | {Do.MAKE_SECRET, Do.SET_USER, Do.LOCK_USER, Do.RELOAD}
"""Steps on who gets to brokers."""
ACTIONS = ON_ACCESS | frozenset(
    {
        Do.SET_CONFIG, Do.MAKE_TOPIC, Do.GROW_TOPIC, Do.SET_TOPIC, Do.DELETE_TOPIC,
        Do.ALLOW_RESTART, Do.ELECT, Do.ALLOW_MOVES, Do.MOVE, Do.CANCEL, Do.THROTTLE, Do.UNTHROTTLE, Do.UNREGISTER,
        Do.RAISE_LEVEL, Do.REMOVE_VOTER, Do.ADD_VOTER, Do.END_VOLUME,
    }
)  # fmt: skip
"""Steps that aren't a matter of children."""


class Why(StrEnum):
    """What a step is for."""

    CREATING = "Creating"
    RECOVERING = "Recovering"
    SCALING = "Scaling"
    ROLLING = "Rolling"
    CHANGING = "Changing"
    SETTLED = "Settled"


@dataclass(frozen=True, slots=True)
class KafkaStep:
    """The one thing to do. *about* names it among its kind, *text* says it to people, *reason* is a word for a condition.

    *brokers* are those that it begins or ends; *parameters* are for the driver; *holds* is what must still be observed when it runs.
    """

    do: Do
    why: Why
    text: str
    about: str = ""
    reason: str = ""
    brokers: tuple[int, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    holds: Mapping[str, Any] = field(default_factory=dict)
    needs_approval: bool = False

    @property
    def key(self) -> str:
        """What names it as an action."""
        return f"{self.do.value}-{self.about}" if self.about else self.do.value


SETTLED = KafkaStep(Do.NOTHING, Why.SETTLED, "")


def stop(text: str, reason: str) -> KafkaStep:
    """Leave it to a person."""
    return KafkaStep(Do.STOP, Why.RECOVERING, text, reason=reason)


def wait(text: str, reason: str, why: Why) -> KafkaStep:
    """Wait until something has come to its end."""
    return KafkaStep(Do.WAIT, why, text, reason=reason)
