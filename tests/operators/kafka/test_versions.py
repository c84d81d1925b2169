"""Another version of Kafka: all brokers restart first, then the cluster's metadata is raised, and from then on there is no way back."""

import pytest

from tests.operators.kafka.world import World, condition

OLD, NEW = "4.2.1", "4.3.1"
ROLLED = [f"{what} kf-{number}" for number in (1, 2, 0) for what in ("delete", "create")]


@pytest.fixture
def world():
    found = World(version=OLD, topics=[{"name": "orders", "partitions": 3}])
    found.settle()
    found.took()
    return found


def images(world):
    return {pod["spec"]["containers"][0]["image"].rpartition("/")[2] for pod in world.pods.values()}


def test_all_brokers_restart_before_the_metadata_version_is_raised(world):
    assert (world.level, world.cr["status"]["metadataVersion"]) == (29, 29)
    world.change(version=NEW)
    world.settle()
    assert [each for each in world.took() if each != "elect-leaders"] == [*ROLLED, "raise-metadata-version-30"]
    assert images(world) == {"kafka:4.3.1"}
    assert (world.level, world.cr["status"]["metadataVersion"], world.cr["status"]["version"]) == (30, 30, NEW)


def test_the_metadata_version_is_raised_only_once_all_replicas_are_in_sync(world):
    world.change(version=NEW)
    while images(world) != {"kafka:4.3.1"} or world.pods.keys() != {0, 1, 2}:
        world.step()
    world.slow.add(0)
    world.settle()
    assert world.level == 29
    world.slow.clear()
    world.settle()
    assert world.level == 30


def test_a_mind_is_changed_as_long_as_the_metadata_version_isn_t_raised(world):
    world.change(version=NEW)
    for _ in range(4):
        world.step()
    assert images(world) == {"kafka:4.2.1", "kafka:4.3.1"}
    world.change(version=OLD)
    world.settle()
    assert images(world) == {"kafka:4.2.1"}
    assert world.level == 29


def test_a_version_that_does_not_know_the_metadata_is_refused_and_the_cluster_stays_as_it_is(world):
    world.change(version=NEW)
    world.settle()
    world.took()
    world.change(version=OLD)
    outcome = world.settle()
    assert world.took() == []
    refused = condition(outcome, "Degraded")
    assert refused.reason == "DowngradeRefused"
    assert refused.message == (
        ".spec.version: 4.2.1 knows metadata versions up to 29, and the cluster is at 30, which can't be lowered (hint: set it to 4.3.1)"
    )
    assert world.cr["status"]["version"] == NEW


def test_all_else_goes_on_while_a_downgrade_is_refused(world):
    world.change(version=NEW)
    world.settle()
    world.took()
    world.change(version=OLD, topics=[{"name": "orders", "partitions": 3}, {"name": "more"}], brokers=4)
    world.settle()
    assert {"make-topic-more", "create kf-3"} <= {*world.took()}
    assert images(world) == {"kafka:4.3.1"}


def test_a_downgrade_is_refused_while_no_broker_says_how_the_cluster_is(world):
    world.change(version=NEW)
    world.settle()
    world.silent |= {0, 1, 2}
    world.change(version=OLD)
    assert condition(world.settle(), "Degraded").reason == "DowngradeRefused"
    assert images(world) == {"kafka:4.3.1"}


def test_an_image_of_another_version_than_the_spec_says_raises_nothing(world):
    world.change(version=NEW, image="shop/kafka:4.2.1")
    outcome = world.settle()
    assert world.level == 29
    refused = condition(outcome, "Degraded")
    assert refused.reason == "ImageTooOld"
    assert refused.message.startswith(
        ".spec.image: brokers 0, 1, 2 know metadata versions up to 29, and 4.3.1 has 30 (hint"
    )
