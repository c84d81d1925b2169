"""The CRD of Kafka on a real API server: what it takes with which defaults, what it refuses and in which words."""

import pytest

from tests.cluster.verdicts import DEFAULT, refusal, taken

pytestmark = pytest.mark.usefixtures("crds")


def a_kafka(namespace=DEFAULT, **spec):
    whole = {"version": "4.3.1", "storage": {"size": "1Gi"}, **spec}
    metadata = {"name": "kf", "namespace": namespace}
    return {"apiVersion": "kafka.example.com/v1alpha1", "kind": "Kafka", "metadata": metadata, "spec": whole}


REFUSED = {
    "an unknown version": ({"version": "2.8.0"}, 'Unsupported value: "2.8.0"'),
    "two controllers": ({"controllers": 2}, "spec.controllers: Unsupported value: 2"),
    "fewer brokers than controllers": ({"brokers": 2}, "must be at least as many as controllers"),
    "more replicas than brokers": ({"topics": [{"name": "a", "replicas": 4}]}, "replicas must be at most as many as there are brokers (hint"),
    "a topic of Kafka's own": ({"topics": [{"name": "__x"}]}, "is a name that Kafka needs itself"),
    "a topic with spaces": ({"topics": [{"name": "a b"}]}, "spec.topics[0].name"),
    "a topic twice": ({"topics": [{"name": "a"}, {"name": "a"}]}, "uplicate"),
    "no partitions": ({"topics": [{"name": "a", "partitions": 0}]}, "spec.topics[0].partitions"),
    "a mode of nobody's": ({"rebalance": {"mode": "Yolo"}}, 'supported values: "Auto", "Propose"'),
    "a listener of Kafka's own": ({"listeners": [{"name": "controller"}]}, "is a name that brokers need themselves"),
    "the brokers' port": ({"listeners": [{"name": "a", "port": 9091}]}, "is where brokers or controllers talk to one another"),
    "a port twice": ({"listeners": [{"name": "a"}, {"name": "b"}]}, "each needs a port of its own (hint"),
    "no listener": ({"listeners": []}, "spec.listeners"),
    "TLS without a Secret": ({"listeners": [{"name": "a", "tls": {}}]}, "spec.listeners[0].tls.secretName"),
    "another way to log in": ({"listeners": [{"name": "a", "authentication": "plain"}]}, 'supported values: "none", "scram"'),
    "a user with spaces": ({"users": [{"name": "a b"}]}, "spec.users[0].name"),
    "an image with spaces": ({"image": "a b"}, "must be an image reference"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_with_a_sentence(kubectl, spec, message):
    assert message in refusal(kubectl, a_kafka(**spec))


def test_a_kafka_comes_with_defaults(kubectl):
    assert taken(kubectl, a_kafka(topics=[{"name": "a"}]))["spec"] == {
        "version": "4.3.1",
        "storage": {"size": "1Gi"},
        "brokers": 3,
        "controllers": 3,
        "listeners": [{"name": "plain", "port": 9092, "authentication": "none"}],
        "topics": [{"name": "a", "partitions": 1}],
        "rebalance": {"mode": "Auto", "maxMovesInFlight": 5, "throttleBytesPerSecond": 50_000_000},
        "deletionPolicy": "Retain",
    }


def test_controllers_are_so_for_life_and_volumes_never_shrink(kubectl, namespace):
    kubectl.apply(a_kafka(namespace))
    assert "controllers are so for life" in refusal(kubectl, a_kafka(namespace, controllers=1))
    assert "can't become smaller" in refusal(kubectl, a_kafka(namespace, storage={"size": "1Mi"}))


def a_rebalance(namespace=DEFAULT, **spec):
    whole = {"clusterRef": {"name": "kf"}, **spec}
    metadata = {"name": "kr", "namespace": namespace}
    return {"apiVersion": "kafka.example.com/v1alpha1", "kind": "KafkaRebalance", "metadata": metadata, "spec": whole}


WISHES_REFUSED = {
    "a goal of nobody's": ({"goals": ["cpu"]}, 'supported values: "rack", "disk", "replicas", "leaders"'),
    "no goal": ({"goals": []}, "spec.goals"),
    "brokers with mode full": ({"brokers": [1]}, "can be set only with mode add-brokers or remove-brokers"),
    "no brokers to empty": ({"mode": "remove-brokers"}, "must name the brokers that the mode is about"),
    "a pattern": ({"excludeTopics": ["b.*c"]}, "spec.excludeTopics[0]"),
}


@pytest.mark.parametrize(("spec", "message"), WISHES_REFUSED.values(), ids=WISHES_REFUSED)
def test_a_wish_that_makes_no_sense_is_refused_with_a_sentence(kubectl, spec, message):
    assert message in refusal(kubectl, a_rebalance(**spec))


def test_a_rebalance_comes_with_defaults_and_keeps_its_cluster(kubectl, namespace):
    found = taken(kubectl, a_rebalance())["spec"]
    assert (found["mode"], found["goals"]) == ("full", ["disk", "replicas", "leaders"])
    kubectl.apply(a_rebalance(namespace))
    assert "make another KafkaRebalance" in refusal(kubectl, a_rebalance(namespace, clusterRef={"name": "other"}))
