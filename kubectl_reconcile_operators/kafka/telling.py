"""What brokers are told of steps, each over a session that somebody else opens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from kubectl_reconcile_operators.kafka.access.driver import set_user
from kubectl_reconcile_operators.kafka.session import KafkaRefusedError, KafkaSession, check
from kubectl_reconcile_operators.kafka.steps import Do

Doing: TypeAlias = Callable[[KafkaSession, Mapping[str, Any]], Awaitable[None]]
"""What is told to a broker, of an action's parameters."""
THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_EVERY = "*"
"""Which replicas a throttle is for: those of them that are in sync aren't slowed down."""
OF_TOPIC, OF_BROKER = 2, 4
"""Kinds of what has a configuration."""
_SET, _RESET = 0, 1
TIMEOUT_MS = 20_000
_NO_ID = "00000000-0000-0000-0000-000000000000"
_EXISTS, _GONE, _ELECTED, _NOT_THERE, _NOTHING_MOVES, _UNREGISTERED = 36, 3, 84, 80, 85, 102
_VOTES, _NO_VOTER = 126, 127
"""Codes of Kafka that say that a thing was done before, or can't be done now and is seen again."""


async def _make_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    wish = {
        "name": given["topic"],
        "num_partitions": given["partitions"],
        "replication_factor": given["replicas"],
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in given["set"].items()],
    }
    answer = await session.ask("CreateTopics", topics=[wish], timeout_ms=TIMEOUT_MS, validate_only=False)
    for each in answer.topics:
        check("CreateTopics", each.error_code, each.error_message, fine=(_EXISTS,))


async def _grow_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    wish = [{"name": given["topic"], "count": given["partitions"], "assignments": None}]
    answer = await session.ask("CreatePartitions", topics=wish, timeout_ms=TIMEOUT_MS, validate_only=False)
    for each in answer.results:
        check("CreatePartitions", each.error_code, each.error_message)


async def _set_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    await alter(session, {(OF_TOPIC, given["topic"]): given})


async def _delete_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    gone = [{"name": given["topic"], "topic_id": _NO_ID}]
    answer = await session.ask("DeleteTopics", topics=gone, timeout_ms=TIMEOUT_MS)
    for each in answer.responses:
        check("DeleteTopics", each.error_code, each.error_message, fine=(_GONE,))


async def _set_config(session: KafkaSession, given: Mapping[str, Any]) -> None:
    await alter(session, {(OF_BROKER, ""): given})


async def _elect(session: KafkaSession, given: Mapping[str, Any]) -> None:
    wish = [{"topic": topic, "partitions": numbers} for topic, numbers in given["topics"].items()]
    answer = await session.ask("ElectLeaders", election_type=0, topic_partitions=wish, timeout_ms=TIMEOUT_MS)
    check("ElectLeaders", answer.error_code)
    for each in (one for topic in answer.replica_election_results for one in topic.partition_result):
        check("ElectLeaders", each.error_code, each.error_message, fine=(_ELECTED, _NOT_THERE, _GONE))


async def move(session: KafkaSession, given: Mapping[str, Any]) -> None:
    """Have partitions stand elsewhere; what of them is on its way is slowed down."""
    topics = {each["topic"] for each in given["moves"]}
    every = dict.fromkeys(THROTTLED, _EVERY)
    await alter(session, {(OF_TOPIC, name): {"set": every, "reset": ()} for name in sorted(topics)}, fine=(_GONE,))
    await _reassign(session, given["moves"])


async def _cancel(session: KafkaSession, given: Mapping[str, Any]) -> None:
    await _reassign(session, [{**each, "replicas": None} for each in given["moves"]])


async def _reassign(session: KafkaSession, moves: Sequence[Mapping[str, Any]]) -> None:
    topics: dict[str, list[dict[str, Any]]] = {}
    for each in moves:
        part = {"partition_index": each["partition"], "replicas": each["replicas"]}
        topics.setdefault(each["topic"], []).append(part)
    wish = [{"name": name, "partitions": parts} for name, parts in topics.items()]
    answer = await session.ask("AlterPartitionReassignments", timeout_ms=TIMEOUT_MS, topics=wish)
    check("AlterPartitionReassignments", answer.error_code, answer.error_message)
    for topic in answer.responses:
        for each in topic.partitions:
            name = f"{topic.name}-{each.partition_index}"
            check(name, each.error_code, each.error_message, fine=(_GONE, _NOTHING_MOVES))


