"""Overlays, rendered by the real program and judged by kubectl; and what keeps a hostile one from doing anything else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from kubectl_reconcile.core.manifests.tree import EntryKind
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.fenced import process as fenced
from kubectl_reconcile.source.fenced.process import ProgramEndedError
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.git.source import GitSource, Ref, Repository
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.render import program
from kubectl_reconcile.source.render.process import RenderProcess
from kubectl_reconcile.source.running.ending import ENDING, Ending
from kubectl_reconcile.source.running.memory import LIGHT_RENDERING_BYTES
from tests.e2e.source.overlays import BASE, CONFIG, SECRET, WEB, write
from tests.rendering_tools import silence
from tests.waiting import eventually


@pytest.fixture
def raw(renderer, folder):
    """raw(files, path) -> the text that an overlay renders to, all objects in one."""

    def run(files, path="prod"):
        write(folder, files)
        with WorktreeSource(folder / path).tree("") as tree:
            rendering = renderer.render(path, tree, GitLimits())
        assert [str(problem) for problem in rendering.problems if problem.is_error] == []
        return "---\n".join(each.text for each in rendering.objects)

    return run


@pytest.fixture
def kustomize(binaries, folder):
    """kustomize(path) -> what kubectl makes of an overlay."""

    def run(path="prod"):
        command = [binaries.path("kubectl"), "kustomize", str(folder / path)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout

    return run


# -- as kubectl does it ------------------------------------------------------------------------------------------------

OVERLAYS = {
    "a base alone": {"prod/kustomization.yaml": "resources: [../base]\n"},
    "prefix, suffix, namespace and labels": {
        "prod/kustomization.yaml": "namePrefix: a-\nnameSuffix: -z\nnamespace: prod\nresources: [../base]\n"
        "labels: [{pairs: {team: shop}, includeSelectors: true}]\ncommonAnnotations: {note: 'yes'}\n"
    },
    "a strategic merge patch": {
        "prod/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]\n",
        "prod/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 7\n"
        "  template: {spec: {containers: [{name: side, $patch: delete}, {name: web, env: [{name: B, value: '1'}]}]}}\n",
    },
    "a JSON patch in the kustomization": {
        "prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: Deployment}\n"
        "  patch: |-\n    - {op: replace, path: /spec/replicas, value: 3}\n"
    },
    "images and replicas": {
        "prod/kustomization.yaml": "resources: [../base]\nimages: [{name: web, newTag: '2'}]\nreplicas: [{name: web, count: 5}]\n"
    },
    "generators": {
        "prod/kustomization.yaml": "resources: [../base]\nconfigMapGenerator: [{name: more, files: [app.conf, b=blob.bin]}]\n"
        "secretGenerator: [{name: key, literals: [a=1], envs: [some.env]}]\ngeneratorOptions: {labels: {made: here}}\n",
        "prod/app.conf": "listen = 80\n",
        "prod/blob.bin": bytes(range(256)),
        "prod/some.env": "USER=me\n# nothing\nHOME\n",
    },
    "a generated map merged into that of the base": {
        "base/kustomization.yaml": "resources: [web.yaml]\nconfigMapGenerator: [{name: conf, literals: [a=1, b=2]}]\n",
        "prod/kustomization.yaml": "resources: [../base]\nconfigMapGenerator: [{name: conf, behavior: merge, literals: [b=3]}]\n",
    },
    "a component and two bases": {
        "prod/kustomization.yaml": "resources: [../base, ../other]\ncomponents: [../component]\n",
        "other/kustomization.yaml": "namePrefix: other-\nresources: [../base]\n",
        "component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
        "patches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/data/c\", \"value\": \"d\"}]'}]\n",
    },
    "replacements": {
        "prod/kustomization.yaml": "resources: [../base]\nreplacements:\n- source: {kind: ConfigMap, name: shop, fieldPath: data.a}\n"
        "  targets: [{select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.[name=web].image']}]\n"
    },
    "an order of its own": {
        "prod/kustomization.yaml": "resources: [../base, crd.yaml, ns.yaml]\nsortOptions: {order: fifo}\n",
        "prod/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
        "prod/crd.yaml": CONFIG % "z",
    },
    "kubectl's order": {
        "prod/kustomization.yaml": "resources: [z.yaml, ../base, ns.yaml]\n",
        "prod/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
        "prod/z.yaml": CONFIG % "z" + "---\n" + CONFIG % "a",
    },
    "origins that it asks for itself": {"prod/kustomization.yaml": "resources: [../base]\nbuildMetadata: [originAnnotations]\n"},
    "annotations of its own, and comments": {
        "prod/kustomization.yaml": "# ours\nresources: [annotated.yaml]\n",
        "prod/annotated.yaml": CONFIG % "a" + "---\n" + (CONFIG % "b").replace("{name: b}", "{name: b, annotations: {}}") +
        "---\n# why\n" + (CONFIG % "c").replace("{name: c}", "{name: c, annotations: {x: y}} # because"),
    },
    "the file's other name": {"prod/Kustomization": "resources: [../base]\n"},
    "a kustomization in one line": {"prod/kustomization.yml": "{resources: [../base], namePrefix: x-}"},
    "words that YAML takes for others": {
        "prod/kustomization.yaml": "resources: [odd.yaml]\n",
        "prod/odd.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: odd}\ndata: {a: 'yes', b: '017', c: \"1e3\", d: 'null', e: '', f: |\n    x\n    y\n  }\n"
        .replace(", f: |\n    x\n    y\n  }", ', f: "x\\ny\\n"}'),
    },
}  # fmt: skip


@pytest.mark.parametrize("files", OVERLAYS.values(), ids=OVERLAYS)
def test_an_overlay_renders_to_what_kubectl_makes_of_it(raw, kustomize, files):
    ours = raw({**BASE, **files})
    assert ours == kustomize()
    assert ours.count("kind:") >= 1


def test_each_object_knows_the_file_that_it_comes_from(render):
    found = render(
        {
            **BASE,
            "prod/kustomization.yaml": "namePrefix: p-\nresources: [../base, own.yaml]\nconfigMapGenerator: [{name: made, literals: [a=1]}]\n",
            "prod/own.yaml": CONFIG % "own",
        }
    )
    places = {re.sub(r"-\w{10}$", "", each.ref.name): each.path for each in found.manifests}
    assert places == {
        "p-web": "base/web.yaml",
        "p-shop": "base/config.yaml",
        "p-own": "prod/own.yaml",
        "p-made": "prod/kustomization.yaml",
    }
    assert all("config.kubernetes.io/origin" not in str(each.manifest) for each in found.manifests)
    assert list(found.revision.files) == sorted(set(places.values()))
    assert len({(each.path, each.line) for each in found.manifests}) == len(found.manifests)


@pytest.mark.parametrize(
    "text", ["{resources: [../base]}", "{resources: [../base],\n}\n", '{"resources": ["../base"]} ']
)
def test_each_object_of_a_kustomization_in_braces_knows_its_file(render, text):
    found = render({**BASE, "prod/kustomization.yaml": text})
    assert {each.path for each in found.manifests} == {"base/web.yaml", "base/config.yaml"}


def test_objects_of_one_file_and_one_base_twice_have_places_of_their_own(render):
    twice = {f"{name}/kustomization.yaml": f"namePrefix: {name}-\nresources: [../both]\n" for name in "ab"}
    both = {"both/kustomization.yaml": "resources: [c.yaml]\n", "both/c.yaml": CONFIG % "x" + "---\n" + CONFIG % "y"}
    found = render({**twice, **both, "prod/kustomization.yaml": "resources: [../a, ../b]\n"})
    assert {each.path for each in found.manifests} == {"both/c.yaml"}
    assert len({(each.path, each.line) for each in found.manifests}) == 4
    assert all(each.line < 0 for each in found.manifests)


def test_what_is_deprecated_is_a_warning(render):
    found = render({**BASE, "prod/kustomization.yaml": "resources: [../base]\ncommonLabels: {a: b}\n"})
    [problem] = found.problems
    assert (problem.path, problem.line, problem.is_error) == ("prod/kustomization.yaml", 2, False)
    assert problem.message.startswith("'commonLabels' is deprecated")
    assert found.revision.unrendered == ()


def test_a_warning_is_the_same_at_each_rendering(render):
    named = "[{name: SHOP, objref: {apiVersion: v1, kind: ConfigMap, name: shop}}]"
    found = render({**BASE, "prod/kustomization.yaml": f"resources: [../base]\nvars: {named}\n"})
    assert "well-defined vars that were never replaced: SHOP" in {each.message for each in found.problems}, "no time"


# -- which way a path goes ---------------------------------------------------------------------------------------------


def test_a_folder_is_rendered_unless_its_kustomization_is_ignored_or_it_is_said_to_be_raw(renderer, folder):
    write(folder, {**BASE, "base/unlisted.yaml": CONFIG % "unlisted"})
    reader = ManifestReader(renderer=renderer)

    def names(source):
        return {each.ref.name for each in reader.read(source).manifests}

    assert names(WorktreeSource(folder / "base")) == {"web", "shop"}
    assert names(WorktreeSource(folder / "base", render=Render.RAW)) == {"web", "shop", "unlisted"}
    write(folder, {"base/.reconcileignore": "kustomization.yaml\n"})
    assert names(WorktreeSource(folder / "base")) == {"web", "shop", "unlisted"}
    assert names(WorktreeSource(folder / "base", render=Render.KUSTOMIZE)) == {"web", "shop"}


def test_of_a_commit_a_path_goes_the_same_ways(renderer, git_server, tmp_path):
    sha = git_server.push({**BASE, "base/unlisted.yaml": CONFIG % "unlisted", "plain/a.yaml": CONFIG % "a"})
    reader = ManifestReader(renderer=renderer)

    def read(path, render=Render.AUTO):
        repository = Repository.of(git_server.url)
        return reader.read(
            GitSource(repository, Ref.of(branch="main"), path, cache_dir=tmp_path / "cache", render=render)
        )

    def names(found):
        return {each.ref.name for each in found.manifests}

    found = read("base")
    assert (found.revision.sha, names(found), found.problems) == (sha, {"web", "shop"}, ())
    assert names(read("base", Render.RAW)) == {"web", "shop", "unlisted"}
    assert names(read("plain")) == {"a"}
    [problem] = read("plain", Render.KUSTOMIZE).problems
    assert (problem.path, "unable to find one of 'kustomization.yaml'" in problem.message) == (
        "plain/kustomization.yaml",
        True,
    )
    with pytest.raises(SourceError) as raised:
        read("nowhere", Render.KUSTOMIZE)
    assert raised.value.fault is SourceFault.NO_SUCH_PATH
    top = read("")  # raw, with a kustomization below: that folder is left alone
    assert (names(top), top.revision.unrendered) == ({"a"}, ("base",))
    git_server.push({"base/.reconcileignore": "kustomization.yaml\n"})
    assert names(read("base")) == {"web", "shop", "unlisted"}


def test_a_commit_renders_to_what_the_folder_does(renderer, raw, git_server, tmp_path):
    files = {**BASE, **OVERLAYS["generators"]}
    git_server.push(files)
    source = GitSource(Repository.of(git_server.url), Ref.of(branch="main"), "prod", cache_dir=tmp_path / "cache")
    revision = source.revision()
    with source.tree(revision.sha) as tree:
        assert tree.look("base/web.yaml").kind is EntryKind.FILE
        assert tree.look("base/web.yaml/x").kind is EntryKind.ABSENT
        assert tree.look("base").kind is EntryKind.FOLDER
        rendering = renderer.render("prod", tree, GitLimits())
    assert "---\n".join(each.text for each in rendering.objects) == raw(files)


def test_of_a_partial_clone_only_what_is_consulted_is_fetched(renderer, git_server, tmp_path):
    git_server.push(
        {**BASE, "prod/kustomization.yaml": "resources: [../base]\n", "media/large.txt": os.urandom(300_000).hex()}
    )
    cache = tmp_path / "cache"
    source = GitSource(Repository.of(git_server.url), Ref.of(branch="main"), "prod", cache_dir=cache)
    found = ManifestReader(renderer=renderer).read(source)
    assert {each.ref.name for each in found.manifests} == {"web", "shop"}
    assert found.problems == ()
    assert sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) < 200_000


# -- once --------------------------------------------------------------------------------------------------------------


def test_a_push_that_touches_nothing_consulted_renders_nothing(renderer, git_server, tmp_path):
    overlay = {**BASE, "prod/kustomization.yaml": "resources: [../base]\n"}
    git_server.push(overlay)
    source = GitSource(Repository.of(git_server.url), Ref.of(branch="main"), "prod", cache_dir=tmp_path / "cache")
    reader = ManifestReader(renderer=renderer)
    first = reader.read(source)
    assert reader.read(source) is first
    git_server.push({"other/a.yaml": CONFIG % "a", "base/unlisted.yaml": CONFIG % "b", "prod/README.md": "hello"})
    second = reader.read(source)
    assert (second.revision.sha, second.digest) == (git_server.sha(), first.digest)
    assert renderer.rendered == 1
    others = ManifestReader(renderer=renderer).read(source)
    assert (others.digest, renderer.rendered) == (first.digest, 1)
    git_server.push({"base/config.yaml": (CONFIG % "shop").replace("a: b", "a: c")})
    assert reader.read(source).digest != first.digest
    assert renderer.rendered == 2
    git_server.push({"prod/kustomization.yml": "resources: [../base]\n"})  # absence was consulted too: two are an error
    [problem] = reader.read(source).problems
    assert "Found multiple kustomization files" in problem.message
    git_server.push({"prod/kustomization.yml": None, **overlay})
    assert (reader.read(source).digest, renderer.rendered) == (first.digest, 3)


def test_a_folder_is_another_revision_when_something_consulted_changes(render, renderer):
    first = render({**BASE, "prod/kustomization.yaml": "resources: [../base]\n"})
    again = render({"base/unlisted.yaml": CONFIG % "c"})
    other = render({"base/config.yaml": (CONFIG % "shop").replace("a: b", "a: c")})
    assert first.revision.sha == again.revision.sha != other.revision.sha
    assert first.revision.sha.startswith("worktree-")
    assert first.revision.files["base/web.yaml"] == other.revision.files["base/web.yaml"]
    assert first.revision.files["base/config.yaml"] != other.revision.files["base/config.yaml"]
    assert renderer.rendered == 2


# -- refused -----------------------------------------------------------------------------------------------------------


REMOTE = {
    "a git repository": "resources: ['git::http://127.0.0.1:{port}/org/repo.git']\n",
    "one over https": "resources: ['https://127.0.0.1:{port}/org/repo.git//path?ref=main']\n",
    "one over ssh": "resources: ['ssh://git@127.0.0.1:{port}/org/repo.git']\n",
    "one of this machine": "resources: ['file:///tmp/repo.git']\n",
    "one by GitHub's short form": "resources: [github.com/org/repo]\n",
    "a component": "components: ['http://127.0.0.1:{port}/org/repo.git']\n",
    "a file": "resources: ['http://127.0.0.1:{port}/a.yaml']\n",
    "a patch": "resources: [own.yaml]\npatches: [{{path: 'http://127.0.0.1:{port}/a.yaml'}}]\n",
    "a file of a map": "configMapGenerator: [{{name: a, files: ['a=http://127.0.0.1:{port}/a']}}]\n",
    "a replacement": "resources: [own.yaml]\nreplacements: [{{path: 'http://127.0.0.1:{port}/a'}}]\n",
    "a schema": "resources: [own.yaml]\nopenapi: {{path: 'http://127.0.0.1:{port}/a'}}\n",
    "definitions": "resources: [own.yaml]\ncrds: ['http://127.0.0.1:{port}/a']\n",
    "a chart": "helmCharts: [{{name: a, repo: 'http://127.0.0.1:{port}/a', version: 1.0.0}}]\n",
    "a chart's generator": "generators:\n- |-\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {{name: a}}\n"
    "  name: a\n  repo: http://127.0.0.1:{port}/a\n",
}


@pytest.mark.parametrize("text", REMOTE.values(), ids=REMOTE)
def test_nothing_is_fetched_while_rendering(render, text):
    with silence() as (port, heard):
        found = render({"prod/kustomization.yaml": text.format(port=port), "prod/own.yaml": CONFIG % "own"})
    assert heard == []
    [problem] = found.problems
    assert problem.path == "prod/kustomization.yaml"
    assert found.manifests == ()
    assert found.revision.unrendered == ("",)  # nothing counts as gone


def test_a_remote_base_is_told_with_its_line_and_what_to_do(render):
    found = render({"prod/kustomization.yaml": "resources:\n# ours\n- github.com/org/repo?ref=v1\n"})
    [problem] = found.problems
    assert (problem.path, problem.line) == ("prod/kustomization.yaml", 3)
    assert problem.hint == "kubectl reconcile lock prod"


RUNS_SOMETHING = {
    "a function in a container": "transformers:\n- |-\n  apiVersion: x/v1\n  kind: X\n  metadata:\n    name: x\n"
    "    annotations: {config.kubernetes.io/function: 'container: {image: x}'}\n",
    "a program": "transformers:\n- |-\n  apiVersion: x/v1\n  kind: X\n  metadata:\n    name: x\n"
    "    annotations: {config.kubernetes.io/function: 'exec: {path: /bin/true}'}\n",
    "a script": "transformers:\n- |-\n  apiVersion: x/v1\n  kind: X\n  metadata:\n    name: x\n"
    "    annotations: {config.kubernetes.io/function: 'starlark: {path: x.star}'}\n",
    "a plugin": "generators:\n- |-\n  apiVersion: someteam.example.com/v1\n  kind: Gen\n  metadata: {name: x}\n",
}


@pytest.mark.parametrize("text", RUNS_SOMETHING.values(), ids=RUNS_SOMETHING)
def test_nothing_of_a_repository_is_run(render, text):
    found = render({"prod/kustomization.yaml": f"resources: [own.yaml]\n{text}", "prod/own.yaml": CONFIG % "own"})
    assert [problem.path for problem in found.problems] == ["prod/kustomization.yaml"]
    assert found.manifests == ()


def test_nothing_outside_the_tree_is_read(render, folder):
    (folder.parent / "outside").mkdir()
    write(
        folder.parent / "outside", {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": CONFIG % "a", "s": SECRET}
    )
    (folder / "prod").mkdir()
    (folder / "prod" / "linked.yaml").symlink_to(folder.parent / "outside" / "a.yaml")
    (folder / "prod" / "folder").symlink_to(folder.parent / "outside")
    write(folder, {"prod/own.yaml": CONFIG % "own", "beside.txt": SECRET, ".git/config": SECRET})
    for entry in (
        f"resources: [{folder.parent}/outside]",
        f"resources: [{folder.parent}/outside/a.yaml]",
        "resources: [../../outside]",
        "resources: [linked.yaml]",
        "resources: [folder]",
        f"configMapGenerator: [{{name: a, files: [a={folder.parent}/outside/s]}}]",
        "configMapGenerator: [{name: a, files: [a=/etc/passwd]}]",
        "configMapGenerator: [{name: a, files: [a=../beside.txt]}]",
        "configMapGenerator: [{name: a, files: [a=folder/s]}]",
    ):
        found = render({"prod/kustomization.yaml": f"{entry}\n"})
        assert found.manifests == (), entry
        assert [problem.path for problem in found.problems] == ["prod/kustomization.yaml"], entry
        assert SECRET not in str(found), entry
    write(folder, {"kustomization.yaml": "configMapGenerator: [{name: a, files: [.git/config]}]\n"})
    found = render({}, ".")
    assert (found.manifests, SECRET in str(found)) == ((), False)


def test_of_a_commit_no_link_out_of_it_is_followed(renderer, git_server, tmp_path):
    git_server.push({"prod/kustomization.yaml": "resources: [linked.yaml]\n", "prod/own.yaml": CONFIG % "own"})
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", git_server.url, clone], check=True, timeout=300)
    (clone / "prod" / "linked.yaml").symlink_to("../../own.yaml")
    for command in (["add", "."], ["commit", "-qm", "Link"], ["push", "-q"]):
        subprocess.run(["git", *command], cwd=clone, check=True, timeout=300, capture_output=True)
    source = GitSource(Repository.of(git_server.url), Ref.of(branch="main"), "prod", cache_dir=tmp_path / "cache")
    [problem] = ManifestReader(renderer=renderer).read(source).problems
    assert (problem.path, problem.line) == ("prod/kustomization.yaml", 1)
    assert problem.hint == "link within the repository, or commit the file itself"
    assert "is a symbolic link, which isn't followed" in problem.message


BROKEN = {
    "a cycle": ({"prod/kustomization.yaml": "resources: [../a]\n", "a/kustomization.yaml": "resources: [../prod]\n"}, "cycle detected"),
    "a field that isn't known": ({"prod/kustomization.yaml": "resource: [a.yaml]\n"}, 'unknown field "resource"'),
    "a file that isn't there": ({"prod/kustomization.yaml": "resources: [gone.yaml]\n"}, "gone.yaml"),
    "no YAML": ({"prod/kustomization.yaml": "resources: [a.yaml\n"}, "yaml"),
    "no map": ({"prod/kustomization.yaml": "[]\n"}, "kustomize can't build it"),
    "nothing": ({"prod/kustomization.yaml": ""}, "kustomization.yaml is empty"),
    "a kind and nothing else": ({"prod/kustomization.yaml": "kind: Kustomization\n"}, "kustomization.yaml is empty"),
    "a patch without an object": (
        {"prod/kustomization.yaml": "patches: [{path: p.yaml}]\n", "prod/p.yaml": WEB}, "no resource matches"
    ),
    "an operation on what isn't there": (
        {**BASE, "prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: Deployment}\n"
         "  patch: '[{\"op\": \"replace\", \"path\": \"/spec/none/x\", \"value\": 1}]'\n"}, "doc is missing path",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "said"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_with_an_overlay_is_a_problem_of_it_alone(render, files, said):
    found = render(files)
    [problem] = found.problems
    assert said in problem.message
    assert problem.is_error
    assert found.manifests == ()
    assert found.revision.unrendered == ("",)
    assert render({**BASE, "next/kustomization.yaml": "resources: [../base]\n"}, "next").problems == ()


SECRETS = {
    "a literal that is none": "secretGenerator: [{{name: a, literals: ['{secret}']}}]\n",
    "a literal given twice": "secretGenerator: [{{name: a, literals: ['x={secret}', 'x={secret}']}}]\n",
    "a file of variables that is none": "secretGenerator: [{{name: a, envs: [bad.env]}}]\n",
    "a patch that can't be used": "patches:\n- patch: |-\n    apiVersion: v1\n    kind: Secret\n    metadata: {{name: a}}\n"
    "    stringData: {{a: '{secret}'}}\n",
    "a generator with a field too many": "secretGenerator: [{{name: a, literals: [x={secret}], none: 1}}]\n",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_values_of_secrets_are_in_no_message(render, text):
    found = render(
        {"prod/kustomization.yaml": text.format(secret=SECRET), "prod/bad.env": f"\xff{SECRET}\n".encode("latin-1")}
    )
    assert found.problems
    assert SECRET not in str(found.problems)


# -- what one overlay does to the next ---------------------------------------------------------------------------------

SCHEMA = '{"definitions": {"io.k8s.api.apps.v1.Deployment": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Deployment", "version": "v1"}]}}}'
PATCHED = {
    "prod/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n",
    "prod/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    "spec: {template: {spec: {containers: [{name: web, image: 'web:2'}]}}}\n",
}


def test_a_schema_of_one_overlay_does_not_count_for_the_next(raw, kustomize):
    files = {**BASE, **PATCHED}
    strange = {
        "strange/kustomization.yaml": "resources: [../base]\nopenapi: {path: schema.json}\npatches: [{path: p.yaml}]\n"
    }
    odd = raw({**files, **strange, "strange/p.yaml": PATCHED["prod/p.yaml"], "strange/schema.json": SCHEMA}, "strange")
    assert odd == kustomize("strange")
    assert "side:1" not in odd  # its schema has the list replaced
    ours = raw({})
    assert ours == kustomize()
    assert "side:1" in ours


EARLIER = {
    "nothing": (),
    "what needs no schema": ({"earlier/kustomization.yaml": "namespace: x\nresources: [c.yaml]\n", "earlier/c.yaml": CONFIG % "c"},),
    "what needs the usual ones": ({"earlier/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n", "earlier/p.yaml": PATCHED["prod/p.yaml"]},),
    "what names a version": ({"earlier/kustomization.yaml": "resources: [c.yaml]\nopenapi: {version: v1.21.2}\n", "earlier/c.yaml": CONFIG % "c"},),
}  # fmt: skip


@pytest.mark.parametrize("earlier", EARLIER.values(), ids=EARLIER)
def test_an_overlay_with_a_schema_renders_as_in_a_process_of_its_own(raw, renderer, kustomize, earlier):
    renderer.close()
    for files in earlier:
        raw({**BASE, **files}, "earlier")
    patch = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 81, name: more}]}\n"
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80, name: web}]}\n"
    overlay = "resources: [../base, service.yaml]\nopenapi: {path: s.json}\npatches: [{path: p.yaml}, {path: q.yaml}]\n"
    files = {
        "own/kustomization.yaml": overlay,
        "own/service.yaml": service,
        "own/p.yaml": PATCHED["prod/p.yaml"],
        "own/q.yaml": patch,
        "own/s.json": SCHEMA,
    }
    assert raw({**BASE, **files}, "own") == kustomize("own")


def test_a_schema_that_the_library_panics_of_is_a_problem_and_nothing_more(render, raw, kustomize):
    files = {
        **BASE,
        **PATCHED,
        "odd/kustomization.yaml": "resources: [../base]\nopenapi: {path: s.json}\npatches: [{path: p.yaml}]\n",
    }
    found = render({**files, "odd/p.yaml": PATCHED["prod/p.yaml"], "odd/s.json": "{not json"}, "odd")
    [problem] = found.problems
    assert "kustomize can't go on: invalid schema file" in problem.message
    assert raw({}) == kustomize()


# -- bombs -------------------------------------------------------------------------------------------------------------


def aliases(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n" + "\n".join(lines) + "\n"


def diamonds(levels: int) -> dict[str, str]:
    files = {f"d{levels}/kustomization.yaml": "resources: [c.yaml]\n", f"d{levels}/c.yaml": CONFIG % "c"}
    for n in range(levels):
        files |= {f"l{n}/kustomization.yaml": f"namePrefix: l-\nresources: [../d{n + 1}]\n"}
        files |= {f"r{n}/kustomization.yaml": f"namePrefix: r-\nresources: [../d{n + 1}]\n"}
        files |= {f"d{n}/kustomization.yaml": f"resources: [../l{n}, ../r{n}]\n"}
    return files


def test_an_overlay_that_takes_too_long_is_ended_and_not_tried_again(render, renderer):
    renderer.seconds = 1.0
    files = diamonds(13)
    began_s = time.monotonic()
    [problem] = render(files, "d0").problems
    assert "it took longer than 1 s and was stopped" in problem.message
    assert time.monotonic() - began_s < 120
    count = renderer.rendered
    assert render({}, "d0").problems == (problem,)
    assert renderer.rendered == count  # nothing that it consulted has changed
    renderer.seconds = 120.0
    assert (
        render({"next/kustomization.yaml": "resources: [c.yaml]\n", "next/c.yaml": CONFIG % "c"}, "next").problems == ()
    )


@pytest.mark.skipif(sys.platform != "linux", reason="no other kernel limits the memory of another process")
def test_an_overlay_that_takes_too_much_memory_is_ended(render):
    found = render({"prod/kustomization.yaml": "resources: [a.yaml]\n", "prod/a.yaml": aliases(9)})
    [problem] = found.problems
    assert problem.path == "prod/kustomization.yaml"
    assert re.search("memory|excessive aliasing|alias", problem.message)
    assert render({**BASE, "next/kustomization.yaml": "resources: [../base]\n"}, "next").problems == ()


def test_a_file_and_a_tree_that_are_too_large_are_refused(render):
    files = {"prod/kustomization.yaml": "configMapGenerator: [{name: a, files: [a.txt, b.txt]}]\n"}
    files |= {"prod/a.txt": "a" * 700_000, "prod/b.txt": "b" * 700_000}
    [problem] = render(files, limits=GitLimits(file_bytes=MEBIBYTE // 2)).problems
    assert "has more than 0 MiB; start the daemon with a larger --max-file" in problem.message
    [problem] = render(files, limits=GitLimits(revision_bytes=MEBIBYTE)).problems
    assert "is beyond 1 MiB of files" in problem.message


def test_too_many_objects_are_refused_as_of_any_source(render):
    files = {
        "prod/kustomization.yaml": "resources: [a.yaml]\n",
        "prod/a.yaml": "---\n".join(CONFIG % f"c{n}" for n in range(12)),
    }
    assert len(render(files, limits=GitLimits(objects=12)).manifests) == 12
    with pytest.raises(SourceError, match="more than 11 objects"):
        render(files, limits=GitLimits(objects=11))


# -- the process -------------------------------------------------------------------------------------------------------


def test_a_process_that_was_killed_is_replaced(render, renderer):
    files = {**BASE, "prod/kustomization.yaml": "resources: [../base]\n"}
    render(files)
    first = renderer._idle
    os.kill(first.pid, signal.SIGKILL)
    first._process.wait(200)
    assert render({"base/config.yaml": CONFIG % "other"}).problems == ()
    assert renderer._idle.pid != first.pid


def test_a_process_that_is_killed_while_it_renders_is_a_problem_until_something_changes(render, renderer, monkeypatch):
    render({**BASE, "prod/kustomization.yaml": "resources: [../base]\n"})
    rendering = renderer._idle
    monkeypatch.setattr(fenced, "_found", lambda *_: rendering.kill() or {"kind": "absent"})
    [problem] = render({"prod/kustomization.yaml": "namePrefix: a-\nresources: [../base]\n"}).problems
    assert "it can't be rendered: the program that renders overlays and charts has ended" in problem.message
    monkeypatch.undo()
    assert render({"prod/kustomization.yaml": "namePrefix: b-\nresources: [../base]\n"}).problems == ()


def test_who_waits_no_more_is_not_rendered_for(renderer, folder):
    renderer.seconds = 1000.0
    write(folder, diamonds(13))
    ending = Ending()
    token = ENDING.set(ending)
    try:
        threading.Timer(0.5, ending.end).start()
        began_s = time.monotonic()
        with pytest.raises(SourceError) as raised:
            ManifestReader(renderer=renderer).read(WorktreeSource(folder / "d0"))
    finally:
        ENDING.reset(token)
    assert raised.value.fault is SourceFault.ENDED
    assert time.monotonic() - began_s < 200


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this fence")
def test_the_process_has_no_environment_little_memory_and_a_fence(renders):
    running = RenderProcess(renders)
    try:
        status = Path(f"/proc/{running.pid}/status").read_text()
        assert re.search(r"^Seccomp:\s+2$", status, re.MULTILINE)
        assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
        assert Path(f"/proc/{running.pid}/environ").read_bytes() == b""
        limits = Path(f"/proc/{running.pid}/limits").read_text()
        assert re.search(rf"^Max data size\s+{LIGHT_RENDERING_BYTES}\s", limits, re.MULTILINE)
        assert re.search(r"^Max core file size\s+0\s", limits, re.MULTILINE)
    finally:
        running.close()


PROGRAMS = {
    "another version": (r"""printf '\0\0\0\17{"hello":"old"}'; cat""", "is of another version"),
    "half a frame": (r"""printf '\0\0\0\77{"hel' """, "the program that renders overlays and charts has ended"),
    "a frame without end": (r"printf '\377\377\377\377'; cat", "says more than is read"),
    "no JSON": (r"printf '\0\0\0\3abc'; cat", "says what isn't JSON"),
    "nothing": ("exit 7", "the program that renders overlays and charts has ended: exit 7"),
}


@pytest.mark.parametrize(("script", "said"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_that_is_another_one_is_told_apart(tmp_path, script, said):
    place = tmp_path / "reconcile-render"
    place.write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{script}\n")
    place.chmod(0o755)
    with pytest.raises(ProgramEndedError, match=said):
        RenderProcess(place)


def test_a_program_ends_with_us(renders):
    script = f"""\
    import sys
    from pathlib import Path
    from kubectl_reconcile.source.render.process import RenderProcess
    print(RenderProcess(Path({str(renders)!r})).pid, flush=True)
    sys.stdin.read()
    """
    ours = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pid = int(ours.stdout.readline())
    ours.kill()
    ours.communicate(timeout=200)
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "it has ended with us")


def test_without_the_program_an_overlay_is_a_problem_that_says_how_to_get_it_and_manifests_are_read(
    render, renderer, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    assert program.RENDER.find() is None
    files = {**BASE, "prod/kustomization.yaml": "resources: [../base]\n", "plain/a.yaml": CONFIG % "a"}
    found = render(files)
    [problem] = found.problems
    assert problem.path == "prod/kustomization.yaml"
    assert problem.hint == program.HOW_TO_GET
    assert found.revision.unrendered == ("",)
    assert len(render({}, "plain").manifests) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert render({}).problems == ()  # no program is no verdict to be kept
