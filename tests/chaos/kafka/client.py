"""A producer that writes numbers to a topic, each partition its own, a consumer that reads them all the time, and what is to hold of both.

Number *n* goes to partition ``n % PARTITIONS``, after all lower ones of this partition. It is acknowledged once all replicas in sync have it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.chaos.client import Acked, write

PARTITIONS = 4
TOPIC, BULK = "orders", "bulk"
WRITER = f"""
import itertools, threading, time
from kafka import KafkaProducer
from kafka.errors import KafkaError
long_ms = 3_600_000
producer = KafkaProducer(
    bootstrap_servers="kf:9092", acks="all", enable_idempotence=True, delivery_timeout_ms=long_ms, max_block_ms=long_ms,
    request_timeout_ms=5000, reconnect_backoff_max_ms=1000, metadata_max_age_ms=5000,
)
acks, one_at_a_time = open("/acks/acked", "a", buffering=1), threading.Lock()
def run(partition):
    for number in itertools.count(partition, {PARTITIONS}):
        try:
            producer.send("{TOPIC}", b"%d" % number, partition=partition).get()
        except KafkaError as error:
            print(number, repr(error), flush=True)
            continue
        with one_at_a_time:
            print(number, time.monotonic(), file=acks)
        time.sleep(0.1)
threads = [threading.Thread(target=run, args=(each,)) for each in range({PARTITIONS})]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
READER = f"""
import sys
from kafka import KafkaConsumer, TopicPartition
only_once = len(sys.argv) > 1
consumer = KafkaConsumer(bootstrap_servers="kf:9092", group_id=None, request_timeout_ms=15000, metadata_max_age_ms=5000)
places = [TopicPartition("{TOPIC}", number) for number in range({PARTITIONS})]
consumer.assign(places)
consumer.seek_to_beginning()
ends = consumer.end_offsets(places) if only_once else dict()
with open("/acks/" + (sys.argv[1] if only_once else "read"), "a", buffering=1) as read:
    while not only_once or any(consumer.position(each) < ends[each] for each in places):
        for place, records in consumer.poll(500).items():
            for each in records:
                print(place.partition, each.offset, int(each.value), file=read)
"""
FILLER = """
import sys
from kafka import KafkaProducer
producer = KafkaProducer(bootstrap_servers="kf:9092", acks="all", delivery_timeout_ms=600000)
for number in range(int(sys.argv[2])):
    producer.send(sys.argv[1], bytes(100_000), partition=number % 4)
producer.flush()
"""


@dataclass
class AckedByPartition(Acked):
    """What the producer was told is stored, by partition."""

    def gaps_s(self, since_s: float) -> dict[int, float]:
        """Return for how long nothing of a partition was acknowledged, at most, since a moment."""
        times: defaultdict[int, list[float]] = defaultdict(list)
        for number, at_s in self.all():
            times[number % PARTITIONS].append(at_s)
        return {partition: _longest_s(found, since_s) for partition, found in times.items()}

    def longest_gap_s(self, since_s: float) -> float:
        return max(self.gaps_s(since_s).values(), default=0.0)


def _longest_s(times: list[float], since_s: float) -> float:
    first = next((at for at, at_s in enumerate(times) if at_s > since_s), len(times) - 1)
    return max((later - sooner for sooner, later in pairwise(times[max(first - 1, 0) :])), default=0.0)


@dataclass
class Read:
    """What a consumer has read, by partition and offset; a consumer that begins again reads again. *wrong* are sentences on what can't be."""

    file: Path
    records: dict[int, dict[int, int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    _read: int = 0

    def numbers(self) -> set[int]:
        """Return the numbers that it has read so far."""
        if self.file.exists():
            with self.file.open() as lines:
                lines.seek(self._read)
                text = lines.read()
            whole = text[: text.rfind("\n") + 1]
            self._read += len(whole.encode())
            for line in whole.splitlines():
                self._take(*map(int, line.split()))
        return {number for some in self.records.values() for number in some.values()}

    def _take(self, partition: int, offset: int, number: int) -> None:
        known = self.records.setdefault(partition, {})
        if known.setdefault(offset, number) != number:
            self.wrong.append(f"offset {offset} of partition {partition} was {known[offset]}, and is {number}")
        if number % PARTITIONS != partition:
            self.wrong.append(f"{number} is in partition {partition}")

    def disorder(self) -> list[str]:
        """Return what was wrong, and where records aren't in the order in which they were sent."""
        found = list(self.wrong)
        for partition, known in self.records.items():
            ordered = [known[offset] for offset in sorted(known)]
            found += [f"partition {partition}: {later} is behind {sooner}" for sooner, later in pairwise(ordered) if later <= sooner]  # fmt: skip
        return found


__all__ = ["BULK", "FILLER", "PARTITIONS", "READER", "TOPIC", "WRITER", "AckedByPartition", "Read", "write"]
