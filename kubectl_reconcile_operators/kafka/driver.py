"""How brokers are asked and told, over TLS at the port where they talk to one another. With ``access.driver`` it is all of the module that does I/O.

Facts: ``pods`` by name (uid, error, shown: whether it shows the certificate of its Secret, by listener); ``cluster`` (id, level: the version of its metadata, controller: the id of the active one, -1 where there is none, voters and observers: directory ids by node id, caughtUp: which observers are controllers' equals in what they have); ``brokers``
by id, as registered (fenced, rack, usableBytes, knows: the newest version of metadata that it knows, holds: how many replicas stand on it, throttled: the throttle that is set on it, nothing where there is none); ``config``, what is set for all brokers while they run;
``topics`` by name (id, internal, min (how many replicas have to be in sync), config (what is set of it, of topics of the spec alone), throttled, partitions, by number: replicas, inSync, leader, bytes);
``moves`` by topic and by partition (replicas, adding, removing). Who gets to brokers is told as ``access.state`` says.

Sizes are told coarsely, to three binary digits: what changes all the time isn't among facts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from kubectl_reconcile.module_api import Action, Context, Facts, Io, Manifest, SilentPodError, is_alive, map_at
from kubectl_reconcile_operators.certificates.worth import SECRET_OK
from kubectl_reconcile_operators.kafka.access.driver import (
    BrokerIo,
    act_on_secret,
    observe_access,
    password_of,
    shown_by,
    users_known,
)
from kubectl_reconcile_operators.kafka.access.listeners import ListenerWish
from kubectl_reconcile_operators.kafka.answers import (
    PAGE,
    Allowance,
    ToldTopics,
    brokers_of,
    least_in_sync,
    levels_of,
    moves_of,
    name_of,
    quorum_of,
    replicas_allowed,
    settings_of,
    sizes_of,
)
from kubectl_reconcile_operators.kafka.names import INTERNAL_PORT, fact_key
from kubectl_reconcile_operators.kafka.session import KafkaRefusedError, KafkaSession, check, load, malformed
from kubectl_reconcile_operators.kafka.spec import KafkaSpec, kafka_spec
from kubectl_reconcile_operators.kafka.steps import ON_OWN_SECRETS, Do
from kubectl_reconcile_operators.kafka.telling import (
    DOING,
    OF_BROKER,
    OF_TOPIC,
    THROTTLED,
    THROTTLES,
    TIMEOUT_MS,
    Doing,
    alter,
    move,
    unmoved,
)

_QUORUM = "__cluster_metadata"
_TOPICS_AT_ONCE = 200
_FROM_TOPIC, _FROM_BROKER, _FROM_ALL = 1, 2, 3
"""Where a value is from, in answers."""
_NO_CONTROLLER = -1
_WHO = {"client_software_name": "kubectl-reconcile", "client_software_version": "1"}
_NONSENSE = (LookupError, TypeError, ValueError, AttributeError)
"""What comes of an answer that can be read, and lacks what belongs into it."""
_GONE = 3


# --- looking --------------------------------------------------------------------------------------


async def observe(cr: Manifest, io: Io) -> Facts:
    """Return what the brokers say, each of itself, and one of them of the cluster."""
    spec, own_io = kafka_spec(cr), BrokerIo(io, Context("", "kafka", cr))
    await asyncio.to_thread(load)
    access = await observe_access(cr, spec, own_io)
    good = [each for each in spec.listeners if map_at(access, "secrets", each.secret).get("state") == SECRET_OK]
    return {**access, **await _told(cr, spec, good, own_io)}


async def _told(cr: Manifest, spec: KafkaSpec, listeners: Sequence[ListenerWish], io: BrokerIo) -> Facts:
    """Return what the brokers say, and whether they show the certificates of these *listeners*."""
    pods = [pod for pod in io.owned.of("Pod") if is_alive(pod) and map_at(pod, "status").get("podIP")]
    names = [pod["metadata"]["name"] for pod in pods]
    allowed = replicas_allowed()
    answers = dict(zip(names, await asyncio.gather(*(_look(io, name, allowed) for name in names)), strict=True))
    answering = [name for name, each in answers.items() if not each["error"]]
    shown = await asyncio.gather(*(shown_by(name, listeners, io) for name in answering))
    facts = {
        "pods": {
            pod["metadata"]["name"]: {
                "uid": pod["metadata"]["uid"],
                "error": answers[pod["metadata"]["name"]]["error"],
                "shown": dict(zip(answering, shown, strict=True)).get(pod["metadata"]["name"], {}),
            }
            for pod in pods
        }
    }
    if not answering:
        return facts
    own = {str(each["id"]): each for name in answering if (each := answers[name])}
    try:
        return {**facts, **await _cluster(cr, spec, io, answering, own)}
    except (SilentPodError, KafkaRefusedError) as error:
        return {**facts, "error": str(error)}
    except _NONSENSE as error:
        return {**facts, "error": malformed(error)}


async def _look(io: BrokerIo, name: str, allowed: Allowance) -> dict[str, Any]:
    """Return what a broker says of itself; ``error`` where it says nothing. *allowed* is how much all of them may tell of together."""
    try:
        async with _session(io, name) as session:
            levels = levels_of(await session.ask("ApiVersions", **_WHO))
            quorum = await _quorum(session)
            dirs = await session.ask("DescribeLogDirs", topics=None)
            sizes = sizes_of(dirs, allowed)
            number = int(name.rpartition("-")[2])
            said = await _config(session, OF_BROKER, [str(number)], THROTTLES, _FROM_BROKER)
        usable = sum(max(each.usable_bytes, 0) for each in dirs.results)
    except (SilentPodError, KafkaRefusedError) as error:
        return {"error": str(error)}
    except _NONSENSE as error:
        return {"error": malformed(error)}
    return {
        "error": "",
        "id": number,
        "quorum": quorum,
        "levels": levels,
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


async def _cluster(
    cr: Manifest, spec: KafkaSpec, io: BrokerIo, answering: Sequence[str], own: Mapping[str, Mapping[str, Any]]
) -> Facts:
    """Return what one broker says of the cluster: that of the active controller where it answers, since it knows first."""
    quorum = next(iter(own.values()))["quorum"]
    name = next((each for each in answering if each.endswith(f"-{quorum['controller']}")), answering[0])
    told = own[name.rpartition("-")[2]]
    async with _session(io, name) as session:
        cluster = await session.ask("DescribeCluster", include_fenced_brokers=True, endpoint_type=1)
        check("DescribeCluster", cluster.error_code, cluster.error_message)
        config = await _config(session, OF_BROKER, [""], None, _FROM_ALL)
        moves = await session.ask("ListPartitionReassignments", timeout_ms=TIMEOUT_MS, topics=None)
        check("ListPartitionReassignments", moves.error_code, moves.error_message)
        users = await users_known(cr, spec, session)
    sizes = {number: each["sizes"] for number, each in own.items()}
    topics = await _topics(io, name, sizes)
    await _configured(io, name, topics, {each.name for each in spec.topics})
    return {
        "cluster": {"id": name_of(cluster.cluster_id), "level": told["levels"]["level"], **quorum},
        "brokers": brokers_of(cluster, own, topics),
        "config": config.get("", {}),
        "users": users,
        "topics": {fact_key(topic): each for topic, each in topics.items()},
        "moves": {fact_key(topic): each for topic, each in moves_of(moves).items()},
    }


async def _topics(io: BrokerIo, name: str, sizes: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Return all topics with their partitions, a page at a time, each over a connection of its own: one brings so much at most."""
    told = ToldTopics(sizes)
    is_more = True
    while is_more:
        cursor = {"topic_name": told.cursor[0], "partition_index": told.cursor[1]} if told.cursor else None
        async with _session(io, name) as session:
            page = await session.ask("DescribeTopicPartitions", topics=[], response_partition_limit=PAGE, cursor=cursor)
        is_more = told.add(page)
    return told.found


