"""What diff --until-stable shows of a Kafka is what is done, step by step."""

from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.planning.kinds import kinds_of_crd
from kubectl_reconcile_operators.kafka import Kafka
from tests.operators.kafka.foreseen import KINDS, foreseen
from tests.operators.kafka.world import World

(CRD,) = parse((Path(__file__).parents[3] / "crds/kafkas.kafka.example.com.yaml").read_bytes(), "").manifests
KINDS |= {gvk: kind for gvk, kind in kinds_of_crd(CRD.manifest).items() if gvk == Kafka.gvk}


ORDERS = {"name": "orders", "partitions": 3}
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "config": st.dictionaries(st.sampled_from(["num.io.threads", "queued.max.requests"]), st.sampled_from(["8", "9"])),
        "topics": st.sampled_from([[], [ORDERS], [{**ORDERS, "partitions": 5, "config": {"retention.ms": "1"}}], [ORDERS, {"name": "a.b"}]]),
        "image": st.sampled_from(["", "apache/kafka:4.3.1"]),
        "brokers": st.integers(3, 5),
        "version": st.sampled_from(["4.2.1", "4.3.1"]),
    },
)  # fmt: skip


def test_a_new_cluster_is_shown_to_its_end():
    world = World(topics=[ORDERS])
    shown = foreseen(world)
    world.settle()
    assert shown == world.taken
    assert shown == ["create kf-0", "create kf-1", "create kf-2", "make-topic-orders"]


def test_a_controller_that_lost_its_volume_is_shown_to_be_let_in_again():
    world = World(topics=[ORDERS])
    world.settle()
    world.lose_volume(1)
    world.run()
    world.took()
    shown = foreseen(world)
    world.settle()
    assert shown == world.taken
    assert {"remove-voter-kf-1", "add-voter-kf-1"} <= {*shown}


@settings(max_examples=10, deadline=None)
@example(
    before={"topics": [ORDERS]}, change={"image": "apache/kafka:4.3.1", "config": {"num.io.threads": "8"}}, later=3
)
@example(
    before={"brokers": 4, "topics": [ORDERS]}, change={"brokers": 3, "topics": [{**ORDERS, "partitions": 5}]}, later=0
)
@example(before={"version": "4.2.1"}, change={"version": "4.3.1"}, later=0)
@given(CHANGES, CHANGES, st.integers(0, 6))
def test_a_change_takes_the_steps_that_were_shown_before(before, change, later):
    world = World(**before)
    world.settle()
    world.cr["spec"] |= change
    for _ in range(later):  # in the middle of it, too
        world.step()
    world.took()
    shown = foreseen(world)
    world.settle()
    assert shown == world.taken
