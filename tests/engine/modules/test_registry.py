"""Which domain modules there are, whose counts, and that they are imported only when they are needed."""

from __future__ import annotations

import importlib
import json
import pkgutil
import secrets
import subprocess
import sys
from importlib.metadata import distribution

import pytest

import kubectl_reconcile_operators as operators
from kubectl_reconcile import modules as small
from kubectl_reconcile.cli.main import run
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.core.module.api import UnloadedModule, modules_in
from kubectl_reconcile.core.module.call import ModuleError, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.engine.modules.registry import KnownModules, ModuleFault, installed_modules

MEMCACHED = GroupVersionKind.parse("cache.example.com/v1alpha1", "Memcached")
WEB_SERVER = GroupVersionKind.parse("demo.k8s.io/v1alpha1", "WebServer")
CHECKUP = GroupKind("checks.reconcile.dev", "Checkup")
GROUP = "kubectl_reconcile.modules"


def test_our_entry_points_name_all_modules_and_the_kinds_that_each_owns():
    there = {
        f"{each.gvk.kind}.{each.gvk.version}.{each.gvk.group}": f"{package.__name__}.{info.name}"
        for package in (small, operators)
        for info in pkgutil.iter_modules(package.__path__)
        for each in modules_in(importlib.import_module(f"{package.__name__}.{info.name}"))
    }
    named = {each.name: each.value for each in distribution("kubectl-reconcile").entry_points if each.group == GROUP}
    assert named == there


# --- what is imported -----------------------------------------------------------------------------


def imported_by(code: str) -> set[str]:
    """Return which domain modules a fresh interpreter has imported after *code*."""
    told = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run(
        [sys.executable, "-c", f"{code}\n{told}"], check=True, capture_output=True, text=True
    ).stdout
    places = [
        name.removeprefix(f"{package.__name__}.").partition(".")[0]
        for package in (small, operators)
        for name in json.loads(output)
        if name.startswith(f"{package.__name__}.")
    ]
    return set(places)


BEGIN = "from kubectl_reconcile.engine.modules.registry import installed_modules\nknown = installed_modules()"


CASES = {
    "which kinds have one": ("list(known), len(known)", set()),
    "whether a kind has one": ("[gvk in known for gvk in list(known)]", set()),
    "the module of one kind": ("[known[gvk] for gvk in known if gvk.kind == 'Memcached']", {"memcached"}),
    "the module of an operator": (
        "[known[gvk] for gvk in known if gvk.kind == 'EtcdBackup']", {"etcd_backup", "backups", "volumes"},
    ),
    "the health of one kind": ("[known.health.get(gvk.group_kind) for gvk in known if gvk.kind == 'Candy']", {"candy"}),
    "whether two judge alike": ("known.health == known.health", set()),
    "those in use": ("known.in_use()", set()),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "imported"), CASES.values(), ids=CASES)
def test_asking_imports_no_more_than_is_asked_for(asked, imported):
    assert imported_by(f"{BEGIN}\n{asked}") == imported


# --- packages of others ---------------------------------------------------------------------------

ONE = """
from kubectl_reconcile.module_api import Outcome, module

@module(api="{api}", kind="{kind}", owns=[], name="{name}")
def reconcile_{name}(cr, owned, facts, ctx):
    return Outcome()
"""


def a_module(api, kind, name="theirs"):
    return ONE.format(api=api, kind=kind, name=name)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(package, code, *names) -> the Python module of a package whose entry points have these names."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(package, code, *names):
        place = f"{package.replace('-', '_')}_{secrets.token_hex(4)}"
        (tmp_path / f"{place}.py").write_text(code)
        facts = tmp_path / f"{place}-1.0.dist-info"
        facts.mkdir()
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = "\n".join(f"{name} = {place}" for name in names)
        (facts / "entry_points.txt").write_text(f"[{GROUP}]\n{points}\n")
        return place

    return write


