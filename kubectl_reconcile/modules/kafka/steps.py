"""Steps: what can be done for a Kafka, and how a step is told to people.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class KafkaDo(StrEnum):
    """What a step does."""

    NOTHING = "nothing"
    """All is as specified."""
    WAIT = "wait"
    """Something under way must come to its end."""
    STOP = "stop"
    """Nobody but a person can go on."""
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
    DELETE_VOLUME = "delete-volume"
    ELECT = "elect-leaders"
    """Have partitions led by the brokers that they prefer."""


ACTIONS = frozenset(
    {
        KafkaDo.SET_CONFIG, KafkaDo.MAKE_TOPIC, KafkaDo.GROW_TOPIC, KafkaDo.SET_TOPIC, KafkaDo.DELETE_TOPIC,
        KafkaDo.ALLOW_RESTART, KafkaDo.ELECT, KafkaDo.ALLOW_MOVES, KafkaDo.MOVE, KafkaDo.CANCEL, KafkaDo.THROTTLE, KafkaDo.UNTHROTTLE, KafkaDo.UNREGISTER,
    }
)  # fmt: skip
"""Steps that aren't a matter of children."""


class Aim(StrEnum):
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

    do: KafkaDo
    aim: Aim
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


SETTLED = KafkaStep(KafkaDo.NOTHING, Aim.SETTLED, "")


def stop(text: str, reason: str) -> KafkaStep:
    """Leave it to a person."""
    return KafkaStep(KafkaDo.STOP, Aim.RECOVERING, text, reason=reason)


def wait(text: str, reason: str, aim: Aim) -> KafkaStep:
    """Wait until something has come to its end."""
    return KafkaStep(KafkaDo.WAIT, aim, text, reason=reason)
