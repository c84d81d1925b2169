"""What is said of an overlay that can't be rendered, and what its rendering makes of a revision."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.parse import Parsed
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import ABSENT, FOLDER, LINK, EntryKind, TreeEntry
from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.rendering.entries import BuildStep, kustomization_among
from kubectl_reconcile.core.rendering.kustomization import (
    failure,
    notices,
    unmatched,
    unused_configurations,
    without_secrets,
)
from kubectl_reconcile.core.rendering.rendered import (
    RenderedObject,
    Rendering,
    kind_of,
    objects_of,
    revision_of,
    still_holds,
)

SECRET = "hunter2-hunter2"
OWN, BASE = "prod/kustomization.yaml", "base/kustomization.yaml"
FILES = {
    OWN: b"namePrefix: p-\nresources:\n- ../base\n- gone.yaml\npatches:\n- path: patch.yaml\n",
    BASE: b"resources:\n- web.yaml\n- github.com/org/repo?ref=v1\n",
}
OBJECT = RenderedObject("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: 'yes'}\n", "base/web.yaml")

PLACES = {
    "an entry of the overlay": ("accumulating resources from 'gone.yaml': no such file", OWN, 4),
    "an entry of its base": (
        "accumulation err='accumulating resources from 'github.com/org/repo?ref=v1': no 'git' program on path'", BASE, 3,
    ),
    "a value": ('no resource matches strategic merge patch "patch.yaml"', OWN, 6),
    "a key": ('json: unknown field "namePrefix"', OWN, 1),
    "nothing that it has": ("no matches for 'Deployment.v1.apps/none'", OWN, 0),
    "half a word": ("no matches for 'gone'", OWN, 0),
}  # fmt: skip


@pytest.mark.parametrize(("message", "path", "line"), PLACES.values(), ids=PLACES)
def test_a_failure_comes_to_the_entry_that_it_is_about(message, path, line):
    problem = failure(message, "prod", FILES)
    assert (problem.path, problem.line) == (path, line)
    assert problem.message.startswith("kustomize can't build it: ")
    assert problem.is_error


HINTS = {
    "a remote base": ("no 'git' program on path", "nothing is fetched while rendering"),
    "a remote file": ('Get "http://x": rendering has no network', "nothing is fetched while rendering"),
    "a chart": ("must specify --enable-helm", "commit what helm template prints"),
    "a plugin": (
        "external plugins disabled; unable to load external plugin",
        "only plugins that are built into kustomize run",
    ),
    "a link": ("'a' is a symbolic link, which isn't followed", "link within the repository, or commit the file itself"),
    "a cycle": ("cycle detected: candidate root", "remove one of these entries"),
    "a file elsewhere": ("file '/x' is not in or below '/prod'", "copy the file into the folder"),
}


@pytest.mark.parametrize(("message", "hint"), HINTS.values(), ids=HINTS)
def test_a_failure_says_what_to_do(message, hint):
    assert hint in failure(message, "prod", FILES).hint


def test_a_failure_is_one_line_and_not_too_long():
    message = failure("first\n  second\n" + "x" * 5000, "prod", FILES).message
    assert message.startswith("kustomize can't build it: first second xxx")
    assert len(message) < 700


LEAKS = {
    "a literal": b"secretGenerator: [{name: a, literals: ['x=hunter2-hunter2']}]\n",
    "a literal that is none": b"secretGenerator: [{name: a, literals: [hunter2-hunter2]}]\n",
    "a file of it": b"secretGenerator: [{name: a, files: [key=secret.txt]}]\n",
    "variables": b"secretGenerator: [{name: a, envs: [secret.env]}]\n",
    "an older form": b"secretGenerator: [{name: a, env: secret.env}]\n",
    "a patch": b"patches:\n- patch: |\n    kind: Secret\n    stringData:\n      a: 'hunter2-hunter2'\n",
}


@pytest.mark.parametrize("text", LEAKS.values(), ids=LEAKS)
def test_values_of_secrets_are_in_no_message(text):
    files = {OWN: text, "prod/secret.txt": f"{SECRET}\n".encode(), "prod/secret.env": f"A={SECRET}\n".encode()}
    assert without_secrets(f"it can't be read: [{SECRET}] at x", files) == "it can't be read: [***] at x"


def test_values_of_secrets_among_the_files_and_in_echoed_configurations_are_in_no_message():
    manifest = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\nstringData: {{a: {SECRET}}}\n"
    assert SECRET not in without_secrets(f"invalid: {SECRET}", {"prod/a.yaml": manifest.encode()})
    echoed = "trouble configuring builtin X with config: `\na: `b`: c\n`: the reason"
    assert without_secrets(echoed, {}) == "trouble configuring builtin X: the reason"
    assert without_secrets("trouble configuring X with config: everything", {}) == "trouble configuring X"


def test_a_rendering_holds_as_long_as_all_that_it_consulted_is_the_same():
    class Files(dict):
        def look(self, path):
            return self.get(path, ABSENT)

    one, other = TreeEntry(EntryKind.FILE, "1"), TreeEntry(EntryKind.FILE, "2")
    consulted = {"a": one, "b": FOLDER, "c": ABSENT}
    assert still_holds(consulted, Files(a=one, b=FOLDER, d=other))
    assert not still_holds(consulted, Files(a=other, b=FOLDER))
    assert not still_holds(consulted, Files(a=one))
    assert not still_holds(consulted, Files(a=one, b=FOLDER, c=LINK))


def test_the_kustomization_of_a_folder_is_the_one_that_was_found():
    assert (
        kustomization_among("prod", ["prod/kustomization.yml", "base/kustomization.yaml"]) == "prod/kustomization.yml"
    )
    assert kustomization_among("prod", []) == "prod/kustomization.yaml"
    assert kustomization_among("", ["Kustomization"]) == "Kustomization"


def test_objects_have_places_of_their_own_that_are_never_shown():
    found = objects_of(Rendering((OBJECT, OBJECT), (), {}))
    assert [(each.path, each.line) for each in found.manifests] == [("base/web.yaml", -1), ("base/web.yaml", -2)]
    assert found.manifests[0].manifest["data"] == {"a": "yes"}
    from_json = objects_of(Rendering((RenderedObject(OBJECT.text, "base/web.json"),), (), {}))
    assert [(each.path, each.ref.name) for each in from_json.manifests] == [("base/web.json", "web")]
    wrong = objects_of(Rendering((RenderedObject("apiVersion: v1\nkind: ConfigMap\n", "base/web.yaml"),), (), {}))
    assert [str(problem).partition(" ")[0] for problem in wrong.problems] == ["base/web.yaml:"]


def test_a_revision_lists_the_files_that_objects_come_from_by_what_came_of_them():
    commit = Revision("c0ffee", "2026-11-22T00:00:00Z", {}, path="prod", overlay="prod")
    one = revision_of(commit, Rendering((OBJECT,), (), {OWN: TreeEntry(EntryKind.FILE, "1")}), Parsed((), ()))
    same = revision_of(commit, Rendering((OBJECT,), (), {OWN: TreeEntry(EntryKind.FILE, "2")}), Parsed((), ()))
    twice = revision_of(commit, Rendering((OBJECT, OBJECT), (), {}), Parsed((), ()))
    assert one == same
    assert (list(one.files), one.sha, one.unrendered) == (["base/web.yaml"], "c0ffee", ())
    assert twice.files != one.files


def test_of_a_folder_the_sha_is_that_of_what_was_consulted():
    folder = Revision("worktree-", "", {}, path="prod", overlay="prod")
    shas = {
        revision_of(folder, Rendering((OBJECT,), (), {OWN: TreeEntry(EntryKind.FILE, blob)}), Parsed((), ())).sha
        for blob in "112"
    }
    assert len(shas) == 2
    assert all(sha.startswith("worktree-") and len(sha) == 41 for sha in shas)


def test_where_something_is_wrong_nothing_counts_as_gone():
    commit = Revision("c0ffee", "2026-11-22T00:00:00Z", {}, path="prod", overlay="prod")
    warning = Problem(OWN, 0, "deprecated", severity=Severity.WARNING)
    assert revision_of(commit, Rendering((OBJECT,), (), {}), Parsed((), (warning,))).unrendered == ()
    assert revision_of(commit, Rendering((), (), {}), Parsed((), (warning, Problem(OWN, 0, "wrong")))).unrendered == (
        "",
    )


# -- what kustomize passes over ----------------------------------------------------------------------------------------


def test_what_is_for_nothing_is_told_in_words():
    patch = BuildStep("PatchTransformer", "prod", {"path": "other.yaml", "target": {"name": "web", "kind": "Job"}})
    image = BuildStep("ImageTagTransformer", "prod", {"imageTag": {"name": "web"}})
    nobody = BuildStep("ValueAddTransformer", "prod", {})
    found = list(unmatched([patch, image, nobody], FILES))
    assert [str(each).partition(" (hint")[0] for each in found] == [
        "prod/kustomization.yaml:5: the patch changes nothing: no object is kind=Job name=web",
        "prod/kustomization.yaml: no container has an image web, so no name or tag changes",
        "prod/kustomization.yaml: it changes nothing: no object is its target",
    ]
    assert not any(each.is_error for each in found)


def test_a_notice_comes_to_each_line_that_it_is_about():
    said = ["# Warning: 'resources' is deprecated. Please use 'all'.", "well then"]
    assert [(each.path, each.line, each.message) for each in notices(said, "prod", FILES)] == [
        (OWN, 2, "'resources' is deprecated. Please use 'all'."),
        (BASE, 1, "'resources' is deprecated. Please use 'all'."),
        (OWN, 0, "well then"),
    ]


CONFIGURED = {
    "another kind": ("images: [{path: a, kind: Other}]", 1),
    "another group": ("images: [{path: a, kind: Own, group: other.com}]", 1),
    "this kind": ("images: [{path: a, kind: Other}, {path: a, kind: Own}]", 0),
    "this kind, as what refers to others": ("nameReference: [{kind: Other, fieldSpecs: [{path: a, kind: Own}]}]", 0),
    "every kind": ("commonLabels: [{path: a}]", 0),
    "nothing": ("", 0),
    "no map": ("[a]", 0),
}


@pytest.mark.parametrize(("text", "count"), CONFIGURED.values(), ids=CONFIGURED)
def test_configurations_for_other_kinds_are_told(text, count):
    files = {OWN: b"configurations:\n- one.yaml\n", "prod/one.yaml": text.encode()}
    found = list(unused_configurations([("example.com", "Own")], files))
    assert [(each.path, each.line) for each in found] == [(OWN, 2)] * count


def test_group_and_kind_of_a_rendered_object_are_read_from_its_text():
    assert kind_of("apiVersion: apps/v1\nkind: Deployment\nspec: {template: {kind: X}}\n") == ("apps", "Deployment")
    assert kind_of("kind: ConfigMap\napiVersion: v1\n") == ("", "ConfigMap")
    assert kind_of("a: b\n") == ("", "")


INVALID = {
    "a field that isn't known": ('invalid Kustomization: json: unknown field "resources"', BASE, 1),
    "a field of another type": ("invalid Kustomization: json: cannot unmarshal x into Go struct field A.resources.b", BASE, 1),
    "no YAML": ("invalid Kustomization: yaml: line 3", BASE, 0),
}  # fmt: skip


@pytest.mark.parametrize(("message", "path", "line"), INVALID.values(), ids=INVALID)
def test_a_kustomization_that_is_none_is_the_one_that_was_read_last(message, path, line):
    problem = failure(message, "prod", FILES)
    assert (problem.path, problem.line) == (path, line)


def test_a_failure_of_a_step_comes_to_its_entry_and_says_which_base_by_that_alone():
    nested = "accumulating resources: accumulation err='accumulating resources from '../base': '/base' must resolve to a file': "
    message = f"{nested}recursed accumulation of path '/base': it fails"
    problem = failure(message, "prod", FILES, BuildStep("PatchTransformer", "prod", {"path": "patch.yaml"}))
    assert str(problem) == "prod/kustomization.yaml:6: kustomize can't build it: it fails"


HIDDEN = {
    "a JSON patch": 'patches: [{target: {kind: Secret}, patch: \'[{"value": "hunter2-hunter2"}]\'}]',
    "one without a kind": 'patches: [{target: {name: a}, patch: \'[{"value": {"a": ["hunter2-hunter2"]}}]\'}]',
    "one by a pattern": "patches: [{target: {kind: S.*}, path: patch.txt}]",
    "one by a pattern that is none": "patches: [{target: {kind: '('}, path: patch.txt}]",
    "one of the older form": "patchesJson6902: [{target: {kind: Secret}, path: patch.txt}]",
    "one that can't be read": "patches: [{target: {kind: Secret}, path: bad.txt}]",
    "a merge in a file": "patchesStrategicMerge: [merge.txt]",
    "a merge in the kustomization": "patchesStrategicMerge: ['{kind: Secret, stringData: {a: hunter2-hunter2}}']",
    "a replacement": "replacements: [{sourceValue: hunter2-hunter2, targets: [{select: {name: a}}]}]",
    "one in a file": "replacements: [{path: replacement.txt}]",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_values_that_go_into_secrets_are_in_no_message(text):
    files = {
        OWN: text.encode(),
        "prod/patch.txt": f"- value: {SECRET}\n".encode(),
        "prod/bad.txt": f"- [value: {SECRET}\n".encode(),
        "prod/merge.txt": f"kind: Secret\nstringData:\n  a: |\n    {SECRET}\n".encode(),
        "prod/replacement.txt": f"sourceValue: {SECRET}\ntargets: [{{select: {{kind: Secret}}}}]\n".encode(),
    }
    assert SECRET not in without_secrets(f"it can't be read: {SECRET} at x", files)
    assert "aHVudGVyMi1odW50ZXIy" not in without_secrets("no aHVudGVyMi1odW50ZXIy", {OWN: text.encode(), **files})


def test_values_that_go_elsewhere_are_told():
    text = 'patches: [{target: {kind: Job}, patch: \'[{"value": "hunter2-hunter2"}]\'}]'
    assert without_secrets(SECRET, {OWN: text.encode()}) == SECRET
