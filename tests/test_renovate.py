"""The configuration of Renovate that the documentation shows: it finds every pin of our examples, and nothing that isn't one."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from kubectl_reconcile.core.rendering.pinned.lock import Lock, text_of
from kubectl_reconcile.core.resources.chart import ChartSpec
from tests.pages import ROOT

DIGEST = "0a" * 32
HELM = ChartSpec("https://charts.example.com/stable", "database", "1.2.3", f"sha256:{DIGEST}")
REGISTRY = ChartSpec("oci://registry.example.com/charts", "queue", "2.0.0", f"sha256:{DIGEST}")


def managers():
    page = (ROOT / "docs" / "updates.md").read_text()
    [text, *_] = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return json.loads(text)["customManagers"]


def found_in(text):
    """What Renovate takes from a file: the datasource, and the package, registry, version and digest of each match."""
    for manager in managers():
        [pattern] = manager["matchStrings"]
        for match in re.finditer(pattern.replace("(?<", "(?P<"), text):  # as JavaScript and RE2 write it
            groups = match.groupdict()
            name = manager.get("packageNameTemplate", "{{{packageName}}}")
            for key, value in groups.items():
                name = name.replace(f"{{{{{{{key}}}}}}}", value)
            named = groups.get("depName", "") if "{{{" in name else name
            yield (
                manager["datasourceTemplate"],
                named,
                groups.get("registryUrl", ""),
                groups["currentValue"],
                groups.get("currentDigest", ""),
            )


def pins_of(sync):
    """What a Sync pins, as Renovate is to find it."""
    source = sync["spec"].get("source", {})
    if (git := source.get("git", {})).get("tag"):
        yield "git-tags", git["url"], "", git["tag"], ""
    if "digest" in (chart := source.get("chart", {})):
        yield "helm", chart["name"], chart["repository"], chart["version"], chart["digest"].removeprefix("sha256:")
    if "digest" in (oci := source.get("oci", {})) and "tag" in oci:
        yield "docker", oci["url"].removeprefix("oci://"), "", str(oci["tag"]), oci["digest"]


def examples():
    for file in sorted((ROOT / "examples").rglob("*.yaml")):
        text = file.read_text()
        trees = (
            [tree for tree in yaml.load_all(text, yaml.CSafeLoader) if isinstance(tree, dict)]
            if "{{" not in text
            else []
        )
        yield file.name, text, [pin for tree in trees if tree.get("kind") == "Sync" for pin in pins_of(tree)]


def test_every_pin_of_the_examples_is_found_and_nothing_else():
    wanted = {name: pins for name, _, pins in examples() if pins}
    assert wanted.keys() >= {"chart.yaml", "oci.yaml"}
    assert {name: found for name, text, _ in examples() if (found := [*found_in(text)])} == wanted


def test_charts_of_lock_files_are_found():
    assert [*found_in(text_of(Lock((HELM, REGISTRY))))] == [
        ("helm", "database", "https://charts.example.com/stable", "1.2.3", DIGEST),
        ("docker", "registry.example.com/charts/queue", "", "2.0.0", f"sha256:{DIGEST}"),
    ]


TEXTS = {
    "a tag": ("git:\n  url: https://git.example.com/a.git\n  tag: v1.2.0\n", ("git-tags", "https://git.example.com/a.git", "", "v1.2.0", "")),
    "a tag in quotes": ("git:\n  url: 'https://git.example.com/a'\n  tag: \"1.4\"\n", ("git-tags", "https://git.example.com/a", "", "1.4", "")),
    "a branch": ("git:\n  url: https://git.example.com/a.git\n  branch: main\n", None),
    "a chart without a digest": ("repository: https://charts.example.com\nname: web\nversion: 1.2.3\n", None),
    "a tag without a digest": ("url: oci://registry.example.com/a\ntag: '1.4'\ninterval: 1m\n", None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "pin"), TEXTS.values(), ids=TEXTS)
def test_a_pin_is_what_says_exactly_one_version(text, pin):
    assert [*found_in(text)] == ([pin] if pin else [])


def test_what_is_found_is_replaced_as_it_stands():
    """Renovate replaces version and digest within the text that matched."""
    text = text_of(Lock((HELM,)))
    [(_, _, _, version, digest)] = found_in(text)
    assert text.count(version) == text.count(digest) == 1
