"""What is wished of a proposal, and what is wrong with it: wishes that contradict one another or can't be granted.

Pure: problems are sentences with a hint, never exceptions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, Broker, Partition, listing


class BalanceGoal(StrEnum):
    """What is to be even."""

    RACK = "rack"  # each partition stands on as many racks as it can
    DISK = "disk"  # each broker holds about as many bytes
    REPLICAS = "replicas"  # each broker holds about as many replicas
    LEADERS = "leaders"  # each broker is preferred to lead about as many partitions


class MoveMode(StrEnum):
    """Between which brokers replicas move."""

    FULL = "full"  # between all
    ADD_BROKERS = "add-brokers"  # to the brokers named, from all others
    REMOVE_BROKERS = "remove-brokers"  # off the brokers named, to all others


ALL_GOALS = tuple(BalanceGoal)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a proposal is asked for; *excluded* are topics that stay as they are, by name, or by how the name begins (``logs-*``)."""

    goals: tuple[BalanceGoal, ...] = ALL_GOALS
    mode: MoveMode = MoveMode.FULL
    brokers: tuple[int, ...] = ()
    excluded: tuple[str, ...] = ()

    def excludes(self, topic: str) -> bool:
        """Tell whether a topic stays as it is."""
        return any(matches(each, topic) for each in self.excluded)

    def leaves(self, broker: int) -> bool:
        """Tell whether a broker is to be emptied."""
        return self.mode is MoveMode.REMOVE_BROKERS and broker in self.brokers


def matches(name: str, topic: str) -> bool:
    """Tell whether a topic is meant by its name, or by how names begin."""
    return topic.startswith(name[:-1]) if name.endswith("*") else topic == name


def staying(seen: Assignment, wish: Wish) -> list[Broker]:
    """Return the brokers that run and aren't to be emptied."""
    return [each for each in seen.brokers.values() if not each.fenced and not wish.leaves(each.id)]


def problems_of(seen: Assignment, wish: Wish) -> list[str]:
    """Return what is wrong with a wish, as sentences; empty if a proposal can be made."""
    if named := list(_wrong_brokers(seen, wish)):
        return named
    return [*_unknown_topics(seen, wish), *_too_few_brokers(seen, wish), *_wrong_racks(seen, wish)]


def _wrong_brokers(seen: Assignment, wish: Wish) -> Iterator[str]:
    if wish.mode is MoveMode.FULL and wish.brokers:
        yield f"mode full moves replicas between all brokers, and brokers {listing(wish.brokers)} are named (hint: leave out brokers, or say mode add-brokers or remove-brokers)"
    if wish.mode is not MoveMode.FULL and not wish.brokers:
        yield f"mode {wish.mode} names no brokers (hint: list their ids in brokers)"
    holding = {broker for each in seen.partitions.values() for broker in each.replicas}
    known = seen.brokers.keys() | (holding if wish.mode is MoveMode.REMOVE_BROKERS else set())
    if unknown := sorted(set(wish.brokers) - known):
        yield f"brokers {listing(unknown)} aren't there (hint: there are {listing(seen.brokers)})"
    if wish.mode is MoveMode.ADD_BROKERS and (
        away := [each for each in wish.brokers if each in seen.brokers and seen.brokers[each].fenced]
    ):
        yield f"brokers {listing(away)} don't run, so nothing can move to them (hint: wait until they have started)"
    if not wish.goals:
        yield "no goal is named (hint: name some of rack, disk, replicas, leaders)"


def _unknown_topics(seen: Assignment, wish: Wish) -> Iterator[str]:
    """Yield that topics which are to stay aren't there: who misspelt one would see it move. Kafka makes its own when they are needed."""
    known = {key.topic for key in seen.partitions}
    named = {each for each in wish.excluded if not each.endswith("*") and not each.startswith("__")}
    if unknown := sorted(named - known):
        yield f"topics {listing(unknown)} aren't there (hint: leave them out; there are {listing(sorted(known)) or 'none'})"


def _too_few_brokers(seen: Assignment, wish: Wish) -> Iterator[str]:
    stay = staying(seen, wish)
    if not stay:
        yield "no broker would be left (hint: name fewer brokers)"
    wide = [each for each in _leaving(seen, wish) if len(each.replicas) > len(stay)]
    if stay and wide:
        most = max(len(each.replicas) for each in wide)
        topics = listing(sorted({each.topic for each in wide}))
        yield f"{len(stay)} brokers can't hold the {most} replicas of {topics} (hint: keep {most} brokers, or give the topics fewer replicas)"


def _leaving(seen: Assignment, wish: Wish) -> list[Partition]:
    """Return the partitions of which a replica has to go."""
    return [
        each
        for each in seen.partitions.values()
        if any(wish.leaves(broker) for broker in each.replicas) and not wish.excludes(each.topic)
    ]


def _wrong_racks(seen: Assignment, wish: Wish) -> Iterator[str]:
    if BalanceGoal.RACK not in wish.goals:
        return
    stay = staying(seen, wish)
    if bare := [each.id for each in stay if each.rack is None]:
        yield f"goal rack needs to know where brokers stand, and brokers {listing(bare)} name no rack (hint: leave out the goal, or set their racks)"
        return
    before = len({each.rack for each in seen.brokers.values() if each.rack is not None})
    after = len({each.rack for each in stay})
    narrowed = [each for each in _leaving(seen, wish) if min(len(each.replicas), before) > after]
    if stay and narrowed:
        topics = listing(sorted({each.topic for each in narrowed}))
        yield (
            f"without brokers {listing(wish.brokers)} {after} of {before} racks are left, and goal rack asks for more for {topics} "
            "(hint: leave out the goal, or keep a broker of each rack)"
        )
