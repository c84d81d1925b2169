"""How brokers are asked and told: the only file of the module that does I/O. Without a listener with TLS or SASL, nobody has to log in.

Facts: ``pods`` by name (uid, error); ``cluster`` (id, controller: the id of the active one, -1 where there is none, voters and observers: directory ids by node id); ``brokers``
by id, as registered (fenced, rack, usableBytes, holds: how many replicas stand on it, throttled: the throttle that is set on it, nothing where there is none); ``config``, what is set for all brokers while they run;
``topics`` by name (id, internal, min (how many replicas have to be in sync), config (what is set of it, of topics of the spec alone), throttled, partitions, by number: replicas, inSync, leader, bytes);
``moves`` by topic and by partition (replicas, adding, removing).

Sizes are told coarsely, to three binary digits: what changes all the time isn't among facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

from kubectl_reconcile.module_api import Action, Facts, Io, Manifest, SilentPodError, is_alive, map_at
from kubectl_reconcile.modules.kafka.answers import (
    PAGE,
    Allowance,
    ToldTopics,
    brokers_of,
    least_in_sync,
    moves_of,
    name_of,
    quorum_of,
    replicas_allowed,
    settings_of,
    sizes_of,
)
from kubectl_reconcile.modules.kafka.names import PORT, fact_key
from kubectl_reconcile.modules.kafka.session import KafkaRefusedError, KafkaSession, check, load, malformed
from kubectl_reconcile.modules.kafka.spec import kafka_spec
from kubectl_reconcile.modules.kafka.steps import KafkaDo

Doing: TypeAlias = Callable[[KafkaSession, Mapping[str, Any]], Awaitable[None]]
"""What is told to a broker, of an action's parameters."""
THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_EVERY = "*"
"""Which replicas a throttle is for: those of them that are in sync aren't slowed down."""
_QUORUM = "__cluster_metadata"
_TOPICS_AT_ONCE = 200
_OF_TOPIC, _OF_BROKER = 2, 4
"""Kinds of what has a configuration, and in answers where a value is from."""
_FROM_TOPIC, _FROM_BROKER, _FROM_ALL = 1, 2, 3
_SET, _RESET = 0, 1
_NO_CONTROLLER = -1
_TIMEOUT_MS = 20_000
_NONSENSE = (LookupError, TypeError, ValueError, AttributeError)
"""What comes of an answer that can be read, and lacks what belongs into it."""
_EXISTS, _GONE, _ELECTED, _NOT_THERE, _NOTHING_MOVES, _UNREGISTERED = 36, 3, 84, 80, 85, 102
"""Codes of Kafka that say that a thing was done before, or can't be done now and is seen again."""


# --- looking --------------------------------------------------------------------------------------


async def observe(cr: Manifest, io: Io) -> Facts:
    """Return what the brokers say, each of itself, and one of them of the cluster."""
    spec = kafka_spec(cr)
    await asyncio.to_thread(load)
    pods = [pod for pod in io.owned.of("Pod") if is_alive(pod) and map_at(pod, "status").get("podIP")]
    names = [pod["metadata"]["name"] for pod in pods]
    allowed = replicas_allowed()
    answers = dict(zip(names, await asyncio.gather(*(_look(io, name, allowed) for name in names)), strict=True))
    facts = {
        "pods": {
            pod["metadata"]["name"]: {"uid": pod["metadata"]["uid"], "error": answers[pod["metadata"]["name"]]["error"]}
            for pod in pods
        }
    }
    answering = [name for name, each in answers.items() if not each["error"]]
    if not answering:
        return facts
    own = {str(each["id"]): each for name in answering if (each := answers[name])}
    try:
        return {**facts, **await _cluster(io, answering, own, {each.name for each in spec.topics})}
    except (SilentPodError, KafkaRefusedError) as error:
        return {**facts, "error": str(error)}
    except _NONSENSE as error:
        return {**facts, "error": malformed(error)}


