"""Recorded cases, replayed; new modules, scaffolded; the commands around both."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from kubectl_reconcile.cli.main import run
from kubectl_reconcile.cli.verbs.operate.modules import modules
from kubectl_reconcile.core.module.cases import Case, CaseError, differences
from kubectl_reconcile.engine.commands.scaffold import Names, ScaffoldError
from kubectl_reconcile.modules.memcached import memcached

NOW = "2026-01-01T00:00:00Z"
CR = {
    "apiVersion": "cache.example.com/v1alpha1",
    "kind": "Memcached",
    "metadata": {"name": "cache", "namespace": "shop", "uid": "u-1", "managedFields": [{}]},
    "spec": {"size": 2},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "s",
        "namespace": "shop",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hush"},
    },
    "data": {"password": "aHVzaA=="},
}


def a_case(**more):
    return Case(module="memcached", now=NOW, cr=CR, **more).answered(memcached)


def test_a_case_survives_its_file():
    case = a_case()
    assert Case.of(json.loads(json.dumps(case.tree()))).tree() == case.tree()
    assert not list(differences(case, case.answered(memcached)))


def test_a_case_holds_no_secret():
    text = json.dumps(a_case(read=(SECRET,)).tree())
    assert "password" in text
    assert "aHVzaA==" not in text
    assert "hush" not in text
    assert "managedFields" not in text


def test_what_a_module_says_differently_is_named_by_its_place():
    case = a_case()
    other = Case.of({**case.tree(), "cr": {**CR, "spec": {"size": 3}}})
    assert "children.0.spec.replicas: 2 -> 3" in list(differences(case, other.answered(memcached)))


def test_an_invalid_spec_is_an_outcome_too():
    case = Case(module="memcached", now=NOW, cr={**CR, "spec": {"size": -1}}).answered(memcached)
    assert case.outcome["conditions"][0]["reason"] == "InvalidSpec"


@pytest.mark.parametrize(
    "tree", [None, [], {}, {"kind": "Pod"}, {"kind": "ModuleCase"}, {"kind": "ModuleCase", "module": "m"}]
)
def test_what_is_no_case_is_refused(tree):
    with pytest.raises(CaseError):
        Case.of(tree)


def test_modules_test_tells_what_differs_and_updates(tmp_path):
    file = tmp_path / "case.json"
    tree = a_case().tree()
    file.write_text(json.dumps(tree))
    answer = CliRunner().invoke(modules, ["test", str(file)], standalone_mode=False)
    assert (answer.return_value, answer.output.strip()) == (0, f"{file}: the same")
    file.write_text(json.dumps({**tree, "cr": {**CR, "spec": {"size": 3}}}))
    answer = CliRunner().invoke(modules, ["test", str(file)], standalone_mode=False)
    assert answer.return_value == 6
    assert "children.0.spec.replicas: 2 -> 3" in answer.output
    assert CliRunner().invoke(modules, ["test", str(file), "--update"], standalone_mode=False).return_value == 0
    assert CliRunner().invoke(modules, ["test", str(file)], standalone_mode=False).return_value == 0


def test_every_module_is_listed_and_shown(capsys):
    assert run(["modules", "list"]) == 0
    listed = capsys.readouterr().out
    for name in ("candy", "memcached", "threetierapp", "webserver"):
        assert name in listed
        assert run(["modules", "show", name]) == 0
        assert "needs these rights:" in capsys.readouterr().out
    assert run(["modules", "show", "nonsense"]) == 2


def test_a_new_module_passes_its_own_tests(tmp_path):
    folder = tmp_path / "tea-pot"
    assert run(["modules", "new", "tea-pot", "--kind", "TeaPot", "--folder", str(folder)]) == 0
    assert not [
        path for path in folder.iterdir() if "__" in path.read_text().replace("__future__", "").replace("__file__", "")
    ]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert run(["modules", "list", "--from", str(folder / "tea_pot.py")]) == 0


def test_nothing_is_overwritten(tmp_path):
    assert run(["modules", "new", "tea", "--kind", "Tea", "--folder", str(tmp_path)]) == 0
    assert run(["modules", "new", "tea", "--kind", "Tea", "--folder", str(tmp_path)]) == 2


@pytest.mark.parametrize(
    ("name", "kind", "api"), [("Tea", "Tea", "a.b/v1"), ("tea", "tea", "a.b/v1"), ("tea", "Tea", "v1")]
)
def test_names_that_cannot_be_are_refused(name, kind, api):
    with pytest.raises(ScaffoldError):
        Names.of(name, kind, api)


def test_the_children_of_a_case_survive_its_file():
    child = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cache", "namespace": "shop"}}
    case = Case(module="memcached", now=NOW, cr=CR, children=(child,))
    assert [each["metadata"]["name"] for each in Case.of(case.tree()).children] == ["cache"]
