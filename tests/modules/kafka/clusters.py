"""Clusters as values, small and of any shape, for the laws of what moves."""

from hypothesis import strategies as st

from kubectl_reconcile.modules.kafka.partitions.assignment import Broker, Partition, assignment_of

SIZES = st.integers(0, 20)


@st.composite
def clusters(draw, *, brokers=(2, 5), partitions=(1, 6), replicas=3, sizes=SIZES, racks=True, empty=True):
    """A cluster in sync; some of its brokers may hold nothing."""
    ids = list(range(1, draw(st.integers(*brokers)) + 1))
    used = ids[: draw(st.integers(1, len(ids)))] if empty else ids
    rack = st.sampled_from("abc") if racks else st.none()
    return assignment_of(
        [Broker(each, draw(rack)) for each in ids],
        [draw(_partition(number, used, replicas, sizes)) for number in range(draw(st.integers(*partitions)))],
    )


@st.composite
def _partition(draw, number, brokers, replicas, sizes):
    order = draw(st.permutations(brokers))
    held = tuple(order[: draw(st.integers(1, min(replicas, len(order))))])
    topic = draw(st.sampled_from(["orders", "logs"]))
    return Partition(topic, number, held, held, held[0], draw(sizes), draw(st.integers(1, 3)))


def shuffled(draw, seen):
    """The same cluster, listed in another order."""
    brokers = draw(st.permutations(list(seen.brokers.values())))
    return assignment_of(brokers, draw(st.permutations(list(seen.partitions.values()))))
