"""A chaos experiment on a database: faults befall it one at a time, while a client writes to it and a daemon looks after it. What the experiments of all databases share.

Its *steady state* is that all is as specified, see `LiveResource.settled`; each fault must end in it. For how long nobody could write is the longest time between two writes that were
acknowledged, from a fault to the steady state after it.
"""

# ruff: noqa: T201, S311 - for programs that print; what is random here needs no secrecy

from __future__ import annotations

import argparse
import contextlib
import http.client
import random
import signal
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kubectl_reconcile.sandbox.build import build
from kubectl_reconcile.sandbox.controlplane import Sandbox
from tests.chaos.client import Acked
from tests.chaos.daemon import Daemon, until
from tests.chaos.live import TROUBLE, LiveResource
from tests.kubectl import Kubectl, install_crds

API_SERVER = "kube-apiserver"
NAMESPACE = "chaos"
GRACE_S = 10.0
Fault = Callable[..., Any]
_Live = TypeVar("_Live", bound=LiveResource)


@dataclass(kw_only=True)
class ChaosScene:
    """Where faults happen, each by its own dice."""

    live: LiveResource
    daemon: Daemon
    dice: random.Random

    def pause(self, mean_s: float) -> None:
        time.sleep(min(self.dice.expovariate(1 / mean_s), 4 * mean_s))

    def restart_daemon(self) -> None:
        self.daemon.kill()
        self.pause(0.3)
        self.daemon.start()

    def restart_daemon_at(self, step: str, is_there: Callable[[], Any], *, within_s: float = 30.0) -> None:
        """Kill the daemon and start it again as soon as a *step* is seen, or was over before anybody looked."""

        def looked() -> Any:
            try:
                return is_there()
            except TROUBLE:
                return None

        with contextlib.suppress(TimeoutError):
            until(looked, step, timeout_s=within_s, pause_s=0.02)
        self.restart_daemon()

    @contextlib.contextmanager
    def without_api_server(self) -> Iterator[None]:
        """Let the API server be away, whether it ends in good order or not."""
        sandbox = self.live.sandbox
        sandbox.stop(API_SERVER, grace_s=self.dice.choice([0.0, GRACE_S]))
        try:
            with contextlib.suppress(OSError, http.client.HTTPException):
                assert sandbox.request("GET", "/readyz")[0] != 200, "the API server was stopped, and answers"
            yield
        finally:
            sandbox.start(API_SERVER)


@dataclass(kw_only=True)
class Experiment:
    """One run: what befell a database, and what was wrong then."""

    live: LiveResource
    daemon: Daemon
    dice: random.Random
    acked: Acked
    wrong: list[str] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    gaps_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def drawn(self, faults: dict[Fault, int], count: int) -> Iterator[tuple[int, Fault, str]]:
        """Yield so many faults, each with its number and name; how long it took and kept clients from writing is noted and printed as soon as the next one is asked for."""
        for number, fault in enumerate(self.dice.choices(list(faults), faults.values(), k=count), 1):
            began_s, name = time.monotonic(), fault.__name__.replace("_", " ")
            yield number, fault, name
            gap_s = self.acked.longest_gap_s(began_s)
            self.gaps_s[name].append(gap_s)
            spent_s = time.monotonic() - began_s
            print(f"{number} of {count}: {name}: {spent_s:.1f} s, of which {gap_s:.2f} s without writes", flush=True)

    def run(self, faults: dict[Fault, int], count: int) -> None:
        """Let so many faults happen; one that doesn't end as specified is the last, whatever it ended with."""
        for number, fault, name in self.drawn(faults, count):
            try:
                self.befall(fault, f"{number}, {name}")
            except Exception as error:  # noqa: BLE001 - none may end a run without its verdict
                self.fault(f"{number}, {name}: {type(error).__name__}: {error}; {self.live.unrest()}")
                return

    def befall(self, fault: Fault, what: str) -> None:
        """Let a fault happen, wait until all is as specified, and look for what is wrong then.

        Raises:
            Exception: it didn't take hold, or doesn't end as specified.
        """
        raise NotImplementedError

    def fault(self, text: str) -> None:
        """Note that something is wrong."""
        self.wrong.append(text)
        print(f"WRONG {text}", flush=True)

    def miss(self, numbers: set[int]) -> None:
        """Note that writes are lost which were acknowledged."""
        if found := numbers - self.lost:
            self.lost |= found
            print(f"LOST {sorted(found)[:10]} and so on, {len(found)} in all", flush=True)

    def look_for_tracebacks(self, what: str) -> None:
        if b"Traceback" in self.daemon.log.read_bytes():
            self.fault(f"{what}: the daemon printed a traceback")

    def sum_up(self, seed: int, spent_s: float, besides: str = "") -> None:
        """Print what it all came to; *besides* is what else was counted."""
        for name, gaps in sorted(self.gaps_s.items()):
            print(f"  {len(gaps):3} {name:45} without writes {told(gaps)}")
        gaps = [gap for each in self.gaps_s.values() for gap in each] or [0.0]
        print(
            f"{sum(map(len, self.gaps_s.values()))} faults, {len(self.acked.all())} acknowledged writes: {len(self.lost)} lost, {besides}{len(self.wrong)} wrong states;"
            f" without writes {told(gaps)} (seed {seed}, {spent_s:.0f} s)"
        )


def told(gaps: list[float]) -> str:
    """Return what gaps came to, for people."""
    return f"{statistics.median(gaps):6.2f} s (p50) {max(gaps):6.2f} s (max)"


# --- setting it up --------------------------------------------------------------------------------


@contextlib.contextmanager
def looked_after(
    kind: type[_Live], name: str, folder: Path, make: Callable[[_Live], None], called: str = "db"
) -> Iterator[tuple[_Live, Daemon]]:
    """Yield a resource of a *kind*, *called* so, that is being made in a sandbox of its own, which has this *name*, and the daemon that looks after it."""
    sandbox = Sandbox(name, root=folder / "sandbox")
    try:
        sandbox.up(binaries=build(print))
        live = kind(sandbox, NAMESPACE, called)
        label = {"sandbox.reconcile.dev/pods": "processes"}
        live.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": label}})
        until(lambda: live.ask("GET", live.path("serviceaccounts", "default")), "the namespace is ready")
        install_crds(Kubectl(str(sandbox.kubeconfig), sandbox.programs))
        daemon = Daemon(str(sandbox.kubeconfig), NAMESPACE, folder)
        daemon.start()
        try:
            make(live)
            yield live, daemon
        finally:
            daemon.kill()
    finally:
        sandbox.down()


def options(about: str | None, faults: dict[Fault, int], count: int) -> argparse.Namespace:
    """Return what the command line asks for, *count* faults where it doesn't say; of *faults* those stay that are to happen."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", type=int, nargs="?", default=count)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="this fault alone, by its name in what is printed")
    parser.add_argument("--log", type=Path, help="where to keep what the daemon said")
    found = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # nothing is left behind
    if found.only:
        wanted = next(each for each in faults if each.__name__ == found.only.replace(" ", "_"))
        for each in [each for each in faults if each is not wanted]:
            del faults[each]
    return found
