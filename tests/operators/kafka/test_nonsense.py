"""Answers that can be read, and make no sense: each pass ends with conditions, whatever brokers say."""

import asyncio
import copy
import functools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.call import outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile_operators.kafka import Kafka, driver
from tests.operators.kafka.broker import NO_ID, Broker, a_broker, a_page, configured, log_dir, some
from tests.operators.kafka.world import CERTIFIED, NOW, World

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # said of how kafka-python is imported
IDS = st.sampled_from([0, 0, 1, 1, 2, 2, 3, 7, -1, 99_999, 100_000])
NODES = st.lists(IDS, max_size=4)
SIZES = st.sampled_from([0, 1, 1 << 30, 1 << 62, -5])
NAMES = st.sampled_from(
    ["orders", "orders", "logs", "a.b", "a/b", "__consumer_offsets", "", ".", "x" * 249, "\x00", "ö", "min"]
)
RACKS = st.sampled_from([None, None, "", "a", "b", "\x1b[31m", "x" * 300])
SETTINGS = st.dictionaries(
    st.sampled_from(["min.insync.replicas", "retention.ms", "leader.replication.throttled.rate", "log.retention.ms", "", "x"]),
    st.sampled_from([None, "", "1", "2", "-1", "1e9", "٣", "x" * 20_000]), max_size=3,
)  # fmt: skip


@functools.cache
def _settled():
    world = World(
        brokers=3, topics=[{"name": "orders", "partitions": 2}, {"name": "a.b"}], config={"log.retention.ms": "5"}
    )
    world.settle()
    return world


@st.composite
def partitions(draw):
    return [
        some(
            error_code=draw(st.sampled_from([0, 0, 0, 5])), partition_index=draw(st.sampled_from([0, 1, 2, 7, -1, 1 << 30])), leader_id=draw(IDS), leader_epoch=0,
            replica_nodes=draw(NODES), isr_nodes=draw(NODES), eligible_leader_replicas=None, last_known_elr=None, offline_replicas=[],
        )
        for _ in range(draw(st.integers(0, 3)))
    ]  # fmt: skip


@st.composite
def topics(draw):
    return [
        some(
            error_code=draw(st.sampled_from([0, 0, 0, 3])), name=draw(NAMES), topic_id=NO_ID, is_internal=draw(st.booleans()),
            partitions=draw(partitions()), topic_authorized_operations=0,
        )
        for _ in range(draw(st.integers(0, 3)))
    ]  # fmt: skip


@st.composite
def members(draw):
    return [
        some(replica_id=draw(IDS), replica_directory_id=NO_ID, log_end_offset=draw(SIZES), last_fetch_timestamp=draw(SIZES), last_caught_up_timestamp=draw(SIZES))
        for _ in range(draw(st.integers(0, 4)))
    ]  # fmt: skip


@st.composite
def answers(draw):
    """Some answers in place of good ones."""
    quorum = some(
        partition_index=0, error_code=draw(st.sampled_from([0, 0, 6])), error_message=None, leader_id=draw(IDS), leader_epoch=1, high_watermark=draw(SIZES),
        current_voters=draw(members()), observers=draw(members()),
    )  # fmt: skip
    moving = [
        some(name=draw(NAMES), partitions=[
            some(partition_index=draw(st.sampled_from([0, 1, -1])), replicas=draw(NODES), adding_replicas=draw(NODES), removing_replicas=draw(NODES))
            for _ in range(draw(st.integers(0, 2)))
        ])
        for _ in range(draw(st.integers(0, 2)))
    ]  # fmt: skip
    brokers = []
    for each in draw(NODES):
        one = a_broker(each)
        one.rack, one.is_fenced = draw(RACKS), draw(st.booleans())
        brokers.append(one)
    parts = [
        some(partition_index=draw(st.sampled_from([0, 1, -1])), partition_size=draw(SIZES), offset_lag=draw(SIZES), is_future_key=draw(st.booleans()))
        for _ in range(draw(st.integers(0, 2)))
    ]  # fmt: skip
    directory = log_dir(some(name=draw(NAMES), partitions=parts))
    directory.usable_bytes = draw(SIZES)
    kinds = [
        some(error_code=draw(st.sampled_from([0, 0, 3, 29])), error_message=None, resource_type=draw(st.sampled_from([2, 4])),
             resource_name=draw(st.one_of(NAMES, st.sampled_from(["", "0"]))), configs=draw(st.one_of(st.just([]), SETTINGS.map(lambda each: configured(**each)))))
        for _ in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    page, cluster = draw(topics()), draw(NAMES)
    every = {
        "DescribeQuorum": lambda: {"topics": [some(topic_name="__cluster_metadata", partitions=[quorum])], "nodes": []},
        "DescribeCluster": lambda: {"cluster_id": cluster, "brokers": brokers},
        "ListPartitionReassignments": lambda: {"error_code": 0, "error_message": None, "topics": moving},
        "DescribeLogDirs": lambda: {"results": [directory]},
        "DescribeConfigs": lambda: {"results": kinds},
        "DescribeTopicPartitions": lambda: a_page(*page),
    }
    return {name: every[name] for name in draw(st.sets(st.sampled_from(sorted(every)), min_size=1))}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answers(), st.sampled_from([{}, {"brokers": 4}, {"brokers": 4, "config": {}}]))
def test_a_pass_ends_with_conditions_whatever_brokers_say(said, change):
    world, broker = copy.deepcopy(_settled()), Broker()
    world.change(**change)
    broker.says |= said
    broker.owned = Owned(list(world.objects.values()))
    facts = {**json.loads(json.dumps(asyncio.run(driver.observe(world.cr, broker)))), "tls": CERTIFIED}
    outcome = outcome_of(Kafka, world.cr, broker.owned, facts, Context(NOW, "kafka", world.cr))
    assert {"Available", "Ready"} <= {each.type for each in outcome.conditions}
    assert all(
        not {*text} & {"\x1b", "\x00"} for text in json.loads(json.dumps(outcome.status)) if isinstance(text, str)
    )
