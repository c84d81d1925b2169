"""Brokers that go: what still stands on them, and the proposal that empties them.

Kafka lets a broker be unregistered while it holds replicas, which loses them: nothing of a broker goes before ``standing`` is empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, Key, listing
from kubectl_reconcile_operators.kafka.partitions.proposal import MoveProposal, propose
from kubectl_reconcile_operators.kafka.partitions.wish import ALL_GOALS, BalanceGoal, MoveMode, Wish


@dataclass(frozen=True, slots=True)
class Drained:
    """What stands on the brokers that go, internal topics too, by broker; *proposal* moves all of it away, or says why that can't be."""

    standing: dict[int, tuple[Key, ...]]
    proposal: MoveProposal

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands on them any more, so that they may go."""
        return not any(self.standing.values())

    def __str__(self) -> str:
        held = {broker: keys for broker, keys in self.standing.items() if keys}
        return "; ".join(
            f"broker {broker} holds {len(keys)} partitions: {listing(keys)}" for broker, keys in held.items()
        )


def drain(seen: Assignment, brokers: Iterable[int], goals: tuple[BalanceGoal, ...] = ALL_GOALS) -> Drained:
    """Return what stands on *brokers*, and the proposal that empties them; a broker that holds nothing needn't be registered."""
    going = sorted(set(brokers))
    standing = {broker: tuple(each.key for each in seen.held_by(broker)) for broker in going}
    holding = tuple(broker for broker in going if standing[broker])
    if not holding:
        return Drained(standing, MoveProposal(seen.digest))
    leaving = tuple(broker for broker in going if standing[broker] or broker in seen.brokers)
    return Drained(standing, propose(seen, Wish(without_racks(seen, leaving, goals), MoveMode.REMOVE_BROKERS, leaving)))


def without_racks(seen: Assignment, leaving: Iterable[int], goals: tuple[BalanceGoal, ...]) -> tuple[BalanceGoal, ...]:
    """Return *goals*, without racks where brokers that stay don't name theirs: nobody has asked for racks there."""
    stay = [each for each in seen.brokers.values() if each.id not in set(leaving) and not each.fenced]
    bare = any(each.rack is None for each in stay)
    return tuple(each for each in goals if not (bare and each is BalanceGoal.RACK))
