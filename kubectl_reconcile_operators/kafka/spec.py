"""The spec of a Kafka, and what in it makes no sense.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from kubectl_reconcile.module_api import Between, Manifest, SpecError, spec_of
from kubectl_reconcile_operators.kafka.access.listeners import USUAL, ListenerWish, check_listeners
from kubectl_reconcile_operators.kafka.access.users import KafkaUser, check_users
from kubectl_reconcile_operators.volumes import VolumeWish, bytes_of

REPOSITORY = "docker.io/apache/kafka"
LEVELS: Mapping[str, int] = {"4.2.1": 29, "4.3.1": 30}
"""The versions of Kafka that are known here, the oldest first, each with the newest version of the cluster's metadata that it knows (``kafka-storage.sh version-mapping``)."""
BROKERS_MAX = 100
PARTITIONS_MAX = 10_000
CONTROLLERS = (1, 3)

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_CONFIG = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*", re.IGNORECASE)
_VALUE_MAX = 1000

OWNED_CONFIG: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "node.id", "broker.id", "process.roles", "cluster.id", "broker.rack", "broker.id.generation.enable",
            "reserved.broker.max.id", "log.dir", "log.dirs", "metadata.log.dir",
        ),
        "it says which broker it is and where its data lies",
    ),
    **dict.fromkeys(
        (
            "listeners", "advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name",
            "security.inter.broker.protocol", "controller.listener.names", "early.start.listeners", "control.plane.listener.name",
        ),
        ".spec.listeners says how clients connect",
    ),
    **dict.fromkeys(
        ("controller.quorum.voters", "controller.quorum.bootstrap.servers", "controller.quorum.auto.join.enable"),
        "controllers are set by the module",
    ),
    "broker.session.timeout.ms": "how soon a broker is given up is set by the module",
    "auto.create.topics.enable": "topics are those of .spec.topics and those that somebody makes, none by mistake",
    "unclean.leader.election.enable": "acknowledged records would get lost with it",
    "auto.leader.rebalance.enable": "leaders are set by the module",
    **dict.fromkeys(
        ("leader.replication.throttled.rate", "follower.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second"),
        ".spec.rebalance says how fast partitions move",
    ),
}  # fmt: skip
"""Keys of the brokers' configuration that aren't the spec's to set, each with the reason."""

OWNED_PREFIXES: Mapping[str, str] = {
    "controller.quorum.": "controllers are set by the module",
    **dict.fromkeys(("listener.name.", "ssl.", "sasl."), ".spec.listeners says how clients connect"),
    **dict.fromkeys(("authorizer.", "principal."), "rights of users aren't supported"),
}

_FILES = re.compile(
    r"config\.providers(\..*)?|.*\.class\.path|plugin\.path|security\.providers|kafka\.csv\..*", re.IGNORECASE
)
"""Keys that name programs to be loaded, and files that these read and write."""
_CLASSES = re.compile(r".*\.(class|class\.name|classes|reporters|assignors)", re.IGNORECASE)
"""Keys that name classes."""
_OWN_CLASS = re.compile(r"org\.apache\.kafka\.[A-Za-z0-9_.$]+|[a-z]+")
"""A class of Kafka's own, or the short name of one."""

OWNED_TOPIC_CONFIG: Mapping[str, str] = {
    **dict.fromkeys(
        ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"),
        ".spec.rebalance says how fast partitions move",
    ),
    "unclean.leader.election.enable": "acknowledged records would get lost with it",
}

