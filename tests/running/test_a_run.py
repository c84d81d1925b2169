"""Runs of a tiny suite, as make runs ours: real workers, real builds by a Makefile of the suite's own."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import durations
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
LONGEST_S = 300
PLUGINS = ("xdist", "tests.running.plugin", "tests.running.ending")

NOTING = """
def note(text):
    with open("notes", "a") as notes:
        print(text, file=notes)
"""

CONFTEST = """
import pathlib
import pytest
from noting import note

@pytest.fixture(scope="session")
def sandbox():
    assert pathlib.Path("built").exists()

@pytest.fixture(scope="module")
def scenario(sandbox):
    note(f"scenario begins")
    yield
    note("scenario ends")
"""

TESTS = """
import pytest
from noting import note

@pytest.mark.parametrize("number", range(20))
def test_pure(number):
    note(f"pure {number}")

@pytest.mark.parametrize("number", range(4))
def test_waits(sandbox, number):
    note(f"waits {number}")

@pytest.mark.parametrize("number", range(4))
def test_looks_at_the_scenario(scenario, number):
    note(f"looks {number}")
"""

BUILD = "sandbox:\n\t@echo building it\n\t@until test -e may-end; do sleep 0.1; done\n\t@touch built\n"


class Suite:
    """A folder with tests, and runs of them."""

    def __init__(self, folder):
        self.folder = folder
        self.write("noting.py", NOTING)
        self.write("conftest.py", CONFTEST)
        self.write("test_suite.py", TESTS)
        self.write("Makefile", BUILD)
        self.write("pytest.ini", "[pytest]\npythonpath = .\n")

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def begin(self, *arguments, workers=2):
        plugins = [word for name in PLUGINS for word in ("-p", name)]
        command = [sys.executable, "-m", "pytest", *plugins, f"-n{workers}", "-rA", *arguments]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # what the suite doesn't use takes half of its time
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={**environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments, workers=2):
        """Exit status and what was printed."""
        process = self.begin(*arguments, workers=workers)
        try:
            said, _ = process.communicate(timeout=LONGEST_S)
        finally:
            process.kill()
        return process.returncode, said

    @property
    def notes(self):
        path = self.folder / "notes"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def suite(tmp_path):
    return Suite(tmp_path)


def test_pure_tests_run_while_a_program_is_built_and_the_others_after_it(suite):
    process = suite.begin("--builds=sandbox")
    try:
        eventually(lambda: len(suite.notes) == 20, "all pure tests have run beside the build")
        assert all(note.startswith("pure") for note in suite.notes)
        suite.write("may-end", "")
        said, _ = process.communicate(timeout=LONGEST_S)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "28 passed" in said
    assert "==> make sandbox: built after" in said
    assert sorted(suite.notes[20:]) == sorted(
        [f"waits {number}" for number in range(4)]
        + ["scenario begins", *(f"looks {number}" for number in range(4)), "scenario ends"]
    )


def test_tests_that_share_a_scenario_run_in_one_worker_which_makes_it_once(suite):
    suite.write("built", "")
    status, said = suite.run()
    assert status == 0, said
    assert suite.notes.count("scenario begins") == suite.notes.count("scenario ends") == 1
    looks = [note for note in suite.notes if note.startswith("looks")]
    assert looks == [f"looks {number}" for number in range(4)]


def test_modules_of_a_group_run_in_one_worker(suite):
    suite.write("built", "")
    group = 'import os, pytest\nfrom noting import note\npytestmark = pytest.mark.xdist_group("room")\n'
    for name in "ab":
        suite.write(f"test_{name}.py", f"{group}\ndef test_it():\n    note(f'{name} in {{os.getpid()}}')\n")
    status, said = suite.run()
    assert status == 0, said
    rooms = [note.split(" in ") for note in suite.notes if " in " in note]
    assert [name for name, _ in rooms] == ["a", "b"]
    assert len({pid for _, pid in rooms}) == 1


def test_a_build_that_fails_fails_the_run_with_its_words_and_the_pure_tests_still_run(suite):
    suite.write("Makefile", "sandbox:\n\t@echo building it; echo there is no Go; exit 1\n")
    status, said = suite.run("--builds=sandbox")
    assert status == 1
    assert "there is no Go" in said
    assert "8 tests that need it were not run" in said
    assert "20 passed, 1 error" in said
    assert len(suite.notes) == 20


def test_one_process_begins_once_all_is_built(suite):
    suite.write("may-end", "")
    status, said = suite.run("--builds=sandbox", workers=0)
    assert status == 0, said
    assert "28 passed" in said


def test_what_a_worker_that_died_left_is_run_by_others(suite):
    suite.write("built", "")
    suite.write("test_dies.py", "import os\n\ndef test_dies():\n    os._exit(3)\n\ndef test_after():\n    pass\n")
    status, said = suite.run()
    assert status == 1
    assert re.search(r"FAILED test_dies.py::test_dies", said)
    assert "1 failed, 29 passed" in said


def test_a_random_order_comes_again_by_its_seed(suite):
    suite.write("built", "")
    status, said = suite.run("--shuffle=drawn", workers=1)
    assert status == 0, said
    first, seed = suite.notes, re.search(r"SEED=(\d+)", said)[1]
    pure = [note for note in first if note.startswith("pure")]
    assert pure != sorted(pure, key=lambda note: int(note.split()[1]))
    status, said = suite.run(f"--shuffle={seed}", workers=2)
    assert status == 0, said
    assert len(suite.notes) == 2 * len(first) == 60
    (suite.folder / "notes").unlink()
    suite.run(f"--shuffle={seed}", workers=1)
    assert suite.notes == first


SCENARIO = """
import pytest
from noting import note

