"""A Kafka is begun, filled, changed and brought back step by step."""

import pytest

from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.outcome import key_of
from kubectl_reconcile.engine.modules.purity import checked
from kubectl_reconcile_operators.kafka import Kafka
from kubectl_reconcile_operators.kafka.names import BOOTSTRAP, directory_id, new_cluster_id
from tests.operators.kafka.world import NOW, World, a_cr, condition, told_first

BEGUN = ["create kf-0", "create kf-1", "create kf-2"]


@pytest.fixture
def world():
    found = World(topics=[{"name": "orders", "partitions": 2}])
    found.settle()
    assert found.took() == [*BEGUN, "make-topic-orders"]
    return found


def lines(pod):
    told = told_first(pod)
    return dict(line.split("=", 1) for line in told["CONFIG"].splitlines()), told


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_pod_that_was_created_without_its_volume_gets_it(number):
    world = World(brokers=4)
    world.unwritten = {f"kf-{number}-data"}  # whoever writes both is killed in between, or the claim is refused
    world.steps_until(lambda: number in world.pods)
    assert number not in world.disks
    assert condition(world.settle(), "Ready").status == "True"
    assert world.took() == [*BEGUN, "create kf-3"]
    assert world.disks[number]["begins"] == ("joins" if number == 3 else "first")
    noted = world.objects["PersistentVolumeClaim", f"kf-{number}-data"]["metadata"]["annotations"]
    assert bool(noted.get(BOOTSTRAP)) == (number != 3)


def test_the_first_three_brokers_begin_together_as_controllers_and_a_fourth_joins():
    world = World(brokers=4)
    world.settle()
    assert world.taken == ["create kf-0", "create kf-1", "create kf-2", "create kf-3"]
    first, told = lines(world.pods[0])
    fourth, joined = lines(world.pods[3])
    assert (first["process.roles"], fourth["process.roles"]) == ("broker,controller", "broker")
    assert [world.disks[number]["begins"] for number in range(4)] == ["first", "first", "first", "joins"]
    assert (told["BEGIN"], joined["BEGIN"]) == ("joins", "joins")  # it has begun, and never does again
    assert told["CONTROLLERS"].count("@kf-") == 3
    assert (
        first["advertised.listeners"]
        == "BROKER://kf-0.kf-brokers.shop.svc:9091,CONTROLLER://kf-0.kf-brokers.shop.svc:9093,PLAIN://kf-0.kf-brokers.shop.svc:9092"
    )


def test_it_is_pure_from_its_beginning_to_a_roll():
    world = World(topics=[{"name": "orders", "partitions": 3}], version="4.2.1")
    for spec in ({}, {"version": "4.3.1", "brokers": 4}):
        world.change(**spec)
        for _ in range(6):
            world.run()
            world.ask(with_=checked)
            world.step()


def test_one_broker_alone_begins_by_itself():
    world = World(brokers=1, controllers=1)
    world.settle()
    assert world.disks[0]["begins"] == "alone"
    assert lines(world.pods[0])[1]["BEGIN"] == "joins"
    assert world.cr["status"]["phase"] == "Running"


def test_ids_follow_from_the_custom_resource_and_never_look_like_options():
    crs = [{**a_cr(), "metadata": {"name": "kf", "namespace": "shop", "uid": f"u-{number}"}} for number in range(200)]
    clusters = [new_cluster_id(Context(NOW, "kafka", cr)) for cr in crs]
    assert len(set(clusters)) == 200
    assert not [each for each in clusters if each.startswith("-") or len(each) != 22]
    assert len({directory_id(clusters[0], number) for number in range(3)}) == 3


