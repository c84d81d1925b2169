"""What a decision about a Kafka is made on: brokers as Kafka tells them, pods and volumes as Kubernetes does.

Vocabulary: a *broker* is known by its number, which is its id in Kafka, and by its pod's name; a *member* is one that there is to be. The cluster is *formed* once a
broker has answered with its id: from then on no volume is formatted as one of the first controllers'. *Told* is what brokers
answered; where nothing is told, nothing is known of topics.

Facts are what the driver brings (see `driver.observe`); all of it may be missing.

Pure: values in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kubectl_reconcile.module_api import (
    Context,
    Facts,
    Manifest,
    Owned,
    actions_done,
    actions_failed,
    annotations_of,
    awaits_node,
    condition_of,
    container_states,
    first_variables,
    is_alive,
    is_ready,
    map_at,
    maps_in,
    shortened,
    text_at,
)
from kubectl_reconcile_operators.kafka.access.state import AccessState, access_of
from kubectl_reconcile_operators.kafka.names import (
    BEGIN,
    BOOTSTRAP,
    CLUSTER,
    SERVED,
    TEMPLATE,
    TRUSTED,
    new_cluster_id,
    topic_of,
)
from kubectl_reconcile_operators.kafka.partitions.assignment import (
    Assignment,
    Broker,
    Key,
    Partition,
    assignment_of,
)
from kubectl_reconcile_operators.kafka.partitions.batches import InFlight

_FAULT_MAX = 400
_UNFORMATTED = re.compile(r"No (readable )?.?meta\.properties.? (files )?found")


@dataclass(frozen=True, slots=True)
class BrokerPod:
    """The pod of a broker. *answers* tells whether the broker does, *silence* why not; *fault* is what keeps the pod from running, if anything does. *shown* tells whether it shows the certificate of its Secret, by listener, where that is known."""

    number: int
    slot: str
    manifest: Manifest = field(repr=False)
    is_going: bool = False
    has_ended: bool = False
    is_ready: bool = False
    answers: bool = False
    silence: str = ""
    fault: str = ""
    shown: Mapping[str, bool] = field(default_factory=dict)

    @property
    def trusted(self) -> frozenset[str]:
        """The authorities that it trusts, by fingerprint."""
        return frozenset(filter(None, annotations_of(self.manifest).get(TRUSTED, "").split(",")))

    @property
    def template(self) -> str:
        """The digest of what it was made by."""
        return annotations_of(self.manifest).get(TEMPLATE, "")

    @property
    def has_lost_data(self) -> bool:
        """Whether its volume was empty when it was looked at last, and its broker hasn't taken part since."""
        is_over = annotations_of(self.manifest).get(SERVED, "") == (self.prepared_at or "-")
        return self.is_unformatted or (not is_over and _said_last(self.manifest, "prepare").strip() == "empty")

    @property
    def is_unformatted(self) -> bool:
        """Whether its broker ends because its volume was emptied since it was formatted; only another pod formats it."""
        return not self.is_ready and bool(_UNFORMATTED.search(_said_last(self.manifest, "kafka")))

    @property
    def prepared_at(self) -> str:
        """When its volume was looked at last, empty where that isn't known."""
        return text_at(dict(container_states(self.manifest)).get("prepare") or {}, "terminated", "finishedAt")

    @property
    def begins(self) -> str:
        """The id of the cluster that its controller begins as one of the first, if it does."""
        begun = first_variables(self.manifest, "initContainers")
        return begun.get("CLUSTER_ID", "") if annotations_of(self.manifest).get(BEGIN) in {"first", "alone"} else ""

    @property
    def image(self) -> str:
        """The image that its broker runs."""
        containers = map_at(self.manifest, "spec").get("containers") or [{}]
        return str(containers[0].get("image") or "")


@dataclass(frozen=True, slots=True)
class BrokerVolume:
    """A volume claim. *cluster* is the id of the formed cluster whose data it holds; *begins* that of the cluster which the controller on it has begun, if it has."""

    number: int
    slot: str
    cluster: str = ""
    begins: str = ""
    is_going: bool = False
    size: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class KafkaBefore:
    """What the status says of before: *listed* are the topics of the spec that were there, *filling* the brokers that partitions were being moved to; *version* is the one that brokers ran, *level* the version of the cluster's metadata, 0 where none was known."""

    listed: tuple[str, ...] = ()
    filling: tuple[int, ...] = ()
    version: str = ""
    level: int = 0


@dataclass(frozen=True, slots=True)
class KafkaTried:
    """What was done before: the messages of actions that *failed* when they were last tried, by key, and the keys of those that are *done*, the oldest first."""

    failed: Mapping[str, str] = field(default_factory=dict)
    done: tuple[str, ...] = ()


