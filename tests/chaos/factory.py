"""Make things go wrong in a chocolate factory, and look for bars that are lost: ``python -m tests.chaos.factory 500``.

A daemon looks after Candies, whose machines stand in ``examples/candy_factory.py``. A third of them may dispose of bars by
an annotation in Git, a third bar by bar when somebody approves, a third never. While people change what they
want, faults come in random order:

- the factory refuses a request, does it and answers an error all the same, does it and never answers, or neither
  does nor answers; it is killed and comes back at once or after a while;
- the daemon is killed (SIGKILL) at any moment, or right after a journal said *started*: before the machine heard of it,
  or before the journal heard of the machine.

No bar may ever be disposed of twice, none without approval. In the end, when all is mended, each Candy that may have the
right bar has it, the others have kept theirs, and each status says what the machine says.

Prints a line for each violation and the seed that repeats the run; exits 1 if there was one. With ``--kubeconfig``
and ``--namespace`` it uses a cluster that has our CRDs, else a sandbox of its own.
"""

# ruff: noqa: T201, S311 - a program that prints; what is random here needs no secrecy

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubectl_reconcile.core.annotations import APPROVE_ACTIONS, APPROVED_ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress
from kubectl_reconcile.core.objects import condition_of
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.sandbox.processes import free_ports
from tests.chaos.daemon import Daemon, until

ROOT = Path(__file__).parents[2]
FACTORY = ROOT / "examples" / "candy_factory.py"
FLAVORS = {"milk": 1, "dark": 3, "white": 0, "hazelnut": 2}
COUNT = 18

# How much of each fault there is, in parts.
FAULTS = {
    "refuse": 16,
    "lose": 16,
    "slow": 8,
    "stall": 8,
    "factory restarted": 10,
    "factory down": 6,
    "daemon killed": 12,
    "daemon killed before the machine heard": 12,
    "daemon killed after the journal said started": 12,
}
ANSWERS = ("refuse", "lose", "slow", "stall")