DYNAMIC = frozenset(
    {
        "background.threads", "compression.gzip.level", "compression.lz4.level", "compression.type", "compression.zstd.level",
        "log.cleaner.backoff.ms", "log.cleaner.dedupe.buffer.size", "log.cleaner.delete.retention.ms", "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size", "log.cleaner.io.max.bytes.per.second", "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio", "log.cleaner.min.compaction.lag.ms", "log.cleaner.threads", "log.cleanup.policy",
        "log.flush.interval.messages", "log.flush.interval.ms", "log.index.interval.bytes", "log.index.size.max.bytes",
        "log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms", "log.message.timestamp.type", "log.preallocate",
        "log.retention.bytes", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms", "log.segment.bytes", "log.segment.delete.delay.ms",
        "max.connection.creation.rate", "max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides",
        "message.max.bytes", "min.insync.replicas", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
        "num.replica.fetchers", "producer.id.expiration.ms", "transaction.partition.verification.enable",
    }
)  # fmt: skip
"""Keys that all brokers take on while they run (kafka.apache.org/documentation/#dynamicbrokerconfigs, "cluster-wide")."""


@dataclass(frozen=True, slots=True)
class TopicWish:
    """A topic that there is to be. 0 replicas are as many as there are controllers."""

    name: str
    partitions: Annotated[int, Between(1, PARTITIONS_MAX)] = 1
    replicas: Annotated[int, Between(0, BROKERS_MAX)] = 0
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RebalanceWish:
    """How partitions move where brokers come or go: by themselves or once somebody approves, how many at a time, and how fast each broker sends and takes them."""

    mode: Literal["Auto", "Propose"] = "Auto"
    max_moves_in_flight: Annotated[int, Between(1, 1000)] = 5
    throttle_bytes_per_second: Annotated[int, Between(1000, 1 << 50)] = 50_000_000


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """The spec of a Kafka. The first *controllers* of its brokers are controllers, too, for life."""

    version: str
    storage: VolumeWish
    brokers: Annotated[int, Between(1, BROKERS_MAX)] = 3
    controllers: Annotated[int, Between(1, 3)] = 3
    image: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    listeners: tuple[ListenerWish, ...] = USUAL
    users: tuple[KafkaUser, ...] = ()
    topics: tuple[TopicWish, ...] = ()
    rebalance: RebalanceWish = field(default_factory=RebalanceWish)
    paused: bool = False
    deletion_policy: Literal["Retain", "Delete"] = "Retain"

    @property
    def broker_image(self) -> str:
        """The image that brokers run."""
        return self.image or f"{REPOSITORY}:{self.version}"

    @property
    def usual_replicas(self) -> int:
        """How many replicas a partition has where nobody says: one on each of as many brokers as there are controllers."""
        return self.controllers

    @property
    def dynamic(self) -> dict[str, str]:
        """The configuration that all brokers take on while they run."""
        least = {"min.insync.replicas": "2" if self.usual_replicas > 1 else "1"}
        return {**least, **{name: value for name, value in self.config.items() if name in DYNAMIC}}

    @property
    def static(self) -> dict[str, str]:
        """The configuration that takes a restart."""
        return {name: value for name, value in self.config.items() if name not in DYNAMIC}

    def replicas_of(self, topic: TopicWish) -> int:
        """Return how many replicas each partition of a topic is to have."""
        return topic.replicas or self.usual_replicas


def kafka_spec(cr: Manifest) -> KafkaSpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, KafkaSpec)
    if spec.version not in LEVELS:
        raise SpecError(
            ".spec.version", f"must be a version that is known here, one of {', '.join(LEVELS)}, not {spec.version!r}"
        )
    if spec.controllers not in CONTROLLERS:
        raise SpecError(".spec.controllers", f"must be 1 or 3, not {spec.controllers}: two are worse than one")
    if spec.brokers < spec.controllers:
        raise SpecError(
            ".spec.brokers",
            f"must be at least {spec.controllers}, since that many are controllers, not {spec.brokers} (hint: controllers: 1 is for one broker alone)",
        )
    if not bytes_of(spec.storage.size):
        raise SpecError(".spec.storage.size", f"must be a quantity as in 10Gi, not {spec.storage.size!r}")
    if re.search(r"\s", spec.image):
        raise SpecError(".spec.image", "must be an image reference such as apache/kafka:4.3.1, without spaces")
    _check_config(".spec.config", spec.config, OWNED_CONFIG)
    for key, reason in ((key, _owned_by_prefix(key)) for key in sorted(spec.config)):
        if reason:
            raise SpecError(f".spec.config[{key}]", f"can't be set, since {reason} (hint: remove it)")
    _check_programs(spec.config)
    _check_least(".spec.config[min.insync.replicas]", spec.config.get("min.insync.replicas"), spec.usual_replicas)
    check_listeners(spec.listeners)
    check_users(spec.users)
    _check_topics(spec)
    return spec


