"""Let N faults befall a real Kafka while somebody writes to it and reads from it all the time: ``python -m tests.chaos.kafka 30``.

A daemon looks after a Kafka of four brokers, three of them controllers, on process pods of a sandbox of its own. A producer writes numbers to each partition of a topic, one after the
other, each acknowledged by all replicas in sync; a consumer reads them. Faults come one at a time: brokers, the active controller among them, that are killed, stopped or cut off, also while
partitions move and while brokers restart; disks and pods that people take away; minds that are changed midway; topics that are deleted while they move; a daemon that is killed at a step of
its work; an API server that is away.

After each the cluster must end as specified: status, pods, volumes and brokers agree, all partitions are in sync and led by the brokers that they prefer, nothing moves, no throttle is left,
and it is the cluster that it was. No record that was acknowledged may be lost, none read twice or out of order within its partition; at the end all are read once more from the beginning.

Prints a line for each fault, and the seed that repeats the run as far as time lets it; exits 1 if a record was lost, one was out of order, or a state was wrong. For how long nobody could write
to a partition is the longest time between two of its records that were acknowledged, from a fault to the rest after it.
"""

# ruff: noqa: T201, S311 - a program that prints; what is random here needs no secrecy

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.kafka_programs import KAFKA_VERSIONS
from kubectl_reconcile.sandbox.runtime.client import unavailable
from tests.chaos.client import begin, run_once, write
from tests.chaos.experiment import Experiment, Fault, looked_after, options, told
from tests.chaos.kafka.client import BULK, FILLER, PARTITIONS, READER, TOPIC, WRITER, AckedByPartition, Read
from tests.chaos.kafka.faults import BROKERS, CONTROLLERS, FAULTS, Scene
from tests.chaos.kafka.live import API, LiveKafka
from tests.chaos.live import soon


@dataclass(kw_only=True)
class KafkaExperiment(Experiment):
    """One run on a Kafka, which is the *cluster* that it was all the time; *away_s* is for how long each partition couldn't be written, by fault and partition."""

    live: LiveKafka
    acked: AckedByPartition
    read: Read
    cluster: str
    away_s: list[float] = field(default_factory=list)

    def befall(self, fault: Fault, what: str) -> None:
        began_s = time.monotonic()
        fault(Scene(live=self.live, daemon=self.daemon, dice=self.dice))
        cluster = self.live.settled(timeout_s=900.0)
        self.compare(what, cluster)
        self.away_s += self.acked.gaps_s(began_s).values()

    def compare(self, what: str, cluster: str) -> None:
        """Wait until records of all partitions are acknowledged again, and read; compare what was read with all that were acknowledged."""
        seen = {number for number, _ in self.acked.all()}
        soon(
            lambda: len({number % PARTITIONS for number, _ in self.acked.all()[len(seen) :]}) == PARTITIONS,
            "records of all partitions are acknowledged again",
        )
        self.missed({number for number, _ in self.acked.all()}, self.read)
        if cluster != self.cluster:
            self.fault(f"{what}: it is another cluster")
        self.look_for_tracebacks(what)

    def missed(self, told: set[int], read: Read) -> None:
        """Wait until all that was acknowledged is read; what isn't then is lost."""
        with contextlib.suppress(TimeoutError):
            soon(lambda: told <= read.numbers(), "all that is acknowledged is read", timeout_s=180.0)
        self.miss(told - read.numbers())
        for text in read.disorder():
            if text not in self.wrong:
                self.fault(text)

    def read_again(self) -> None:
        """Read all from the beginning once more."""
        told = {number for number, _ in self.acked.all()}
        again = Read(self.read.file.with_name("again"))
        run_once(self.live, "again", READER, "again", acks=again.file.parent)
        self.missed(told, again)


def make(live: LiveKafka) -> None:
    """Make the Kafka."""
    topics = [{"name": name, "partitions": PARTITIONS, "replicas": 3} for name in (TOPIC, BULK)]
    rebalance = {"throttleBytesPerSecond": 2_000_000}
    spec = {
        "version": KAFKA_VERSIONS[-1], "brokers": BROKERS, "controllers": CONTROLLERS, "storage": {"size": "1Gi"}, "topics": topics, "rebalance": rebalance,
    }  # fmt: skip
    body = {"apiVersion": API, "kind": "Kafka", "metadata": {"name": live.name}, "spec": spec}
    live.ask("POST", live.path("kafkas", api=API), body)


def main() -> int:
    wanted = options(__doc__, FAULTS, 30)
    if reason := unavailable():
        print(reason)
        return 2
    catalog.build(print, only=f"kafka:{KAFKA_VERSIONS[-1]}")
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
        folder = Path(root)
        live, daemon = stack.enter_context(looked_after(LiveKafka, "kafka-chaos", folder, make, called="kf"))
        stack.callback(lambda: wanted.log and wanted.log.write_bytes(daemon.log.read_bytes()))
        cluster = live.settled(timeout_s=900.0)
        run_once(live, "filler", FILLER, BULK, "480")
        acks = folder / "acks"
        acks.mkdir(mode=0o777)
        acked = write(live, acks, WRITER, kind=AckedByPartition)
        begin(live, "reader", READER, acks=acks)
        parts = {"live": live, "daemon": daemon, "dice": random.Random(wanted.seed), "acked": acked}
        chaos = KafkaExperiment(**parts, read=Read(acks / "read"), cluster=cluster)
        chaos.run(FAULTS, wanted.faults)
        chaos.read_again()
        besides = f"{len(chaos.read.disorder())} out of order, a partition without writes {told(chaos.away_s)}; "
        chaos.sum_up(wanted.seed, time.monotonic() - began_s, besides)
        return 1 if chaos.lost or chaos.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
