"""Change core in N places, one at a time, and count the changes that tests/core notices: ``python -m tests.mutants 400``.

Vocabulary: a *mutant* is the program with one small change (``<`` for ``<=``, ``None`` for an argument, another text); it is
*killed* when a test fails, and *survives* when all pass. A survivor is a rule that no test states, or a change that changes
nothing that anybody could see: those are in `equivalent.EQUIVALENT`, each with its reason.

mutmut makes the mutants and runs them; this program copies the tree to a temporary folder (a mutated file never comes near
the work tree), draws the sample, and prints the score. A mutant is judged by the tests that call the changed function, the
fastest first, up to the first that fails. Hypothesis draws the same examples in each run, so a sample is told by its seed.

Modules are named as they lie in ``kubectl_reconcile/core``: a folder (``ssa``), a module (``ssa/merge``), or a pattern
(``planning/*file``). What mutmut leaves alone: decorated functions (properties among them) and tables of a module.

Exits 1 where fewer than ``--at-least`` percent were killed.
"""

# ruff: noqa: T201, S311 - a program that prints; what is random here needs no secrecy

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name

from tests.mutants.equivalent import reason_of

TREE = Path(__file__).parents[2]
CORE = Path("kubectl_reconcile/core")
DEFAULT = ("ssa", "planning", "resources", "module", "daemon/sharding")
BESIDES = ("kubectl_reconcile_operators", "benchmarks", "crds", "deploy", "examples", "setup.py", "README.md", "docs")
KILLED = {
    1: "a test failed",
    2: "no test could be collected",
    3: "pytest broke",
    -24: "it took too long",
    -9: "it took too long",
}
"""What mutmut notes of a mutant that was noticed: pytest's exit status, or the signal that ended it."""
ALIVE = {0: "survived", 5: "no test calls it", 33: "no test calls it"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one mutant. *change* is the lines taken out and put in."""

    name: str
    module: str
    status: str
    change: str

    @property
    def is_alive(self) -> bool:
        return self.status in ALIVE.values()

    @property
    def reason(self) -> str:
        """Why no test could tell it from the program, or nothing."""
        return reason_of(self.module, self.change)


def files_of(patterns: Iterable[str], tree: Path = TREE) -> list[Path]:
    """Return the modules of core that *patterns* name, relative to *tree*.

    Raises:
        SystemExit: a pattern names none.
    """
    all_files = sorted(path.relative_to(tree) for path in (tree / CORE).rglob("*.py"))
    found: set[Path] = set()
    for pattern in patterns:
        named = [path for path in all_files if _is_named(path.relative_to(CORE).with_suffix("").as_posix(), pattern)]
        if not named:
            raise SystemExit(
                f"{pattern}: no module of {CORE} is named so (hint: ONLY=ssa/merge, ONLY='planning resources')"
            )
        found.update(named)
    return sorted(found)


def _is_named(module: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(module, pattern) or fnmatch.fnmatchcase(module, f"{pattern}/*")


def copy_tree(to: Path) -> None:
    """Copy what git knows of the work tree, and what it would take in, to the folder *to*."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=TREE, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (source := TREE / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to / name)


def configure(tree: Path, files: Sequence[Path], tests: Sequence[str]) -> None:
    """Tell mutmut in *tree* what to change and how to judge it."""
    lists = {
        "source_paths": ["kubectl_reconcile"],
        "only_mutate": [str(path) for path in files],
        "also_copy": [name for name in BESIDES if (tree / name).exists()],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": tests,
    }
    plain = {
        "track_dependencies": "false",
        "use_git_change_detection": "false",
        # Children of one process that has imported all: a mutant takes a second, not the five that the imports take.
        "process_isolation": "fork",
        # A change may make a loop endless; the machine may be busy.
        "timeout_multiplier": "4",
        "timeout_constant": "5",
    }
    lines = [f"{key} =\n" + "".join(f"    {value}\n" for value in values) for key, values in lists.items()]
    lines += [f"{key} = {value}\n" for key, value in plain.items()]
    (tree / "setup.cfg").write_text("[mutmut]\n" + "".join(lines))


def mutants_of(path: Path) -> list[str]:
    """Return the names of all mutants of a file, below the current folder."""
    return [get_mutant_name(path, name) for name in mutate_file_contents(str(path), path.read_text()).mutant_names]


def all_mutants(files: Sequence[Path], workers: int) -> list[str]:
    """Return the names of all mutants of *files*, in one order for all time."""
    with ProcessPoolExecutor(workers) as pool:
        return [name for names in pool.map(mutants_of, files) for name in names]


def run(tree: Path, names: Sequence[str], workers: int) -> None:
    """Have mutmut judge the mutants *names*.

    Raises:
        SystemExit: it could not, most likely since a test fails without any change.
    """
    program = Path(sys.executable).parent / "mutmut"
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "mutants", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    with (tree / "mutmut.log").open("w+b") as log:
        done = subprocess.run(
            [program, "run", f"--max-children={workers}", *names],
            cwd=tree,
            env=environment,
            stdout=log,
            stderr=log,
            check=False,
        )
        if done.returncode:
            log.seek(0)
            raise SystemExit(
                f"{log.read().decode(errors='replace')[-4000:]}\nmutmut failed; do the tests pass unchanged?"
            )


def verdicts(files: Iterable[Path], names: Iterable[str]) -> Iterator[Verdict]:
    """Yield what became of each of *names*, below the current folder."""
    wanted = set(names)
    for path in files:
        data = SourceFileMutationData(path=path)
        data.load()
        module = path.relative_to(CORE).with_suffix("").as_posix()
        for name, code in data.exit_code_by_key.items():
            if name in wanted:
                change = _change(get_diff_for_mutant(name, path=path)) if code in ALIVE else ""
                yield Verdict(name, module, _status(name, code), change)


def _status(name: str, code: int | None) -> str:
    if code in KILLED:
        return KILLED[code]
    if code in ALIVE:
        return ALIVE[code]
    raise SystemExit(f"{name}: mutmut could not judge it (exit status {code})")


def _change(diff: str) -> str:
    """Return the lines that a unified diff takes out and puts in."""
    lines = [line for line in diff.splitlines() if line[:1] in {"-", "+"} and line[:3] not in {"---", "+++"}]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines)


