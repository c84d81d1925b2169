"""Run the tests that a change concerns, for two minutes: ``python -m tests.changed [--base main]``.

The change is what differs from where this branch left the base, committed or not. First come pure tests whose import closure holds a
changed file, the nearest first; then, where the control plane is built, the nearest of those that need one. What isn't reached is counted,
with the command that runs it. Exits as pytest does.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.sandbox.build import PROGRAM, _build_flags
from tests.changed.choice import LONG, by_folder, concerned, in_order, is_pure
from tests.changed.until import SECONDS
from tests.closure import TREE, Tree

BUILD = TREE / "build"
ORDER, LEFT, FILES = BUILD / "changed-order.json", BUILD / "changed-left.json", BUILD / "changed-left"
WORTHWHILE_S = 30
"""Time below which it isn't worth it to start a control plane."""
MOST_OTHERS = 20
"""How many files that need a control plane are collected: two minutes hold no more of them."""
NOTHING_RAN = 5


def main(words: Sequence[str] | None = None) -> int:
    """Run what is concerned, and say what is left."""
    parser = argparse.ArgumentParser(prog="make test-changed", description=__doc__)
    parser.add_argument("--base", default="main", help="what to compare with (%(default)s)")
    parser.add_argument("--seconds", type=float, default=120, help="how long (%(default)s)")
    parser.add_argument("--workers", default="logical", help="processes, one for each core by default")
    options = parser.parse_args(words)
    changed = changes(options.base)
    tree = Tree.at()
    files = concerned(tree, changed)
    if not files:
        print(f"{len(changed)} files differ from {options.base}, and no test uses one of them")
        return 0
    left = {file: tree.tests_in(file) for file in files}
    order = in_order(files, _known_seconds())
    pure, others = [file for file in order if is_pure(file)], [file for file in order if not is_pure(file)]
    print(
        f"{_named(changed)} differ from {options.base}: {len(pure)} files of pure tests use them, {len(others)} others",
        flush=True,
    )
    status, took_s = _run(pure, options.seconds, options.workers, left) if pure else (0, 0.0)
    near = [file for file in others if not file.startswith(LONG)][:MOST_OTHERS]
    if not status and near and options.seconds - took_s > WORTHWHILE_S and _is_built():
        status, _ = _run(near, options.seconds - took_s, options.workers, left)
    _tell(left, options.workers)
    return status


def changes(base: str) -> list[str]:
    """The files that differ from where this branch left *base*, and those that git doesn't know yet."""
    origin = _git("merge-base", base, "HEAD").strip()
    known = _git("diff", "--name-only", "--no-renames", "-z", origin)
    unknown = _git("ls-files", "--others", "--exclude-standard", "-z")
    return sorted({*known.split("\0"), *unknown.split("\0")} - {""})


def _run(files: Sequence[str], longest_s: float, workers: str, left: dict[str, int]) -> tuple[int, float]:
    """Run *files* in this order, take out of *left* what was reached; pytest's exit status, and the seconds that were spent in tests."""
    BUILD.mkdir(exist_ok=True)
    ORDER.write_text(json.dumps({"files": files, "seconds": longest_s}))
    LEFT.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "tests.changed.until", f"--order={ORDER}", f"--left={LEFT}"]
    command += ["--quiet", f"--numprocesses={workers}", "--dist=load", "--maxschedchunk=16", *files]
    status = subprocess.run(command, cwd=TREE, check=False).returncode
    if not LEFT.exists():
        return status, longest_s
    for file in files:
        del left[file]
    noted = json.loads(LEFT.read_text())
    left |= noted["files"]
    return 0 if status == NOTHING_RAN else status, noted["took_s"]


def _tell(left: Mapping[str, int], workers: str) -> None:
    if not left:
        print("none of the tests that use what changed is left")
        return
    FILES.write_text("".join(f"{file}\n" for file in sorted(left)))
    print(
        f"left {'no pure tests, ' if not any(map(is_pure, left)) else ''}{sum(left.values())} or more in {len(left)} files: {by_folder(left)}"
    )
    print(
        f"they run by {Path(sys.executable).relative_to(TREE).with_name('pytest')} --numprocesses={workers} @{FILES.relative_to(TREE)}"
    )


def _named(changed: Sequence[str]) -> str:
    return ", ".join(changed) if len(changed) <= 3 else f"{', '.join(changed[:2])} and {len(changed) - 2} more files"


def _known_seconds() -> dict[str, float]:
    kept = TREE / ".pytest_cache/v" / SECONDS
    return json.loads(kept.read_text()) if kept.exists() else {}


def _is_built() -> bool:
    """Whether tests that need the control plane can begin at once."""
    folder = cache_dir() / "sandbox" / f"build-{PROGRAM.digest(_build_flags())}"
    return "KUBEBUILDER_ASSETS" in os.environ or folder.is_dir()


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=TREE, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