async def _unthrottle(session: KafkaSession, given: Mapping[str, Any]) -> None:
    topics = {(OF_TOPIC, name): {"set": {}, "reset": THROTTLED} for name in given["topics"]}
    await alter(session, topics, fine=(_GONE,))


async def unmoved(session: KafkaSession, given: Mapping[str, Any]) -> None:
    """Take the throttle off topics of which nothing moves.

    Raises:
        KafkaRefusedError: something moves.
    """
    moves = await session.ask("ListPartitionReassignments", timeout_ms=TIMEOUT_MS, topics=None)
    check("ListPartitionReassignments", moves.error_code, moves.error_message)
    if moves.topics:
        raise KafkaRefusedError("partitions move")
    await _unthrottle(session, {"topics": sorted({each["topic"] for each in given["moves"]})})


async def _unregister(session: KafkaSession, given: Mapping[str, Any]) -> None:
    check("UnregisterBroker", await session.unregister(given["broker"]), fine=(_UNREGISTERED,))


async def _remove_voter(session: KafkaSession, given: Mapping[str, Any]) -> None:
    code = await session.remove_voter(given["cluster"], given["voter"], given["directory"])
    check("RemoveRaftVoter", code, fine=(_NO_VOTER,))


async def _add_voter(session: KafkaSession, given: Mapping[str, Any]) -> None:
    at = ("CONTROLLER", given["host"], given["port"])
    check(
        "AddRaftVoter",
        await session.add_voter(given["cluster"], given["voter"], given["directory"], at),
        fine=(_VOTES,),
    )


async def _raise_level(session: KafkaSession, given: Mapping[str, Any]) -> None:
    wish = [{"feature": "metadata.version", "max_version_level": given["level"], "upgrade_type": 1}]
    answer = await session.ask("UpdateFeatures", timeout_ms=TIMEOUT_MS, feature_updates=wish, validate_only=False)
    check("UpdateFeatures", answer.error_code, answer.error_message)
    for each in answer.results or ():
        check("UpdateFeatures", each.error_code, each.error_message)


async def _decided(_session: KafkaSession, _given: Mapping[str, Any]) -> None:
    """Do nothing: it is a decision, which the next pass finds in the journal."""


async def alter(
    session: KafkaSession, changes: Mapping[tuple[int, str], Mapping[str, Any]], *, fine: Iterable[int] = ()
) -> None:
    """Set and reset what is said of each of these."""
    resources = [
        {
            "resource_type": of,
            "resource_name": name,
            "configs": [
                *({"name": key, "config_operation": _SET, "value": value} for key, value in given["set"].items()),
                *({"name": key, "config_operation": _RESET, "value": None} for key in given["reset"]),
            ],
        }
        for (of, name), given in changes.items()
    ]
    if not resources:
        return
    answer = await session.ask("IncrementalAlterConfigs", resources=resources, validate_only=False)
    for each in answer.responses:
        check("IncrementalAlterConfigs", each.error_code, each.error_message, fine=fine)


DOING: Mapping[Do, Doing] = {
    Do.MAKE_TOPIC: _make_topic,
    Do.GROW_TOPIC: _grow_topic,
    Do.SET_TOPIC: _set_topic,
    Do.DELETE_TOPIC: _delete_topic,
    Do.SET_CONFIG: _set_config,
    Do.ALLOW_RESTART: _decided,
    Do.REMOVE_VOTER: _remove_voter,
    Do.ADD_VOTER: _add_voter,
    Do.RAISE_LEVEL: _raise_level,
    Do.ELECT: _elect,
    Do.ALLOW_MOVES: _decided,
    Do.END_VOLUME: _decided,
    Do.CANCEL: _cancel,
    Do.UNTHROTTLE: _unthrottle,
    Do.UNREGISTER: _unregister,
    Do.SET_USER: set_user,
    Do.LOCK_USER: set_user,
}
