"""Annotations, labels and finalizers: one table, one spelling, and what objects ask for by them."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.annotations import (
    MEMBERS_FROM,
    NO_OPTIONS,
    TABLE,
    HookPoint,
    MemberOptions,
    Place,
    names_of,
    origin_of_members,
    renamed,
)
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.ssa.merge import ConflictPolicy

ROOT = Path(__file__).resolve().parents[2]


def annotated(**annotations):
    named = {f"reconcile.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"metadata": {"annotations": named}}


def options(**annotations):
    return MemberOptions.of(annotated(**annotations))


# --- the table ------------------------------------------------------------------------------------


def test_names_are_kebab_case_and_each_place_has_a_name_once():
    assert all(re.fullmatch(r"reconcile\.dev/([a-z]+(-[a-z]+)*|MODULE)", row.name) for row in TABLE)
    assert len({(row.name, row.place) for row in TABLE}) == len(TABLE)


SPELLED = re.compile(r"(?<![\w./-])reconcile\.dev/([A-Za-z][A-Za-z-]*)")
SET = f"applyset-{'A-_9' * 10}xyz-v1"


def _texts():
    for folder, kinds in {
        "kubectl_reconcile": (".py", ".txt"),
        "kubectl_reconcile_operators": (".py",),
        "docs": (".md",),
        "examples": (".yaml",),
        "crds": (".yaml",),
    }.items():
        yield from (path for kind in kinds for path in (ROOT / folder).rglob(f"*{kind}"))
    yield ROOT / "README.md"


def test_every_name_that_code_or_documentation_mentions_is_in_the_table():
    known = {row.name for row in TABLE} | {row.former for row in TABLE if row.former} | {"reconcile.dev/v"}
    found = {(path, f"reconcile.dev/{name}") for path in _texts() for name in SPELLED.findall(path.read_text())}
    assert {(path.name, name) for path, name in found if name not in known} == set()
    assert {name for _, name in found} >= {
        row.name for row in TABLE if row.place is Place.ANNOTATION
    }  # docs/annotations.md


def test_names_are_built_in_one_place_only():
    built = re.compile(r"\{API_GROUP\}/(?!v1)")
    code = (
        path
        for package in ("kubectl_reconcile", "kubectl_reconcile_operators")
        for path in (ROOT / package).rglob("*.py")
    )
    assert [path.name for path in code if built.search(path.read_text())] == ["annotations.py"]


def test_a_name_of_an_earlier_version_counts_and_says_what_it_is_called_now():
    assert names_of("reconcile.dev/resume-requested-at") == (
        "reconcile.dev/resume-requested-at", "reconcile.dev/resumeRequestedAt",
    )  # fmt: skip
    assert names_of("reconcile.dev/wave") == ("reconcile.dev/wave",)
    [sentence] = renamed(annotated(resumeRequestedAt="now"))
    assert "reconcile.dev/resumeRequestedAt is called reconcile.dev/resume-requested-at now" in sentence
    assert list(renamed(annotated(resume_requested_at="now"))) == []


# --- options ----------------------------------------------------------------------------------------


def test_an_object_that_says_nothing_asks_for_nothing():
    assert MemberOptions.of({"metadata": {"annotations": {"example.com/wave": "3"}}}) is NO_OPTIONS
    assert MemberOptions.of({"metadata": {}}) is NO_OPTIONS
    assert not NO_OPTIONS.kept


ASKED = {
    "wave": ({"wave": "-3"}, {"wave": -3}),
    "hook": ({"hook": "sync-fail"}, {"hook": HookPoint.SYNC_FAIL}),
    "replace": ({"replace": "false"}, {"replace": False}),
    "prune": ({"prune": "false"}, {"kept": True}),
    "prune as by default": ({"prune": "true"}, {"kept": False}),
    "conflicts": ({"conflicts": "Yield"}, {"conflicts": ConflictPolicy.YIELD}),
    "moved-from": ({"moved_from": "shop/old"}, {"moved_from": ObjectRef("reconcile.dev", "Sync", "shop", "old")}),
    "moved-from a set": ({"moved_from": f" {SET} "}, {"moved_from": ObjectRef("reconcile.dev", "Sync", "", SET)}),
    "moved-to": ({"moved_to": "shop/new"}, {"moved_to": ObjectRef("reconcile.dev", "Sync", "shop", "new")}),
    "source": ({"source": "apps/web.yaml"}, {"source": "apps/web.yaml"}),
    "paused": ({"paused": "true"}, {"paused": True}),
    "abandon": ({"abandon": "true"}, {"abandoned": True}),
}


@pytest.mark.parametrize(("annotations", "fields"), ASKED.values(), ids=ASKED)
def test_what_an_object_asks_for(annotations, fields):
    assert options(**annotations) == MemberOptions(**fields)


TARGETS = {
    "as kubectl writes it": ("Deployment.apps/shop/web", ObjectRef("apps", "Deployment", "shop", "web")),
    "as we print it": ("Deployment.apps shop/web", ObjectRef("apps", "Deployment", "shop", "web")),
    "the core group": ("ConfigMap/shop/web", ObjectRef("", "ConfigMap", "shop", "web")),
    "no namespace": ("Namespace/shop", ObjectRef("", "Namespace", "", "shop")),
    "a name with dots": (
        "CustomResourceDefinition.apiextensions.k8s.io/caches.example.com",
        ObjectRef("apiextensions.k8s.io", "CustomResourceDefinition", "", "caches.example.com"),
    ),
}


@pytest.mark.parametrize(("text", "ref"), TARGETS.values(), ids=TARGETS)
def test_what_an_object_depends_on_can_be_written(text, ref):
    assert options(depends_on=text).depends_on == (ref,)
    assert options(depends_on=f"{text}, {text}").depends_on == (ref, ref)


BAD = {
    "a wave in words": ({"wave": "soon"}, "must be an integer, not 'soon'", MemberOptions()),
    "a wave beyond all bounds": ({"wave": "9" * 5000}, "must be an integer", MemberOptions()),
    "a target that isn't an object": ({"depends_on": "web"}, "Deployment.apps/shop/web", MemberOptions()),
    "a target without a name": ({"depends_on": "Deployment.apps/shop/"}, "Deployment.apps/shop/web", MemberOptions()),
    "too many slashes": ({"depends_on": "a/b/c/d"}, "Deployment.apps/shop/web", MemberOptions()),
    "no kind": ({"depends_on": "/shop/web"}, "Deployment.apps/shop/web", MemberOptions()),
    "a hook at no point": ({"hook": "before"}, "pre-sync, sync, post-sync, sync-fail", MemberOptions()),
    "a boolean in capitals": ({"replace": "True"}, '"true" or "false", not \'True\'', MemberOptions(replace=False)),
    "prune that can't be read keeps": ({"prune": "False"}, '"true" or "false"', MemberOptions(kept=True)),
    "paused that can't be read pauses": ({"paused": "yes"}, '"true" or "false"', MemberOptions(paused=True)),
    "a policy that there isn't": (
        {"conflicts": "Win"},
        "Override, Yield or Fail",
        MemberOptions(conflicts=ConflictPolicy.FAIL),
    ),
    "a Sync without its namespace": ({"moved_from": "old"}, "NAMESPACE/NAME", MemberOptions()),
}


@pytest.mark.parametrize(("annotations", "words", "read_as"), BAD.values(), ids=BAD)
def test_a_value_that_cannot_be_meant_is_a_fault_and_in_doubt_the_object_stays(annotations, words, read_as):
    found = options(**annotations)
    [fault] = found.faults
    assert words in f"{fault.message} ({fault.hint})"
    assert len(fault.message) < 200
    assert found == MemberOptions(
        **{name: getattr(read_as, name) for name in ("replace", "kept", "paused", "conflicts")}, faults=found.faults
    )


@pytest.mark.parametrize(
    "path", ["../../etc/x", "/etc/passwd", "a/../b", ".", "a//b", "a\nb", "", "./a", "x\x1b[31m", "a/"]
)
def test_a_source_that_leads_elsewhere_names_no_file(path):
    assert options(source=path).source == ""


texts = st.text(max_size=40) | st.sampled_from(["true", "../x", "pre-sync", "1", "a/b", "*"])


@given(st.dictionaries(st.sampled_from([row.name for row in TABLE]), texts))
def test_reading_options_never_fails(annotations):
    found = MemberOptions.of({"metadata": {"annotations": annotations}})
    assert all(fault.name in annotations for fault in found.faults)


def test_a_sync_says_whose_members_it_takes_over():
    assert origin_of_members({MEMBERS_FROM: "shop/old"}) == ObjectRef("reconcile.dev", "Sync", "shop", "old")
    assert origin_of_members({MEMBERS_FROM: SET}) == ObjectRef("reconcile.dev", "Sync", "", SET)
    assert [origin_of_members(noted) for noted in ({}, {MEMBERS_FROM: "old"}, {MEMBERS_FROM: "applyset-x-v1"})] == [
        None
    ] * 3
