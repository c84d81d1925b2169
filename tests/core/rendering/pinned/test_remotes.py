"""What an overlay refers to elsewhere: which repository, which folder of it, which ref; or which file."""

import pytest

from kubectl_reconcile.core.manifests.editing import EditError
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.pinned.pins import BasePin, FilePin
from kubectl_reconcile.core.rendering.pinned.remotes import Local, Remote, entries_of, is_remote, remote_of, restating
from kubectl_reconcile.core.resources.fields import SyncSpecError

COMMIT = "1c" * 20

BASES = {
    "a path after two slashes": ("https://git.example.com/platform/base//config/default?ref=v1.2.0", "https://git.example.com/platform/base", "config/default", "v1.2.0"),
    "a path after .git": ("https://git.example.com/platform/base.git/config?ref=v1", "https://git.example.com/platform/base.git", "config", "v1"),
    "both marks": ("https://git.example.com/platform/base.git//config?ref=v1", "https://git.example.com/platform/base.git", "config", "v1"),
    "owner and name, then a path": ("https://git.example.com/platform/base/config/default?ref=v1", "https://git.example.com/platform/base", "config/default", "v1"),
    "a port, then owner and name": ("https://git.example.com:8443/platform/base/config?ref=v1", "https://git.example.com:8443/platform/base", "config", "v1"),
    "all of a repository": ("https://git.example.com/platform/base?ref=main", "https://git.example.com/platform/base", "", "main"),
    "all of the default branch": ("https://git.example.com/platform/base", "https://git.example.com/platform/base", "", "HEAD"),
    "a commit": (f"https://git.example.com/a/b?ref={COMMIT}", "https://git.example.com/a/b", "", COMMIT),
    "a ref with a slash": ("https://git.example.com/a/b?ref=release/1.2", "https://git.example.com/a/b", "", "release/1.2"),
    "the former word for a ref": ("https://git.example.com/a/b?version=v1", "https://git.example.com/a/b", "", "v1"),
    "how it would be fetched": ("https://git.example.com/a/b?ref=v1&timeout=90s&submodules=false", "https://git.example.com/a/b", "", "v1"),
    "a host without a scheme": ("github.com/platform/base/config?ref=v1", "https://github.com/platform/base", "config", "v1"),
    "a prefix that says git": ("git::https://git.example.com/a/b.yaml?ref=v1", "https://git.example.com/a/b.yaml", "", "v1"),
    "ssh": ("ssh://git@git.example.com/platform/base.git//config?ref=v1", "ssh://git@git.example.com/platform/base.git", "config", "v1"),
    "ssh as scp has it": ("git@git.example.com:platform/base.git//config?ref=v1", "git@git.example.com:platform/base.git", "config", "v1"),
    "ssh as scp has it, without a mark": ("git@git.example.com:platform/base/config?ref=v1", "git@git.example.com:platform/base", "config", "v1"),
    "a repository below _git": ("https://git.example.com/team/project/_git/base/config?ref=v1", "https://git.example.com/team/project/_git/base", "config", "v1"),
    "a file of a repository's": ("https://git.example.com/a/b//config/x.yaml?ref=v1", "https://git.example.com/a/b", "config/x.yaml", "v1"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "repository", "path", "ref"), BASES.values(), ids=BASES)
def test_an_entry_names_a_repository_a_ref_and_a_folder(text, repository, path, ref):
    assert is_remote(text)
    assert remote_of(text, "resources[0]") == (BasePin(repository, ref), path)


@pytest.mark.parametrize("url", [
    "https://files.example.com/crds.yaml", "http://files.example.com/a/b/c/crds.yml", "https://files.example.com/crds.json?raw=true",
    "https://files.example.com/owner/name/releases/download/v1.2.0/install.yaml",
])  # fmt: skip
def test_a_url_that_is_called_as_manifests_are_is_a_file(url):
    assert is_remote(url)
    assert remote_of(url, "resources[0]") == (FilePin(url), "")


@pytest.mark.parametrize(
    "text",
    [
        "../base",
        "base",
        "./github.com/a/b",
        "deployment.yaml",
        "a//b",
        "a@b/c",
        "apiVersion: v1\nurl: https://x.example.com\n",
        "",
    ],
)
def test_any_other_entry_is_of_the_same_repository(text):
    assert not is_remote(text)