@dataclass(frozen=True)
class KafkaState:
    """Everything that is known; what follows from it is worked out once. *registered* are brokers as the cluster knows them; *generation* is that of the spec."""

    pods: Mapping[int, BrokerPod] = field(default_factory=dict)
    volumes: Mapping[int, BrokerVolume] = field(default_factory=dict)
    cluster: str = ""
    is_formed: bool = False
    quorum: Mapping[str, Any] = field(default_factory=dict)
    registered: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, Any] = field(default_factory=dict)
    moves: Mapping[str, Any] = field(default_factory=dict)
    access: AccessState = field(default_factory=AccessState)
    before: KafkaBefore = field(default_factory=KafkaBefore)
    tried: KafkaTried = field(default_factory=KafkaTried)
    error: str = ""
    generation: int = 0

    @property
    def failed(self) -> Mapping[str, str]:
        """The messages of actions that failed when they were last tried, by key."""
        return self.tried.failed

    @property
    def done(self) -> tuple[str, ...]:
        """The keys of actions that have run, the oldest first."""
        return self.tried.done

    @property
    def unclaimed(self) -> tuple[BrokerPod, ...]:
        """The pods that were created without their volume claim and wait for it: whoever writes both was killed in between, or the claim was refused."""
        waiting = (each for each in self.pods.values() if not each.is_going and awaits_node(each.manifest))
        return tuple(each for each in waiting if each.number not in self.volumes)

    @property
    def is_told(self) -> bool:
        """Whether a broker has said how the cluster is, with a controller that leads it."""
        return bool(self.quorum) and self.controller >= 0

    @property
    def controller(self) -> int:
        """The active controller, -1 where none is known."""
        found = self.quorum.get("controller")
        return found if isinstance(found, int) else -1

    @property
    def level(self) -> int:
        """The version of the cluster's metadata, 0 where none is known yet."""
        return _number(self.quorum.get("level")) or self.before.level

    @property
    def caught_up(self) -> frozenset[int]:
        """The controllers that observe, and have all of the metadata."""
        found = self.quorum.get("caughtUp")
        return frozenset(each for each in found if isinstance(each, int)) if isinstance(found, list) else frozenset()

    def knows(self, number: int) -> int:
        """Return the newest version of the cluster's metadata that a broker knows, 0 where it hasn't said."""
        return _number(self.registered.get(number, {}).get("knows"))

    def is_up(self, number: int) -> bool:
        """Tell whether a broker takes part: it answers, isn't going, and the cluster counts on it."""
        pod = self.pods.get(number)
        return (
            pod is not None
            and pod.answers
            and not pod.is_going
            and self.registered.get(number, {}).get("fenced") is False
        )

    @cached_property
    def partitions(self) -> list[tuple[str, Mapping[str, Any]]]:
        """All partitions with their names."""
        return [
            (f"{topic}-{number}", each)
            for topic, known in sorted(self.topics.items())
            for number, each in sorted(map_at(known, "partitions").items(), key=lambda pair: int(pair[0]))
        ]

    @cached_property
    def held(self) -> Mapping[int, list[Mapping[str, Any]]]:
        """The partitions that have a replica on a broker, by broker."""
        found: dict[int, list[Mapping[str, Any]]] = {}
        for _, each in self.partitions:
            for number in {*each["replicas"]}:
                found.setdefault(number, []).append(each)
        return found

    @cached_property
    def offline(self) -> list[str]:
        """The partitions that nobody leads."""
        return [name for name, each in self.partitions if each["leader"] < 0]

    @cached_property
    def behind(self) -> list[str]:
        """The partitions of which a replica isn't in sync."""
        return [name for name, each in self.partitions if {*each["replicas"]} - {*each["inSync"]}]

    def holds(self, number: int) -> bool:
        """Tell whether a replica stands on a broker, or is on its way to or from it."""
        return number in self.held

    @cached_property
    def seen(self) -> Assignment:
        """What stands where, as plans take it."""
        brokers = (
            Broker(number, each.get("rack") or None, each.get("usableBytes"), fenced=each.get("fenced") is not False)
            for number, each in self.registered.items()
        )
        return assignment_of(
            brokers, (each for topic, known in self.topics.items() for each in _partitions(topic, known))
        )

    @cached_property
    def in_flight(self) -> list[InFlight]:
        """The partitions that Kafka is moving."""
        return [
            InFlight(Key(topic, int(number)), tuple(each["replicas"]), tuple(each["adding"]), tuple(each["removing"]))
            for topic, moving in sorted(self.moves.items())
            for number, each in moving.items()
        ]


def _partitions(topic: str, known: Mapping[str, Any]) -> list[Partition]:
    return [
        Partition(
            topic,
            int(number),
            tuple(each["replicas"]),
            tuple(each["inSync"]),
            each["leader"] if each["leader"] >= 0 else None,
            each["bytes"],
            known.get("min") or 1,
        )
        for number, each in map_at(known, "partitions").items()
    ]