async def _configured(io: BrokerIo, name: str, topics: dict[str, Any], wanted: set[str]) -> None:
    """Note of each topic how many replicas have to be in sync, and of those that are *wanted* all that is set."""
    names = sorted(topics)
    for some in (names[at : at + _TOPICS_AT_ONCE] for at in range(0, len(names), _TOPICS_AT_ONCE)):
        async with _session(io, name) as session:
            least = await _config(session, OF_TOPIC, some, ("min.insync.replicas", *THROTTLED), 0)
            every = await _config(session, OF_TOPIC, [each for each in some if each in wanted], None, _FROM_TOPIC)
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
async def _session(io: BrokerIo, name: str) -> AsyncIterator[KafkaSession]:
    async with io.pod(name, INTERNAL_PORT).connect() as stream:
        try:
            yield KafkaSession(stream)
        except _NONSENSE as error:
            raise KafkaRefusedError(malformed(error)) from error


# --- acting ---------------------------------------------------------------------------------------


async def act(cr: Manifest, action: Action, io: Io) -> str:
    """Carry out one step, on a Secret or through whichever broker answers; it passes on to the controller what is for that.

    Raises:
        KafkaRefusedError: the cluster refuses.
        SilentPodError: no broker answers.
    """
    await asyncio.to_thread(load)
    await _act(action, BrokerIo(io, Context("", "kafka", cr)))
    return ""


