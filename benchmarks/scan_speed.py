"""How fast a namespace of 10,000 pods is scanned for a Checkup. Needs no cluster: `python -m benchmarks.scan_speed`.

Nothing owns the pods, and each has seven findings: the most that a scan has to do. From live objects as bytes to the status with its
result. Prints one line per figure with its budget, and exits 1 if one is exceeded.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.scan.memory import ScanMemory
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.core.scan.rules import ScanRules
from kubectl_reconcile.modules.checkup.record import by_fingerprint, recorded

PODS = 10_000
RULES = ScanRules(Profile.RESTRICTED)
NOW = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Live:
    """An object as a watch keeps it: its bytes, which are parsed when somebody reads it."""

    ref: ObjectRef
    version: str
    text: bytes

    def manifest(self) -> Manifest:
        """Return what the bytes say."""
        found: Manifest = orjson.loads(self.text)
        return found


def a_pod(number: int, *, own: str) -> Live:
    """Return a pod; *own* is what its container's name, image and variables have that no other's do."""
    container = {
        "name": f"app{own}",
        "image": f"registry.example.com/app:1{own}",
        "args": [str(number)],
        "env": [{"name": f"REGION{own}", "value": "x"}],
        "volumeMounts": [{"name": f"token-{number}", "mountPath": "/token"}],
    }
    spec = {
        "nodeName": f"node-{number % 50}",
        "containers": [container],
        "volumes": [{"name": f"token-{number}", "projected": {"sources": []}}],
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"web-{number}", "namespace": "shop", "labels": {"app": f"app{own}"}},
        "spec": spec,
    }
    return Live(ObjectRef.of(body), f"u/{number}", orjson.dumps(body))


def scanned(memory: ScanMemory, pods: list[Live]) -> None:
    """Scan the pods, and write the result as a status has it."""
    found = by_fingerprint(memory.findings_among("shop", pods, RULES))
    if len(found) < PODS:
        raise SystemExit(f"only {len(found)} findings")
    recorded({}, "basis", found, now=NOW, keep=5)


def best_s(run: Callable[[], object], rounds: int = 3) -> float:
    """Return the seconds that the fastest of some rounds took."""
    taken = []
    for _ in range(rounds):
        began_s = time.perf_counter()
        run()
        taken.append(time.perf_counter() - began_s)
    return min(taken)


def main() -> int:
    """Print the figures, and return 1 if one is over its budget."""
    alike = [a_pod(number, own="") for number in range(PODS)]
    differing = [a_pod(number, own=f"-{number}") for number in range(PODS)]
    known = ScanMemory()
    scanned(known, differing)
    figures = (
        ("pods that are alike", best_s(lambda: scanned(ScanMemory(), alike)), 1.0),
        ("pods that all differ", best_s(lambda: scanned(ScanMemory(), differing)), 1.0),
        ("the same once more", best_s(lambda: scanned(known, differing)), 0.5),
    )
    for what, taken_s, budget_s in figures:
        print(f"{what}: {taken_s:.2f} s (budget {budget_s} s)")
    return any(taken_s > budget_s for _, taken_s, budget_s in figures)


if __name__ == "__main__":
    sys.exit(main())