DB = GroupVersionKind.parse("db.example.org/v1", "Db")
SHARD = GroupVersionKind.parse("db.example.org/v1", "Shard")


def test_a_module_that_is_called_by_its_kind_is_imported_when_somebody_asks_for_it(install):
    place = install("acme-db", a_module("db.example.org/v1", "Db"), "Db.v1.db.example.org")
    known = installed_modules()
    assert DB in known
    assert place not in sys.modules
    assert known[DB].name == "theirs"
    assert place in sys.modules


def test_a_module_of_any_other_name_is_imported_to_find_out_its_kind(install):
    place = install("acme-db", a_module("db.example.org/v1", "Db"), "acme.db")
    assert installed_modules()[DB].name == "theirs"
    assert place in sys.modules


OTHER_NAMES = ["db", "db.v1.db.example.org", "Db.v1", "Db.v1.org", "Db.1.db.example.org", "Db.v1.db.Example.org"]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_only_a_kind_a_version_and_a_group_are_a_name_by_kind(install, name):
    place = install("acme-db", a_module("db.example.org/v1", "Db"), name)
    assert DB in installed_modules()
    assert place in sys.modules


def test_two_kinds_may_be_in_one_place(install):
    code = a_module("db.example.org/v1", "Db", "one") + a_module("db.example.org/v1", "Shard", "two")
    install("acme-db", code, "Db.v1.db.example.org", "Shard.v1.db.example.org")
    known = installed_modules()
    assert (known[DB].name, known[SHARD].name) == ("one", "two")
    assert known.faults == []


@pytest.mark.parametrize("name", ["Memcached.v1alpha1.cache.example.com", "zzz"])
def test_a_module_of_somebody_else_comes_before_ours(install, name):
    install("zebra", a_module("cache.example.com/v1alpha1", "Memcached"), name)
    known = installed_modules()
    assert known[MEMCACHED].name == "theirs"
    assert known.faults == []


@pytest.mark.parametrize("first", ["Db.v1.db.example.org", "by-another-name"])
@pytest.mark.parametrize("second", ["Db.v1.db.example.org", "by-another-name"])
def test_of_two_packages_for_one_kind_the_first_by_name_counts_and_both_are_named(install, first, second):
    later = install("beta", a_module("db.example.org/v1", "Db", "beta"), first)
    sooner = install("alpha", a_module("db.example.org/v1", "Db", "alpha"), second)
    known = installed_modules()
    assert known[DB].name == "alpha"
    [fault] = known.faults
    both = f"{sooner} of package alpha and {later} of package beta"
    assert fault == ModuleFault(
        f"{both} are both for Db.v1.db.example.org; the first one counts", "remove one of them", is_missing=False
    )


# --- modules that can't be loaded -----------------------------------------------------------------

BROKEN = {
    "something it needs isn't installed": ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
    "it isn't Python": ("def", "SyntaxError: "),
    "it ends the program": ("raise SystemExit(3)", "SystemExit: 3"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "why"), BROKEN.values(), ids=BROKEN)
def test_a_module_that_cant_be_imported_says_so_in_its_place_and_the_others_go_on(install, code, why, caplog):
    place = install("acme-db", code, "Db.v1.db.example.org")
    known = installed_modules()
    assert known.faults == []
    found = known[DB]
    assert isinstance(found, UnloadedModule)
    assert found.why.startswith(f"its module can't be loaded: {place} of package acme-db can't be imported: {why}")
    assert found.hint.startswith("install package acme-db again, with all that it needs, or remove it")
    assert [(fault.why in found.why, fault.is_missing) for fault in known.faults] == [(True, True)]
    assert [record.msg for record in caplog.records] == ["module not loaded"]
    assert known[DB] is found
    assert len(known.faults) == 1
    assert known[MEMCACHED].name == "memcached"
    assert DB not in {each.gvk for each in known.all_loaded()}


