"""What brokers answer, taken in within limits: a broker may be anybody's image, and what it says is kept in memory and gone through in each pass.

Pure: decoded answers in, facts out. Whatever is beyond a limit is refused as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile_operators.kafka.session import KafkaRefusedError

BROKERS_TOLD, PARTITIONS_TOLD, REPLICAS_TOLD = 200, 20_000, 100_000
"""So many are taken in of one cluster."""
PAGE = 2000
"""So many partitions are asked for at a time."""
_ID_MAX, _NAME_MAX = 99_999, 249
_LAG_MAX = 100
"""So many records of the metadata may be missing of a controller that has caught up: some are written each second."""
_METADATA, _LEVEL_MAX = "metadata.version", 9_999
_SETTINGS_MAX, _VALUE_MAX = 500, 10_000


@dataclass(slots=True)
class Allowance:
    """How many of something are still taken in."""

    what: str
    left: int

    def take(self, number: int) -> None:
        """Take in so many.

        Raises:
            KafkaRefusedError: that is more than are left.
        """
        self.left -= number
        if self.left < 0:
            raise KafkaRefusedError(f"it tells of too many {self.what}")


def replicas_allowed() -> Allowance:
    """Return how many replicas all brokers together may tell of."""
    return Allowance(f"replicas: {REPLICAS_TOLD} are the most", REPLICAS_TOLD)


def partitions_allowed() -> Allowance:
    """Return how many partitions a cluster may have."""
    return Allowance(f"partitions: {PARTITIONS_TOLD} are the most", PARTITIONS_TOLD)


def quorum_of(found: Any) -> dict[str, Any]:
    """Return who leads the controllers, who votes, and who observes; of those who observe, who has caught up.

    A controller that has lost its directory is told of for minutes: of two with one id, the one that asked last is there.
    """
    voters, observers = _last(found.current_voters), _last(found.observers)
    there = {
        number: each
        for number, each in observers.items()
        if number not in voters or each.last_fetch_timestamp > voters[number].last_fetch_timestamp
    }
    least = found.high_watermark - _LAG_MAX
    return {
        "controller": found.leader_id,
        "voters": _directories(voters),
        "observers": _directories(there),
        "caughtUp": sorted(
            number
            for number, each in there.items()
            if each.last_caught_up_timestamp > 0 and each.log_end_offset >= least  # else Kafka doesn't let it vote
        ),
    }


def _last(members: Any) -> dict[int, Any]:
    _ids([each.replica_id for each in members])
    return {each.replica_id: each for each in sorted(members, key=lambda each: int(each.last_fetch_timestamp))}


def levels_of(answer: Any) -> dict[str, int]:
    """Return the version of its metadata that the cluster is at, and the newest one that the broker knows; 0 where it says none."""
    at = [each.max_version_level for each in answer.finalized_features or () if each.name == _METADATA]
    knows = [each.max_version for each in answer.supported_features or () if each.name == _METADATA]
    found = {"level": max(at, default=0), "knows": max(knows, default=0)}
    if not all(0 <= each <= _LEVEL_MAX for each in found.values()):
        raise KafkaRefusedError(f"it tells of a metadata version that isn't among 0 to {_LEVEL_MAX}")
    return found


def _directories(members: Mapping[int, Any]) -> dict[str, str]:
    return {str(number): str(each.replica_directory_id) for number, each in sorted(members.items())}


def sizes_of(dirs: Any, allowed: Allowance) -> dict[str, int]:
    """Return the size of each replica on a broker, by its partition's name."""
    for topic in (topic for found in dirs.results for topic in found.topics):
        name_of(topic.name)
        allowed.take(max(1, len(topic.partitions)))
    return {
        f"{topic.name}-{each.partition_index}": each.partition_size
        for found in dirs.results
        for topic in found.topics
        for each in topic.partitions
        if not each.is_future_key
    }