def _owned_by_prefix(key: str) -> str:
    return next((reason for prefix, reason in OWNED_PREFIXES.items() if key.startswith(prefix)), "")


def _check_programs(config: Mapping[str, Any]) -> None:
    """Raise a SpecError where brokers would be made to load a program, or to read a file: whoever may write a Kafka may do neither."""
    for key, value in sorted(config.items()):
        if _FILES.fullmatch(key):
            raise SpecError(
                f".spec.config[{key}]", "can't be set, since it names a program or a file (hint: remove it)"
            )
        foreign = [each for each in value.split(",") if not _OWN_CLASS.fullmatch(each.strip())]
        if _CLASSES.fullmatch(key) and foreign:
            raise SpecError(
                f".spec.config[{key}]",
                f"must name classes of Kafka itself, which begin with org.apache.kafka., not {foreign[0].strip()!r}",
            )


def _check_config(where: str, config: Mapping[str, Any], owned: Mapping[str, str]) -> None:
    for key, value in sorted(config.items()):
        here = f"{where}[{key}]"
        if not _CONFIG.fullmatch(key) or len(key) > 200:
            raise SpecError(
                here, "isn't a key of Kafka's configuration: use letters, digits, dots, dashes and underscores"
            )
        if reason := owned.get(key):
            raise SpecError(here, f"can't be set, since {reason} (hint: remove it)")
        if not isinstance(value, str) or not value or not value.isprintable() or len(value) > _VALUE_MAX:
            raise SpecError(here, "must be text of one line, in quotes where it is a number")
        if "\\" in value:
            raise SpecError(here, "must be without a backslash")


def _check_least(where: str, value: str | None, replicas: int) -> None:
    if value is None:
        return
    if not value.isdecimal() or int(value) < 1:
        raise SpecError(where, f"must be a number of replicas, 1 or more, not {value!r}")
    if int(value) > replicas:
        raise SpecError(
            where,
            f"must be at most {replicas}, as many replicas as a partition has, not {value}: nobody could write to it (hint: one less than the replicas lets a broker restart)",
        )


def _check_topics(spec: KafkaSpec) -> None:
    seen: dict[str, str] = {}
    for at, each in enumerate(spec.topics):
        where = f".spec.topics[{at}]"
        if not _TOPIC.fullmatch(each.name) or each.name in {".", ".."}:
            raise SpecError(
                f"{where}.name",
                f"must be letters, digits, dots, dashes and underscores, 249 at most, not {each.name!r}",
            )
        if each.name.startswith("__"):
            raise SpecError(
                f"{where}.name", f"{each.name} is a name that Kafka needs itself (hint: don't begin with __)"
            )
        folded = each.name.replace(".", "_")
        if folded in seen:
            other = seen[folded]
            said = (
                "is there twice"
                if other == each.name
                else f"can't be distinguished from {other} in the names of metrics, which have _ for both . and _"
            )
            raise SpecError(f"{where}.name", f"{each.name} {said}")
        seen[folded] = each.name
        if each.replicas > spec.brokers:
            raise SpecError(
                f"{where}.replicas",
                f"must be at most {spec.brokers}, as many as there are brokers, not {each.replicas} (hint: raise .spec.brokers first, or lower the replicas)",
            )
        _check_config(f"{where}.config", each.config, OWNED_TOPIC_CONFIG)
        _check_least(
            f"{where}.config[min.insync.replicas]", each.config.get("min.insync.replicas"), spec.replicas_of(each)
        )
