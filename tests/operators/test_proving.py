"""What proves an operator, what of its tests is due, and what is said about it."""

import subprocess
import xml.etree.ElementTree as ET

import pytest

from tests.closure import Tree
from tests.operators.proving.__main__ import Ran, in_words, results, why_not
from tests.operators.proving.due import Test, chosen, drawn, sentence
from tests.operators.proving.parts import OPERATORS, Operator, digest, files_in, locked, operator_of, parts_of
from tests.operators.proving.record import Proof, in_short, read, write

LOCK = """\
aiohttp==3.14 \\
    --hash=sha256:aaaa
    # via kubernetes
common-expression-language==0.10 ; python_version < '4' \\
    --hash=sha256:bbbb
yarl==1.0 \\
    --hash=sha256:cccc
"""
FILES = {
    "requirements-dev.lock": LOCK,
    "crds/boxes.yaml": "kind: Box",
    "crds/others.yaml": "kind: Other",
    "kubectl_reconcile/__init__.py": "",
    "kubectl_reconcile/modules/__init__.py": "",
    "kubectl_reconcile/modules/box/__init__.py": "def late():\n    from kubectl_reconcile import lazily",
    "kubectl_reconcile/modules/box/children.py": "AGENT = 'kubectl_reconcile.agent'",
    "kubectl_reconcile/modules/box/versions.json": "{}",
    "kubectl_reconcile/agent/__init__.py": "",
    "kubectl_reconcile/agent/__main__.py": "import yarl",
    "kubectl_reconcile/lazily.py": "",
    "kubectl_reconcile/elsewhere.py": "import aiohttp",
    "kubectl_reconcile/engine/apply/writer.py": "from kubectl_reconcile import elsewhere",
    "kubectl_reconcile/engine/sync/one_pass.py": "",
    "kubectl_reconcile/sandbox/pods/node.py": "",
    "kubectl_reconcile/sandbox/images/box/pom.xml": "<project/>",
    "tests/operators/real/conftest.py": "from tests import servers\n@fixture\ndef box(): ...",
    "tests/operators/real/test_box.py": "def test_box(box): ...",
    "tests/operators/real/test_other.py": "def test_other(box): ...",
    "tests/servers.py": "from kubectl_reconcile import elsewhere",
    "docs/boxes.md": "# Boxes",
}
BOX = Operator(
    packages=("kubectl_reconcile/modules/box/*",),
    crds=("crds/boxes.yaml",),
    images=("kubectl_reconcile/sandbox/images/box/*",),
    tests=("tests/operators/real/test_box*.py",),
)
PARTS = {
    "its own file": "kubectl_reconcile/modules/box/children.py",
    "data beside it": "kubectl_reconcile/modules/box/versions.json",
    "what a function of it imports": "kubectl_reconcile/lazily.py",
    "what it runs as a program": "kubectl_reconcile/agent/__main__.py",
    "the engine that writes": "kubectl_reconcile/engine/apply/writer.py",
    "what runs its pods": "kubectl_reconcile/sandbox/pods/node.py",
    "its image": "kubectl_reconcile/sandbox/images/box/pom.xml",
    "its CRD": "crds/boxes.yaml",
    "its tests": "tests/operators/real/test_box.py",
    "the fixtures of its tests": "tests/operators/real/conftest.py",
    "what those import of tests": "tests/servers.py",
}
NO_PARTS = {
    "another CRD": "crds/others.yaml",
    "what only the engine imports": "kubectl_reconcile/elsewhere.py",
    "the engine's other folders": "kubectl_reconcile/engine/sync/one_pass.py",
    "tests of another operator": "tests/operators/real/test_other.py",
    "a page": "docs/boxes.md",
}


@pytest.fixture
def tree(tmp_path):
    """A small work tree: write(file, text) changes it, parts() are those of the operator in it."""

    class Worked:
        @staticmethod
        def write(file, text):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)

        @staticmethod
        def parts():
            return parts_of(BOX, Tree.at(tmp_path), tmp_path)

    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    for file, text in FILES.items():
        Worked.write(file, text)
    return Worked


@pytest.mark.parametrize("file", PARTS.values(), ids=PARTS)
def test_a_change_of_a_part_is_noticed(tree, file):
    before = tree.parts()
    tree.write(file, f"{FILES[file]}\n")
    assert proof(before).changed(tree.parts()) == [file]


