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

import argparse
import base64
import contextlib
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubectl_reconcile.sandbox.build import build
from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.runtime.client import unavailable
from tests.chaos.client import Acked, write
from tests.chaos.daemon import Daemon, until
from tests.chaos.etcd.faults import FAULTS, Scene
from tests.chaos.etcd.live import API, CLAIM, LiveCluster, Rest
from tests.chaos.live import MemberError, install

NAMESPACE = "chaos"
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


@dataclass
class Chaos:
    """One run: what befell the cluster, and what was wrong then."""

    live: LiveCluster
    daemon: Daemon
    dice: random.Random
    acked: Acked
    wrong: list[str] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    gaps_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def run(self, count: int) -> None:
        """Let so many faults happen; one that doesn't end as specified is the last."""
        rest = self.live.settled()
        kinds = self.dice.choices(list(FAULTS), FAULTS.values(), k=count)
        for number, fault in enumerate(kinds, 1):
            began_s, name = time.monotonic(), fault.__name__.replace("_", " ")
            try:
                gone = fault(Scene(self.live, self.daemon, self.dice, rest))
                after = self.live.settled()
            except (TimeoutError, AssertionError, MemberError, RuntimeError) as error:
                self.fault(f"{number}, {name}: {error}; {self.live.unrest()}")
                return
            self.compare(f"{number}, {name}", rest, after, gone)
            self.look_for_lost_writes()
            gap_s, rest = self.acked.longest_gap_s(began_s), after
            self.gaps_s[name].append(gap_s)
            spent_s = time.monotonic() - began_s
            print(f"{number} of {count}: {name}: {spent_s:.1f} s, of which {gap_s:.2f} s unavailable", flush=True)

    def fault(self, text: str) -> None:
        self.wrong.append(text)
        print(f"WRONG {text}", flush=True)

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
        if b"Traceback" in self.daemon.log.read_bytes():
            self.fault(f"{what}: the daemon printed a traceback")

    def look_for_lost_writes(self) -> None:
        """Wait until a write is acknowledged again, and compare what is stored with all that were."""
        seen = len(self.acked.all())
        try:
            until(lambda: len(self.acked.all()) > seen, "writes are acknowledged again")
        except TimeoutError as error:
            self.fault(str(error))
        numbers = {number for number, _ in self.acked.all()}
        lost = {number for number, value in _asked_for(numbers, self.stored()) if value != str(number)} - self.lost
        if lost:
            self.lost |= lost
            print(f"LOST {sorted(lost)[:10]} and so on, {len(lost)} in all", flush=True)

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

    def verdict(self, seed: int, spent_s: float) -> int:
        """Print what it all came to; return the exit status."""
        for name, gaps in sorted(self.gaps_s.items()):
            print(
                f"  {len(gaps):3} {name:30} unavailable {statistics.median(gaps):5.2f} s (p50) {max(gaps):6.2f} s (max)"
            )
        gaps = [gap for each in self.gaps_s.values() for gap in each] or [0.0]
        print(
            f"{sum(map(len, self.gaps_s.values()))} faults, {len(self.acked.all())} acknowledged writes: {len(self.lost)} lost, {len(self.wrong)} wrong states; "
            f"unavailable {statistics.median(gaps):.2f} s (p50), {max(gaps):.2f} s (max) (seed {seed}, {spent_s:.0f} s)"
        )
        return 1 if self.lost or self.wrong else 0


def _asked_for(numbers: set[int], stored: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    return ((number, stored.get(number, "")) for number in numbers)


def _text(of: bytes) -> str:
    return base64.b64encode(of).decode()


# --- setting it up --------------------------------------------------------------------------------


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[LiveCluster, Daemon]]:
    """Yield a cluster of three that is being formed, and the daemon that forms it."""
    sandbox = Sandbox("etcd-chaos", root=folder / "sandbox")
    try:
        sandbox.up(binaries=build(print))
        live = LiveCluster(sandbox, NAMESPACE)
        label = {"sandbox.reconcile.dev/pods": "processes"}
        live.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": label}})
        until(lambda: live.ask("GET", live.path("serviceaccounts", "default")), "the namespace is ready")
        install(sandbox)
        daemon = Daemon(str(sandbox.kubeconfig), NAMESPACE, folder)
        daemon.start()
        try:
            make(live)
            yield live, daemon
        finally:
            daemon.kill()
    finally:
        sandbox.down()


def make(live: LiveCluster) -> None:
    """Make the EtcdCluster."""
    spec = {"size": 3, "version": catalog.ETCD_VERSIONS[-1], "pod": {"persistentVolumeClaimSpec": CLAIM}}
    body = {"apiVersion": API, "kind": "EtcdCluster", "metadata": {"name": live.name}, "spec": spec}
    live.ask("POST", live.path("etcdclusters", api=API), body)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="this fault alone, as in: leader stopped")
    parser.add_argument("--log", type=Path, help="where to keep what the daemon said")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # nothing is left behind
    if reason := unavailable():
        print(reason)
        return 2
    if options.only:
        _keep_only(options.only)
    catalog.build(print, only="etcd")
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
        folder = Path(root)
        live, daemon = stack.enter_context(cluster(folder))
        stack.callback(lambda: options.log and options.log.write_bytes(daemon.log.read_bytes()))
        live.settled()
        acks = folder / "acks"
        acks.mkdir(mode=0o777)
        chaos = Chaos(live, daemon, random.Random(options.seed), write(live, acks, WRITER))
        chaos.run(options.faults)
        return chaos.verdict(options.seed, time.monotonic() - began_s)


def _keep_only(name: str) -> None:
    wanted: Callable[..., object] = next(each for each in FAULTS if each.__name__ == name.replace(" ", "_"))
    for each in [each for each in FAULTS if each is not wanted]:
        del FAULTS[each]


if __name__ == "__main__":
    sys.exit(main())