def state_of(cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> KafkaState:
    """Return what is known of the Kafka of *cr*."""
    seen = map_at(facts, "pods")
    pods = (_pod(pod, map_at(seen, pod["metadata"]["name"]), ctx) for pod in owned.of("Pod"))
    claims = (*owned.read("PersistentVolumeClaim"), *owned.of("PersistentVolumeClaim"))
    volumes = {each.number: each for each in (_volume(claim, ctx) for claim in claims) if each.number >= 0}
    noted = text_at(cr, "status", "clusterId")
    told = text_at(facts, "cluster", "id")
    formed = next((each for each in (noted, *(each.cluster for each in volumes.values()), told) if each), "")
    begun = next((each.begins for each in volumes.values() if each.begins), "")
    return KafkaState(
        pods={each.number: each for each in pods if each.number >= 0},
        volumes=volumes,
        cluster=formed or begun or new_cluster_id(ctx),
        is_formed=bool(formed),
        quorum={name: value for name, value in map_at(facts, "cluster").items() if name != "id"},
        registered={int(number): each for number, each in map_at(facts, "brokers").items()},
        config=map_at(facts, "config"),
        topics={topic_of(key): each for key, each in map_at(facts, "topics").items()},
        moves={topic_of(key): each for key, each in map_at(facts, "moves").items()},
        access=access_of(cr, facts),
        before=_before(cr),
        tried=KafkaTried(actions_failed(cr), actions_done(cr)),
        error=str(facts.get("error") or ""),
        generation=_number(cr["metadata"].get("generation")),
    )


def _before(cr: Manifest) -> KafkaBefore:
    status = map_at(cr, "status")
    listed, filling = map_at(status, "topics").get("managed"), status.get("filling")
    return KafkaBefore(
        listed=tuple(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else (),
        filling=tuple(each for each in filling if isinstance(each, int)) if isinstance(filling, list) else (),
        version=text_at(status, "version"),
        level=_number(status.get("metadataVersion")),
    )


def _number(found: Any) -> int:
    return found if isinstance(found, int) else 0


def _pod(pod: Manifest, answer: Mapping[str, Any], ctx: Context) -> BrokerPod:
    metadata = pod["metadata"]
    is_it = bool(answer) and answer.get("uid") == metadata.get("uid")
    going = bool(metadata.get("deletionTimestamp"))
    return BrokerPod(
        number=ctx.number_of(metadata["name"]),
        slot=metadata["name"],
        manifest=pod,
        is_going=going,
        has_ended=not going and not is_alive(pod),
        is_ready=is_ready(pod),
        answers=is_it and not answer.get("error"),
        silence=str(answer.get("error") or "") if is_it else "",
        fault=_fault(pod),
        shown={name: each is True for name, each in map_at(answer, "shown").items()} if is_it else {},
    )


def _fault(pod: Manifest) -> str:
    """Return what keeps a pod from running, in the words of its node; empty where nothing does."""
    words: list[str] = []
    for name, state in container_states(pod):
        waiting, ended = map_at(state, "waiting"), map_at(state, "terminated")
        if waiting.get("reason") not in {None, "ContainerCreating", "PodInitializing"}:
            words.append(_joined(waiting.get("reason"), waiting.get("message")))
        if ended and ended.get("exitCode") != 0:
            words.append(_joined(f"{name} ended with exit code {ended.get('exitCode')}", ended.get("message")))
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        words.append(_joined(scheduled.get("reason"), scheduled.get("message")))
    return shortened("; ".join(words), _FAULT_MAX)


def _said_last(pod: Manifest, container: str) -> str:
    """Return what a container said as it ended last, nothing where it runs."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in maps_in(map_at(pod, "status").get(kind)):
            if each.get("name") == container and not map_at(each, "state", "running"):
                ended = map_at(each, "state", "terminated") or map_at(each, "lastState", "terminated")
                return text_at(ended, "message")
    return ""


def _joined(*parts: Any) -> str:
    return ": ".join(str(part).strip() for part in parts if part and str(part).strip())


def _volume(claim: Manifest, ctx: Context) -> BrokerVolume:
    metadata, noted = claim["metadata"], annotations_of(claim)
    name = str(metadata["name"])
    slot = name.removesuffix("-data") if name.endswith("-data") else ""
    asked = map_at(claim, "spec", "resources", "requests").get("storage")
    return BrokerVolume(
        number=ctx.number_of(slot) if slot else -1,
        slot=slot,
        cluster=noted.get(CLUSTER, ""),
        begins=noted.get(BOOTSTRAP, ""),
        is_going=bool(metadata.get("deletionTimestamp")),
        size=str(asked or ""),
        uid=str(metadata.get("uid") or ""),
    )