@pytest.mark.parametrize("file", NO_PARTS.values(), ids=NO_PARTS)
def test_a_change_elsewhere_isnt(tree, file):
    before = tree.parts()
    tree.write(file, f"{FILES[file]}\n")
    assert proof(before).changed(tree.parts()) == []


def test_a_file_that_comes_and_one_that_is_imported_from_now_on_are_noticed(tree):
    before = tree.parts()
    tree.write("kubectl_reconcile/modules/box/more.py", "from kubectl_reconcile import elsewhere")
    assert proof(before).changed(tree.parts()) == [
        "kubectl_reconcile/elsewhere.py", "kubectl_reconcile/modules/box/more.py", "requirements-dev.lock aiohttp",
    ]  # fmt: skip


def test_another_version_of_what_is_imported_is_noticed(tree):
    before = tree.parts()
    tree.write("requirements-dev.lock", LOCK.replace("==3.14", "==3.15").replace("yarl==1.0", "yarl==2.0"))
    assert proof(before).changed(tree.parts()) == ["requirements-dev.lock yarl"]


def test_locked_is_told_by_version_and_hash_alone():
    origins = {"cel": ["Common_Expression.language"], "aiohttp": ["aiohttp"]}
    found = dict(locked(["cel", "aiohttp"], LOCK, origins))
    assert found == {
        "requirements-dev.lock aiohttp": digest(b"aiohttp==3.14 \\\n    --hash=sha256:aaaa"),
        "requirements-dev.lock common-expression-language": digest(
            b"common-expression-language==0.10 ; python_version < '4' \\\n    --hash=sha256:bbbb"
        ),
    }


def test_each_operator_has_files_of_all_sorts():
    tree = Tree.at()
    for name, operator in OPERATORS.items():
        files = files_in(operator, tree)
        assert "kubectl_reconcile/module_api.py" in files, name
        assert "kubectl_reconcile/engine/apply/writer.py" in files, name
        assert name in {operator_of(file) for file in files}, name
        assert not any(file.startswith("kubectl_reconcile/cli/") for file in files), name


def proof(parts, **told):
    known = {"commit": "1a2b3c4d5e", "when": "2026-11-28T04:00Z", "minutes": 12.5, "result": "9 passed"}
    return Proof(**known | told, parts=parts)


def test_a_proof_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "PROVEN.json"
    proofs = {
        "etcd": proof({"setup.py": "1", "a/b.py": "2", "a/c.py": "3", "requirements-dev.lock yarl": "4"}),
        "kafka": proof({}),
    }
    write(proofs, file)
    assert read(file) == proofs
    assert '"a": { "b.py": "2", "c.py": "3" }' in file.read_text()


def test_nothing_is_proven_where_there_is_no_file(tmp_path):
    assert read(tmp_path / "PROVEN.json") == {}


def test_few_parts_are_named_and_the_others_counted():
    assert (
        in_short(["kubectl_reconcile/engine/apply/writer.py", "b", "c", "d", "e"])
        == "engine/apply/writer.py, b, c, 2 more"
    )


NAMES = [f"tests/test_it.py::test_{number}" for number in range(40)]


def test_a_commit_draws_the_same_whatever_their_order():
    assert drawn(NAMES, "1a2b") == drawn(reversed(NAMES), "1a2b")


def test_two_others_are_drawn_and_other_commits_draw_others():
    draws = [drawn(NAMES, f"{number:x}") for number in range(100)]
    assert all(len(set(draw)) == 2 for draw in draws)
    assert len({name for draw in draws for name in draw}) > 35


def test_fewer_are_drawn_where_there_are_no_more():
    assert drawn(NAMES[:1], "1a2b") == NAMES[:1]
    assert drawn([], "1a2b") == []


def test_one_line_says_what_ran_and_why():
    proofs = {"etcd": proof({}), "kafka": proof({}, commit="5e6f7a8b9c")}
    changes = {"etcd": [], "postgres": [], "kafka": ["kubectl_reconcile/engine/apply/writer.py"]}
    line = sentence(proofs, changes, ["tests/a/test_x.py", "tests/b.py::test_y[1]"], {"no Java on PATH": 12})
    assert line == (
        "operators: etcd proven at 1a2b3c4 (2026-11-28), smoke; postgres was never proven, whole suite; "
        "kafka changed since 5e6f7a8 (engine/apply/writer.py), whole suite; drawn: test_x, test_y[1]; skipped 12: no Java on PATH"
    )


