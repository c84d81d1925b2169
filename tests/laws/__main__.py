"""`make law-deletions N=…`: N worlds are deleted in; exit 1 if anything is gone that wasn't named, or named and still there."""

# ruff: noqa: T201 - a command line prints

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.sandbox.controlplane import Sandbox
from tests.kubectl import Kubectl, install_crds
from tests.laws.deletions import many

AT_ONCE = 4


async def ask(kubeconfig: str, folder: Path, seed: str, number: int) -> list[str]:
    """Return what is wrong with *number* worlds on a cluster."""
    prefix = f"law-{random.SystemRandom().randrange(16**6):06x}"
    async with Session.open(Access(kubeconfig=kubeconfig, namespace="default"), folder / "cache") as session:
        return await many(session, folder, prefix, seed, number, AT_ONCE)


def main(arguments: Sequence[str]) -> int:
    """Ask, print what is wrong, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=__doc__)
    parser.add_argument("number", nargs="?", type=int, default=500, help="how many worlds (500)")
    parser.add_argument("--seed", default="", help="repeats a run")
    parser.add_argument(
        "--kubeconfig", default="", help="a disposable cluster with controllers; default: a new sandbox"
    )
    options = parser.parse_args(arguments)
    seed = options.seed or f"{random.SystemRandom().randrange(16**8):08x}"
    print(f"seed {seed}")
    sandbox = None if options.kubeconfig else Sandbox(f"law-{random.SystemRandom().randrange(16**6):06x}")
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        try:
            if sandbox is not None:
                sandbox.up()
                install_crds(Kubectl(str(sandbox.kubeconfig), sandbox.programs))
            kubeconfig = options.kubeconfig or str(sandbox.kubeconfig if sandbox else "")
            faults = asyncio.run(ask(kubeconfig, Path(root), seed, options.number))
        finally:
            if sandbox is not None:
                sandbox.down()
    for fault in faults:
        print(fault)
    print(f"{len(faults)} of {options.number} differ, {time.monotonic() - started_s:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
