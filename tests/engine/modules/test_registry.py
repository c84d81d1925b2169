"""Which domain modules there are, and that they are imported only when they are needed."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

from kubectl_reconcile import modules as bundled
from kubectl_reconcile.core.module.api import modules_in
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.engine.modules.registry import KnownModules, installed_modules

MEMCACHED = GroupVersionKind.parse("cache.example.com/v1alpha1", "Memcached")
CHECKUP = GroupKind("checks.reconcile.dev", "Checkup")


def test_the_table_names_all_that_there_are_and_what_each_owns():
    there = {
        info.name: {
            (each.gvk.api_version, each.gvk.kind)
            for each in modules_in(importlib.import_module(f"{bundled.__name__}.{info.name}"))
        }
        for info in pkgutil.iter_modules(bundled.__path__)
    }
    table = {name: {(version, kind) for kind in kinds} for name, (version, *kinds) in bundled.OWNED.items()}
    assert table == there


def imported_by(code: str) -> set[str]:
    """Return which domain modules a fresh interpreter has imported after *code*."""
    told = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    prefix = f"{bundled.__name__}."
    output = subprocess.run(
        [sys.executable, "-c", f"{code}\n{told}"], check=True, capture_output=True, text=True
    ).stdout
    return {name.removeprefix(prefix).partition(".")[0] for name in json.loads(output) if name.startswith(prefix)}


BEGIN = "from kubectl_reconcile.engine.modules.registry import installed_modules\nknown = installed_modules()"


CASES = {
    "which kinds have one": ("list(known), len(known)", set()),
    "whether a kind has one": ("[gvk in known for gvk in list(known)]", set()),
    "the module of one kind": ("[known[gvk] for gvk in known if gvk.kind == 'Memcached']", {"memcached"}),
    "the health of one kind": ("[known.health.get(gvk.group_kind) for gvk in known if gvk.kind == 'Candy']", {"candy"}),
    "whether two judge alike": ("known.health == known.health", set()),
}


@pytest.mark.parametrize(("asked", "imported"), CASES.values(), ids=CASES)
def test_asking_imports_no_more_than_is_asked_for(asked, imported):
    assert imported_by(f"{BEGIN}\n{asked}") == imported


def test_a_kind_without_a_module_is_none_of_theirs():
    known = installed_modules()
    gvk = GroupVersionKind.parse("example.org/v1", "Thing")
    assert gvk not in known
    assert known.get(gvk) is None
    with pytest.raises(KeyError):
        known[gvk]


def test_a_module_of_somebody_else_comes_before_ours():
    ours = installed_modules()
    theirs = ours.with_more({MEMCACHED: ours[GroupVersionKind.parse("demo.k8s.io/v1alpha1", "WebServer")]})
    assert theirs[MEMCACHED].name == "webserver"
    assert ours[MEMCACHED].name == "memcached"
    assert len(theirs) == len(ours)


def test_those_that_became_others_are_told():
    known, other = KnownModules(), installed_modules()
    assert known.become(other) == set()
    assert known.become(other.with_more({MEMCACHED: other[MEMCACHED]})) == {MEMCACHED.group_kind}
    assert known.become(other) == {MEMCACHED.group_kind}


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