def each(operator):
    """Tests of an operator: three that share a database, one of them a smoke test; long ones; one that isn't long."""
    home = f"tests/operators/real/{operator}"
    shared = [
        Test(f"{home}/test_shared.py::{name}", operator, f"{home}/test_shared.py")
        for name in ("test_grows", "test_ends")
    ]
    smoke = Test(f"{home}/test_shared.py::test_begins", operator, f"{home}/test_shared.py", is_smoke=True)
    names = [f"{home}/test_each.py::test_{number}" for number in range(6)]
    return [
        smoke,
        *shared,
        *(Test(name, operator, name) for name in names),
        Test(f"{home}/test_each.py::short", operator, ""),
    ]


def test_all_of_an_operator_is_due_that_isnt_proven():
    assert chosen(each("etcd") + each("kafka"), ["etcd", "kafka"], "1a2b") == ([], set())


@pytest.mark.parametrize("commit", [f"{number:x}" for number in range(20)])
def test_of_a_proven_one_are_due_smoke_tests_what_is_short_and_two_whole_scenarios(commit):
    tests = each("etcd")
    scenarios, left = chosen(tests + each("kafka"), ["kafka"], commit)
    assert len(set(scenarios)) == 2
    assert {one.scenario for one in tests} > set(scenarios)
    assert {one.name for one in tests} - left == {
        one.name for one in tests if one.is_smoke or not one.scenario or one.scenario in scenarios
    }
    assert left < {one.name for one in tests}


def test_what_is_no_operators_is_always_due():
    assert chosen([Test("tests/operators/real/test_demo.py::test_demo", "", "")], [], "1a2b") == ([], set())


REPORT = """<testsuites><testsuite>
<testcase classname="tests.operators.real.etcd.test_etcdcluster" name="test_begins" time="60.5"/>
<testcase classname="tests.operators.real.kafka.test_kafka" name="test_begins" time="1"><skipped message="no Java"/></testcase>
<testcase classname="tests.operators.real.kafka.test_kafka" name="test_scales" time="1"><failure message="no leader"/></testcase>
<testcase classname="tests.operators.real.kafka.test_kafka_access.test_users@tests/operators/real/kafka/test_kafka_access.py" name="test_users" time="1"/>
<testcase classname="tests.operators.real.postgres.test_mydatabase_versions" name="test_older[14]" time="1"><skipped message="no 14"/></testcase>
<testcase classname="tests.core.test_phrases" name="test_words" time="1"/>
</testsuite></testsuites>"""


@pytest.fixture
def reported():
    return results(ET.fromstring(REPORT), ["etcd", "kafka", "postgres"])  # noqa: S314 - written above


def test_what_passed_proves_an_operator(reported):
    assert reported["etcd"] == [Ran("test_begins", 60.5)]
    assert not why_not(reported["etcd"], {"a": "1"}, {"a": "1"})
    assert in_words(reported["etcd"]) == "1 passed, 1 min of tests"


def test_what_few_machines_have_may_be_skipped_beside_what_passed_and_is_named(reported):
    tests = [*reported["postgres"], Ran("test_begins", 120)]
    assert not why_not(tests, {}, {})
    assert in_words(tests) == "1 passed, 2 min of tests; 1 skipped: no 14"


def test_what_failed_or_was_skipped_proves_nothing(reported):
    assert why_not(reported["kafka"], {}, {}) == "1 skipped: no Java; 1 failure: no leader"


def test_no_tests_prove_nothing_and_skipped_ones_neither(reported):
    assert why_not([], {}, {}) == why_not(reported["postgres"], {}, {}) == "none of its tests ran"


def test_tests_prove_nothing_of_what_changed_meanwhile(reported):
    assert why_not(reported["etcd"], {"a.py": "1"}, {"a.py": "2"}) == "changed while its tests ran: a.py"


def test_the_file_names_no_operator_that_isnt_there():
    assert read().keys() <= OPERATORS.keys()
