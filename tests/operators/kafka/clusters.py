"""Clusters as values, small and of any shape, for the laws of what moves."""

from dataclasses import replace

from hypothesis import strategies as st

from kubectl_reconcile_operators.kafka.partitions.assignment import Broker, Partition, assignment_of, with_replicas
from kubectl_reconcile_operators.kafka.partitions.batches import InFlight

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


class Cluster:
    """As Kafka does: a reassignment adds what is new at once, and takes what is old away at its end."""

    def __init__(self, seen):
        self.seen, self.flights, self.submitted = seen, {}, []

    def submit(self, wanted):
        for key, new in wanted.items():
            assert key not in self.flights, "assigned twice"
            self.submitted.append(key)
            old = self.seen.partitions[key]
            added = tuple(each for each in new if each not in old.replicas)
            removed = tuple(each for each in old.replicas if each not in new)
            if not added:
                self._stands(key, new)
                continue
            self.flights[key] = InFlight(key, (*new, *removed), added, removed)
            self._replace(key, replicas=(*new, *removed))

    def cancel(self, keys):
        for key in keys:
            flight = self.flights.pop(key)
            back = tuple(each for each in flight.replicas if each not in flight.adding)
            self._replace(key, replicas=back[1:] + back[:1], in_sync=back)

    def finish(self, key):
        self._stands(key, self.flights.pop(key).target)

    def _stands(self, key, new):
        self.seen = with_replicas(self.seen, {key: new})

    def _replace(self, key, **changes):
        changed = {**self.seen.partitions, key: replace(self.seen.partitions[key], **changes)}
        self.seen = assignment_of(self.seen.brokers.values(), changed.values())
