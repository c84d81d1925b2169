"""What a chart is rendered with, which way a folder goes, and what is said of a chart that can't be rendered."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.tree import ABSENT, FOLDER, EntryKind, TreeEntry
from kubectl_reconcile.core.rendering.charts import (
    Release,
    Said,
    failure,
    warning,
    without_values,
)
from kubectl_reconcile.core.rendering.held_values import HeldValues, Part
from kubectl_reconcile.core.rendering.rendered import listing, still_holds
from kubectl_reconcile.core.rendering.ways import undecided, way
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.helm import HelmSpec, HelmSpecError
from kubectl_reconcile.core.resources.source import Render

SECRET = "hunter2-hunter2"


def held(**values):
    return HeldValues((Part(values, "Secret shop/db", secret=True, stamp="uid/1"),))


# -- what it is rendered with ------------------------------------------------------------------------------------------


def test_an_order_has_what_the_sync_says_and_what_the_cluster_has():
    spec = HelmSpec.of(
        {
            "valuesFiles": ["a.yaml", "../b.yaml"],
            "values": {"z": 1, "a": [True]},
            "apiVersions": ["x/v1"],
            "skipCRDs": True,
        }
    )
    order = Release("shop", "prod", spec, "v1.34.1", ("v1", "apps/v1")).order("charts/web", 100)
    assert order == {
        "path": "charts/web",
        "mostBytes": 100,
        "release": "shop",
        "namespace": "prod",
        "valuesFiles": [
            {"path": "charts/web/a.yaml", "ignoreMissing": False},
            {"path": "charts/b.yaml", "ignoreMissing": False},
        ],
        "values": '{"a":[true],"z":1}',
        "skipCRDs": True,
        "kubeVersion": "v1.34.1",
        "apiVersions": ["apps/v1", "v1", "x/v1"],
        "lookups": {},
    }


def test_held_values_are_below_those_that_the_sync_says_and_those_that_a_person_gives_are_above():
    spec = HelmSpec.of({"values": {"db": {"user": "shop"}, "size": 2}})
    release = replace(
        Release("shop", "prod", spec), held=held(db={"user": "web", "password": SECRET}, size=1, host=None)
    )
    assert json.loads(release.order("web", 1)["values"]) == {
        "db": {"user": "shop", "password": SECRET}, "size": 2, "host": None,
    }  # fmt: skip
    given = release.given({"size": 3, "db": {"password": "x"}})
    assert json.loads(given.order("web", 1)["values"])["db"] == {"user": "shop", "password": "x"}
    assert json.loads(given.order("web", 1)["values"])["size"] == 3


def test_a_release_shows_no_value_of_a_secret_and_its_key_lets_nobody_guess_one():
    release, other = (Release("shop", "prod", held=held(password=text)) for text in (SECRET, "another"))
    assert SECRET not in repr(release)
    assert (release.key, release.stamp) == (other.key, other.stamp)
    assert release.told == Release("shop", "prod").told  # nothing of a Secret is in it, not even its version
    assert release.stamp != Release("shop", "prod").stamp
    assert release.key not in {release.altered().key, Release("shop", "prod").key}
    assert release.secrets() == ("valuesFrom Secret shop/db",)
    assert SECRET not in release.altered().order("web", 1)["values"]


def test_no_message_has_a_held_value_of_a_secret_however_short_and_wherever_it_stands_besides():
    said = Said(f"it fails with {SECRET} and 12345", values=(*Release(held=held(a=SECRET, b=12345)).secret_values(),))
    assert without_values(said, {"web/templates/a.yaml": f"{SECRET} 12345".encode()}) == "it fails with *** and ***"


def test_without_a_cluster_helms_own_abilities_are_asked_for():
    order = Release().order("web", 100)
    assert (order["apiVersions"], order["kubeVersion"], order["release"], order["namespace"]) == (
        None,
        "",
        "web",
        "default",
    )
    assert Release().order("", 1)["release"] == "release-name"
    assert Release().order("a/No_Name", 1)["release"] == "release-name"


DIFFERENT = {
    "another Sync": Release("b", "n"),
    "another namespace": Release("a", "m"),
    "a value": Release("a", "n", HelmSpec.of({"values": {"x": 1}})),
    "a value of another type": Release("a", "n", HelmSpec.of({"values": {"x": "1"}})),
    "a file": Release("a", "n", HelmSpec.of({"valuesFiles": ["x"]})),
    "Kubernetes": Release("a", "n", kube_version="v1.34.0"),
    "its kinds": Release("a", "n", api_versions=("v1",)),
    "values that are held": Release("a", "n", held=held(x=1)),
    "a chart of a repository": Release("a", "n", chart=ChartSpec("https://charts.example.com", "web", "1.2.3")),
}


def test_a_release_has_another_key_for_whatever_a_template_may_see():
    keys = [Release("a", "n").key, *(each.key for each in DIFFERENT.values())]
    assert len(set(keys)) == len(keys)
    assert (
        Release("a", "n", HelmSpec.of({"values": {"x": 1, "y": 2}})).key
        == Release("a", "n", HelmSpec.of({"values": {"y": 2, "x": 1}})).key
    )


def test_the_own_name_of_a_sync_may_be_too_long_for_a_release():
    with pytest.raises(HelmSpecError, match="must be given"):
        Release("s" * 54).order("web", 1)
    assert Release("s" * 54, spec=HelmSpec.of({"releaseName": "s"})).order("web", 1)["release"] == "s"


# -- which way ---------------------------------------------------------------------------------------------------------

WAYS = {
    "manifests": (Render.AUTO, [], Render.RAW),
    "an overlay": (Render.AUTO, ["a/kustomization.yml"], Render.KUSTOMIZE),
    "a chart": (Render.AUTO, ["a/Chart.yaml"], Render.HELM),
    "both": (Render.AUTO, ["Chart.yaml", "Kustomization"], Render.AUTO),
    "both, and it is said": (Render.HELM, ["Chart.yaml", "Kustomization"], Render.HELM),
    "raw, as it is said": (Render.RAW, ["Chart.yaml"], Render.RAW),
}


@pytest.mark.parametrize(("said", "names", "goes"), WAYS.values(), ids=WAYS)
def test_a_folder_goes_the_way_that_its_files_or_its_sync_say(said, names, goes):
    assert way(said, names) is goes


def test_of_a_chart_beside_a_kustomization_nobody_says_which():
    assert undecided("a").path == "a/Chart.yaml"


class Names:
    """A tree with one folder."""

    def __init__(self, **names):
        self.inside = names

    def look(self, path):
        return FOLDER if path == "web" else TreeEntry(EntryKind.FILE, "1") if path[4:] in self.inside else ABSENT

    def names(self, path):
        return self.inside if path == "web" else {}


def test_which_names_are_in_a_folder_is_consulted_too():
    consulted = {"web": FOLDER, "web/": listing({"a": EntryKind.FILE}), "web/a": TreeEntry(EntryKind.FILE, "1")}
    assert still_holds(consulted, Names(a=EntryKind.FILE))
    assert not still_holds(consulted, Names(a=EntryKind.FILE, b=EntryKind.FILE))
    assert not still_holds(consulted, Names(a=EntryKind.LINK))
    assert not still_holds(consulted, Names())


# -- what is said ------------------------------------------------------------------------------------------------------

TEMPLATES = {
    "web/templates/a.yaml": "charts/web/templates/a.yaml",
    "web/templates/_b.tpl": "charts/web/templates/_b.tpl",
    "web/charts/sub/templates/c.yaml": "charts/web/charts/sub-1.0.0.tgz",
}
CHART = b"name: web\nkubeVersion: '>1'\ndescription: |\n  name: sub\ndependencies:\n- version: 1.x\n  name: sub\n"
FILES = {
    "charts/web/Chart.yaml": CHART,
    "dev.yaml": b"size: 1\n",
    "prod.yaml": b"db:\n  size: large\n",
    "charts/web/values.yaml": b"db: {size: 1}\nother: 1\n",
    "charts/web/templates/a.yaml": b"common-word: {{ .Values.word }}",
}
PLACES = {
    "a template and its line": ("parse error at (web/templates/a.yaml:3): x", "", "charts/web/templates/a.yaml", 3),
    "the innermost of several": (
        "template: web/templates/a.yaml:3:4: executing x: template: web/templates/_b.tpl:7:1: y", "", "charts/web/templates/_b.tpl", 7,
    ),
    "an archive, which has no lines": ("at (web/charts/sub/templates/c.yaml:3:1): x", "", "charts/web/charts/sub-1.0.0.tgz", 0),
    "a template whose output is no YAML": ("YAML parse error on web/templates/a.yaml: line 4", "", "charts/web/templates/a.yaml", 0),
    "what calls itself": ("execution error at (gotpl:1:8): x", "", "charts/web/Chart.yaml", 0),
    "a dependency": ("dependencies: sub 1.x isn't in charts/", "charts/web/Chart.yaml", "charts/web/Chart.yaml", 7),
    "a field": ("kubeVersion: it asks for", "charts/web/Chart.yaml", "charts/web/Chart.yaml", 2),
    "a file as a whole": ("it can't be unpacked", "charts/web/charts/x.tgz", "charts/web/charts/x.tgz", 0),
    "a value of a file that wins": ("values of web: - at '/db/size': got string", "", "prod.yaml", 2),
    "a value of the chart": ("values of web: - at '/other': got number", "", "charts/web/values.yaml", 2),
    "a value that nobody gives": ("values of web: - at '/none': missing", "", "charts/web/values.schema.json", 0),
}  # fmt: skip


@pytest.mark.parametrize(("text", "at", "path", "line"), PLACES.values(), ids=PLACES)
def test_a_failure_comes_to_the_file_that_it_is_about(text, at, path, line):
    found = failure(Said(text, at, TEMPLATES, given=["dev.yaml", "prod.yaml"]), "charts/web", FILES)
    assert (found.path, found.line, found.is_error) == (path, line, True)
    assert found.message == f"Helm can't render it: {text}"


def test_of_a_long_message_both_ends_are_kept():
    message = failure(Said(f"begin {'x ' * 2000} end"), "web", {}).message
    assert message.startswith("Helm can't render it: begin")
    assert message.endswith("end")
    assert len(message) < 700


def test_a_warning_doesn_t_say_twice_where_it_is():
    found = warning(Said("web/templates/a.yaml: Job a is odd", "", TEMPLATES), "charts/web", FILES)
    assert (str(found), found.is_error) == ("charts/web/templates/a.yaml: Job a is odd", False)


HIDDEN = {
    "a value": ({"a": SECRET}, f"bad: {SECRET}!", "bad: ***!"),
    "in a list": ({"a": [{"b": SECRET}]}, f"bad: {SECRET}", "bad: ***"),
    "in base64": ({"a": SECRET}, "bad: aHVudGVyMi1odW50ZXIy", "bad: ***"),
    "quoted": ({"a": 'one"two'}, r'bad: "one\"two"', 'bad: "***"'),
    "in lines": ({"a": "first line\nsecond line"}, "a: |\n  first line\n  second line", "a: |\n  ***"),
    "a large number": ({"a": 12345678}, "bad: 12345678", "bad: ***"),
    "a small one": ({"a": 80, "b": True, "c": None}, "bad: 80 true null", "bad: 80 true null"),
    "a small one that is secret": ({"pinToken": 1234}, "bad: 1234", "bad: ***"),
    "a word of the templates": ({"a": "common-word"}, "common-word is missing", "common-word is missing"),
    "one that is secret": ({"password": "common-word"}, "common-word is missing", "*** is missing"),
    "below a secret key": ({"auth": {"user": "common-word"}}, "common-word", "***"),
    "what YAML quotes": ({}, "cannot unmarshal !!str `hunter2...` into map", "cannot unmarshal !!str *** into map"),
}


@pytest.mark.parametrize(("values", "text", "shown"), HIDDEN.values(), ids=HIDDEN)
def test_values_are_in_no_message(values, text, shown):
    assert without_values(Said(text, values=[values]), FILES) == shown


def test_what_a_chart_says_of_itself_is_shown_though_some_value_is_the_same():
    said = Said(
        "dependencies: redis 1.x from https://redis.example.com isn't in charts/",
        "Chart.yaml",
        values=[{"secretName": "redis"}],
    )
    assert without_values(said, {}) == said.text


HINTS = {
    "a dependency": ("dependencies: a 1 isn't in charts/", "helm dependency build"),
    "a link": ("'a' is a symbolic link, which isn't followed", "link within the repository, or commit the file itself"),
    "a schema": ("it refers to http://x, and nothing is fetched while rendering", "under $defs"),
    "a values file": ("the values file isn't there", "ignoreMissingValuesFiles"),
    "Kubernetes": ("kubeVersion: it asks for Kubernetes 1", "spec.source.helm.kubeVersion"),
    "a value": ("values of web: at '/a': missing", "spec.source.helm.values"),
}


@pytest.mark.parametrize(("text", "hint"), HINTS.values(), ids=HINTS)
def test_a_failure_says_what_to_do(text, hint):
    assert hint in failure(Said(text), "web", {}).hint
