"""Translate what public repositories of Argo CD's and Flux's users apply: ``python -m tests.realworld.imports FOLDER [NAME ...]``.

FOLDER holds checkouts, each under the name of its repository. Objects are read from the files as ``import -f`` does, with a GitRepository that isn't
among them taken for the repository itself. Each Sync is shown to an API server of its own, as a dry run, but for those of files that are
templates, which still have words in them that somebody else replaces.

Prints a row per repository and tool, and why units aren't possible. Exits 1 where less than 95 % of the units for the same cluster are
translated, or the API server refuses a Sync.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kubectl_reconcile.core.importing.tools import STOPPING, Gathered, Tally, Tool, by_text, imported
from kubectl_reconcile.core.importing.units import Imported
from kubectl_reconcile.engine.commands.importing import from_files
from kubectl_reconcile.sandbox.controlplane import Sandbox

CRD = Path(__file__).parents[2] / "crds" / "syncs.reconcile.dev.yaml"
LEAST_PERCENT = 95.0
_REPLACED_LATER = re.compile(r"\$\{|<[A-Z_]+>|\{\{")
_AT_ONCE = 100


def main() -> None:
    """Translate the repositories that are named, or all."""
    folder, *names = sys.argv[1:]
    places = [Path(folder, name) for name in names] or sorted(each for each in Path(folder).iterdir() if each.is_dir())
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="import-conformance-") as root:
        sandbox = Sandbox("imports", root=Path(root))
        try:
            sandbox.up()
            _kubectl(sandbox, "apply", "--server-side", "-f", str(CRD))
            _kubectl(sandbox, "wait", "--for=condition=Established", "crd/syncs.reconcile.dev", "--timeout=60s")
            print(
                f"{'repository':<40} {'tool':<7} {'units':>6} {'here':>6} {'translated':>11} {'%':>6} {'taken':>6} {'templates':>10}"
            )
            for place in places:
                faults += _judged(place, sandbox)
        finally:
            sandbox.down()
    sys.exit("\n".join(faults) or 0)


def _judged(place: Path, sandbox: Sandbox) -> Iterator[str]:
    """Print what a repository comes to; yield what is wrong about it."""
    gathered = Gathered()
    from_files(place, gathered)
    for tool in Tool:
        found = imported(tool, gathered, url=f"https://git.example.com/{place.name}")
        tally = Tally.of([found])
        if not tally.here:
            continue
        finished = [each for each in found.syncs if not _REPLACED_LATER.search(json.dumps(each))]
        refused = [*_refused(finished, sandbox)]
        taken, templates = len(finished) - len(refused), len(found.syncs) - len(finished)
        print(
            f"{place.name:<40} {tool:<7} {tally.units:>6} {tally.here:>6} {tally.translated:>11} {tally.percent:>6.1f} {taken:>6} {templates:>10}",
            flush=True,
        )
        _print_reasons(found)
        if tally.percent < LEAST_PERCENT:
            yield f"{place.name}: {tally.percent:.1f} % of the units of {tool} are translated"
        yield from (f"{place.name}: {each}" for each in refused)


def _print_reasons(found: Imported) -> None:
    for (field, text), units in by_text(found.here, *STOPPING).items():
        print(f"    {len(units)} not possible: {field}: {text}")


def _refused(syncs: Sequence[Any], sandbox: Sandbox) -> Iterator[str]:
    """Yield what the API server says against Syncs; all are tried in one namespace, under names of their own."""
    for begin in range(0, len(syncs), _AT_ONCE):
        some = [
            {**each, "metadata": {**each["metadata"], "namespace": "default", "name": f"sync-{begin + number}"}}
            for number, each in enumerate(syncs[begin : begin + _AT_ONCE])
        ]
        said = _kubectl(
            sandbox, "create", "--dry-run=server", "-f", "-", stdin="\n".join(map(json.dumps, some)), may_fail=True
        )
        yield from (line for line in said.splitlines() if line.strip())


def _kubectl(sandbox: Sandbox, *arguments: str, stdin: str = "", may_fail: bool = False) -> str:
    """Return what kubectl complains about."""
    command = [str(sandbox.programs / "kubectl"), "--kubeconfig", str(sandbox.kubeconfig), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode and not may_fail:
        raise SystemExit(done.stderr)
    return done.stderr


if __name__ == "__main__":
    main()
