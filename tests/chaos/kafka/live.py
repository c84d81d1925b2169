"""One Kafka of process pods, looked at and hurt past the program under test. A *slot* is the name that a broker, its pod and its volume share, as in ``kf-0``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile_operators.kafka.session import KafkaRefusedError, KafkaSession
from kubectl_reconcile_operators.kafka.telling import THROTTLED, THROTTLES
from tests.chaos.live import TROUBLE, LiveResource, MemberError, SocketStream, soon, unmet

API = "kafka.example.com/v1alpha1"
_PORT = 9092
_ANSWER_S = 5.0
_TIMEOUT_MS = 20_000
_OF_TOPIC, _OF_BROKER = 2, 4
_SET_OF_IT = {_OF_TOPIC: 1, _OF_BROKER: 2}
"""What in answers says that a value was set of this topic, or of this broker."""
_LAG_MAX = 200
"""So many records may be missing of a controller that follows. One that lost its volume, and still counts as the one it was, lacks all."""
_NO_ID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Place:
    """Where a partition stands."""

    replicas: tuple[int, ...]
    in_sync: frozenset[int]
    leader: int


class LiveKafka(LiveResource):
    """The Kafka *name* in a namespace of a sandbox."""

    api, plural, container, selector = API, "kafkas", "kafka", "app.kubernetes.io/instance"

    def slot(self, number: int) -> str:
        return f"{self.name}-{number}"

    # --- what brokers say -----------------------------------------------------------------------------

    def tell(self, slot: str, request: str, **given: Any) -> Any:
        """Return what a broker answers.

        Raises:
            MemberError: it doesn't, or refuses.
        """
        found = self.containers().get(slot)
        if found is None:
            raise MemberError(f"{slot} has no container")
        try:
            return asyncio.run(self._asked(found["ip"], request, given))
        except (OSError, TimeoutError, CallError, KafkaRefusedError) as error:
            raise MemberError(f"{slot}: {type(error).__name__}: {error}") from error

    async def _asked(self, ip: str, request: str, given: dict[str, Any]) -> Any:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_connection(sock=await self._runtime.dial(ip, _PORT, 3.0))
            try:
                return await KafkaSession(SocketStream(reader, writer)).ask(request, **given)
            finally:
                writer.close()

    def answers(self, slot: str) -> bool:
        """Tell whether a broker answers by itself, within a moment."""
        try:
            return bool(self.tell(slot, "DescribeCluster", include_fenced_brokers=True, endpoint_type=1))
        except MemberError:
            return False

    def is_alone(self, slot: str) -> bool:
        """Tell whether all others do without a broker, as one of them says."""
        number = int(slot.rpartition("-")[2])
        for other in sorted({*self.containers()} - {slot}):
            try:
                answer = self.tell(other, "DescribeCluster", include_fenced_brokers=True, endpoint_type=1)
            except MemberError:
                continue
            return {each.broker_id: each.is_fenced for each in answer.brokers}.get(number) is True
        return False

    def told(self, request: str, **given: Any) -> Any:
        """Return what whichever broker can answers.

        Raises:
            MemberError: none can.
        """
        said = ["there is none"]
        for slot, each in sorted(self.containers().items()):
            if each["runs"]:
                try:
                    return self.tell(slot, request, **given)
                except MemberError as error:
                    said.append(str(error))
        raise MemberError("; ".join(said))

    def quorum(self) -> Any:
        """Return who leads the controllers, who votes and who observes."""
        topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
        return self.told("DescribeQuorum", topics=topics).topics[0].partitions[0]

    @property
    def controller(self) -> str:
        """The slot of the active controller."""
        return self.slot(soon(lambda: (found := self.quorum().leader_id) >= 0 and (found,), "there is a controller")[0])

    def places(self) -> dict[tuple[str, int], Place]:
        """Return where all partitions stand."""
        found = self.told("DescribeTopicPartitions", topics=[], response_partition_limit=2000, cursor=None)
        return {
            (topic.name, each.partition_index): Place(tuple(each.replica_nodes), frozenset(each.isr_nodes), each.leader_id)
            for topic in found.topics
            for each in topic.partitions
        }  # fmt: skip

    def moving(self) -> set[str]:
        """Return the topics of which partitions are being moved."""
        found = self.told("ListPartitionReassignments", timeout_ms=_TIMEOUT_MS, topics=None)
        return {each.name for each in found.topics if each.partitions}

    def throttled(self) -> list[str]:
        """Return what has a throttle."""
        found = [self._set(_OF_TOPIC, sorted({name for name, _ in self.places()}), THROTTLED)]
        found += [
            self._set(_OF_BROKER, [str(number)], THROTTLES, self.slot(number)) for number in range(self.cr["spec"]["brokers"])
        ]  # fmt: skip
        return [name for some in found for name in some]

    def _set(self, of: int, names: list[str], keys: tuple[str, ...], slot: str = "") -> list[str]:
        asked = [{"resource_type": of, "resource_name": each, "configuration_keys": keys} for each in names]
        given = {"resources": asked, "include_synonyms": False, "include_documentation": False}
        answer = self.tell(slot, "DescribeConfigs", **given) if slot else self.told("DescribeConfigs", **given)
        return [
            each.resource_name
            for each in answer.results
            if any(one.config_source == _SET_OF_IT[of] and one.value for one in each.configs)
        ]

    def delete_topic(self, name: str) -> None:
        """Delete a topic as somebody does with kafka-topics.sh."""

        def is_gone() -> bool:
            self.told("DeleteTopics", topics=[{"name": name, "topic_id": _NO_ID}], timeout_ms=_TIMEOUT_MS)
            return name not in {topic for topic, _ in self.places()}

        soon(is_gone, f"topic {name} is deleted")

    # --- at rest --------------------------------------------------------------------------------------

    def rest(self) -> str:
        """Return the cluster's id."""
        return str(soon(lambda: self.cr["status"]["clusterId"], "the status has the cluster's id"))

    def unrest(self) -> str:
        """Return what isn't as specified, nothing if all is: CR, pods, volumes and brokers agree."""
        try:
            return next(
                (why for look in (self._status, self._parts, self._brokers, self._partitions, self._status) if (why := look())), ""
            )  # fmt: skip
        except (*TROUBLE, RuntimeError, KeyError) as error:
            return f"{type(error).__name__}: {error}"

    def _status(self) -> str:
        cr = self.cr
        right = {"Ready": "True", "Available": "True", "Degraded": "False", "Rolling": "False", "Rebalancing": "False"}
        if why := unmet(cr, right):
            return why
        status, count = cr["status"], cr["spec"]["brokers"]
        left = {name: status[name] for name in ("underReplicatedPartitions", "offlinePartitions", "filling") if status[name]}  # fmt: skip
        if left or status["readyBrokers"] != count or [each["id"] for each in status["brokers"]] != [*range(count)]:
            return f"the status has {status['readyBrokers']} brokers ready of {status['brokers']}, {left}"
        return ""

    def _parts(self) -> str:
        pods, claims, cr = self.pods(), self.claims(), self.cr
        slots = [self.slot(number) for number in range(cr["spec"]["brokers"])]
        if sorted(pods) != slots or {*slots} - {*claims}:  # volumes of brokers that aren't wanted stay
            return f"pods are {sorted(pods)}, volumes {sorted(claims)}"
        going = [name for some in (pods, claims) for name, each in some.items() if each["metadata"].get("deletionTimestamp")]  # fmt: skip
        return f"{going} terminate" if going else ""

    def _brokers(self) -> str:
        cr = self.cr
        count, voters = cr["spec"]["brokers"], cr["spec"]["controllers"]
        found = self.told("DescribeCluster", include_fenced_brokers=True, endpoint_type=1).brokers
        known = {each.broker_id: each.is_fenced for each in found}
        if known != dict.fromkeys(range(count), False):
            return f"brokers are registered that are fenced, or not: {known}"
        quorum = self.quorum()
        lag = {each.replica_id: quorum.high_watermark - each.log_end_offset for each in quorum.current_voters}
        if sorted(lag) != [*range(voters)] or max(lag.values()) > _LAG_MAX:
            return f"these vote, and lack so many records of the metadata: {lag}"
        return ""

    def _partitions(self) -> str:
        wanted = {each["name"]: each for each in self.cr["spec"]["topics"]}
        places = self.places()
        numbers = {name: sorted(number for topic, number in places if topic == name) for name in wanted}
        if wrong := {name: found for name, found in numbers.items() if found != [*range(wanted[name]["partitions"])]}:
            return f"partitions are {wrong}"
        counts = {name: each.get("replicas") or 3 for name, each in wanted.items()}
        bad = {key: each for key, each in places.items() if frozenset(each.replicas) != each.in_sync or each.leader != each.replicas[0] or len(each.replicas) != counts.get(key[0], 3)}  # fmt: skip
        if bad:
            return f"partitions aren't in sync, led by another broker than they prefer, or have too few replicas: {bad}"
        if moving := self.moving():
            return f"partitions move: {sorted(moving)}"
        if throttled := self.throttled():
            return f"a throttle is left on {throttled}"
        return ""
