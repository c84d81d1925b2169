"""The bill of materials: what is locked is in it, it is valid CycloneDX, and the same texts make the same bytes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from releasing.licenses import said_by
from releasing.sbom import SCHEMA, Materials, bill, modules, pinned

ROOT = Path(__file__).parents[2]
GO_MOD = ROOT / "kubectl_reconcile" / "source" / "render" / "program" / "go.mod"
VENDORED = ROOT / "kubectl_reconcile" / "web" / "page" / "vendor" / "vendored.json"
OURS = Materials(
    (ROOT / "requirements.lock").read_text(), (ROOT / "requirements-image.lock").read_text(), GO_MOD.read_text(),
    VENDORED.read_text(), (ROOT / "releasing" / "licenses.json").read_text(), go="1.26.0",
)  # fmt: skip
EPOCH_S = 1_700_000_000
SMALL = Materials(
    lock=(
        "a==1.0 \\\n    --hash=sha256:00\n    # via b\n"
        "b==2.0 ; sys_platform == 'linux' \\\n    --hash=sha256:01\n    # via\n    #   kubectl-reconcile (pyproject.toml)\n    #   c\n"
        "c==3.0 ; sys_platform == 'win32' \\\n    --hash=sha256:02\n    # via kubectl-reconcile (pyproject.toml)\n"
    ),
    image_lock="d==4.0 \\\n    --hash=sha256:03\n    # via kubectl-reconcile (pyproject.toml)\n",
    go_mod="module x.dev/render\n\ngo 1.26\n\nrequire (\n\tgithub.com/Big/name v1.2.3 // indirect\n)\n\nrequire y.dev v0.1.0\n",
    vendored="{}",
)


@pytest.fixture(scope="module")
def ours():
    return bill("1.2.3", OURS, EPOCH_S)


def refs(text):
    """Whom each component depends on, by their purls."""
    return {each["ref"]: each.get("dependsOn", []) for each in json.loads(text)["dependencies"]}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-image.lock"])
def test_every_package_of_the_locks_is_listed_with_its_version(lock, ours):
    components = json.loads(ours)["components"]
    listed = {(each["name"], each["version"], each["purl"]) for each in components}
    locked = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / lock).read_text(), re.MULTILINE)
    assert len(locked) > 40
    assert {(name, version, f"pkg:pypi/{name}@{version}") for name, version in locked} <= listed


def test_every_component_has_a_license(ours):
    components = [*json.loads(ours)["components"], json.loads(ours)["metadata"]["component"]]
    assert [each["purl"] for each in components if not each.get("licenses")] == [], "run make licenses"


def test_no_license_is_noted_of_what_isn_t_shipped():
    noted = json.loads(OURS.licenses)
    locked = {each.name for lock in (OURS.lock, OURS.image_lock) for each in pinned(lock)}
    assert noted["pypi"].keys() == locked, "run make licenses"
    assert noted["golang"].keys() == {name for name, _ in modules(OURS.go_mod)} | {"stdlib"}, "run make licenses"


TEXTS = {
    "one": (["Permission is hereby granted,\n free of charge, to any person"], "MIT"),
    "two in one file": (
        ["Apache License\n   Version 2.0", "Permission is hereby granted, free of charge"],
        "Apache-2.0 AND MIT",
    ),
    "BSD with a clause on names": (
        ["Redistributions in binary form must …\nNeither the name of X nor"],
        "BSD-3-Clause",
    ),
    "BSD without": (["Redistributions in binary form must …"], "BSD-2-Clause"),
    "none": (["Read me"], ""),
}


@pytest.mark.parametrize(("texts", "license_"), TEXTS.values(), ids=TEXTS)
def test_texts_of_licenses_are_known(texts, license_):
    assert said_by(texts) == license_


def test_what_the_page_is_drawn_with_names_what_it_contains(ours):
    assert refs(ours)["pkg:npm/htm@3.1.1"] == ["pkg:npm/preact@10"]


def test_it_is_valid_and_says_of_what_and_when(ours):
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415 - it takes seconds, in each process that collects tests

    assert JsonStrictValidator(SCHEMA).validate_str(ours) is None
    metadata = json.loads(ours)["metadata"]
    assert metadata["component"]["purl"] == "pkg:pypi/kubectl-reconcile@1.2.3"
    assert metadata["timestamp"] == "2023-11-14T22:13:20+00:00"


def test_every_component_is_needed_by_another_or_by_us(ours):
    needed, reached = refs(ours), {"pkg:pypi/kubectl-reconcile@1.2.3"}
    while more := {each for ref in reached for each in needed[ref]} - reached:
        reached |= more
    unreached = {each["purl"] for each in json.loads(ours)["components"]} - reached
    assert unreached == set()


def test_the_same_texts_make_the_same_bytes_and_other_texts_another_serial_number(ours):
    assert bill("1.2.3", OURS, EPOCH_S) == ours
    other = bill("1.2.3", replace(OURS, go="1.26.1"), EPOCH_S)
    assert json.loads(other)["serialNumber"] != json.loads(ours)["serialNumber"]


def test_who_needs_whom_comes_from_the_lock():
    needed = refs(bill("1.2.3", SMALL, EPOCH_S))
    asked = ["pkg:golang/x.dev/render@v1.2.3", "pkg:pypi/b@2.0", "pkg:pypi/c@3.0", "pkg:pypi/d@4.0"]
    assert needed["pkg:pypi/kubectl-reconcile@1.2.3"] == asked
    assert needed["pkg:pypi/b@2.0"] == ["pkg:pypi/a@1.0"]
    assert needed["pkg:pypi/c@3.0"] == ["pkg:pypi/b@2.0"]
    assert needed["pkg:golang/x.dev/render@v1.2.3"] == [
        "pkg:golang/github.com/big/name@v1.2.3",
        "pkg:golang/y.dev@v0.1.0",
    ]


def test_what_only_the_image_or_another_system_has_is_optional():
    scopes = {each["name"]: each.get("scope") for each in json.loads(bill("1.2.3", SMALL, EPOCH_S))["components"]}
    assert [scopes[name] for name in "abcd"] == ["required", "required", "optional", "optional"]


def test_a_lock_without_notes_of_who_needs_what_is_refused():
    with pytest.raises(ValueError, match="notes of who needs what: a==1"):
        pinned("a==1.0 \\\n    --hash=sha256:00\n")


def test_go_s_own_version_is_no_module():
    assert modules(SMALL.go_mod) == [("github.com/Big/name", "v1.2.3"), ("y.dev", "v0.1.0")]