REFUSED = {
    "what may be a file or a repository": ("https://files.example.com/a/b/c", "may be a file or a repository"),
    "a path out of the repository": ("https://git.example.com/a/b//../../c?ref=v1", "isn't a path within the repository"),
    "a folder of this machine": ("file:///srv/base?ref=v1", "isn't the URL of a repository"),
    "another scheme": ("ftp://files.example.com/a/b?ref=v1", "isn't the URL of a repository"),
    "an artifact": ("oci+x://files.example.com/a/b", "isn't the URL of a repository"),
    "a short form": ("gh:a/b?ref=v1", "is short for a URL in one tool alone"),
    "a ref that is a flag": ("https://git.example.com/a/b?ref=--upload-pack=x", "isn't a branch, a tag or a commit"),
    "a ref with dots": ("https://git.example.com/a/b?ref=a..b", "isn't a branch, a tag or a commit"),
    "something that nobody knows": ("https://git.example.com/a/b?ref=v1&sparse=x", "asks for sparse, which isn't known"),
    "a host that can be read in two ways": ("https://a.example.com\\@b.example.com/a/b?ref=v1", "isn't the URL of a repository"),
    "a password": ("https://shop:hunter2@git.example.com/a/b?ref=v1", "'https://git.example.com/a/b' had credentials in it"),
    "a password before what may be a file": ("https://shop:hunter2@files.example.com/a/b/c", "may be a file or a repository"),
    "a password for a file": ("https://shop:hunter2@files.example.com/x.yaml", "had credentials in it"),
    "a fragment": ("https://git.example.com/a/b.yaml#x", "isn't"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_fetched_is_refused(text, said):
    assert is_remote(text)
    with pytest.raises(SyncSpecError, match="resources"):
        remote_of(text, "resources[0]")
    with pytest.raises(SyncSpecError) as error:
        remote_of(text, "resources[0]")
    assert said in error.value.message or said == "isn't"
    assert "hunter2" not in str(error.value)


def test_the_entries_of_a_kustomization_are_told_with_their_lines():
    data = b"""\
resources:
- ../base
- https://files.example.com/crds.yaml
components:
- https://git.example.com/a/b//monitoring?ref=v1
bases:
- https://files.example.com/a/b/c
transformers:
- ./labels
"""
    problems: list[Problem] = []
    assert [*entries_of("prod/kustomization.yaml", data, problems)] == [
        Local("../base", 2),
        Remote(FilePin("https://files.example.com/crds.yaml"), "", "resources", 1, 3),
        Remote(BasePin("https://git.example.com/a/b", "v1"), "monitoring", "components", 0, 5),
        Local("./labels", 9),
    ]
    [problem] = problems
    assert (problem.path, problem.line) == ("prod/kustomization.yaml", 7)
    assert "bases[0]: 'https://files.example.com/a/b/c' may be a file or a repository" in problem.message


@pytest.mark.parametrize("text", ["", "[", "- a\n", "resources: x\n", "resources: [1, null, {a: b}]\n"])
def test_what_has_no_entries_refers_to_nothing(text):
    problems: list[Problem] = []
    assert all(
        isinstance(each, Local) and not each.name for each in entries_of("kustomization.yaml", text.encode(), problems)
    )
    assert problems == []


def test_an_entry_is_restated_as_the_path_of_what_was_fetched_and_nothing_else_changes():
    data = b"""\
# what is applied
resources:
- ../base  # ours
- "https://files.example.com/crds.yaml"
- https://git.example.com/a/b?ref=v1
namePrefix: prod-
"""
    entries = [each for each in entries_of("kustomization.yaml", data, []) if isinstance(each, Remote)]
    places = {each: f"./fetched/{number}" for number, each in enumerate(entries)}
    assert restating("kustomization.yaml", data, places) == data.replace(
        b"https://files.example.com/crds.yaml", b"./fetched/0"
    ).replace(b"https://git.example.com/a/b?ref=v1", b"./fetched/1")


def test_an_entry_that_stands_for_two_places_is_not_restated():
    data = b"resources: &all\n- https://files.example.com/crds.yaml\ncomponents: *all\n"
    entries = [each for each in entries_of("kustomization.yaml", data, []) if isinstance(each, Remote)]
    with pytest.raises(EditError):
        restating("kustomization.yaml", data, {entries[0]: "./fetched"})
