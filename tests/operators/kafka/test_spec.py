"""What of a Kafka makes no sense is named by its field, with what to do."""

import pytest

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile_operators.kafka.spec import kafka_spec
from tests.operators.kafka.world import a_cr


def topic(name="a", **more):
    return {"topics": [{"name": name, **more}]}


REFUSED = {
    "an unknown version": ({"version": "2.8.0"}, ".spec.version: must be a version that is known here, one of 4.2.1, 4.3.1, not '2.8.0'"),
    "two controllers": ({"controllers": 2}, ".spec.controllers: must be 1 or 3, not 2"),
    "fewer brokers than controllers": ({"brokers": 2}, ".spec.brokers: must be at least 3, since that many are controllers, not 2 (hint"),
    "no brokers": ({"brokers": 0}, ".spec.brokers: must be between 1 and 100"),
    "a size of nothing": ({"storage": {"size": "0Gi"}}, ".spec.storage.size: must be a quantity as in 10Gi, not '0Gi'"),
    "an image with spaces": ({"image": "a b"}, ".spec.image: must be an image reference"),
    "a setting that is ours": ({"config": {"node.id": "7"}}, ".spec.config[node.id]: can't be set, since it says which broker it is"),
    "a listener": ({"config": {"listener.name.x.ssl": "1"}}, ".spec.config[listener.name.x.ssl]: can't be set, since .spec.listeners says how"),
    "records that get lost": (
        {"config": {"unclean.leader.election.enable": "true"}},
        ".spec.config[unclean.leader.election.enable]: can't be set, since acknowledged records would get lost",
    ),
    "a program that reads settings": ({"config": {"config.providers": "file"}}, ".spec.config[config.providers]: can't be set, since it names a program"),
    "what such a program is": (
        {"config": {"config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider"}},
        ".spec.config[config.providers.file.class]: can't be set, since it names a program or a file",
    ),
    "where programs are": ({"config": {"remote.log.storage.manager.class.path": "/x"}}, ".spec.config[remote.log.storage.manager.class.path]: can't be set"),
    "programs for the security of all": ({"config": {"security.providers": "a.B"}}, ".spec.config[security.providers]: can't be set"),
    "a class that isn't Kafka's": (
        {"config": {"create.topic.policy.class.name": "com.example.Policy"}},
        ".spec.config[create.topic.policy.class.name]: must name classes of Kafka itself, which begin with org.apache.kafka., not 'com.example.Policy'",
    ),
    "one such class of two": (
        {"config": {"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter,a.B"}},
        ".spec.config[metric.reporters]: must name classes of Kafka itself, which begin with org.apache.kafka., not 'a.B'",
    ),
    "a setting of two lines": ({"config": {"a.b": "1\nnode.id=7"}}, ".spec.config[a.b]: must be text of one line"),
    "a setting that is a number": ({"config": {"num.io.threads": 8}}, ".spec.config[num.io.threads]: must be text of one line, in quotes"),
    "a key of two words": ({"config": {"a b": "1"}}, ".spec.config[a b]: isn't a key of Kafka's configuration"),
    "more in sync than there are": ({"config": {"min.insync.replicas": "4"}}, ".spec.config[min.insync.replicas]: must be at most 3"),
    "nobody in sync": ({"config": {"min.insync.replicas": "0"}}, ".spec.config[min.insync.replicas]: must be a number of replicas, 1"),
    "more replicas than brokers": (topic(replicas=4), ".spec.topics[0].replicas: must be at most 3, as many as there are brokers, not 4 (hint"),
    "a topic with spaces": (topic("a b"), ".spec.topics[0].name: must be letters, digits, dots"),
    "a topic of Kafka's own": (topic("__x"), ".spec.topics[0].name: __x is a name that Kafka needs itself"),
    "a topic called dot": (topic("."), ".spec.topics[0].name: must be letters, digits, dots"),
    "a topic twice": ({"topics": [{"name": "a"}, {"name": "a"}]}, ".spec.topics[1].name: a is there twice"),
    "topics alike": ({"topics": [{"name": "a.b"}, {"name": "a_b"}]}, ".spec.topics[1].name: a_b can't be distinguished from a.b"),
    "a throttle of a topic": (
        topic(config={"leader.replication.throttled.replicas": "*"}), ".spec.topics[0].config[leader.replication.throttled.replicas]: can't be set",
    ),
    "a topic nobody can write to": (
        topic(replicas=2, config={"min.insync.replicas": "3"}), ".spec.topics[0].config[min.insync.replicas]: must be at most 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused_with_its_field(spec, message):
    with pytest.raises(SpecError) as refused:
        kafka_spec(a_cr(**spec))
    assert str(refused.value).startswith(message)


def test_classes_of_kafka_itself_may_be_named():
    config = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        "group.consumer.assignors": "uniform,range",
    }
    assert kafka_spec(a_cr(config=config)).static == config


def test_one_broker_alone_is_its_own_controller_and_holds_the_only_replica():
    spec = kafka_spec(a_cr(brokers=1, controllers=1, topics=[{"name": "a"}]))
    assert (spec.replicas_of(spec.topics[0]), spec.dynamic) == (1, {"min.insync.replicas": "1"})


def test_settings_are_parted_by_whether_they_take_a_restart():
    spec = kafka_spec(a_cr(config={"num.io.threads": "8", "queued.max.requests": "9"}))
    assert spec.dynamic == {"min.insync.replicas": "2", "num.io.threads": "8"}
    assert spec.static == {"queued.max.requests": "9"}
