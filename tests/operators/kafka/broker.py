"""A broker that answers what it is told to, in Kafka's own bytes."""

import asyncio
import importlib
import struct
from contextlib import asynccontextmanager
from types import SimpleNamespace

from kubectl_reconcile.core.module.api import SilentPodError
from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile_operators.kafka import driver
from tests.operators.kafka.world import a_cr

NO_ID = "00000000-0000-0000-0000-000000000000"
KINDS = {
    18: ("ApiVersions", 3),
    32: ("DescribeConfigs", 4),
    35: ("DescribeLogDirs", 4),
    44: ("IncrementalAlterConfigs", 1),
    45: ("AlterPartitionReassignments", 0),
    46: ("ListPartitionReassignments", 0),
    55: ("DescribeQuorum", 2),
    60: ("DescribeCluster", 2),
    75: ("DescribeTopicPartitions", 0),
}
"""Requests by the key that Kafka gives them, and the version that is spoken."""


def some(**fields):
    return SimpleNamespace(tags=None, unknown_tags=None, **fields)


def a_broker(number, **other):
    return some(broker_id=number, host="", port=9092, rack=None, is_fenced=False, **other)


def a_partition(number, replicas=(0,), in_sync=None):
    return some(
        error_code=0, partition_index=number, leader_id=0, leader_epoch=0, replica_nodes=list(replicas),
        isr_nodes=list(replicas if in_sync is None else in_sync), eligible_leader_replicas=None, last_known_elr=None, offline_replicas=[],
    )  # fmt: skip


def a_topic(name, *partitions):
    return some(
        error_code=0, name=name, topic_id=NO_ID, is_internal=False, partitions=list(partitions), topic_authorized_operations=0
    )  # fmt: skip


def a_page(*topics, after=None):
    return {"topics": list(topics), "next_cursor": after and some(topic_name=after[0], partition_index=after[1])}


def log_dir(*topics):
    return some(
        error_code=0, log_dir="/data", topics=list(topics), total_bytes=1, usable_bytes=1 << 30, is_cordoned=False
    )


def sized(name, count):
    parts = [some(partition_index=at, partition_size=1 << 20, offset_lag=0, is_future_key=False) for at in range(count)]
    return some(name=name, partitions=parts)


def configured(**values):
    return [
        some(name=name, value=value, read_only=False, config_source=2, is_sensitive=False, synonyms=[], config_type=0, documentation=None)
        for name, value in values.items()
    ]  # fmt: skip


class Broker:
    """A broker with a pod, which answers what it is told to, in Kafka's own bytes; *asked* are the requests that came."""

    def __init__(self):
        voters = [
            some(replica_id=0, replica_directory_id=NO_ID, log_end_offset=0, last_fetch_timestamp=0, last_caught_up_timestamp=0)
        ]  # fmt: skip
        self.quorum = some(
            partition_index=0, error_code=0, error_message=None, leader_id=0, leader_epoch=1, high_watermark=0,
            current_voters=voters, observers=[],
        )  # fmt: skip
        self.levels = {"at": 30, "knows": 30}
        self.says = {
            "ApiVersions": lambda: {
                "error_code": 0,
                "api_keys": [],
                "throttle_time_ms": 0,
                "finalized_features_epoch": 1,
                "zk_migration_ready": False,
                "supported_features": [some(name="metadata.version", min_version=7, max_version=self.levels["knows"])],
                "finalized_features": [
                    some(name="metadata.version", min_version_level=1, max_version_level=self.levels["at"])
                ],
            },
            "DescribeQuorum": lambda: {
                "topics": [some(topic_name="__cluster_metadata", partitions=[self.quorum])],
                "nodes": [],
            },
            "DescribeLogDirs": lambda: {"results": [log_dir(sized("orders", 2))]},
            "DescribeCluster": lambda: {"cluster_id": "c", "brokers": [a_broker(0), a_broker(1)]},
            "ListPartitionReassignments": lambda: {"topics": []},
            "DescribeConfigs": lambda: {"results": []},
            "DescribeTopicPartitions": lambda: a_page(
                a_topic("orders", a_partition(0), a_partition(1, [0, 1])), a_topic("logs", a_partition(0, [1]))
            ),
        }
        self.asked, self.spoilt = [], {}
        pod = {"metadata": {"name": "kf-0", "uid": "u"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
        self.owned = Owned([{"apiVersion": "v1", "kind": "Pod", **pod}], ())

    def pod(self, _name, _port, _tls=None):
        return self

    async def see_secret(self, _name):
        return None

    @asynccontextmanager
    async def connect(self):
        yield BrokerStream(self)

    def facts(self):
        return asyncio.run(driver.observe(a_cr(), self))


class BrokerStream:
    def __init__(self, broker):
        self.broker, self.left = broker, b""

    async def write(self, content):
        key, _, number = struct.unpack_from(">hhi", content, 4)
        name, version = KINDS[key]
        self.broker.asked.append(name)
        messages = importlib.import_module(f"kafka.protocol.{'metadata' if name == 'ApiVersions' else 'admin'}")
        said = bytes(getattr(messages, f"{name}Response")(version=version, **self.broker.says[name]()).encode())
        said = self.broker.spoilt.get(name, bytes)(said)
        head = struct.pack(">i", number) if name == "ApiVersions" else struct.pack(">ib", number, 0)
        self.left += struct.pack(">i", len(head) + len(said)) + head + said

    async def read(self, most):
        if not self.left:
            raise SilentPodError("it says no more")
        taken, self.left = self.left[:most], self.left[most:]
        return taken
