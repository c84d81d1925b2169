"""Run all real tests of the operators, and write down what they passed with: ``python -m tests.operators.proving [etcd …]``.

An operator is proven where all of its tests passed: none failed, and none was skipped, since a machine without PostgreSQL proves
nothing of PostgreSQL. Only those that need what few machines have, other versions, may be skipped, and the proof says so. Whatever it is made of must be committed, and stay as it is while its tests run. Exits 1 where one wasn't proven.
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
from dataclasses import dataclass

from tests.closure import TREE, Tree, files_of
from tests.operators.proving.parts import OPERATORS, REAL, is_optional, operator_of, parts_of
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
        result = in_words(tests)
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


@dataclass(frozen=True)
class Ran:
    """A test as a report has it: *wrong* is what is wrong with it, *skipped* why an optional one was skipped; nothing where it passed."""

    name: str
    seconds: float
    wrong: str = ""
    skipped: str = ""


def results(report: ET.Element, names: Iterable[str]) -> dict[str, list[Ran]]:
    """By operator, its tests in a JUnit *report*."""
    found: dict[str, list[Ran]] = {name: [] for name in names}
    for case in report.iter("testcase"):
        file = _FILE.sub(lambda found: f"{found[1].replace('.', '/')}.py", case.get("classname", ""))
        name = operator_of(file)
        if name in found:
            told = next((each for each in case if each.tag in _WRONG), None)
            why = "" if told is None else f"{told.tag}: {told.get('message', '')}"
            skipped = why if told is not None and told.tag == "skipped" and is_optional(file) else ""
            ran = Ran(case.get("name", ""), float(case.get("time", "0")), "" if skipped else why, skipped)
            found[name].append(ran)
    return found


def in_words(tests: Sequence[Ran]) -> str:
    """How many tests passed, how long they took, and why optional ones were skipped."""
    skipped = Counter(each.skipped for each in tests if each.skipped)
    minutes = sum(each.seconds for each in tests) / 60
    told = [f"{len(tests) - skipped.total()} passed, {minutes:.0f} min of tests"]
    return "; ".join([*told, *(f"{number} {why}" for why, number in skipped.most_common())])


_FILE = re.compile(r"^([\w.]*?\.test_\w+).*")
"""The file of a test in a report, which may go on with a class or a group."""
_WRONG = ("failure", "error", "skipped")


def why_not(tests: Sequence[Ran], before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Why *tests* prove nothing of an operator with the parts *before* them; nothing where they do."""
    if all(each.skipped for each in tests):
        return "none of its tests ran"
    if changed := sorted(part for part in before.keys() | after.keys() if before.get(part) != after.get(part)):
        return f"changed while its tests ran: {in_short(changed)}"
    wrong = Counter(each.wrong for each in tests if each.wrong)
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
