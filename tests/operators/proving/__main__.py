"""Run all real tests of the operators, and write down what they passed with: ``python -m tests.operators.proving [etcd …]``.

An operator is proven where all of its tests passed: none failed, and none was skipped, since a machine without PostgreSQL proves
nothing of PostgreSQL. Whatever it is made of must be committed, and stay as it is while its tests run. Exits 1 where one wasn't proven.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.closure import TREE, Tree, files_of
from tests.operators.proving.parts import OPERATORS, REAL, operator_of, parts_of
from tests.operators.proving.record import PROVEN, Proof, in_short, read, write

REPORT = TREE / "build/proving.xml"


def main(words: Sequence[str] | None = None) -> int:
    """Prove the operators that *words* name, all of them where there are none."""
    parser = argparse.ArgumentParser(prog="make prove", description=__doc__)
    parser.add_argument("operators", nargs="*", choices=[[], *OPERATORS], metavar="OPERATOR", help=", ".join(OPERATORS))
    parser.add_argument("--pytest", default="", help="options of pytest, as in --pytest='--numprocesses=4'")
    options = parser.parse_args(words)
    names = options.operators or list(OPERATORS)
    before = {name: parts_of(OPERATORS[name], tree) for tree in [Tree.at()] for name in names}
    if dirty := uncommitted(part for parts in before.values() for part in parts):
        print(
            f"not committed: {in_short(dirty)} (hint: a proof is one of a commit; commit or stash them)",
            file=sys.stderr,
        )
        return 1
    commit = _git("rev-parse", "HEAD").strip()
    started = time.monotonic()
    ended = _tested(names, shlex.split(options.pytest))
    minutes = round((time.monotonic() - started) / 60, 1)
    after = {name: parts_of(OPERATORS[name], tree) for tree in [Tree.at()] for name in names}
    if ended not in {0, 1}:
        print(f"pytest didn't come to its end (status {ended}): nothing is proven", file=sys.stderr)
        return 1
    proofs, faults = read(), []
    report = ET.parse(REPORT).getroot()  # noqa: S314 - pytest wrote it just now
    for name, tests in results(report, names).items():
        if fault := why_not(tests, before[name], after[name]):
            faults.append(f"{name} isn't proven: {fault}")
            continue
        when = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%MZ")
        of_tests = sum(seconds for _, _, seconds in tests) / 60
        result = f"{len(tests)} passed, {of_tests:.0f} minutes of tests"
        proofs[name] = Proof(commit=commit, when=when, minutes=minutes, result=result, parts=before[name])
        print(f"{name} is proven at {commit[:7]}: {result}")
    write(proofs)
    print(
        "\n".join(faults) or f"{PROVEN.relative_to(TREE)} is written: commit it",
        file=sys.stderr if faults else sys.stdout,
    )
    return 1 if faults or ended else 0


def _tested(names: Iterable[str], arguments: Iterable[str]) -> int:
    """Run the real tests of these operators; pytest's exit status."""
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.unlink(missing_ok=True)
    files = [file for file in files_of(TREE, REAL) if operator_of(file) in names]
    command = [sys.executable, "-m", "pytest", *arguments, f"--junitxml={REPORT}", *files]
    return subprocess.run(command, cwd=TREE, env=os.environ, check=False).returncode


def results(report: ET.Element, names: Iterable[str]) -> dict[str, list[tuple[str, str, float]]]:
    """By operator, its tests in a JUnit *report*: name, what is wrong with it (nothing where it passed), seconds."""
    found: dict[str, list[tuple[str, str, float]]] = {name: [] for name in names}
    for case in report.iter("testcase"):
        name = operator_of(_FILE.sub(lambda found: f"{found[1].replace('.', '/')}.py", case.get("classname", "")))
        if name in found:
            wrong = next((f"{each.tag}: {each.get('message', '')}" for each in case if each.tag in _WRONG), "")
            found[name].append((case.get("name", ""), wrong, float(case.get("time", "0"))))
    return found


_FILE = re.compile(r"^([\w.]*?\.test_\w+).*")
"""The file of a test in a report, which may go on with a class or a group."""
_WRONG = ("failure", "error", "skipped")


def why_not(tests: Sequence[tuple[str, str, float]], before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Why *tests* prove nothing of an operator with the parts *before* them; nothing where they do."""
    if not tests:
        return "none of its tests ran"
    if changed := sorted(part for part in before.keys() | after.keys() if before.get(part) != after.get(part)):
        return f"changed while its tests ran: {in_short(changed)}"
    wrong = Counter(wrong for _, wrong, _ in tests if wrong)
    return "; ".join(f"{number} {what}" for what, number in wrong.most_common())


def uncommitted(parts: Iterable[str]) -> list[str]:
    """Those of *parts* that aren't as the last commit has them."""
    files = {part.partition(" ")[0] for part in parts}
    changed = _git("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all").split("\0")
    return sorted(files & {line[3:] for line in changed if line})


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=TREE, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