def test_status_tells_of_brokers_and_topics(world):
    status = world.cr["status"]
    assert [(each["id"], each["ready"], each["replicas"]) for each in status["brokers"]] == [
        (0, True, 2),
        (1, True, 2),
        (2, True, 2),
    ]
    assert (status["readyBrokers"], status["underReplicatedPartitions"], status["offlinePartitions"]) == (3, 0, 0)
    assert status["topics"] == {"partitions": 2, "managed": ["orders"], "othersCount": 0, "others": []}
    assert status["clusterId"] == world.disks[0]["cluster"]
    assert condition(world.settle(), "Ready").status == "True"


def test_a_broker_whose_pod_is_deleted_comes_back_on_its_volume(world):
    world.objects.pop(("Pod", "kf-1"))
    world.settle()
    assert world.took() == ["create kf-1", "elect-leaders"]


def test_a_controller_whose_volume_is_gone_doesn_t_begin_a_cluster_again(world):
    for kind, name in (("Pod", "kf-1"), ("PersistentVolumeClaim", "kf-1-data")):
        world.objects.pop((kind, name))
    del world.disks[1]
    world.settle()
    assert lines(world.pods[1])[1]["BEGIN"] == "joins"


def test_a_volume_that_is_going_holds_up_nobody_but_its_own_broker(world):
    world.objects["PersistentVolumeClaim", "kf-1-data"]["metadata"]["deletionTimestamp"] = NOW
    for number in (1, 2):
        world.objects.pop(("Pod", f"kf-{number}"))
    outcome = world.settle()
    assert [each for each in world.took() if each != "elect-leaders"] == ["create kf-2"]
    assert condition(outcome, "Ready").reason == "VolumeTerminating"
    assert condition(outcome, "Available").status == "True"


def test_the_first_controllers_begin_together_once_an_old_volume_is_gone():
    world = World()
    world.step()
    old = world.objects["PersistentVolumeClaim", "kf-1-data"]
    old["metadata"] |= {"deletionTimestamp": NOW, "annotations": {}}
    world = World()
    world.objects["PersistentVolumeClaim", "kf-1-data"] = old
    assert condition(world.settle(), "Ready").reason == "VolumeTerminating"
    assert world.took() == []
    world.objects.clear()
    world.settle()
    assert world.took() == BEGUN


def test_a_cluster_that_is_made_again_on_its_volumes_keeps_its_id(world):
    before = world.cr["status"]["clusterId"]
    for number in range(3):
        world.objects.pop(("Pod", f"kf-{number}"))
    world.cr["status"] = {}
    world.cr["metadata"]["uid"] = "u-another"
    world.settle()
    assert world.cr["status"]["clusterId"] == before


def test_volumes_of_two_clusters_are_left_to_a_person(world):
    world.objects["PersistentVolumeClaim", "kf-1-data"]["metadata"]["annotations"]["kafka.example.com/cluster-id"] = (
        "other"
    )
    outcome = world.step()
    assert condition(outcome, "Degraded").reason == "DifferentClusters"
    assert world.took() == []


def test_paused_changes_nothing(world):
    world.change(paused=True, topics=[], config={"num.io.threads": "8"})
    world.objects.pop(("Pod", "kf-1"))
    outcome = world.settle()
    assert world.took() == []
    assert condition(outcome, "Ready").reason == "Paused"


# --- topics ---------------------------------------------------------------------------------------


def test_a_topic_grows_and_is_configured_without_a_restart(world):
    world.change(topics=[{"name": "orders", "partitions": 5, "config": {"retention.ms": "1000"}}])
    world.settle()
    assert world.took() == ["grow-topic-orders", "set-topic-orders"]
    world.change(topics=[{"name": "orders", "partitions": 5}])
    world.settle()
    assert world.topics["orders"]["config"] == {}


def test_a_topic_of_fewer_partitions_is_refused_and_all_else_goes_on(world):
    world.change(topics=[{"name": "orders", "partitions": 1}, {"name": "prices.v1"}])
    outcome = world.settle()
    assert "prices.v1" in world.topics
    assert len(world.topics["orders"]["partitions"]) == 2
    assert condition(outcome, "Degraded").reason == "PartitionsShrink"
    assert condition(outcome, "Degraded").message.startswith(
        ".spec.topics[0].partitions: topic orders has 2 partitions"
    )