def test_a_module_that_is_called_by_a_kind_that_it_isnt_for_says_what_it_has(install):
    place = install("acme-db", a_module("db.example.org/v2", "Db"), "Db.v1.db.example.org")
    found = installed_modules()[DB]
    assert isinstance(found, UnloadedModule)
    assert found.why == (
        f"its module can't be loaded: {place} of package acme-db has no module for Db.v1.db.example.org, which its entry point is called by;"
        " it has Db.v2.db.example.org"
    )


def test_what_stands_for_a_module_that_cant_be_loaded_gives_no_outcome(install):
    install("acme-db", "import not_there_at_all", "Db.v1.db.example.org")
    found = installed_modules()[DB]
    cr = {"apiVersion": "db.example.org/v1", "kind": "Db", "metadata": {"name": "a", "namespace": "n", "uid": "u"}}
    with pytest.raises(ModuleError, match=r"^module db: its module can't be loaded: .*not_there_at_all"):
        outcome_of(found, cr, Owned((), ()), {}, Context("", "db", cr))


def test_a_module_of_another_name_that_cant_be_imported_is_passed_over_and_named(install):
    place = install("acme-db", "import not_there_at_all", "acme")
    known = installed_modules()
    assert DB not in known
    [fault] = known.faults
    assert fault.why.startswith(f"{place} of package acme-db can't be imported: ModuleNotFoundError")
    assert fault.is_missing
    assert known[MEMCACHED].name == "memcached"


def test_the_list_of_modules_names_those_that_cant_be_loaded(install, capsys):
    place = install("acme-db", "import not_there_at_all", "Db.v1.db.example.org")
    assert run(["modules", "list"]) == ExitStatus.FAILED
    told = capsys.readouterr()
    assert "memcached" in told.out
    assert told.err.splitlines()[-1].startswith(f"{place} of package acme-db can't be imported: ModuleNotFound")
    assert run(["modules", "show", "db"]) == ExitStatus.USAGE
    assert "can't be imported: ModuleNotFound" in capsys.readouterr().err


# --- all of them ----------------------------------------------------------------------------------


def test_a_kind_without_a_module_is_none_of_theirs():
    known = installed_modules()
    gvk = GroupVersionKind.parse("example.org/v1", "Thing")
    assert gvk not in known
    assert known.get(gvk) is None
    with pytest.raises(KeyError):
        known[gvk]


def test_those_that_are_given_come_before_those_that_are_installed():
    ours = installed_modules()
    theirs = ours.with_more({MEMCACHED: ours[WEB_SERVER]})
    assert theirs[MEMCACHED].name == "webserver"
    assert ours[MEMCACHED].name == "memcached"
    assert len(theirs) == len(ours)


def test_those_that_became_others_are_told(install):
    known, other = installed_modules(), installed_modules()
    asked = known[MEMCACHED]
    assert known.become(other) == set()
    assert known.in_use() == [asked]
    assert known.become(other.with_more({MEMCACHED: other[WEB_SERVER]})) == {MEMCACHED.group_kind}
    assert known[MEMCACHED].name == "webserver"
    assert known.become(other) == {MEMCACHED.group_kind}
    install("acme-db", a_module("db.example.org/v1", "Db"), "Db.v1.db.example.org")
    assert known.become(installed_modules()) == {DB.group_kind}
    assert KnownModules().become(KnownModules()) == set()


def test_in_use_are_those_that_somebody_asked_for():
    known = installed_modules()
    assert known.in_use() == []
    asked = known[MEMCACHED]
    assert known.in_use() == [asked]
    assert known.with_more({MEMCACHED: asked}).in_use() == [asked]


def test_rules_of_health_are_those_that_modules_declare():
    rules = installed_modules().health
    assert set(rules) == {CHECKUP}
    assert len(rules) == 1
    assert rules.get(MEMCACHED.group_kind) is None
