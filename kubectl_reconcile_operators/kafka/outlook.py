"""What will be seen of a Kafka after a step, for previews of what follows: a guess that all goes well.

Pure: facts in, facts out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import Action, Context, Facts, Owned, is_alive, map_at
from kubectl_reconcile_operators.certificates.decision import CertificateDo
from kubectl_reconcile_operators.certificates.outlook import after_issuing
from kubectl_reconcile_operators.certificates.worth import SECRET_OK
from kubectl_reconcile_operators.kafka.access.certified import KINDS
from kubectl_reconcile_operators.kafka.answers import replicas_held
from kubectl_reconcile_operators.kafka.names import fact_key
from kubectl_reconcile_operators.kafka.situation import BrokerPod, KafkaState, state_of
from kubectl_reconcile_operators.kafka.spec import LEVELS, KafkaSpec
from kubectl_reconcile_operators.kafka.steps import ON_ACCESS, Do

_ROOM = 1 << 60
"""What a broker's disk takes that hasn't said so yet."""


def after_action(facts: Facts, action: Action) -> Facts:
    """Return the facts that an action leads to."""
    given = action.parameters
    if action.verb in ON_ACCESS:
        return {**facts, **_let_in(facts, action)}
    if "topic" in given:
        return {**facts, "topics": _with_topic(facts, action)}
    return {**facts, **_after(facts, action.verb, given)}


def _after(facts: Facts, verb: str, given: Mapping[str, Any]) -> Facts:
    """Return what of the facts changes with what is done to all brokers, and with moves."""
    topics, brokers = map_at(facts, "topics"), map_at(facts, "brokers")
    changed: Facts = {}
    match verb:
        case Do.MOVE:
            changed = _moved(facts, given)
        case Do.CANCEL:
            changed = {"moves": {}}
        case Do.THROTTLE:
            changed = {"brokers": {**brokers, **_throttled(brokers, given)}}
        case Do.UNTHROTTLE:
            changed = {
                "brokers": {number: {**each, "throttled": {}} for number, each in brokers.items()},
                "topics": {name: {**each, "throttled": False} for name, each in topics.items()},
            }
        case Do.UNREGISTER:
            changed = {"brokers": {number: each for number, each in brokers.items() if number != str(given["broker"])}}
        case Do.REMOVE_VOTER | Do.ADD_VOTER | Do.RAISE_LEVEL:
            changed = {"cluster": _cluster(map_at(facts, "cluster"), verb, given)}
        case Do.ELECT:
            changed = {"topics": {name: _led(each) for name, each in topics.items()}}
        case Do.SET_CONFIG:
            changed = {"config": _set(map_at(facts, "config"), given)}
    return changed


def _let_in(facts: Facts, action: Action) -> Facts:
    """Return what of the facts changes with who gets to the brokers."""
    given, users = action.parameters, facts.get("users") or ()
    match action.verb:
        case Do.MAKE_SECRET:
            made = {"state": SECRET_OK, "version": "new"}
            return {"secrets": {**map_at(facts, "secrets"), str(given["secret"]): made}}
        case Do.SET_USER:
            return {"users": sorted({*users, str(given["user"])})}
        case Do.LOCK_USER:
            return {}
        case Do.RELOAD:
            pods = map_at(facts, "pods")
            name = next(name for name in pods if name.endswith(f"-{given['broker']}"))
            return {"pods": {**pods, name: {**map_at(pods, name), "shown": {}}}}
        case _:
            return after_issuing(KINDS, facts, CertificateDo(action.verb), str(given["kind"]))


def _cluster(cluster: Mapping[str, Any], verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster once a controller votes no more, or again, or its metadata has a newer version."""
    if verb == Do.RAISE_LEVEL:
        return {**cluster, "level": given["level"]}
    id_ = str(given["voter"])
    voters, observers = dict(map_at(cluster, "voters")), dict(map_at(cluster, "observers"))
    if verb == Do.REMOVE_VOTER:
        voters.pop(id_, None)
    else:
        voters[id_] = given["directory"]
        observers.pop(id_, None)
    return {**cluster, "voters": voters, "observers": observers}