def test_a_topic_is_deleted_once_somebody_approves(world):
    world.change(topics=[])
    outcome = world.settle()
    assert "orders" in world.topics
    (held,) = outcome.actions
    assert (held.verb, held.needs_approval) == ("delete-topic", True)
    assert condition(outcome, "Ready").reason == "AwaitsApproval"
    world.approve(held.key)
    world.settle()
    assert "orders" not in world.topics
    assert world.cr["status"]["topics"]["managed"] == []


def test_topics_of_others_are_listed_and_left_alone(world):
    world.topic("theirs", [0, 1, 2], config={"retention.ms": "1"})
    outcome = world.settle()
    assert world.cr["status"]["topics"]["others"] == ["theirs"]
    assert outcome.actions == ()
    assert world.took() == []


def test_what_the_cluster_refuses_is_told_and_nothing_waits_for_it(world):
    world.refuses["set-topic"] = "no such setting"
    world.change(topics=[{"name": "orders", "partitions": 2, "config": {"retention.mss": "1"}}, {"name": "prices"}])
    outcome = world.settle()
    assert "prices" in world.topics
    assert "no such setting" in condition(outcome, "Degraded").message


def test_settings_that_brokers_take_on_while_they_run_need_no_restart(world):
    world.change(config={"num.io.threads": "8", "log.cleaner.io.buffer.load.factor": "0.50"})
    world.settle()
    assert world.took() == ["set-config"]
    world.config["log.cleaner.io.buffer.load.factor"] = "0.5"
    world.settle()
    world.change(config={})
    world.settle()
    assert world.took() == ["set-config"]
    assert world.config == {"min.insync.replicas": "2"}


# --- restarts -------------------------------------------------------------------------------------


def test_brokers_restart_one_at_a_time_the_active_controller_last(world):
    world.controller = 1
    world.change(config={"queued.max.requests": "9"})
    world.settle()
    rolled = [each for each in world.took() if each != "elect-leaders"]
    assert rolled == ["delete kf-0", "create kf-0", "delete kf-2", "create kf-2", "delete kf-1", "create kf-1"]
    assert [each["leader"] for _, _, each in world.partitions()] == [
        each["replicas"][0] for _, _, each in world.partitions()
    ]


def test_nobody_restarts_while_a_partition_needs_the_broker(world):
    world.slow = {2}
    world.change(config={"queued.max.requests": "9"})
    outcome = world.settle()
    assert world.took() == ["delete kf-2", "create kf-2"], "who is behind may need just that"
    assert condition(outcome, "Rolling").status == "True"
    assert "orders-0" in condition(outcome, "Rolling").message
    world.slow = set()
    world.settle()
    assert {"delete kf-0", "delete kf-1"} <= {*world.took()}


def test_a_partition_with_a_single_replica_is_away_only_once_somebody_approves(world):
    world.topic("single", [1])
    world.change(config={"queued.max.requests": "9"})
    outcome = world.settle()
    assert [each for each in world.took() if each.startswith("delete")] == ["delete kf-2", "delete kf-0"]
    (held,) = outcome.actions
    assert held.verb == "allow-restart"
    assert "single-0" in held.summary
    world.approve(held.key)
    world.settle()
    assert "delete kf-1" in world.took()


def sizes(world):
    claims = (each for (kind, _), each in world.objects.items() if kind == "PersistentVolumeClaim")
    return [each["spec"]["resources"]["requests"]["storage"] for each in claims]


def test_a_volume_never_shrinks_and_the_refusal_is_told_while_all_else_goes_on(world):
    world.change(storage={"size": "900Mi"}, topics=[{"name": "orders", "partitions": 3}])
    outcome = world.settle()
    assert sizes(world) == ["1Gi"] * 3
    assert world.took() == ["grow-topic-orders"]
    assert condition(outcome, "Degraded").reason == "StorageShrinks"
    assert ".spec.storage.size: 900Mi is less than the 1Gi that the volume of kf-0 has" in outcome.warnings[0]
    world.change(storage={"size": "1024Mi"})
    assert condition(world.settle(), "Degraded").status == "False"


