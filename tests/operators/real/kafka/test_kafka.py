"""Kafka on real brokers: begun, filled with topics, written and read, upgraded, changed and hurt, by one cluster whose acknowledged records are all there in the end."""

import pytest

from tests.operators.real.kafka.cluster import OLD, ORDERS, VERSION

pytestmark = pytest.mark.scenario(minutes=10)


@pytest.mark.smoke
def test_brokers_begin_come_and_lose_their_controller_without_losing_a_record(kf):
    status = kf.apply(version=OLD, topics=[ORDERS]).settled()
    assert (status["phase"], status["readyBrokers"], status["offlinePartitions"]) == ("Running", 3, 0)
    assert [each["replicas"] for each in status["brokers"]] == [3, 3, 3]
    assert (status["version"], status["metadataVersion"]) == (OLD, 29)

    kf.begin_writing()
    after = kf.apply(brokers=4, rebalance={"throttleBytesPerSecond": 100_000_000}).settled()
    assert [each["replicas"] > 0 for each in after["brokers"]] == [True] * 4
    assert after["filling"] == []
    kf.kill(after["activeController"])
    assert kf.settled()["clusterId"] == status["clusterId"]
    kf.nothing_is_lost()


def test_an_upgrade_restarts_all_once_and_has_no_way_back(kf):
    kf.apply(version=OLD, topics=[ORDERS], brokers=4).settled()
    kf.begin_writing()
    before = kf.pods()
    topic = {**ORDERS, "config": {"retention.ms": "86400000"}}
    status = kf.apply(version=VERSION, topics=[topic], config={"queued.max.requests": "400"}).settled()
    after = kf.pods()
    assert before.keys() == after.keys()
    assert not {*before.values()} & {*after.values()}
    assert (status["readyBrokers"], status["version"], status["metadataVersion"]) == (4, VERSION, 30)

    kf.apply(version=OLD)
    kf.awaited(lambda: kf.reason("Degraded") == "DowngradeRefused", "the way back is refused")
    assert kf.pods() == after
    kf.apply(version=VERSION)
    kf.nothing_is_lost()


def test_a_broker_that_is_on_its_way_out_comes_back(kf):
    kf.apply(topics=[ORDERS], brokers=4).settled()
    kf.begin_writing()
    kf.apply(brokers=3)
    kf.awaited(lambda: kf.phase() == "Scaling", "a broker is on its way out")
    status = kf.apply(brokers=4).settled()
    assert [each["replicas"] > 0 for each in status["brokers"]] == [True] * 4
    kf.nothing_is_lost()


def test_disks_that_are_lost_and_brokers_that_are_killed_all_at_once_cost_no_record(kf):
    cluster = kf.apply(topics=[ORDERS]).settled()["clusterId"]
    kf.begin_writing()
    known = len(kf.actions())
    kf.lose_disk("kf-1")
    assert kf.settled()["clusterId"] == cluster
    votes = dict.fromkeys(each for each in kf.actions()[known:] if "voter" in each)
    assert [*votes] == ["remove-voter-kf-1", "add-voter-kf-1"]

    for slot in kf.pods():
        kf.kill(int(slot.rpartition("-")[2]))
    assert kf.settled()["clusterId"] == cluster
    kf.nothing_is_lost()


def test_a_disk_that_is_emptied_under_a_controller_is_filled_again_and_where_all_are_lost_that_is_said(kf):
    cluster = kf.apply(topics=[ORDERS]).settled()["clusterId"]
    kf.begin_writing()
    known = len(kf.actions())
    kf.empty_disk("kf-2")
    assert kf.settled()["clusterId"] == cluster
    assert "add-voter-kf-2" in kf.actions()[known:]
    kf.nothing_is_lost()

    kf.lose_all()
    kf.awaited(lambda: kf.reason("Degraded") == "DataLost", "it is said that all is lost")
    assert (kf.phase(), kf.reason("Ready"), kf.reason("Available")) == ("Failed", "DataLost", "DataLost")
    assert kf.cr["status"]["clusterId"] == cluster
