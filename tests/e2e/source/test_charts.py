"""Charts, rendered by the real program; what is refused of them, and what is said when they can't be."""

from __future__ import annotations

import sys
import textwrap
import threading
import time

import pytest

from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.rendering.lookups import Answers, answer
from kubectl_reconcile.core.resources.helm import HelmSpec
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.folder.watch import Watched
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.git.source import GitSource, Ref, Repository
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.render import program
from kubectl_reconcile.source.render.renderer import Renderer
from tests.e2e.source.overlays import SECRET, write
from tests.rendering_tools import documents_of, helm_template, our_documents, packed, silence


def chart(name, **more):
    return f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n" + textwrap.dedent(more.get("more", ""))


def config(name, **data):
    lines = "".join(f"  {key}: {value}\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{lines}"


@pytest.fixture(scope="module")
def shared_renderer(renders):
    renderer = Renderer()
    yield renderer
    renderer.close()


@pytest.fixture
def render(shared_renderer, folder):
    """render(files, release, path) -> what the chart at *path* renders to, with these files beside what already exists."""

    def run(files, release=Release("web", "shop"), path="web", *, limits=GitLimits(), using=shared_renderer):  # noqa: B008 - frozen
        write(folder, files)
        reader = ManifestReader(limits=limits, renderer=using, release_of=lambda _: release)
        return reader.read(WorktreeSource(folder / path, limits=limits))

    return run


def data(found):
    """Return the data of all maps that were rendered, by their names."""
    assert [str(each) for each in found.problems if each.is_error] == []
    return {each.ref.name: each.manifest.get("data") for each in found.manifests}


def problem(found):
    """Return the only thing that is wrong."""
    [only] = found.problems
    assert only.is_error
    assert found.manifests == ()
    assert found.revision.unrendered == ("",)  # nothing counts as gone
    return only


# -- what Helm makes of a chart ----------------------------------------------------------------------------------------

WEB = {
    "web/Chart.yaml": chart("web"),
    "web/values.yaml": "color: red\nlist: [a, b]\n",
    "web/templates/config.yaml": config("{{ .Release.Name }}", color="{{ .Values.color }}"),
}
SUB = {
    "Chart.yaml": chart("sub"),
    "values.yaml": "size: 1\nexports: {shared: {shape: round}}\ndeep: {level: 3}\n",
    "templates/config.yaml": config("sub", size="'{{ .Values.size }}'", all="'{{ .Values.global.all }}'"),
}
UMBRELLA = {
    "web/Chart.yaml": chart(
        "web", more="dependencies:\n- {name: sub, version: 1.x, repository: https://charts.example.com%s}\n"
    ),
    "web/values.yaml": "global: {all: x}\nsub: {size: 2}\n",
    "web/templates/config.yaml": config("web", shape="'{{ .Values.shape }}'", level="'{{ .Values.copied }}'"),
}


def umbrella(more="", values=""):
    files = {**UMBRELLA, "web/Chart.yaml": UMBRELLA["web/Chart.yaml"] % more}
    return {**files, "web/values.yaml": UMBRELLA["web/values.yaml"] + values}


def as_folder(files):
    return {f"web/charts/sub/{name}": text for name, text in files.items()}


def as_archive(files):
    return {"web/charts/sub-1.0.0.tgz": packed({f"sub/{name}": text for name, text in files.items()})}


TEXTS = "".join(f"---\n{config(name, text='|')}    one\n    two\n" for name in ("a", "b"))

RENDERED = {
    "texts that end with their document": (
        {**WEB, "web/templates/config.yaml": TEXTS}, {"a": {"text": "one\ntwo\n"}, "b": {"text": "one\ntwo\n"}},
    ),
    "values of the chart": (WEB, {"web": {"color": "red"}}),
    "a folder of a chart within": (
        {**umbrella(), **as_folder(SUB)}, {"web": {"shape": "", "level": ""}, "sub": {"size": "2", "all": "x"}},
    ),
    "an archive of a chart within": (
        {**umbrella(), **as_archive(SUB)}, {"web": {"shape": "", "level": ""}, "sub": {"size": "2", "all": "x"}},
    ),
    "one that its condition switches off": (
        {**umbrella(", condition: sub.enabled"), **as_folder(SUB), "web/values.yaml": "sub: {enabled: false}\n"},
        {"web": {"shape": "", "level": ""}},
    ),
    "one that its tags switch off": (
        {**umbrella(", tags: [extra]", "tags: {extra: false}\n"), **as_folder(SUB)}, {"web": {"shape": "", "level": ""}},
    ),
    "values that come from within": (
        {**umbrella(", import-values: [shared, {child: deep, parent: .}]"), **as_folder(SUB),
         "web/templates/config.yaml": config("web", shape="{{ .Values.shape }}", level="'{{ .Values.level }}'")},
        {"web": {"shape": "round", "level": "3"}, "sub": {"size": "2", "all": "x"}},
    ),
    "an alias": (
        {**umbrella(", alias: other", "other: {size: 5}\n"), **as_archive(SUB)},
        {"web": {"shape": "", "level": ""}, "sub": {"size": "5", "all": "x"}},
    ),
    "archives in archives": (
        {**umbrella(), **as_archive({**SUB, "Chart.yaml": chart("sub", more="dependencies: [{name: low, version: 1.0.0}]\n"),
                                     "charts/low-1.0.0.tgz": packed({"low/Chart.yaml": chart("low"), "low/templates/c.yaml": config("low")})})},
        {"web": {"shape": "", "level": ""}, "sub": {"size": "2", "all": "x"}, "low": None},
    ),
    "a library": (
        {"web/Chart.yaml": chart("web", more="dependencies: [{name: lib, version: 1.0.0}]\n"),
         "web/charts/lib/Chart.yaml": chart("lib", more="type: library\n"),
         "web/charts/lib/templates/_x.tpl": '{{ define "lib.x" }}{{ .Chart.Name }}-{{ .Values.color | default "none" | b64enc }}{{ end }}',
         "web/templates/c.yaml": config("web", x='{{ include "lib.x" . }}')},
        {"web": {"x": "web-bm9uZQ=="}},
    ),
    "templates in values, and templates that are included": (
        {**WEB, "web/values.yaml": "color: '{{ .Release.Namespace }}-{{ include \"c\" . }}'\n",
         "web/templates/_c.tpl": '{{ define "c" }}{{ .Chart.Version }}{{ end }}',
         "web/templates/config.yaml": config("web", color="{{ tpl .Values.color . }}")},
        {"web": {"color": "shop-1.0.0"}},
    ),
    "files of the chart, and none beyond": (
        {**WEB, "web/conf/a.txt": "hello", "secret.txt": SECRET, "web/templates/config.yaml": config(
            "web", a='{{ .Files.Get "conf/a.txt" }}', b='"{{ .Files.Get "../secret.txt" }}"', c='"{{ (.Files.Glob "conf/*").AsConfig }}"')},
        {"web": {"a": "hello", "b": "", "c": "a.txt: hello"}},
    ),
    "what is ignored isn't there": (
        {**WEB, "web/.helmignore": "conf/\n*.bak\n", "web/conf/a.txt": "hello", "web/templates/x.yaml.bak": "{{ fail }}",
         "web/templates/config.yaml": config("web", a='"{{ .Files.Get "conf/a.txt" }}"')},
        {"web": {"a": ""}},
    ),
    "abilities of the cluster": (
        {**WEB, "web/templates/config.yaml": config(
            "web", kube="{{ .Capabilities.KubeVersion.Version }}", minor="'{{ .Capabilities.KubeVersion.Minor }}'",
            has='\'{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}\'', hasnt='\'{{ .Capabilities.APIVersions.Has "batch/v1" }}\'')},
        {"web": {"kube": "v1.33.4", "minor": "33", "has": "true", "hasnt": "false"}},
    ),
    "no environment, no network, no cluster": (
        {**WEB, "web/templates/config.yaml": config(
            "web", host="'{{ getHostByName \"localhost\" }}'", zone='{{ dateInZone "15h" (toDate "2006-01-02" "2026-07-01") "Europe/Rome" }}')},
        {"web": {"host": "", "zone": "02h"}},
    ),
    "several objects of one template": (
        {**WEB, "web/templates/config.yaml": config("a") + "---\n# nothing\n---\n" + config("b") + "---\n\n"}, {"a": None, "b": None},
    ),
    "the first API of charts": (
        {"web/Chart.yaml": "name: web\nversion: 1.0.0\n", "web/requirements.yaml": "dependencies: [{name: sub, version: 1.0.0}]\n",
         "web/templates/config.yaml": config("web"), **as_folder(SUB), "web/values.yaml": "global: {all: z}\n"},
        {"web": None, "sub": {"size": "1", "all": "z"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), RENDERED.values(), ids=RENDERED)
def test_a_chart_renders_to_what_helm_makes_of_it(render, files, expected):
    release = Release("web", "shop", kube_version="v1.33.4", api_versions=("apps/v1", "apps/v1/Deployment"))
    assert data(render(files, release)) == expected


@pytest.mark.parametrize(("files", "expected"), RENDERED.values(), ids=RENDERED)
def test_a_chart_renders_to_the_bytes_that_helm_prints(shared_renderer, helm, folder, files, expected):
    write(folder, files)
    theirs = documents_of(helm_template(helm, folder / "web", "web", "shop", "--kube-version", "v1.33.4"))
    assert our_documents(folder / "web", Release("web", "shop", kube_version="v1.33.4"), shared_renderer) == (
        theirs,
        [],
    )
    assert len(theirs) >= len(expected)


def test_each_object_knows_its_template_and_definitions_come_first_and_hooks_last(render):
    definition = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\n"
    )
    hook = "metadata: {name: %s, annotations: {helm.sh/hook: '%s'}}\n"
    job = "apiVersion: batch/v1\nkind: Job\n"
    files = {
        **umbrella(),
        **as_archive({**SUB, "crds/x.yaml": definition.replace("xs", "ys")}),
        "web/crds/x.yaml": definition + "spec: {a: '{{ not a template }}'}\n",
        "web/templates/many/z.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: first}\n",
        "web/templates/hooks.yaml": job
        + hook % ("migrate", "pre-install,pre-upgrade")
        + "---\n"
        + job
        + hook % ("try", "test"),
        "web/templates/NOTES.txt": "Thank you for {{ fail }}".replace("{{ fail }}", "{{ .Chart.Name }}"),
    }
    found = render(files)
    assert [(each.ref.name, each.path) for each in found.manifests] == [
        ("ys.example.com", "web/charts/sub-1.0.0.tgz"),
        ("xs.example.com", "web/crds/x.yaml"),
        ("first", "web/templates/many/z.yaml"),
        ("sub", "web/charts/sub-1.0.0.tgz"),
        ("web", "web/templates/config.yaml"),
        ("migrate", "web/templates/hooks.yaml"),
    ]
    assert found.manifests[1].manifest["spec"] == {"a": "{{ not a template }}"}
    assert list(found.revision.files) == sorted({each.path for each in found.manifests})
    assert all(each.line < 0 for each in found.manifests)
    assert [str(each) for each in found.problems] == [
        "web/templates/hooks.yaml: Job try is a test, and is left out: helm test runs it"
    ]
    without = render({}, Release("web", "shop", HelmSpec(skip_crds=True)))
    assert [each.ref.name for each in without.manifests] == ["first", "sub", "web", "migrate"]


def test_values_come_from_the_chart_then_files_in_their_order_then_the_sync(render, folder):
    files = {
        **WEB,
        "web/templates/config.yaml": config("web", **{key: f"'{{{{ .Values.{key} }}}}'" for key in "abcd"}),
        "web/values.yaml": "{a: chart, b: chart, c: chart, d: chart}\n",
        "web/prod.yaml": "{b: prod, c: prod, d: prod}\n",
        "common/all.yaml": "{c: all, d: all}\n",
    }
    spec = HelmSpec.of({"valuesFiles": ["prod.yaml", "../common/all.yaml"], "values": {"d": "own"}})
    assert data(render(files, Release("web", "shop", spec))) == {
        "web": {"a": "chart", "b": "prod", "c": "all", "d": "own"}
    }
    missing = HelmSpec.of({"valuesFiles": ["prod.yaml", "gone.yaml"]})
    wrong = problem(render({}, Release("web", "shop", missing)))
    assert (wrong.path, wrong.message) == ("web/gone.yaml", "Helm can't render it: the values file isn't there")
    assert "ignoreMissingValuesFiles" in wrong.hint
    passed = HelmSpec.of({"valuesFiles": ["gone.yaml", "prod.yaml"], "ignoreMissingValuesFiles": True})
    assert data(render({}, Release("web", "shop", passed)))["web"]["b"] == "prod"
    beyond = HelmSpec.of({"valuesFiles": ["../../../outside.yaml"]})
    write(folder.parent, {"outside.yaml": "a: outside\n"})
    assert "isn't there" in problem(render({}, Release("web", "shop", beyond))).message


def test_a_release_is_called_as_the_sync_says_or_as_it_is_called_itself(render):
    files = {**WEB, "web/templates/config.yaml": config("{{ .Release.Name }}", ns="{{ .Release.Namespace }}")}
    assert data(render(files, Release("shop", "prod"))) == {"shop": {"ns": "prod"}}
    spec = HelmSpec.of({"releaseName": "other", "namespace": "elsewhere"})
    assert data(render({}, Release("shop", "prod", spec))) == {"other": {"ns": "elsewhere"}}
    assert data(render({}, Release("", "prod"))) == {"web": {"ns": "prod"}}  # outside any Sync, after its folder
    long = problem(render({}, Release("s" * 60, "prod")))
    assert long.message.startswith("spec.source.helm.releaseName: must be given")


# -- which way a path goes ---------------------------------------------------------------------------------------------


def test_a_folder_with_a_chart_is_rendered_unless_the_sync_or_an_ignore_file_says_otherwise(
    shared_renderer, git_server, tmp_path, folder
):
    overlay = {"both/kustomization.yaml": "resources: [a.yaml]\n", "both/a.yaml": config("plain")}
    both = {f"both/{name[4:]}": text for name, text in WEB.items()}
    files = {
        **WEB,
        **overlay,
        **both,
        "above/a.yaml": config("plain"),
        "above/chart/Chart.yaml": chart("c"),
        "above/chart/b.yaml": config("b"),
    }
    write(folder, files)
    sha = git_server.push(files)

    def read(path, render=Render.AUTO):
        reader = ManifestReader(renderer=shared_renderer, release_of=lambda _: Release("web", "shop"))
        repository, cache = Repository.of(git_server.url), tmp_path / "cache"
        of_commit = reader.read(GitSource(repository, Ref.of(branch="main"), path, cache_dir=cache, render=render))
        of_folder = reader.read(WorktreeSource(folder, path, render=render))
        assert of_commit.problems == of_folder.problems
        assert [each.manifest for each in of_commit.manifests] == [each.manifest for each in of_folder.manifests]
        return of_commit

    assert (data(read("web")), read("web").revision.sha) == ({"web": {"color": "red"}}, sha)
    assert problem(read("both")).hint.startswith("set spec.source.render to Kustomize or Helm")
    assert data(read("both", Render.HELM)) == {"web": {"color": "red"}}
    assert data(read("both", Render.KUSTOMIZE)) == {"plain": None}
    assert problem(read("above/chart", Render.KUSTOMIZE)).path == "above/chart/kustomization.yaml"
    assert "there is no chart" not in str(read("above", Render.RAW).problems)
    assert problem(read("above", Render.HELM)).message == "Helm can't render it: Chart.yaml file is missing"
    top = read("above")
    assert [each.ref.name for each in top.manifests] == ["plain"]
    assert (top.revision.unrendered, [each.path for each in top.problems]) == (
        ("above/chart",),
        ["above/chart/Chart.yaml"],
    )
    ignoring = {
        "both/.reconcileignore": "Chart.yaml\n",
        "web/.reconcileignore": "Chart.yaml\ntemplates/\n",
        "web/c.yaml": config("raw"),
    }
    write(folder, ignoring)
    git_server.push(ignoring)
    assert data(read("both")) == {"plain": None}
    assert data(read("web")) == {"raw": None}


def test_of_a_partial_clone_only_the_chart_is_fetched(shared_renderer, git_server, tmp_path):
    git_server.push({**umbrella(), **as_archive(SUB), "media/large.txt": "".join(f"{n}\n" for n in range(90_000))})
    source = GitSource(Repository.of(git_server.url), Ref.of(branch="main"), "web", cache_dir=tmp_path / "cache")
    assert set(data(ManifestReader(renderer=shared_renderer).read(source))) == {"web", "sub"}
    assert sum(file.stat().st_size for file in (tmp_path / "cache").rglob("*") if file.is_file()) < 150_000


# -- once --------------------------------------------------------------------------------------------------------------


def test_a_push_that_touches_nothing_of_the_chart_renders_nothing(renderer, git_server, tmp_path):
    git_server.push({**WEB, "web/.helmignore": "docs/\n"})
    source = GitSource(Repository.of(git_server.url), Ref.of(branch="main"), "web", cache_dir=tmp_path / "cache")
    releases = [Release("web", "shop")]
    reader = ManifestReader(renderer=renderer, release_of=lambda _: releases[-1])
    first = reader.read(source)
    git_server.push({"other/a.yaml": "a: b\n", "web/docs/a.md": "hello"})
    reader.read(source)
    reader.read(source)
    assert renderer.rendered == 2  # a new folder in the chart may have been one of the chart
    git_server.push({"web/docs/b.md": "hello"})
    assert (reader.read(source).digest, renderer.rendered) == (first.digest, 2)
    releases.append(Release("web", "other"))
    assert (reader.read(source).digest, renderer.rendered) == (first.digest, 3)
    releases.append(Release("web", "shop"))
    assert (reader.read(source).digest, renderer.rendered) == (first.digest, 3)
    git_server.push({"web/templates/more.yaml": config("more")})  # what is in a folder was consulted, too
    assert (len(reader.read(source).manifests), renderer.rendered) == (2, 4)
    git_server.push({"web/values.yaml": "color: blue\n"})
    assert (data(reader.read(source))["web"], renderer.rendered) == ({"color": "blue"}, 5)


# -- refused -----------------------------------------------------------------------------------------------------------

SCHEMAS = {
    "over http": '{{"$ref": "http://127.0.0.1:{port}/a.json"}}',
    "over https": '{{"properties": {{"a": {{"$ref": "https://127.0.0.1:{port}/a.json"}}}}}}',
    "of a file": '{{"$ref": "file:///etc/passwd"}}',
    "of a file beside it": '{{"$ref": "other.json"}}',
    "by another schema's name": '{{"$schema": "http://127.0.0.1:{port}/schema#"}}',
    "of a name": '{{"$ref": "urn:example:a"}}',
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_reaches_nothing_beside_itself(render, schema):
    with silence() as (port, heard):
        wrong = problem(render({**WEB, "web/values.schema.json": schema.format(port=port), "web/other.json": "{}"}))
    assert heard == []
    assert "nothing is fetched while rendering" in wrong.message
    assert "root:" not in str(wrong)
    assert wrong.hint == "put the definition into the schema, under $defs"


def test_links_of_a_chart_are_not_followed_out_of_the_tree(render, folder):
    write(folder, WEB)
    (folder.parent / "outside").mkdir()
    (folder / "web" / "charts").mkdir()
    (folder / "web" / "charts" / "sub").symlink_to("../../../outside")
    wrong = problem(render({}))
    assert (wrong.path, wrong.hint) == ("web/charts/sub", "link within the repository, or commit the file itself")
    assert data(render({"web/.helmignore": "charts/sub\n"})) == {"web": {"color": "red"}}


# -- what is wrong with a chart ----------------------------------------------------------------------------------------

NEEDY = chart(
    "web",
    more="description: web\ndependencies:\n- name: other\n  version: '*'\n- name: sub\n  version: ~2.0\n  repository: https://charts.example.com\n",
)
OTHER = {"web/charts/other/Chart.yaml": chart("other")}
WRONG = {
    "a dependency that isn't vendored": (
        {"web/Chart.yaml": NEEDY, **OTHER}, "web/Chart.yaml", 8,
        "dependencies: sub ~2.0 from https://charts.example.com isn't in charts/",
    ),
    "one in another version": (
        {"web/Chart.yaml": NEEDY, **OTHER, **as_folder(SUB)}, "web/Chart.yaml", 8,
        "dependencies: sub is wanted in version ~2.0, and charts/ has 1.0.0",
    ),
    "one that a chart within needs": (
        {**umbrella(), **as_folder({**SUB, "Chart.yaml": chart("sub", more="dependencies:\n- {version: 1.0.0}\n- name: low\n  version: 1.0.0\n").replace("- {version: 1.0.0}\n", "")})},
        "web/charts/sub/Chart.yaml", 5, "dependencies: low 1.0.0 isn't in charts/",
    ),
    "another Kubernetes": (
        {"web/Chart.yaml": chart("web", more="kubeVersion: '>=1.50.0-0'\n")}, "web/Chart.yaml", 4,
        "kubeVersion: it asks for Kubernetes >=1.50.0-0, and this is v1.33.4",
    ),
    "another API of charts": ({"web/Chart.yaml": "apiVersion: v9\nname: web\nversion: 1.0.0\n"}, "web/Chart.yaml", 1, "apiVersion v9"),
    "a library": ({"web/Chart.yaml": chart("web", more="type: library\n")}, "web/Chart.yaml", 0, "a library chart has no objects"),
    "no version": ({"web/Chart.yaml": "apiVersion: v2\nname: web\n"}, "web/Chart.yaml", 0, "chart.metadata.version is required"),
    "no YAML": ({"web/Chart.yaml": "a: [\n"}, "web/Chart.yaml", 0, "cannot load Chart.yaml"),
    "values that are none": ({"web/values.yaml": "- a\n"}, "web/Chart.yaml", 0, "cannot load values.yaml"),
    "an archive that is none": ({"web/charts/x.tgz": "none"}, "web/charts/x.tgz", 0, "it can't be unpacked"),
    "an archive that leads out": (
        {"web/charts/x.tgz": packed({"x/../../y": "a"})}, "web/charts/x.tgz", 0, "chart illegally references parent directory",
    ),
    "an ignore file that is none": ({"web/.helmignore": "a/**/b\n"}, "web/.helmignore", 0, "it can't be understood: double-star"),
    "a template that is none": (
        {"web/templates/b.yaml": "a: b\n{{ if }}\n"}, "web/templates/b.yaml", 2, "parse error at (web/templates/b.yaml:2): missing value for if",
    ),
    "a function that isn't there": ({"web/templates/b.yaml": '{{ env "HOME" }}'}, "web/templates/b.yaml", 1, 'function "env" not defined'),
    "nothing where something is looked for": (
        {"web/templates/b.yaml": "a: b\nc: {{ .Values.x.y.z }}\n"}, "web/templates/b.yaml", 2, "nil pointer evaluating interface {}.y",
    ),
    "that in a template that is included": (
        {"web/templates/b.yaml": '{{ include "c" . }}', "web/templates/_c.tpl": '{{ define "c" }}\n{{ .Values.x.y }}{{ end }}'},
        "web/templates/_c.tpl", 2, "nil pointer evaluating interface {}.y",
    ),
    "a value that is required": (
        {"web/templates/b.yaml": '\n\n{{ required "color of the web" .Values.none }}'}, "web/templates/b.yaml", 3, "color of the web",
    ),
    "a template that gives up": ({"web/templates/b.yaml": '{{ fail "no way" }}'}, "web/templates/b.yaml", 1, "no way"),
    "a text that is no YAML": ({"web/templates/b.yaml": "a: b: c\n"}, "web/templates/b.yaml", 0, "YAML parse error on web/templates/b.yaml"),
    "a template of an archive": (
        {**umbrella(), **as_archive({**SUB, "templates/bad.yaml": '\n{{ fail "deep" }}'})}, "web/charts/sub-1.0.0.tgz", 0,
        "execution error at (web/charts/sub/templates/bad.yaml:2:3): deep",
    ),
    "a value that the schema doesn't allow": (
        {"web/values.schema.json": '{"properties": {"color": {"type": "integer"}}}'}, "web/values.yaml", 1, "at '/color': got string, want integer",
    ),
    "a schema that is none": ({"web/values.schema.json": "{"}, "web/Chart.yaml", 0, "the schema can't be read"),
    "recursion by include": (
        {"web/templates/b.yaml": '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}'}, "web/templates/b.yaml", 1, "nested reference name",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "path", "line", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_chart_comes_to_its_file_and_line(render, files, path, line, said):
    wrong = problem(render({**WEB, **files}, Release("web", "shop", kube_version="v1.33.4")))
    assert said in wrong.message
    assert (wrong.path, wrong.line) == (path, line)


def test_what_is_not_vendored_is_told_with_the_command_that_does_it(render):
    assert "helm dependency update writes Chart.lock" in problem(render({**WEB, "web/Chart.yaml": NEEDY})).hint


LEAKS = {
    "all values": "{{ fail (toYaml .Values) }}",
    "as JSON": "{{ fail (toJson .Values) }}",
    "as Go prints them": '{{ fail (printf "%v" .Values) }}',
    "one": "{{ fail .Values.db.password }}",
    "in base64": "{{ fail (.Values.db.password | b64enc) }}",
    "in a template": '{{ tpl (printf "{{ if }} %s" .Values.db.password) . }}',
    "as YAML that is none": "kind: Secret\nstringData: [{{ .Values.db.password }}: {\n",
    "as a number": "metadata: {annotations: [{{ .Values.db.password }}]}",
    "by a function that can't": "{{ .Values.db.password.x }}",
    "through a chart within": "{{ fail (toYaml .Subcharts) }}",
}


@pytest.mark.parametrize("text", LEAKS.values(), ids=LEAKS)
@pytest.mark.parametrize("where", ["the chart", "a file", "the Sync"])
def test_no_message_has_a_value(render, text, where):
    values = {"db": {"password": SECRET, "more": ["line one of a key\nline two of a key"]}}
    files = {**WEB, "web/templates/b.yaml": text, "web/secret.yaml": f"db: {{password: {SECRET}}}\n"}
    if where == "the chart":
        files["web/values.yaml"] = f"db:\n  password: {SECRET}\n"
    given = {"valuesFiles": ["secret.yaml"] * (where == "a file"), "values": values if where == "the Sync" else {}}
    wrong = render(files, Release("web", "shop", HelmSpec.of(given))).problems
    assert wrong
    assert SECRET not in str(wrong)
    assert "aHVudGVyMi1odW50ZXIy" not in str(wrong)
    assert "line two of a key" not in str(wrong)


# -- what is said of one that renders ----------------------------------------------------------------------------------


def test_what_helm_passes_over_is_a_warning(render):
    files = {
        **umbrella(),
        **as_folder({**SUB, "Chart.yaml": chart("sub", more="kubeVersion: '>1.50'\n")}),
        "web/templates/b.yaml": config(
            "b",
            found='\'{{ lookup "v1" "Secret" "shop" "db" | toJson }}\'',
            all='\'{{ len (lookup "v1" "Pod" "" "") }}\'',
        ),
        "web/templates/odd.yaml": "kind: Job\nmetadata: {name: old, annotations: {helm.sh/hook: 'pre-install, crd-install'}}\n",
        "web/values.yaml": f"sub: {{size: {{a: {SECRET}}}}}\n",
    }
    found = render(files, Release("web", "shop", kube_version="v1.33.4"))
    assert "old" not in data(found)
    assert data(found)["b"] == {"found": "{}", "all": "0"}
    assert all(not each.is_error for each in found.problems)
    said = "\n".join(map(str, found.problems))
    assert "web/templates/odd.yaml: Job old is a hook of crd-install, which Helm doesn't know and leaves out" in said
    assert "the chart sub in it asks for Kubernetes >1.50, and this is v1.33.4" in said
    assert "it looks up Secret shop/db in the cluster, and finds nothing" in said
    assert "it looks up every Pod in the cluster" in said
    assert SECRET not in said
    assert found.revision.unrendered == ()


def test_a_chart_is_told_what_is_there_as_helm_tells_it(shared_renderer, folder):
    tree = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "next": "b",
        "spec": {"user": 1000680000, "half": 0.5},
    }  # fmt: skip
    files = {
        **WEB,
        "web/templates/a.yaml": '{{ $a := lookup "v1" "ConfigMap" "shop" "a" }}{{ if not $a }}{{ fail "a is needed" }}{{ end }}'
        '{{ $_ := set $a.metadata "name" "other" }}{{ $b := lookup "v1" "ConfigMap" "shop" $a.next }}'
        + config(
            "a", user="u{{ $a.spec.user }}", kind="{{ kindOf $a.spec.user }}", half="h{{ $a.spec.half }}", b="{{ len $b | quote }}",
            again='{{ (lookup "v1" "ConfigMap" "shop" "a").metadata.name }}',
        ),
    }  # fmt: skip
    write(folder, files)
    release = Release("web", "shop", HelmSpec.of({"lookup": "Cluster"}))
    reader = ManifestReader(renderer=shared_renderer, release_of=lambda _: release)
    source = WorktreeSource(folder / "web")
    assert "a is needed" in problem(reader.read(source)).message
    assert reader.lack() == ("v1 ConfigMap shop/a",)  # what failed may go well once it is answered
    reader.answers = Answers({"v1 ConfigMap shop/a": answer(tree)})
    reader.read(source)
    assert reader.lack() == ("v1 ConfigMap shop/b",)
    reader.answers = reader.answers.and_also(Answers({"v1 ConfigMap shop/b": ""}))
    found = reader.read(source)
    assert reader.lack() == ()
    assert data(found)["a"] == {"user": "u1000680000", "kind": "int64", "half": "h0.5", "b": "0", "again": "a"}
    assert [str(each) for each in found.problems] == [
        "web/Chart.yaml: it looks up ConfigMap shop/a in the cluster, and finds it",
        "web/Chart.yaml: it looks up ConfigMap shop/b in the cluster, and finds nothing",
    ]
    reader.answers = Answers(beyond="it looks up more than 100 objects")
    assert problem(reader.read(source)).message == "it looks up more than 100 objects"


# -- bombs -------------------------------------------------------------------------------------------------------------


def test_a_chart_that_takes_too_long_is_ended_and_not_tried_again(render, renderer):
    renderer.seconds = 1.0
    loops = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
    began_s = time.monotonic()
    wrong = problem(render({**WEB, "web/templates/b.yaml": loops}, using=renderer))
    assert (wrong.path, "it took longer than 1 s and was stopped" in wrong.message) == ("web/Chart.yaml", True)
    assert time.monotonic() - began_s < 120
    count = renderer.rendered
    assert problem(render({}, using=renderer)) == wrong
    assert renderer.rendered == count
    renderer.seconds = 120.0
    assert data(render({"web/templates/b.yaml": config("b")}, using=renderer))["b"] is None


BOMBS = {
    "one long text": '{{ repeat 2000000000 "a" }}',
    "a list without end": "{{ len (until 1000000000) }}",
    "a text that doubles": '{{ $x := "aaaaaaaa" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ $x }}',
    "templates in templates": '{{ define "t" }}{{ tpl "{{ include \\"t\\" . }}{{ include \\"t\\" . }}" . }}{{ end }}{{ include "t" . }}',
    "values that are their own": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
    "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
    "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\ni: &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]\n",
}


@pytest.mark.skipif(sys.platform != "linux", reason="no other kernel limits the memory of another process")
@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_a_chart_that_takes_too_much_memory_is_ended(render, renderer, text):
    renderer.seconds = 20.0
    files = {**WEB, "web/values.yaml": text} if text.startswith("a: &a") else {**WEB, "web/templates/b.yaml": text}
    wrong = problem(render(files, using=renderer))
    assert wrong.path.startswith("web/")
    assert data(render({**WEB, "web/templates/b.yaml": ""}, using=renderer)) == {"web": {"color": "red"}}


def test_an_archive_that_unpacks_to_too_much_is_refused(render):
    within = packed({"x/Chart.yaml": chart("x"), "x/big": bytes(70 * MEBIBYTE)})
    wrong = problem(render({**WEB, "web/charts/x-1.0.0.tgz": within}))
    assert (wrong.path, "larger than the maximum size" in wrong.message) == ("web/charts/x-1.0.0.tgz", True)


def test_a_file_that_is_too_large_and_output_that_is_too_much_are_refused(render):
    small = GitLimits(file_bytes=MEBIBYTE // 2)
    wrong = problem(render({**WEB, "web/big.txt": "a" * 700_000}, limits=small))
    assert (wrong.path, "has more than 0 MiB; start the daemon with a larger --max-file" in wrong.message) == (
        "web/big.txt",
        True,
    )
    much = problem(render({"web/big.txt": "", "web/templates/b.yaml": 'a: {{ repeat 40000000 "a" }}\n'}))
    assert "it renders to more than 32 MiB" in much.message


def test_without_the_program_a_chart_is_a_problem_that_says_how_to_get_it(render, renderer, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    wrong = problem(render(WEB, using=renderer))
    assert (wrong.path, wrong.hint) == ("web/Chart.yaml", program.HOW_TO_GET)
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data(render({}, using=renderer)) == {"web": {"color": "red"}}  # no program is no verdict to be kept


def test_a_watch_of_a_chart_hears_of_files_that_are_no_manifests(shared_renderer, folder):
    write(folder, WEB)
    (folder / "web/.git").mkdir()  # the chart is the whole working tree
    changed, source = threading.Event(), WorktreeSource(folder / "web")
    reader = ManifestReader(renderer=shared_renderer, release_of=lambda _: Release("web", "shop"))
    reader.read(source)
    assert (
        Watched(folder / "web", alone=False, top=folder / "web", consulted=reader.consulted).folder() == folder / "web"
    )
    with source.watch(changed.set, quiet_s=0.01, consulted=reader.consulted):
        for name in ("web/values.yaml", "web/templates/_helpers.tpl", "web/templates/more/a.txt", "web/.helmignore"):
            changed.clear()
            write(folder, {name: "a: b\n"})
            assert changed.wait(200), name


# -- what is drawn -----------------------------------------------------------------------------------------------------

DRAWING = {
    "randAlphaNum 1": "{{ randAlphaNum 1 }}",
    "randInt of two": "{{ randInt 0 2 }}",
    "shuffle": '{{ shuffle "abc" }}',
    "uuidv4": "{{ uuidv4 }}",
    "randBytes": "{{ randBytes 4 }}",
    "the year": '{{ now | date "2006" }}',
    "a date of nothing": '{{ date "2006-01-02" "" }}',
    "since then": "{{ ago 1500000000 }}",
    "bcrypt": '{{ bcrypt "a" }}',
    "htpasswd": '{{ htpasswd "a" "b" }}',
    "a key": '{{ genPrivateKey "ed25519" | b64enc }}',
    "a certificate": '{{ (genSelfSignedCert "a" nil nil 1).Cert | b64enc }}',
    "encryptAES": '{{ encryptAES "0123456789abcdef" "a" }}',
    "through a template": '{{ tpl "{{ randAlpha 3 }}" . }}',
}


@pytest.mark.parametrize("text", DRAWING.values(), ids=DRAWING)
def test_what_draws_is_found_by_rendering_twice(render, text):
    found = render({**WEB, "web/templates/config.yaml": config("web", drawn=f"'{text}'", fixed="same")})
    [located] = found.manifests
    assert located.manifest["data"] == {"drawn": "<generated when applied>", "fixed": "same"}
    [each] = located.drawn
    assert (each.path, each.value != "") == (("data", "drawn"), True)
    [told] = found.problems
    assert (told.is_error, told.path) == (False, "web/templates/config.yaml")
    assert told.message == "ConfigMap web: .data.drawn is generated again at each rendering; the live value is kept"


def test_what_is_drawn_and_then_left_out_or_fixed_is_no_matter(render):
    steady = config("web", a="{{ $x := randAlphaNum 5 }}fixed", b='y{{ dateInZone "2006" 0 "UTC" }}')
    found = render({**WEB, "web/templates/config.yaml": steady})
    assert data(found) == {"web": {"a": "fixed", "b": "y1970"}}
    assert (found.problems, found.manifests[0].drawn) == ((), ())


def test_the_same_chart_asks_for_the_same_whenever_it_is_rendered(render, renderer):
    files = {**WEB, "web/templates/config.yaml": config("web", a="{{ randAlphaNum 9 }}")}
    one, other = render(files), render({}, using=renderer)
    assert (one.digest, one.revision, one.manifests) == (other.digest, other.revision, other.manifests)
    assert one.manifests[0].drawn[0].value != other.manifests[0].drawn[0].value


def test_a_value_that_was_used_is_never_drawn_again(shared_renderer, folder):
    write(folder, {**WEB, "web/templates/config.yaml": config("web", a="{{ randAlphaNum 9 }}")})
    reader = ManifestReader(renderer=shared_renderer, release_of=lambda _: Release("web", "shop"))
    source = WorktreeSource(folder / "web")
    found = reader.read(source)
    each_time = [found.manifests, reader.drawn_anew(source, found), reader.drawn_anew(source, found)]
    assert len({manifest.drawn[0].value for [manifest] in each_time}) == 3
    assert [[manifest.manifest for manifest in each] for each in each_time] == [[found.manifests[0].manifest]] * 3


RANDOM_OBJECTS = {
    "a name": config("{{ randAlpha 5 | lower }}"),
    "whether it is there": "{{ if eq (randInt 0 2) 1 }}" + config("web") + "{{ end }}",
    "how many there are": "{{ range until (randInt 1 3) }}" + config("c{{ . }}") + "---\n{{ end }}",
    "names of entries": config("web") + "  '{{ randAlpha 5 }}': b\n",
}


@pytest.mark.parametrize("text", RANDOM_OBJECTS.values(), ids=RANDOM_OBJECTS)
def test_an_object_that_is_another_each_time_is_refused(render, text):
    wrong = problem(render({**WEB, "web/templates/config.yaml": text}))
    assert "differs at each rendering" in wrong.message