def ask(address: str, method: str, path: str, body: Any = None, type_: str = "application/json") -> Any:
    """Return what a server answers over HTTP."""
    connection = http.client.HTTPConnection(address, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": type_})
        answer = connection.getresponse()
        content = answer.read()
    if answer.status >= 400:
        raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
    return json.loads(content)


# --- the processes ------------------------------------------------------------------------------------


@dataclass
class Factory:
    """The machines, as a process that can be killed. What they did outlives it."""

    state: Path
    process: subprocess.Popen[str] | None = None
    address: str = ""

    def start(self) -> None:
        port = self.address.rpartition(":")[2] or next(free_ports())  # none that may be somebody's while it is away
        command = [sys.executable, str(FACTORY), "--listen", f"127.0.0.1:{port}", "--state", str(self.state)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().removeprefix("http://")

    def stop(self) -> None:
        """Kill it; faults that nobody met yet are lost with it."""
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait(300)
        self.process.stdout.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return ask(self.address, method, path, body)

    def pending(self) -> list[str]:
        """Faults that no request has met yet."""
        return list(self.ask("GET", "/faults")["next"])


@dataclass
class Candies:
    """The CRs, looked at past the program under test: through ``kubectl proxy``."""

    address: str
    namespace: str

    def path(self, name: str = "") -> str:
        return f"/apis/awesome.corp.com/v1/namespaces/{self.namespace}/candies" + (f"/{name}" if name else "")

    def all(self) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in ask(self.address, "GET", self.path())["items"]}

    def make(self, name: str, annotations: Mapping[str, str], spec: Mapping[str, Any]) -> None:
        metadata = {"name": name, "annotations": dict(annotations)}
        body = {"apiVersion": "awesome.corp.com/v1", "kind": "Candy", "metadata": metadata, "spec": dict(spec)}
        ask(self.address, "POST", self.path(), body)

    def edit(self, name: str, patch: Mapping[str, Any]) -> None:
        ask(self.address, "PATCH", self.path(name), patch, "application/merge-patch+json")


# --- a shift in the factory ----------------------------------------------------------------------------


@dataclass
class Shift:
    """One run: who may do what, what went wrong on purpose, and what did that should not have."""

    candies: Candies
    factory: Factory
    daemon: Daemon
    dice: random.Random
    approved: set[tuple[str, str]] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    between: int = 0
    checked: int = 0
    seen: set[tuple[str, str]] = field(default_factory=set)

    def begin(self) -> None:
        """Have a Candy of each sort made for everyone."""
        for number in range(COUNT):
            name = f"{('git', 'hand', 'never')[number % 3]}-{number}"
            self.candies.make(name, {APPROVE_ACTIONS: "dispose"} if name.startswith("git") else {}, self.taste())

    def taste(self) -> dict[str, Any]:
        return {"flavor": self.dice.choice(sorted(FLAVORS)), "sweetness": self.dice.randrange(21)}

    def people(self) -> None:
        """Change what some want, and approve some of what waits for that."""
        live = self.candies.all()
        for name in self.dice.sample(sorted(live), 2):
            self.candies.edit(name, {"spec": self.taste()})
        self.approve({name: cr for name, cr in live.items() if self.dice.random() < 0.5})

    def approve(self, live: Mapping[str, dict[str, Any]]) -> None:
        for name, cr in live.items():
            bar = (cr.get("status") or {}).get("bar")
            if name.startswith("hand") and bar and _is(cr, "Ready", "False"):
                self.approved.add((name, f"dispose-{bar}"))
                self.candies.edit(name, {"metadata": {"annotations": {APPROVED_ACTIONS: f"dispose-{bar}"}}})

    def fault(self) -> None:
        """Let something go wrong."""
        (kind,) = self.dice.choices(list(FAULTS), FAULTS.values())
        self.faults[kind] += 1
        if kind in ANSWERS:
            self.factory.ask("PUT", "/faults", {"next": [*self.factory.pending(), kind]})
        elif kind.startswith("factory"):
            self.faults.subtract(self.factory.pending())  # nobody met them
            self.factory.stop()
            if kind == "factory down":
                time.sleep(self.dice.uniform(0.1, 2.0))
            self.factory.start()
        elif kind == "daemon killed":
            time.sleep(self.dice.expovariate(1 / 0.2))
            self.daemon.kill()
            self.daemon.start()
        else:
            self.kill_in_between(deaf="before" in kind)

    def kill_in_between(self, *, deaf: bool) -> None:
        """Kill the daemon as soon as a journal says *started*; a *deaf* factory doesn't act on that meanwhile."""
        if deaf:
            self.factory.ask("PUT", "/faults", {"next": ["stall"]})
        known = {(name, *begun) for name, cr in self.candies.all().items() for begun in _begun(cr)}
        for name in self.dice.sample([name for name in self.candies.all() if name.startswith("git")], 2):
            self.candies.edit(name, {"spec": self.taste()})

        def news() -> set[tuple[str, str, int]]:
            live = self.candies.all()
            return {(name, *begun) for name, cr in live.items() for begun in _begun(cr)} - known

        with contextlib.suppress(TimeoutError):
            until(news, "a journal says started", timeout_s=5.0, pause_s=0.0)
        self.daemon.kill()
        done = {(line["machine"].partition(".")[2], _key_of(line)) for line in self.factory.ask("GET", "/log")}
        self.between += any((name, key) not in done for name, key, _ in news())
        self.daemon.start()

    def look(self) -> None:
        """Look for what must never be."""
        log = self.factory.ask("GET", "/log")
        for line in log[self.checked :]:
            name, bar = line["machine"].partition(".")[2], line["what"]
            if line["did"] != "dispose" or line["machine"].partition(".")[0] != self.candies.namespace:
                continue
            if (name, bar) in self.seen:
                self.violation(f"{bar} of {name} was disposed of twice")
            if not (name.startswith("git") or (name, f"dispose-{bar}") in self.approved):
                self.violation(f"{bar} of {name} was disposed of without approval")
            self.seen.add((name, bar))
        self.checked = len(log)

    def violation(self, text: str) -> None:
        self.violations.append(text)
        print(f"VIOLATION {text}", flush=True)

    def finish(self) -> None:
        """Mend all, wait until everyone rests, and compare each status with its machine."""
        self.faults.subtract(self.factory.pending())
        self.factory.ask("PUT", "/faults", {})
        self.daemon.kill()
        self.daemon.start()

        def restless() -> list[str]:
            live = self.candies.all()
            self.approve(live)
            return [f"{name}: {why}" for name, cr in live.items() if (why := self.unrest(name, cr))]

        try:
            until(lambda: not restless(), "all rest")
        except TimeoutError:
            for text in restless():
                self.violation(text)
        self.look()

    def unrest(self, name: str, cr: Mapping[str, Any]) -> str:
        """Return what isn't as it should be in the end with one Candy: done, or as its machine says."""
        try:
            machine = self.factory.ask("GET", f"/machines/{self.candies.namespace}.{name}")
        except RuntimeError as error:  # it was made in the last moment, and nobody has asked for its machine yet
            return str(error)
        bar, status, spec = machine["bar"], cr.get("status") or {}, cr["spec"]
        right = bool(bar) and (bar["flavor"], bar["sweetness"]) == (spec["flavor"], spec["sweetness"])
        if _is(cr, "Ready", "True") is not right or not _is(cr, "MachineReachable", "True"):
            return f"its conditions don't say what its machine says: {machine} {status}"
        told = (status.get("bar"), status.get("actualSweetness"), status.get("disposed"))
        if told != ((bar or {}).get("id"), (bar or {}).get("sweetness"), len(machine["bin"])):
            return f"its status doesn't say what its machine says: {machine} {status}"
        if name.startswith("never"):
            return "" if bar else "it has no bar"
        return "" if right or not _is_possible(spec) else f"it hasn't got the right bar: {machine} {spec}"


def _is(cr: Mapping[str, Any], type_: str, status: str) -> bool:
    return (condition_of(cr, type_) or {}).get("status") == status


def _is_possible(spec: Mapping[str, Any]) -> bool:
    return spec["sweetness"] + FLAVORS[spec["flavor"]] <= 30


def _begun(cr: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the actions that were begun and have no end yet: key, attempts."""
    for entry in ActionJournal.of(cr).entries:
        if entry.progress is ActionProgress.STARTED:
            yield entry.key, entry.attempts


def _key_of(line: Mapping[str, Any]) -> str:
    """Return the key of the action that a line of the factory's log is about."""
    return str(line["key"]).partition("/")[2]


# --- running it ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def proxied(kubectl: str, kubeconfig: str) -> Iterator[str]:
    """Yield the address of a proxy to the API server."""
    command = [kubectl, f"--kubeconfig={kubeconfig}", "proxy", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"[\d.]+:\d+", process.stdout.readline())
            assert found, "kubectl proxy says where it listens"
            yield found[0]
        finally:
            process.terminate()


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield kubectl and the kubeconfig of a control plane with our CRDs."""
    sandbox = Sandbox("factory", root=folder / "sandbox")
    try:
        sandbox.up(Options(components=("etcd", "kube-apiserver")))
        kubectl, kubeconfig = str(sandbox.programs / "kubectl"), str(sandbox.kubeconfig)
        for words in (("apply", "--server-side"), ("wait", "--for=condition=Established", "--timeout=300s")):
            command = [kubectl, f"--kubeconfig={kubeconfig}", *words, "-f", str(ROOT / "crds")]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield kubectl, kubeconfig
    finally:
        sandbox.down()


def work(shift: Shift, faults: int) -> None:
    """Have so many things go wrong."""
    shift.begin()
    while (number := shift.faults.total()) < faults:
        shift.people()
        shift.fault()
        shift.look()
        time.sleep(shift.dice.expovariate(1 / 0.15))
        if number % 25 == 0:
            print(f"{number} of {faults} faults: {len(shift.violations)} violations", flush=True)
    shift.finish()


def main() -> int:
    """Run it all; tell how often something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--namespace", default="default")
    options = parser.parse_args()
    began_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kubectl, kubeconfig = shutil.which("kubectl") or "kubectl", options.kubeconfig
        if not kubeconfig:
            kubectl, kubeconfig = stack.enter_context(cluster(folder))
        candies = Candies(stack.enter_context(proxied(kubectl, kubeconfig)), options.namespace)
        factory = Factory(folder / "factory.json")
        factory.start()
        stack.callback(factory.stop)
        system = {"KUBECTL_RECONCILE_SYSTEM_CANDY_FACTORY": f"http://{factory.address}"}
        daemon = Daemon(kubeconfig, options.namespace, folder, system)
        daemon.start()
        stack.callback(daemon.kill)
        shift = Shift(candies, factory, daemon, random.Random(options.seed))
        work(shift, options.faults)
        made = sum(line["did"] == "make" for line in factory.ask("GET", "/log"))
    print(f"faults: {', '.join(f'{count} {kind}' for kind, count in sorted(shift.faults.items()))}")
    print(
        f"{shift.faults.total()} faults, {COUNT} Candies, {made} bars made, {len(shift.seen)} disposed of; {shift.between} "
        f"times the daemon died between journal and machine: {len(shift.violations)} violations "
        f"(seed {options.seed}, {time.monotonic() - began_s:.0f} s)"
    )
    return 1 if shift.violations else 0


if __name__ == "__main__":
    sys.exit(main())