async def _act(action: Action, io: BrokerIo) -> None:
    if action.verb in {*ON_OWN_SECRETS, Do.MAKE_SECRET}:
        await act_on_secret(action, io)
        return
    if action.verb == Do.RELOAD:
        await _reload(io, action.parameters)
        return
    if action.verb in {Do.SET_USER, Do.LOCK_USER}:
        action = action.with_parameters(await password_of(action.parameters, io))
    if action.verb in {Do.MOVE, Do.THROTTLE}:  # the throttle first: whoever dies in between has moved nothing
        rates = {key: str(action.parameters["throttle"]) for key in THROTTLES}
        await _throttle(io, action.parameters, {"set": rates, "reset": ()})
    if action.verb == Do.MOVE:
        await _submitted(action, io)
    elif action.verb != Do.THROTTLE:
        await _through_any(DOING[Do(action.verb)], action, io)
    if action.verb == Do.UNTHROTTLE:  # what says that there is a throttle goes last
        await _throttle(io, action.parameters, {"set": {}, "reset": THROTTLES})


async def _submitted(action: Action, io: BrokerIo) -> None:
    """Submit moves. Where the cluster refuses all of them, the throttle goes again, else it would come and go with each try; so long as something moves, it stays."""
    try:
        await _through_any(move, action, io)
    except KafkaRefusedError:
        with suppress(KafkaRefusedError, SilentPodError):  # else the next pass sees it
            await _through_any(unmoved, action, io)
            await _throttle(io, action.parameters, {"set": {}, "reset": THROTTLES})
        raise


async def _through_any(do: Doing, action: Action, io: BrokerIo) -> None:
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


async def _throttle(io: BrokerIo, given: Mapping[str, Any], change: Mapping[str, Any]) -> None:
    """Set the rates of these brokers, or take them off, as all that is a broker's own: each takes that from nobody but itself."""
    names = {
        name.rpartition("-")[2]: name
        for pod in io.owned.of("Pod")
        if is_alive(pod) and (name := pod["metadata"]["name"])
    }
    for number in map(str, given["brokers"]):
        if number not in names:
            raise SilentPodError(f"broker {number} has no pod that runs")
        async with _session(io, names[number]) as session:
            await alter(session, {(OF_BROKER, number): change})


async def _reload(io: BrokerIo, given: Mapping[str, Any]) -> None:
    """Have a broker read the files of its listeners again: that comes of any change of what is set on it alone, even where nothing is."""
    keys = [f"listener.name.{each}.ssl.keystore.location" for each in given["listeners"]]
    await _throttle(io, {"brokers": [given["broker"]]}, {"set": {}, "reset": keys})