async def _look(io: Io, name: str, allowed: Allowance) -> dict[str, Any]:
    """Return what a broker says of itself; ``error`` where it says nothing. *allowed* is how much all of them may tell of together."""
    try:
        async with _session(io, name) as session:
            quorum = await _quorum(session)
            dirs = await session.ask("DescribeLogDirs", topics=None)
            sizes = sizes_of(dirs, allowed)
            number = int(name.rpartition("-")[2])
            said = await _config(session, _OF_BROKER, [str(number)], THROTTLES, _FROM_BROKER)
        usable = sum(max(each.usable_bytes, 0) for each in dirs.results)
    except (SilentPodError, KafkaRefusedError) as error:
        return {"error": str(error)}
    except _NONSENSE as error:
        return {"error": malformed(error)}
    return {
        "error": "",
        "id": number,
        "quorum": quorum,
        "sizes": sizes,
        "usable": usable,
        "throttled": said.get(str(number), {}),
    }


async def _quorum(session: KafkaSession) -> dict[str, Any]:
    topics = [{"topic_name": _QUORUM, "partitions": [{"partition_index": 0}]}]
    answer = await session.ask("DescribeQuorum", topics=topics)
    check("DescribeQuorum", answer.error_code, answer.error_message)
    found = answer.topics[0].partitions[0]
    check("DescribeQuorum", found.error_code, found.error_message)
    return quorum_of(found)


async def _cluster(io: Io, answering: Sequence[str], own: Mapping[str, Mapping[str, Any]], wanted: set[str]) -> Facts:
    """Return what one broker says of the cluster: that of the active controller where it answers, since it knows first."""
    quorum = next(iter(own.values()))["quorum"]
    name = next((each for each in answering if each.endswith(f"-{quorum['controller']}")), answering[0])
    async with _session(io, name) as session:
        cluster = await session.ask("DescribeCluster", include_fenced_brokers=True, endpoint_type=1)
        check("DescribeCluster", cluster.error_code, cluster.error_message)
        config = await _config(session, _OF_BROKER, [""], None, _FROM_ALL)
        moves = await session.ask("ListPartitionReassignments", timeout_ms=_TIMEOUT_MS, topics=None)
        check("ListPartitionReassignments", moves.error_code, moves.error_message)
    sizes = {number: each["sizes"] for number, each in own.items()}
    topics = await _topics(io, name, sizes)
    await _configured(io, name, topics, wanted)
    return {
        "cluster": {"id": name_of(cluster.cluster_id), **quorum},
        "brokers": brokers_of(cluster, own, topics),
        "config": config.get("", {}),
        "topics": {fact_key(topic): each for topic, each in topics.items()},
        "moves": {fact_key(topic): each for topic, each in moves_of(moves).items()},
    }


