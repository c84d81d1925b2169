"""A broker is anybody's image: whatever it answers is taken in within limits, and refused beyond them."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile_operators.kafka import session
from kubectl_reconcile_operators.kafka.answers import BROKERS_TOLD, PAGE, PARTITIONS_TOLD, REPLICAS_TOLD
from kubectl_reconcile_operators.kafka.situation import state_of
from tests.operators.kafka.broker import (
    NO_ID,
    Broker,
    a_broker,
    a_page,
    a_partition,
    a_topic,
    configured,
    log_dir,
    sized,
    some,
)
from tests.operators.kafka.world import NOW, a_cr

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # said of how kafka-python is imported


@pytest.fixture
def broker():
    return Broker()


def test_each_broker_is_told_with_how_much_it_holds_and_so_is_the_state(broker):
    facts = broker.facts()
    assert {number: each["holds"] for number, each in facts["brokers"].items()} == {"0": 2, "1": 2}
    assert facts["brokers"]["0"]["usableBytes"] == 1 << 30
    assert facts["topics"]["orders"]["partitions"]["1"]["replicas"] == [0, 1]
    assert facts["topics"]["orders"]["partitions"]["1"]["bytes"] == 1 << 20
    s = state_of(a_cr(), broker.owned, facts, Context(NOW, "kafka", a_cr()))
    assert {number: len(held) for number, held in s.held.items()} == {0: 2, 1: 2}
    assert (s.holds(1), s.holds(2)) == (True, False)
    assert s.partitions is s.partitions


def test_it_is_told_which_metadata_version_the_cluster_is_at_and_which_a_broker_knows(broker):
    broker.levels = {"at": 29, "knows": 30}
    facts = broker.facts()
    assert facts["cluster"]["level"] == 29
    assert {number: each.get("knows") for number, each in facts["brokers"].items()} == {"0": 30, "1": None}


def test_a_metadata_version_that_none_can_be_is_refused(broker):
    broker.levels["at"] = 12_345
    assert "a metadata version that isn't among 0 to 9999" in broker.facts()["pods"]["kf-0"]["error"]


def a_member(number, directory, *, asked_at, end=0, caught_up_at=1):
    return some(
        replica_id=number, replica_directory_id=directory, log_end_offset=end, last_fetch_timestamp=asked_at, last_caught_up_timestamp=caught_up_at
    )  # fmt: skip


def quorum(broker, voters, observers, high_watermark=1000):
    broker.quorum = some(
        partition_index=0, error_code=0, error_message=None, leader_id=0, leader_epoch=1, high_watermark=high_watermark,
        current_voters=voters, observers=observers,
    )  # fmt: skip
    return broker.facts()["cluster"]


ANY_ID, OLD_ID, LOST_ID, NEW_ID = (f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2, 3, 4))


def test_of_two_directories_of_a_controller_the_one_that_asked_last_observes(broker):
    told = quorum(
        broker,
        [a_member(0, ANY_ID, asked_at=99), a_member(1, OLD_ID, asked_at=50)],
        [
            a_member(1, NEW_ID, asked_at=90, end=990),
            a_member(1, LOST_ID, asked_at=70),
            a_member(3, ANY_ID, asked_at=90, end=2),
        ],
    )
    assert told["voters"] == {"0": ANY_ID, "1": OLD_ID}
    assert told["observers"] == {"1": NEW_ID, "3": ANY_ID}
    assert told["caughtUp"] == [1]


def test_a_controller_that_never_had_all_is_not_told_to_have_caught_up_however_little_it_lacks(broker):
    told = quorum(broker, [], [a_member(1, NEW_ID, asked_at=90, end=999, caught_up_at=-1)])
    assert (told["observers"], told["caughtUp"]) == ({"1": NEW_ID}, [])


def test_a_directory_that_asked_before_its_controller_voted_with_another_one_is_forgotten(broker):
    told = quorum(broker, [a_member(1, NEW_ID, asked_at=90)], [a_member(1, LOST_ID, asked_at=70, end=1000)])
    assert (told["voters"], told["observers"], told["caughtUp"]) == ({"1": NEW_ID}, {}, [])


def test_pages_are_put_together(broker):
    pages = [
        a_page(a_topic("logs", a_partition(0)), after=("logs", 1)),
        a_page(a_topic("logs", a_partition(1)), after=("orders", 0)),
        a_page(a_topic("orders", a_partition(0))),
    ]
    broker.says["DescribeTopicPartitions"] = lambda: pages.pop(0)
    told = broker.facts()["topics"]
    assert {name: sorted(each["partitions"]) for name, each in told.items()} == {"logs": ["0", "1"], "orders": ["0"]}


def endless(broker, names):
    """Have a broker tell of another topic on each page, and another page after it."""
    every = iter(names)

    def page():
        name = next(every)
        return a_page(a_topic(name, *map(a_partition, range(PAGE))), after=(name, PAGE))

    broker.says["DescribeTopicPartitions"] = page


def test_pages_without_end_end_at_as_many_partitions_as_are_taken(broker):
    endless(broker, (f"t-{number:09}" for number in range(10**9)))
    assert f"{PARTITIONS_TOLD} are the most" in broker.facts()["error"]
    assert broker.asked.count("DescribeTopicPartitions") == PARTITIONS_TOLD // PAGE + 1


def test_a_page_that_does_not_lead_on_is_the_last(broker):
    endless(broker, iter(lambda: "orders", ""))
    assert "without coming to an end" in broker.facts()["error"]
    assert broker.asked.count("DescribeTopicPartitions") == 2


def test_empty_pages_do_not_go_on(broker):
    broker.says["DescribeTopicPartitions"] = lambda: a_page(after=("orders", 0))
    assert "without coming to an end" in broker.facts()["error"]
    assert broker.asked.count("DescribeTopicPartitions") == 1


def many_replicas():
    """Return a page of few partitions with many replicas each, within what one connection brings."""
    return a_page(a_topic("orders", *(a_partition(number, range(200)) for number in range(REPLICAS_TOLD // 200 + 1))))


REFUSED = {
    "too many brokers": ("DescribeCluster", lambda: {"cluster_id": "c", "brokers": [*map(a_broker, range(BROKERS_TOLD + 1))]}, "too many brokers"),
    "an id below 0": ("DescribeCluster", lambda: {"cluster_id": "c", "brokers": [a_broker(-1)]}, "id isn't among 0 to 99999"),
    "an id that is too large": ("DescribeCluster", lambda: {"cluster_id": "c", "brokers": [a_broker(100_000)]}, "id isn't among 0 to 99999"),
    "a cluster's id that is too long": ("DescribeCluster", lambda: {"cluster_id": "c" * 300, "brokers": []}, "too long"),
    "a page that is too large": ("DescribeTopicPartitions", lambda: a_page(a_topic("orders", *map(a_partition, range(PAGE + 1)))), "it was asked for"),
    "topics without partitions that are too many": ("DescribeTopicPartitions", lambda: a_page(*(a_topic(f"t-{at}") for at in range(PAGE + 1))), "it was asked for"),
    "a topic's name that is too long": ("DescribeTopicPartitions", lambda: a_page(a_topic("t" * 250, a_partition(0))), "too long"),
    "a partition without replicas": ("DescribeTopicPartitions", lambda: a_page(a_topic("orders", a_partition(0, []))), "without replicas"),
    "a partition with too many replicas": ("DescribeTopicPartitions", lambda: a_page(a_topic("orders", a_partition(0, range(201)))), "too many brokers"),
    "a replica nowhere": ("DescribeTopicPartitions", lambda: a_page(a_topic("orders", a_partition(0, [1 << 30]))), "id isn't among"),
    "more in sync than there can be": ("DescribeTopicPartitions", lambda: a_page(a_topic("orders", a_partition(0, [0], [0] * 201))), "too many brokers"),
    "too many replicas": ("DescribeTopicPartitions", many_replicas, f"{REPLICAS_TOLD} are the most"),
    "too many moves": ("ListPartitionReassignments", lambda: {"topics": [some(name="orders", partitions=[
        some(partition_index=at, replicas=[0], adding_replicas=[], removing_replicas=[]) for at in range(PARTITIONS_TOLD + 1)])]}, f"{PARTITIONS_TOLD} are the most"),
    "too many settings": ("DescribeConfigs", lambda: {"results": [some(error_code=0, error_message=None, resource_type=4, resource_name="", configs=configured(
        **{f"key.{at}": "" for at in range(501)}))]}, "too many settings"),
    "a minimum in sync that isn't a number": ("DescribeConfigs", lambda: {"results": [some(error_code=0, error_message=None, resource_type=2, resource_name="orders", configs=configured(
        **{"min.insync.replicas": "many"}))]}, "isn't a number of replicas"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_beyond_a_limit_is_refused_and_nothing_of_it_is_kept(broker, case):
    name, says, why = REFUSED[case]
    broker.says[name] = says
    facts = broker.facts()
    assert why in facts["error"]
    assert set(facts) == {"tls", "secrets", "pods", "error"}


def test_a_broker_that_says_too_much_of_itself_counts_as_silent(broker):
    broker.says["DescribeLogDirs"] = lambda: {
        "results": [log_dir(*(sized(f"t-{at}", 0) for at in range(REPLICAS_TOLD + 1)))]
    }
    assert "too many replicas" in broker.facts()["pods"]["kf-0"]["error"]
    broker = Broker()
    broker.quorum.observers = [
        some(replica_id=at, replica_directory_id=NO_ID, log_end_offset=0, last_fetch_timestamp=0, last_caught_up_timestamp=0)
        for at in range(BROKERS_TOLD + 1)
    ]  # fmt: skip
    assert "too many brokers" in broker.facts()["pods"]["kf-0"]["error"]


def test_what_a_broker_says_of_a_refusal_is_cut(broker):
    broker.says["DescribeCluster"] = lambda: {"error_code": 42, "error_message": "no " * 10_000, "brokers": []}
    assert len(broker.facts()["error"]) < 500


def test_settings_of_what_was_not_asked_for_are_passed_over_and_long_values_are_cut(broker):
    long = configured(**{"log.retention.ms": "1" * 100_000})
    long[0].config_source = 3
    broker.says["DescribeConfigs"] = lambda: {
        "results": [
            some(error_code=0, error_message=None, resource_type=4, resource_name=name, configs=long)
            for name in ("", "7", "8")
        ]
    }
    assert len(broker.facts()["config"]["log.retention.ms"]) == 10_000


def test_a_large_answer_is_read_beside_all_else(broker, monkeypatch):
    beside = []

    async def noted(work, *given, **named):
        beside.append(work)
        return work(*given, **named)

    monkeypatch.setattr(session.asyncio, "to_thread", noted)
    broker.facts()
    small = len(beside)
    broker.says["DescribeTopicPartitions"] = lambda: a_page(a_topic("orders", *map(a_partition, range(PAGE))))
    assert len(broker.facts()["topics"]["orders"]["partitions"]) == PAGE
    assert len(beside) == 2 * small + 1


LACKING = {
    "no topic of the quorum": ("DescribeQuorum", lambda: {"topics": [], "nodes": []}),
    "no partition of the quorum": ("DescribeQuorum", lambda: {"topics": [some(topic_name="", partitions=[])], "nodes": []}),
}  # fmt: skip


@pytest.mark.parametrize("case", LACKING)
def test_an_answer_that_lacks_what_belongs_into_it_is_told_as_malformed(broker, case):
    name, says = LACKING[case]
    broker.says[name] = says
    assert "its answer is malformed: IndexError" in broker.facts()["pods"]["kf-0"]["error"]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(Broker().says)),
    st.binary(max_size=60),
    st.integers(0, 200),
    st.booleans(),
)
def test_an_answer_of_any_bytes_is_facts_or_told_as_what_is_wrong(name, content, at, whole):
    broker = Broker()
    broker.spoilt[name] = lambda said: content if whole else said[:at] + content + said[at + len(content) :]
    facts = broker.facts()
    state = state_of(a_cr(), broker.owned, json.loads(json.dumps(facts)), Context(NOW, "kafka", a_cr()))
    assert state.seen.digest
    assert state.is_told or facts.get("error") or facts["pods"]["kf-0"]["error"] or state.controller < 0