def test_a_larger_volume_that_an_earlier_cluster_left_stays_as_large(world):
    for each in [key for key in world.objects if key[0] == "Pod"]:
        del world.objects[each]
    world.change(storage={"size": "1M"})
    world.settle()
    assert sizes(world) == ["1Gi"] * 3


def test_volumes_grow(world):
    world.change(storage={"size": "1.5Gi"})
    world.settle()
    assert sizes(world) == ["1.5Gi"] * 3


def test_a_controller_alone_restarts():
    world = World(brokers=1, controllers=1)
    world.settle()
    world.took()
    world.change(config={"queued.max.requests": "9"})
    world.settle()
    assert world.took() == ["delete kf-0", "create kf-0"]


def test_a_broker_whose_volume_claim_is_terminating_isn_t_restarted(world):
    world.objects["PersistentVolumeClaim", "kf-1-data"]["metadata"]["deletionTimestamp"] = NOW
    world.change(config={"queued.max.requests": "9"})
    outcome = world.settle()
    assert {each for each in world.took() if each.startswith("delete")} == {"delete kf-0", "delete kf-2"}
    assert "volume claim is terminating" in condition(outcome, "Rolling").message


@pytest.mark.parametrize("silent", [{1}, {0, 1, 2}], ids=["one", "all"])
def test_a_broker_that_nobody_hears_for_a_moment_isn_t_deleted_for_what_the_spec_says(world, silent):
    world.silent = silent
    world.change(config={"queued.max.requests": "9"})
    world.settle()
    assert world.took() == []


@pytest.mark.parametrize("down", [{1}, {0, 1, 2}], ids=["one", "all"])
def test_a_broker_that_doesn_t_run_is_made_anew_as_the_spec_says_now(world, down):
    world.down = down
    world.run()
    world.change(config={"queued.max.requests": "9"})
    world.settle()
    assert [each for each in world.took() if each.startswith("delete")] == [
        f"delete kf-{each}" for each in sorted(down)
    ]


def test_a_broker_that_doesn_t_run_isn_t_deleted_while_another_is_going(world):
    world.down = {1}
    world.objects["Pod", "kf-2"]["metadata"]["deletionTimestamp"] = NOW
    world.change(config={"queued.max.requests": "9"})
    world.step()
    assert world.took() == []


def test_why_brokers_tell_nothing_of_the_cluster_is_told(world):
    facts = {**{name: world.facts()[name] for name in ("tls", "pods")}, "error": "it tells of too many partitions"}
    world.facts = lambda: facts
    said = condition(world.ask(), "Ready")
    assert (said.status, said.reason) == ("False", "BrokerAway")
    assert said.message.endswith(": it tells of too many partitions")


def ended(world):
    """The pods and Services that stay in the next pass of a Kafka that is deleted, and whether it is over."""
    owned = Owned(list(world.objects.values()), ())
    outcome = Kafka.finalize(world.cr, owned, {}, Context(NOW, "kafka", world.cr))
    assert {key_of(each) for each in outcome.children if each["kind"] != "PersistentVolumeClaim"} == {
        *outcome.untouched
    }
    return sorted(outcome.untouched), outcome.finalized


def test_a_kafka_that_is_deleted_ends_its_controllers_last():
    world = World(brokers=4)
    world.settle()
    names = ["Service/kf", "Service/kf-brokers"]
    assert ended(world) == (["Pod/kf-0", "Pod/kf-1", "Pod/kf-2", *names], False)
    del world.objects["Pod", "kf-3"]
    assert ended(world) == ([], False)
    world.objects = {}
    assert ended(world) == ([], True)
