"""KafkaRebalances that can't be granted, on a real API server: what is said at once, with the field and a hint, though no broker has ever run."""

import pytest

from tests.e2e.domains import condition
from tests.kubectl import KubectlError

API = "kafka.example.com/v1alpha1"
WRONG = {
    "an unknown Kafka": (
        {"clusterRef": {"name": "other"}},
        "ClusterNotFound",
        ".spec.clusterRef.name: there is no Kafka other in this namespace (hint: correct the name, or create it)",
    ),
    "brokers that aren't there": (
        {"mode": "remove-brokers", "brokers": [2, 7]},
        "CantBe",
        ".spec.brokers: brokers 7 aren't there (hint: there are 0, 1, 2)",
    ),
}
REFUSED = {
    "goals of which one is there twice": ({"goals": ["disk", "disk"]}, ".spec.goals: duplicate entries for key [="),
    "brokers, though all are meant": ({"brokers": [1]}, "(hint: remove it)"),
    "nobody to fill": ({"mode": "add-brokers"}, "must name the brokers that the mode is about"),
    "a topic that can't be one": ({"excludeTopics": ["a b"]}, "spec.excludeTopics[0]"),
}


def a_cr(kind, name, **spec):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def kafka(cluster, daemon, eventually):
    """A Kafka whose brokers never run, since nobody here runs pods."""
    cluster.apply(a_cr("Kafka", "kf", version="4.3.1", storage={"size": "1Gi"}, deletionPolicy="Delete"))
    eventually(lambda: (cluster.get("Kafka", "kf").get("status") or {}).get("phase") == "Creating", "it is looked at")
    yield cluster
    for kind, name in (("KafkaRebalance", "kr"), ("Kafka", "kf")):
        if cluster.get(kind, name):
            cluster.delete(kind, name)
            eventually(lambda kind=kind, name=name: not cluster.get(kind, name), f"{kind} is gone")


@pytest.mark.parametrize(("spec", "reason", "says"), WRONG.values(), ids=WRONG)
def test_a_wish_that_cant_be_granted_says_so_with_field_and_hint(kafka, eventually, spec, reason, says):
    kafka.apply(a_cr("KafkaRebalance", "kr", **{"clusterRef": {"name": "kf"}, **spec}))

    def told():
        live = kafka.get("KafkaRebalance", "kr")
        return condition(live, "Degraded") if condition(live, "Degraded").get("status") == "True" else None

    found = eventually(told, "it is degraded")
    assert (found["reason"], found["message"]) == (reason, says)
    assert kafka.get("KafkaRebalance", "kr")["status"]["phase"] == "NotReady"
    kafka.edit("KafkaRebalance", "kr", {"spec": {"mode": "full", "brokers": None}})
    if "clusterRef" not in spec:
        eventually(lambda: kafka.get("KafkaRebalance", "kr")["status"]["phase"] == "New", "it waits for brokers")


@pytest.mark.parametrize(("spec", "says"), REFUSED.values(), ids=REFUSED)
def test_a_wish_that_contradicts_itself_is_refused_at_once(kubectl, namespace, crds, spec, says):
    wish = a_cr("KafkaRebalance", "kr", clusterRef={"name": "kf"}, **spec)
    wish["metadata"]["namespace"] = namespace
    with pytest.raises(KubectlError) as refused:
        kubectl.apply([wish])
    assert says in str(refused.value)