def brokers_of(cluster: Any, own: Mapping[str, Mapping[str, Any]], topics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the brokers that are registered; *own* is what they say of themselves, by id."""
    _ids([each.broker_id for each in cluster.brokers])
    holds = replicas_held(topics)
    return {
        str(each.broker_id): {
            "fenced": each.is_fenced,
            "rack": name_of(each.rack or ""),
            "holds": holds[each.broker_id],
            **_told(own.get(str(each.broker_id))),
        }
        for each in cluster.brokers
    }


def _told(own: Mapping[str, Any] | None) -> dict[str, Any]:
    if not own:
        return {"throttled": {}}
    return {"throttled": own["throttled"], "usableBytes": coarse(own["usable"]), "knows": own["levels"]["knows"]}


def replicas_held(topics: Mapping[str, Any]) -> Counter[int]:
    """Return how many partitions stand on each broker."""
    rows = (each["replicas"] for topic in topics.values() for each in (topic.get("partitions") or {}).values())
    return Counter(broker for replicas in rows for broker in {*replicas})


def moves_of(answer: Any) -> dict[str, Any]:
    """Return what is being moved, by topic and by partition."""
    allowed = partitions_allowed()
    for topic in answer.topics:
        allowed.take(max(1, len(topic.partitions)))
    return {
        name_of(topic.name): {str(_numbered(each)): _move(each) for each in topic.partitions} for topic in answer.topics
    }


def _move(each: Any) -> dict[str, Any]:
    """Return a move, if it leads somewhere."""
    replicas, adding, removing = (
        _distinct(found) for found in (each.replicas, each.adding_replicas, each.removing_replicas)
    )
    if not {*replicas} - {*removing} or not {*adding, *removing} <= {*replicas}:
        raise KafkaRefusedError("it tells of a partition that moves from or to brokers that don't hold it")
    return {"replicas": replicas, "adding": adding, "removing": removing}


def settings_of(answer: Any, names: Iterable[str], source: int) -> dict[str, dict[str, str]]:
    """Return the configuration of these, by name: what is set at *source* alone, unless that is 0. Long values are cut: nobody here sets such."""
    asked = {*names}
    return {
        found.resource_name: {
            name_of(each.name): (each.value or "")[:_VALUE_MAX]
            for each in _few(found.configs or ())
            if source in {0, each.config_source}
        }
        for found in answer.results
        if found.resource_name in asked
    }


def _few(settings: Any) -> Any:
    if len(settings) > _SETTINGS_MAX:
        raise KafkaRefusedError(f"it tells of too many settings: {_SETTINGS_MAX} of one are the most")
    return settings


def least_in_sync(config: Mapping[str, str]) -> int:
    """Return how many replicas of a topic have to be in sync."""
    found = config.get("min.insync.replicas", "1")
    if not found.isdecimal() or len(found) > len(str(_ID_MAX)):
        raise KafkaRefusedError("it tells of a min.insync.replicas that isn't a number of replicas")
    return int(found)


@dataclass(slots=True)
class ToldTopics:
    """All topics with their partitions, a page at a time; *sizes* are those of replicas, by broker. *cursor* is where the next page begins, None before the first."""

    sizes: Mapping[str, Mapping[str, int]]
    found: dict[str, Any] = field(default_factory=dict)
    cursor: tuple[str, int] | None = None
    _partitions: Allowance = field(default_factory=partitions_allowed)
    _replicas: Allowance = field(default_factory=replicas_allowed)

    def add(self, page: Any) -> bool:
        """Take in a page; return whether there is another one.

        Raises:
            KafkaRefusedError: it is larger than asked for, the next one wouldn't begin after it, or there are too many partitions.
        """
        size = sum(max(1, len(topic.partitions)) for topic in page.topics)
        if size > PAGE:
            raise KafkaRefusedError(f"it tells of more partitions at a time than the {PAGE} that it was asked for")
        self._partitions.take(size)
        for topic in page.topics:
            if topic.error_code == 0:
                first = {"id": str(topic.topic_id), "internal": topic.is_internal, "partitions": {}}
                known = self.found.setdefault(name_of(topic.name), first)
                known["partitions"] |= {
                    str(each.partition_index): self._partition(topic.name, each) for each in topic.partitions
                }
        if page.next_cursor is None:
            return False
        after = (name_of(page.next_cursor.topic_name), page.next_cursor.partition_index)
        if not size or (self.cursor is not None and after <= self.cursor):
            raise KafkaRefusedError("it tells of its partitions without coming to an end")
        self.cursor = after
        return True

    def _partition(self, topic: str, each: Any) -> dict[str, Any]:
        replicas, in_sync, number = _distinct(each.replica_nodes), _distinct(each.isr_nodes), _numbered(each)
        if not replicas:
            raise KafkaRefusedError("it tells of a partition without replicas")
        self._replicas.take(max(len(replicas), len(in_sync)))
        name = f"{topic}-{number}"
        held = {number: self.sizes.get(str(number), {}).get(name, 0) for number in replicas}
        size = held.get(each.leader_id) or max(held.values(), default=0)
        return {"replicas": replicas, "inSync": sorted(in_sync), "leader": each.leader_id, "bytes": coarse(size)}


def coarse(size: int) -> int:
    """Return a size to three binary digits, rounded down; less than a mebibyte is none."""
    if size < 1 << 20:
        return 0
    least = max(size.bit_length() - 3, 0)
    return size >> least << least


def _ids(found: Any) -> list[int]:
    """Return ids of brokers, if they are few and such as brokers have."""
    if len(found) > BROKERS_TOLD:
        raise KafkaRefusedError(f"it tells of too many brokers: {BROKERS_TOLD} are the most")
    if any(not 0 <= each <= _ID_MAX for each in found):
        raise KafkaRefusedError(f"it tells of a broker whose id isn't among 0 to {_ID_MAX}")
    return list(found)


def _distinct(found: Any) -> list[int]:
    """Return ids of brokers, if none is there twice."""
    ids = _ids(found)
    if len({*ids}) < len(ids):
        raise KafkaRefusedError("it tells of a broker twice in one partition")
    return ids


def _numbered(each: Any) -> int:
    """Return the number of a partition, if it has one that Kafka would give."""
    if not 0 <= each.partition_index < PARTITIONS_TOLD:
        raise KafkaRefusedError(f"it tells of a partition whose number isn't among 0 to {PARTITIONS_TOLD - 1}")
    number: int = each.partition_index
    return number


def name_of(found: Any) -> str:
    """Return a name or an id, if it is one, and not too long."""
    if not isinstance(found, str) or len(found) > _NAME_MAX:
        raise KafkaRefusedError("it tells of something without a name, or with one that is too long")
    return found