def report(found: Sequence[Verdict]) -> float:
    """Print the score of each module and what survived; return the percentage that was killed."""
    alive = [verdict for verdict in found if verdict.is_alive]
    for verdict in alive:
        about = f"equivalent: {verdict.reason}" if verdict.reason else verdict.status
        print(f"\n{verdict.name.removeprefix('kubectl_reconcile.core.')} ({about})\n{verdict.change}")
    total, left = Counter(each.module for each in found), Counter(each.module for each in alive)
    same = Counter(each.module for each in alive if each.reason)
    print(f"\n{'module':<28}{'mutants':>8}{'killed':>8}{'equivalent':>12}{'score':>9}")
    for module in sorted(total):
        print(_row(module, total[module], left[module], same[module]))
    print(_row("all", len(found), len(alive), same.total()))
    print("of the killed:", json.dumps(Counter(each.status for each in found if not each.is_alive)))
    return 100 * (len(found) - len(alive)) / max(len(found), 1)


def _row(name: str, total: int, alive: int, equivalent: int) -> str:
    return f"{name:<28}{total:>8}{total - alive:>8}{equivalent:>12}{(total - alive) / total:>9.1%}"


def main() -> None:
    """Draw the sample, run it, print the score."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("count", type=int, help="how many mutants; 0 takes all")
    parser.add_argument(
        "--only", default=" ".join(DEFAULT), help="modules of core, spaces between (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="which sample (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="mutants at a time (default: %(default)s)")
    parser.add_argument(
        "--tests", default="tests/core", help="who judges (default: %(default)s); a part of it takes less time"
    )
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="fail below this score")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # the folder and mutmut go with this program
    files, begun = files_of(asked.only.split()), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, chdir(folder):
        copy_tree(tree := Path(folder))
        configure(tree, files, asked.tests.split())
        names = all_mutants(files, asked.workers)
        sample = sorted(random.Random(asked.seed).sample(names, min(asked.count or len(names), len(names))))
        print(f"{len(sample)} of {len(names)} mutants of {len(files)} modules, seed {asked.seed}", flush=True)
        run(tree, sample, asked.workers)
        score = report(list(verdicts(files, sample)))
    print(
        f"{score:.1f} % of {len(sample)} mutants were killed, in {(time.monotonic() - begun) / 60:.1f} minutes (seed {asked.seed})"
    )
    sys.exit(score < asked.at_least)


if __name__ == "__main__":
    main()
