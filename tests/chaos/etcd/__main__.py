"""Let N faults befall a real etcd while somebody writes to it all the time: ``python -m tests.chaos.etcd 100``.

A daemon looks after an EtcdCluster of three members, on process pods of a sandbox of its own. A client writes numbered keys through the client
Service, each once. Faults come one at a time: members that are killed, stopped, cut off or have a spoilt log; pods, volumes and members that people
take away; a stranger that they add; a daemon that is killed at a step of its work; an API server that is away.

After each the cluster must end as specified: status, pods, volumes and members agree, all members hold the same data, those whose data was there are
who they were, and it is the cluster that it was. No write that was acknowledged may be lost, ever.

Prints a line for each fault, and the seed that repeats the run as far as time lets it; exits 1 if a write was lost or a state was wrong. For how long
no write was acknowledged is the longest time between two that were, from a fault to the rest after it.
"""

# ruff: noqa: T201, S311 - a program that prints; what is random here needs no secrecy

from __future__ import annotations

import base64
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.runtime.client import unavailable
from tests.chaos.client import write
from tests.chaos.daemon import until
from tests.chaos.etcd.faults import FAULTS, Scene
from tests.chaos.etcd.live import API, CLAIM, LiveCluster, Rest
from tests.chaos.experiment import Experiment, Fault, looked_after, options

PAGE = 2000
WRITER = """
import base64, itertools, json, time, urllib.request as u
def text(of): return base64.b64encode(of.encode()).decode()
with open("/acks/acked", "a", buffering=1) as acks:
    for number in itertools.count():
        body = json.dumps({"key": text(f"n/{number:08}"), "value": text(str(number))}).encode()
        try:
            u.urlopen(u.Request("http://db-client:2379/v3/kv/put", data=body), timeout=2).read()
            print(number, time.monotonic(), file=acks)
        except OSError:
            pass
        time.sleep(0.02)
"""


@dataclass(kw_only=True)
class EtcdExperiment(Experiment):
    """One run on an etcd; *before* is how it was before the present fault."""

    live: LiveCluster
    before: Rest

    def befall(self, fault: Fault, what: str) -> None:
        gone = fault(Scene(live=self.live, daemon=self.daemon, dice=self.dice, before=self.before))
        after = self.live.settled()
        self.compare(what, self.before, after, gone)
        self.look_for_lost_writes()
        self.before = after

    def compare(self, what: str, before: Rest, after: Rest, gone: set[str]) -> None:
        """Look for members that aren't who they must be."""
        if after.cluster != before.cluster:
            self.fault(f"{what}: it is another cluster")
        for slot in before.members.keys() & after.members.keys():
            is_same = (before.members[slot], before.volumes[slot]) == (after.members[slot], after.volumes[slot])
            if is_same is (slot in gone):
                self.fault(f"{what}: {slot} was {before.members[slot]} and is {after.members[slot]}")
        if len(before.members) != len(after.members) or (not gone and "scaling" not in what and before != after):
            self.fault(f"{what}: {before} became {after}")
        self.look_for_tracebacks(what)

    def look_for_lost_writes(self) -> None:
        """Wait until a write is acknowledged again, and compare what is stored with all that were."""
        seen = len(self.acked.all())
        try:
            until(lambda: len(self.acked.all()) > seen, "writes are acknowledged again")
        except TimeoutError as error:
            self.fault(str(error))
        numbers = {number for number, _ in self.acked.all()}
        self.miss({number for number, value in _asked_for(numbers, self.stored()) if value != str(number)})

    def stored(self) -> dict[int, str]:
        """Return all that is stored, by number."""
        found: dict[int, str] = {}
        start = b"n/"
        while True:
            asked = {"key": _text(start), "range_end": _text(b"n0"), "limit": PAGE}
            answer = self.live.told("/v3/kv/range", asked)
            for each in answer.get("kvs", ()):
                start = base64.b64decode(each["key"])
                found[int(start[2:])] = base64.b64decode(each["value"]).decode()
            if not answer.get("more"):
                return found
            start += b"\0"


def _asked_for(numbers: set[int], stored: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    return ((number, stored.get(number, "")) for number in numbers)


def _text(of: bytes) -> str:
    return base64.b64encode(of).decode()


def make(live: LiveCluster) -> None:
    """Make the EtcdCluster."""
    spec = {"size": 3, "version": catalog.ETCD_VERSIONS[-1], "pod": {"persistentVolumeClaimSpec": CLAIM}}
    body = {"apiVersion": API, "kind": "EtcdCluster", "metadata": {"name": live.name}, "spec": spec}
    live.ask("POST", live.path("etcdclusters", api=API), body)


def main() -> int:
    wanted = options(__doc__, FAULTS, 100)
    if reason := unavailable():
        print(reason)
        return 2
    catalog.build(print, only="etcd")
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
        folder = Path(root)
        live, daemon = stack.enter_context(looked_after(LiveCluster, "etcd-chaos", folder, make))
        stack.callback(lambda: wanted.log and wanted.log.write_bytes(daemon.log.read_bytes()))
        rest = live.settled()
        acks = folder / "acks"
        acks.mkdir(mode=0o777)
        acked = write(live, acks, WRITER)
        parts = {"live": live, "daemon": daemon, "dice": random.Random(wanted.seed), "acked": acked}
        chaos = EtcdExperiment(**parts, before=rest)
        chaos.run(FAULTS, wanted.faults)
        chaos.sum_up(wanted.seed, time.monotonic() - began_s)
        return 1 if chaos.lost or chaos.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
