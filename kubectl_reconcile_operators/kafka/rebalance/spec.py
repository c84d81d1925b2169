"""The spec of a KafkaRebalance, and what in it makes no sense whatever the cluster looks like.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from kubectl_reconcile.module_api import Between, Manifest, SpecError, spec_of
from kubectl_reconcile_operators.kafka.partitions.assignment import digest_of
from kubectl_reconcile_operators.kafka.partitions.wish import BalanceGoal, MoveMode, Wish

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{0,248}(\*|[a-zA-Z0-9._-])")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class RebalancedCluster:
    """The Kafka beside it."""

    name: str


@dataclass(frozen=True, slots=True)
class RebalanceSpec:
    """The spec of a KafkaRebalance. Where *max_moves_in_flight* or *throttle_bytes_per_second* is 0, the Kafka's own counts; *stopped* takes back what is in flight and leaves the rest."""

    cluster_ref: RebalancedCluster
    goals: tuple[str, ...] = (BalanceGoal.DISK.value, BalanceGoal.REPLICAS.value, BalanceGoal.LEADERS.value)
    mode: str = MoveMode.FULL.value
    brokers: tuple[int, ...] = ()
    exclude_topics: tuple[str, ...] = ()
    max_moves_in_flight: Annotated[int, Between(0, 1000)] = 0
    throttle_bytes_per_second: Annotated[int, Between(0, 1 << 50)] = 0
    stopped: bool = False

    @property
    def wish(self) -> Wish:
        """What a proposal is asked for."""
        goals = tuple(each for each in BalanceGoal if each.value in self.goals)
        return Wish(goals, MoveMode(self.mode), tuple(sorted(self.brokers)), tuple(sorted(self.exclude_topics)))

    @property
    def digest(self) -> str:
        """A hash of what is wished; how fast it goes isn't part of it, so that may change midway."""
        wish = self.wish
        return digest_of([self.cluster_ref.name, list(wish.goals), wish.mode, list(wish.brokers), list(wish.excluded)])


def rebalance_spec(cr: Manifest) -> RebalanceSpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, RebalanceSpec)
    if not _NAME.fullmatch(spec.cluster_ref.name):
        raise SpecError(".spec.clusterRef.name", "must be the name of a Kafka")
    _check_names(".spec.goals", spec.goals, [each.value for each in BalanceGoal])
    _check_names(".spec.mode", [spec.mode], [each.value for each in MoveMode])
    if not spec.goals:
        raise SpecError(".spec.goals", "must name at least one of rack, disk, replicas, leaders")
    if spec.mode == MoveMode.FULL.value and spec.brokers:
        raise SpecError(
            ".spec.brokers", "can be set only with mode add-brokers or remove-brokers, not with full (hint: remove it)"
        )
    if spec.mode != MoveMode.FULL.value and not spec.brokers:
        raise SpecError(".spec.brokers", f"must name the brokers that mode {spec.mode} is about")
    _check_once(".spec.brokers", spec.brokers)
    _check_once(".spec.goals", spec.goals)
    for at, each in enumerate(spec.exclude_topics):
        if not _TOPIC.fullmatch(each):
            raise SpecError(
                f".spec.excludeTopics[{at}]",
                f"must be a topic's name, or a prefix followed by *, not {each!r}",
            )
    return spec


def _check_names(where: str, given: tuple[str, ...] | list[str], known: list[str]) -> None:
    for each in given:
        if each not in known:
            raise SpecError(where, f"must be one of {', '.join(known)}, not {each!r}")


def _check_once(where: str, given: tuple[object, ...]) -> None:
    twice = next((each for at, each in enumerate(given) if each in given[:at]), None)
    if twice is not None:
        raise SpecError(where, f"names {twice} twice")