pytestmark = pytest.mark.scenario(minutes=1)

@pytest.mark.parametrize("number", range(5))
def test_step(number):
    note(f"step {number}")
"""


def test_in_a_random_order_a_scenario_keeps_its_own_on_one_worker(suite):
    suite.write("built", "")
    suite.write("pytest.ini", "[pytest]\npythonpath = .\nmarkers = scenario\n")
    suite.write("test_scenario.py", SCENARIO)
    status, said = suite.run("--shuffle=7")
    assert status == 0, said
    assert [note for note in suite.notes if note.startswith("step")] == [f"step {number}" for number in range(5)]


def test_under_stress_there_is_company_which_ends_with_the_run(suite):
    marks = "select.select([sys.stdin], [], [], 0)"
    suite.write(
        "test_suite.py",
        f"import psutil\n\ndef test_it():\n    assert len(company()) == 6\n\n"
        f"def company():\n    parent = psutil.Process().parent()\n"
        f"    return [each for each in parent.children() if {marks!r} in ' '.join(each.cmdline())]\n",
    )
    status, said = suite.run("--stress")
    assert status == 0, said
    assert "stress: 4 busy processes" in said


def test_a_run_that_is_told_to_end_ends_what_it_started(suite):
    """Programs that stop a run send SIGTERM: fixtures end what they have begun all the same, and the builds end, too."""
    suite.write(
        "test_suite.py",
        "import threading\nfrom noting import note\n\ndef test_hangs(scenario):\n    note('hangs')\n    threading.Event().wait(600)\n",
    )
    suite.write("built", "")
    suite.write("Makefile", BUILD.replace("sandbox", "other"))
    process = suite.begin("--builds=other", "--stress")
    try:
        eventually(lambda: "hangs" in suite.notes, "the test has begun")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=LONGEST_S)  # nobody who was started holds its output open
    finally:
        process.kill()
    assert process.returncode == 2, said
    assert suite.notes == ["scenario begins", "hangs", "scenario ends"], said


def test_a_run_is_measured_and_written_down(suite):
    suite.write("built", "")
    suite.write(
        "test_long.py", "import hashlib\n\ndef test_long():\n    hashlib.pbkdf2_hmac('sha256', b'', b'', 5_000_000)\n"
    )
    for folder in ("docs", "tests/running"):
        (suite.folder / folder).mkdir(parents=True)
    suite.write("docs/testing.md", "# Tests\n\n<!-- make test PROFILE=1 writes this -->\n<!-- until here: test -->\n")
    status, said = suite.run("-p", "tests.running.profile", "--profile=test")
    assert status == 0, said
    page = (suite.folder / "docs/testing.md").read_text()
    assert "29 passed in 0:" in page
    assert re.search(r"\| `\.` \| 29 \|", page)
    long_s, processor_s = map(
        float, re.search(r"\| `test_long.py::test_long` \| ([\d.]+) \| ([\d.]+) \|", page).groups()
    )
    assert processor_s > 0.3
    assert long_s > 0.9 * processor_s
    assert set(json.loads((suite.folder / durations.FILE).read_text())) >= {"test_long.py"}
