"""A Kafka on real brokers that stand in zones: partitions move as somebody approves, and then only who is known gets in, over TLS and with passwords that change."""

import json

import pytest

from tests.chaos.kafka.live import LiveKafka
from tests.operators.real.kafka.clients import Clients
from tests.operators.real.kafka.cluster import ORDERS

pytestmark = [pytest.mark.scenario(minutes=9), pytest.mark.usefixtures("zones")]
TOPICS = [ORDERS, {"name": "bulk", "partitions": 3}]
PLAIN = {"name": "plain"}
SECURED = {"name": "secured", "port": 9094, "tls": {"secretName": "kf-tls"}, "authentication": "scram"}
FILLER = """
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers="kf:9092", acks="all", delivery_timeout_ms=600000)
for number in range(480):
    producer.send("bulk", bytes(100_000), partition=number % 3)
producer.flush()
"""
OFF_3 = {"mode": "remove-brokers", "brokers": [3]}
PAIRED = {"name": "paired", "num_partitions": -1, "replication_factor": -1, "configs": []}


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # said of how kafka-python is imported
def test_a_rebalance_moves_what_is_approved_and_takes_back_what_is_in_flight_when_it_is_stopped(kf):
    kf.apply(brokers=4, topics=TOPICS).settled()
    before = kf.held()
    assert before[3] > 0
    kf.real.run("python", "-c", FILLER, name="filler", image="python", pod={"restartPolicy": "OnFailure"})
    kf.real.phase("Succeeded", "filler", timeout_s=900)
    kf.begin_writing()

    kf.wish(**OFF_3, throttleBytesPerSecond=1000)
    assert kf.until("ProposalReady")["proposal"]["replicas"] == before[3]
    assert "allow-moves-" in kf.approve()
    kf.until("Rebalancing")
    kf.awaited(kf.is_moving, "partitions are in flight")
    kf.wish(**OFF_3, throttleBytesPerSecond=1000, stopped=True)
    kf.until("Stopped")
    assert kf.held()[3] > 0

    kf.wish(**OFF_3, throttleBytesPerSecond=5_000_000)
    kf.until("ProposalReady")
    kf.approve()
    kf.until("Rebalancing")
    kf.kill(kf.cr["status"]["activeController"])
    kf.until("Ready")
    assert kf.held()[3] == 0

    live = LiveKafka(kf.real.sandbox, kf.real.namespace, "kf")
    rows = [{"partition_index": number, "broker_ids": each} for number, each in enumerate(([0, 3], [3, 0], [0, 1]))]
    live.told("CreateTopics", topics=[{**PAIRED, "assignments": rows}], timeout_ms=20_000, validate_only=False)
    kf.wish("racks", goals=["rack"])
    proposed = kf.until("ProposalReady", "racks")["proposal"]
    assert (proposed["partitions"], proposed["replicas"]) == (2, 2)
    kf.approve("racks")
    kf.until("Ready", "racks")
    stand = [{*place.replicas} for (topic, _), place in sorted(live.places().items()) if topic == "paired"]
    assert all(len(each) == 2 and each != {0, 3} for each in stand)
    assert stand[2] == {0, 1}
    kf.nothing_is_lost()


@pytest.fixture
def clients(kf):
    return Clients(kf)


def test_tls_and_passwords_come_without_losing_a_record_and_then_nobody_gets_in_without(kf, clients):
    status = kf.apply(topics=TOPICS, brokers=3).settled()
    assert [each["rack"] for each in status["brokers"]] == ["zone-kf-0", "zone-kf-1", "zone-kf-2"]
    kf.begin_writing()
    clients.certify()
    kf.apply(topics=TOPICS, listeners=[PLAIN, SECURED], users=[{"name": "app"}])
    status = kf.settled()
    assert [each["name"] for each in status["listeners"]] == ["plain", "secured"]
    kf.nothing_is_lost()

    first = clients.password("app")
    kf.awaited(lambda: clients.log_in("app", first) == "read", "who knows the password gets in")
    assert clients.log_in("app", "wrong") == "refused"
    assert clients.enter(9094, security_protocol="SSL", ssl_cafile="/tmp/ca.pem") == "refused"  # noqa: S108 - of a container
    assert clients.enter(9094) == "refused"
    assert clients.enter(9091) == "refused"

    pods = kf.pods()
    before = {each["name"]: each["secretVersion"] for each in status["users"]}
    clients.secret("kf-user-app", {"password": "opens sesame"})
    certificate = clients.certify()
    for number in range(3):
        kf.awaited(
            lambda at=number: clients.is_shown(at, certificate), "brokers show the certificate that is there now"
        )
    kf.awaited(lambda: changed(kf, before), "the password is another one")
    assert clients.log_in("app", first) == "refused"
    kf.awaited(lambda: clients.log_in("app", "opens sesame") == "read", "who knows the new password gets in")
    kf.settled()
    assert kf.pods() == pods
    assert "opens sesame" not in json.dumps(kf.cr) + kf.daemon.log

    kf.apply(topics=TOPICS, listeners=[SECURED], users=[{"name": "web"}]).settled()
    assert clients.enter(9092) == "refused"
    assert clients.log_in("app", "opens sesame") == "refused"
    kf.awaited(lambda: clients.log_in("web", clients.password("web")) == "read", "who is new gets in")


def changed(kf, before):
    status = kf.cr.get("status", {})
    now = {each["name"]: each["secretVersion"] for each in status.get("users", [])}
    return status if now.keys() == before.keys() and now != before else None