def _throttled(brokers: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the brokers that are given another throttle."""
    return {
        number: {**each, "throttled": dict.fromkeys(each["throttled"], str(given["throttle"]))}
        for number, each in brokers.items()
        if int(number) in given["brokers"]
    }


def _with_topic(facts: Facts, action: Action) -> dict[str, Any]:
    """Return all topics after an action on one of them."""
    given, topics = action.parameters, dict(map_at(facts, "topics"))
    key = fact_key(str(given["topic"]))
    known = map_at(topics, key)
    before = map_at(known, "partitions")
    match action.verb:
        case Do.MAKE_TOPIC:
            partitions = _spread(facts, range(given["partitions"]), given["replicas"])
            topics[key] = {
                "id": "new",
                "internal": False,
                "min": 1,
                "config": dict(given["set"]),
                "partitions": partitions,
            }
        case Do.GROW_TOPIC:
            replicas = max((len(each["replicas"]) for each in before.values()), default=1)
            more = _spread(facts, range(len(before), given["partitions"]), replicas)
            topics[key] = {**known, "partitions": {**before, **more}}
        case Do.SET_TOPIC:
            topics[key] = {**known, "config": _set(map_at(known, "config"), given)}
        case Do.DELETE_TOPIC:
            del topics[key]
    return topics


def _moved(facts: Facts, given: Mapping[str, Any]) -> Facts:
    """Return what of the facts changes once partitions have moved."""
    topics = dict(map_at(facts, "topics"))
    for each in given["moves"]:
        key, number = fact_key(each["topic"]), str(each["partition"])
        known, before = map_at(topics, key), map_at(topics, key, "partitions", number)
        if not before:
            continue
        new = list(each["replicas"])
        leader = before["leader"] if before["leader"] in new else new[0]
        there = {**before, "replicas": new, "inSync": sorted(new), "leader": leader}
        topics[key] = {**known, "throttled": True, "partitions": {**map_at(known, "partitions"), number: there}}
    throttled = {"throttled": {"leader.replication.throttled.rate": str(given["throttle"])}}
    holds = replicas_held(topics)
    brokers = {
        number: {**each, **throttled, "holds": holds[int(number)]} for number, each in map_at(facts, "brokers").items()
    }
    return {"topics": topics, "brokers": brokers}


def _led(topic: Mapping[str, Any]) -> dict[str, Any]:
    """Return a topic whose partitions are led by the brokers that they prefer, where these are in sync."""
    partitions = {
        number: {**each, "leader": each["replicas"][0] if each["replicas"][0] in each["inSync"] else each["leader"]}
        for number, each in map_at(topic, "partitions").items()
    }
    return {**topic, "partitions": partitions}


def _set(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in before.items() if name not in given["reset"]}, **given["set"]}


def _spread(facts: Facts, numbers: range, replicas: int) -> dict[str, Any]:
    """Return new partitions, spread as Kafka may do it: where they really go is its own choice."""
    brokers = sorted(int(number) for number, each in map_at(facts, "brokers").items() if not each.get("fenced"))
    found = {}
    for number in numbers:
        where = [brokers[(number + at) % len(brokers)] for at in range(min(replicas, len(brokers)))] if brokers else []
        found[str(number)] = {
            "replicas": where,
            "inSync": sorted(where),
            "leader": where[0] if where else -1,
            "bytes": 0,
        }
    return found


def once_running(spec: KafkaSpec, owned: Owned, facts: Facts, ctx: Context) -> Facts:
    """Return the facts once the pods that are alive run, and have what they lacked."""
    s = state_of(ctx.cr, owned, facts, ctx)
    pods = {pod["metadata"]["name"]: pod for pod in owned.of("Pod") if is_alive(pod)}
    running = sorted(each.number for each in s.pods.values() if each.slot in pods)
    if not running:
        return {**facts, "pods": {}}
    known, registered = map_at(facts, "cluster"), map_at(facts, "brokers")
    before = int(known.get("controller", -1))
    controllers = [number for number in running if number < spec.controllers]
    controller = before if before in controllers else min(controllers, default=-1)
    voters = map_at(known, "voters") or {str(number): "new" for number in range(spec.controllers)}
    up = {
        str(number): {
            "rack": "",
            "throttled": {},
            "holds": 0,
            "usableBytes": _ROOM,
            **map_at(registered, str(number)),
            "fenced": False,
            **_known(spec, s.pods[number]),
        }
        for number in running
    }
    emptied = [number for number in controllers if str(number) in voters and _is_empty(number, s)]
    observers = {**map_at(known, "observers"), **{str(number): "new" for number in emptied}}
    level = int(known.get("level") or LEVELS[spec.version])
    away = {number: {**each, "fenced": True} for number, each in registered.items() if number not in up}
    return {
        **facts,
        "error": "",
        "pods": {name: {"uid": pod["metadata"].get("uid"), "error": ""} for name, pod in pods.items()},
        "cluster": {
            "id": s.cluster, **known, "controller": controller, "voters": voters, "level": level,
            "observers": observers, "caughtUp": sorted(map(int, observers)),
        },
        "brokers": {**away, **up},
        "config": facts.get("config") or {"min.insync.replicas": str(min(2, spec.usual_replicas))},
        "topics": {key: _caught_up(each, running) for key, each in map_at(facts, "topics").items()},
        "moves": {},
    }  # fmt: skip


def _is_empty(number: int, s: KafkaState) -> bool:
    """Tell whether a controller begins on a volume that is new, though the cluster isn't."""
    volume = s.volumes.get(number)
    return s.is_formed and volume is not None and not volume.cluster and not volume.begins


def _known(spec: KafkaSpec, pod: BrokerPod) -> dict[str, int]:
    """Return the newest version of metadata that a broker will know, where it runs the image that the spec has."""
    return {"knows": LEVELS[spec.version]} if pod.image == spec.broker_image else {}


def _caught_up(topic: Mapping[str, Any], running: list[int]) -> dict[str, Any]:
    """Return a topic once the brokers that run have all of it."""
    partitions = {}
    for number, each in map_at(topic, "partitions").items():
        there = [broker for broker in each["replicas"] if broker in running]
        leader = each["leader"] if each["leader"] in there else there[0] if there else -1
        partitions[number] = {**each, "inSync": sorted(there), "leader": leader}
    return {**topic, "partitions": partitions}