async def _topics(io: Io, name: str, sizes: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Return all topics with their partitions, a page at a time, each over a connection of its own: one brings so much at most."""
    told = ToldTopics(sizes)
    is_more = True
    while is_more:
        cursor = {"topic_name": told.cursor[0], "partition_index": told.cursor[1]} if told.cursor else None
        async with _session(io, name) as session:
            page = await session.ask("DescribeTopicPartitions", topics=[], response_partition_limit=PAGE, cursor=cursor)
        is_more = told.add(page)
    return told.found


async def _configured(io: Io, name: str, topics: dict[str, Any], wanted: set[str]) -> None:
    """Note of each topic how many replicas have to be in sync, and of those that are *wanted* all that is set."""
    names = sorted(topics)
    for some in (names[at : at + _TOPICS_AT_ONCE] for at in range(0, len(names), _TOPICS_AT_ONCE)):
        async with _session(io, name) as session:
            least = await _config(session, _OF_TOPIC, some, ("min.insync.replicas", *THROTTLED), 0)
            every = await _config(session, _OF_TOPIC, [each for each in some if each in wanted], None, _FROM_TOPIC)
        for each in some:
            topics[each]["min"] = least_in_sync(least.get(each, {}))
            topics[each]["throttled"] = any(least.get(each, {}).get(key) for key in THROTTLED)
            topics[each]["config"] = every.get(each, {})


async def _config(
    session: KafkaSession, of: int, names: Iterable[str], keys: Sequence[str] | None, source: int
) -> dict[str, dict[str, str]]:
    """Return the configuration of these, by name: what is set at *source* alone, unless that is 0."""
    asked = [{"resource_type": of, "resource_name": each, "configuration_keys": keys} for each in names]
    if not asked:
        return {}
    answer = await session.ask("DescribeConfigs", resources=asked, include_synonyms=False, include_documentation=False)
    for each in answer.results:
        check("DescribeConfigs", each.error_code, each.error_message, fine=(_GONE,))
    return settings_of(answer, names, source)


@asynccontextmanager
async def _session(io: Io, name: str) -> AsyncIterator[KafkaSession]:
    async with io.pod(name, PORT).connect() as stream:
        try:
            yield KafkaSession(stream)
        except _NONSENSE as error:
            raise KafkaRefusedError(malformed(error)) from error


# --- acting ---------------------------------------------------------------------------------------


async def act(_cr: Manifest, action: Action, io: Io) -> str:
    """Carry out one step through whichever broker answers; it passes on to the controller what is for that.

    Raises:
        KafkaRefusedError: the cluster refuses.
        SilentPodError: no broker answers.
    """
    await asyncio.to_thread(load)
    if action.verb in {KafkaDo.MOVE, KafkaDo.THROTTLE}:  # the throttle first: whoever dies in between has moved nothing
        rates = {key: str(action.parameters["throttle"]) for key in THROTTLES}
        await _throttle(io, action.parameters, {"set": rates, "reset": ()})
    if action.verb == KafkaDo.MOVE:
        await _submitted(action, io)
    elif action.verb != KafkaDo.THROTTLE:
        await _through_any(_DOING[KafkaDo(action.verb)], action, io)
    if action.verb == KafkaDo.UNTHROTTLE:  # what says that there is a throttle goes last
        await _throttle(io, action.parameters, {"set": {}, "reset": THROTTLES})
    return ""


async def _submitted(action: Action, io: Io) -> None:
    """Submit moves. Where the cluster refuses all of them, the throttle goes again, else it would come and go with each try; so long as something moves, it stays."""
    try:
        await _through_any(_move, action, io)
    except KafkaRefusedError:
        with suppress(KafkaRefusedError, SilentPodError):  # else the next pass sees it
            await _through_any(_unmoved, action, io)
            await _throttle(io, action.parameters, {"set": {}, "reset": THROTTLES})
        raise


async def _unmoved(session: KafkaSession, given: Mapping[str, Any]) -> None:
    """Take the throttle off topics of which nothing moves.

    Raises:
        KafkaRefusedError: something moves.
    """
    moves = await session.ask("ListPartitionReassignments", timeout_ms=_TIMEOUT_MS, topics=None)
    check("ListPartitionReassignments", moves.error_code, moves.error_message)
    if moves.topics:
        raise KafkaRefusedError("partitions move")
    await _unthrottle(session, {"topics": sorted({each["topic"] for each in given["moves"]})})


async def _through_any(do: Doing, action: Action, io: Io) -> None:
    silent = SilentPodError("no broker runs")
    for pod in io.owned.of("Pod"):
        if is_alive(pod):
            try:
                async with _session(io, pod["metadata"]["name"]) as session:
                    await do(session, action.parameters)
            except SilentPodError as error:
                silent = error
                continue
            return
    raise silent


async def _grow_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    wish = [{"name": given["topic"], "count": given["partitions"], "assignments": None}]
    answer = await session.ask("CreatePartitions", topics=wish, timeout_ms=_TIMEOUT_MS, validate_only=False)
    for each in answer.results:
        check("CreatePartitions", each.error_code, each.error_message)


async def _set_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    await _alter(session, {(_OF_TOPIC, given["topic"]): given})


async def _delete_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    gone = [{"name": given["topic"], "topic_id": _NO_ID}]
    answer = await session.ask("DeleteTopics", topics=gone, timeout_ms=_TIMEOUT_MS)
    for each in answer.responses:
        check("DeleteTopics", each.error_code, each.error_message, fine=(_GONE,))


async def _set_config(session: KafkaSession, given: Mapping[str, Any]) -> None:
    await _alter(session, {(_OF_BROKER, ""): given})


async def _elect(session: KafkaSession, given: Mapping[str, Any]) -> None:
    wish = [{"topic": topic, "partitions": numbers} for topic, numbers in given["topics"].items()]
    answer = await session.ask("ElectLeaders", election_type=0, topic_partitions=wish, timeout_ms=_TIMEOUT_MS)
    check("ElectLeaders", answer.error_code)
    for each in (one for topic in answer.replica_election_results for one in topic.partition_result):
        check("ElectLeaders", each.error_code, each.error_message, fine=(_ELECTED, _NOT_THERE, _GONE))


async def _throttle(io: Io, given: Mapping[str, Any], change: Mapping[str, Any]) -> None:
    """Set the rates of these brokers, or take them off: each takes that from nobody but itself."""
    names = {
        name.rpartition("-")[2]: name
        for pod in io.owned.of("Pod")
        if is_alive(pod) and (name := pod["metadata"]["name"])
    }
    for number in map(str, given["brokers"]):
        if number not in names:
            raise SilentPodError(f"broker {number} has no pod that runs")
        async with _session(io, names[number]) as session:
            await _alter(session, {(_OF_BROKER, number): change})


async def _move(session: KafkaSession, given: Mapping[str, Any]) -> None:
    topics = {each["topic"] for each in given["moves"]}
    every = dict.fromkeys(THROTTLED, _EVERY)
    await _alter(session, {(_OF_TOPIC, name): {"set": every, "reset": ()} for name in sorted(topics)}, fine=(_GONE,))
    await _reassign(session, given["moves"])


async def _cancel(session: KafkaSession, given: Mapping[str, Any]) -> None:
    await _reassign(session, [{**each, "replicas": None} for each in given["moves"]])


async def _reassign(session: KafkaSession, moves: Sequence[Mapping[str, Any]]) -> None:
    topics: dict[str, list[dict[str, Any]]] = {}
    for each in moves:
        part = {"partition_index": each["partition"], "replicas": each["replicas"]}
        topics.setdefault(each["topic"], []).append(part)
    wish = [{"name": name, "partitions": parts} for name, parts in topics.items()]
    answer = await session.ask("AlterPartitionReassignments", timeout_ms=_TIMEOUT_MS, topics=wish)
    check("AlterPartitionReassignments", answer.error_code, answer.error_message)
    for topic in answer.responses:
        for each in topic.partitions:
            name = f"{topic.name}-{each.partition_index}"
            check(name, each.error_code, each.error_message, fine=(_GONE, _NOTHING_MOVES))


async def _unthrottle(session: KafkaSession, given: Mapping[str, Any]) -> None:
    topics = {(_OF_TOPIC, name): {"set": {}, "reset": THROTTLED} for name in given["topics"]}
    await _alter(session, topics, fine=(_GONE,))


async def _unregister(session: KafkaSession, given: Mapping[str, Any]) -> None:
    check("UnregisterBroker", await session.unregister(given["broker"]), fine=(_UNREGISTERED,))


async def _decided(_session: KafkaSession, _given: Mapping[str, Any]) -> None:
    """Do nothing: it is a decision, which the next pass finds in the journal."""


_NO_ID = "00000000-0000-0000-0000-000000000000"


async def _make_topic(session: KafkaSession, given: Mapping[str, Any]) -> None:
    wish = {
        "name": given["topic"],
        "num_partitions": given["partitions"],
        "replication_factor": given["replicas"],
        "assignments": [],
        "configs": [{"name": name, "value": value} for name, value in given["set"].items()],
    }
    answer = await session.ask("CreateTopics", topics=[wish], timeout_ms=_TIMEOUT_MS, validate_only=False)
    for each in answer.topics:
        check("CreateTopics", each.error_code, each.error_message, fine=(_EXISTS,))


async def _alter(
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


_DOING: Mapping[KafkaDo, Doing] = {
    KafkaDo.MAKE_TOPIC: _make_topic,
    KafkaDo.GROW_TOPIC: _grow_topic,
    KafkaDo.SET_TOPIC: _set_topic,
    KafkaDo.DELETE_TOPIC: _delete_topic,
    KafkaDo.SET_CONFIG: _set_config,
    KafkaDo.ALLOW_RESTART: _decided,
    KafkaDo.ELECT: _elect,
    KafkaDo.ALLOW_MOVES: _decided,
    KafkaDo.CANCEL: _cancel,
    KafkaDo.UNTHROTTLE: _unthrottle,
    KafkaDo.UNREGISTER: _unregister,
}
