"""What a commit has is listed by what changed since another, and is the same as if all of it were read: commits of a real clone."""

import os
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.tree import listed, listed_after
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.remote import Repository

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
FILES = ["a.yaml", "b.yml", "c.json", "notes.txt", "é.yaml", "apps/a.yaml", "apps/b.yaml", "apps-2/a.yaml", "apps.yaml/x.yaml",
         "apps/deep/er/a.yaml", ".hidden/a.yaml", "apps/.a.yaml"]  # fmt: skip
SPECIAL = [".reconcileignore", "apps/.reconcileignore", "apps/kustomization.yaml", "Chart.yaml", "a\x01.yaml"]
SUBMODULE_AT = "1" * 40
LIMITS = GitLimits(entries=14, files=10, depth=3)


@pytest.fixture(scope="module")
def clones(tmp_path_factory):
    """A clone with usual limits, and the same one with narrow ones."""
    folder = tmp_path_factory.mktemp("clones")
    repository = Repository.of(str(folder / "nowhere"), allow_local=True)
    clone = Clone(repository, folder / "cache")
    with clone.locked(10):
        clone.begin(partial=False)
    return clone, Clone(repository, folder / "cache", LIMITS)


def edits():
    change = st.tuples(st.sampled_from(FILES), st.sampled_from([FILE, FILE, FILE, PROGRAM]), st.sampled_from("xyz"))
    odd = st.tuples(st.sampled_from(FILES), st.sampled_from([LINK, SUBMODULE]), st.just("x"))
    special = st.tuples(st.sampled_from(SPECIAL), st.just(FILE), st.sampled_from(["b.yml", "apps/", "nothing"]))
    removal = st.tuples(st.sampled_from([*FILES, *SPECIAL]), st.just(""), st.just(""))
    return st.lists(st.one_of(change, change, change, removal, removal, odd, special), min_size=1, max_size=3)


def committed(clone, history):
    """Commit each of these edits on top of those before, and return the commits."""
    stream = [
        f"blob\nmark :{at}\ndata {len(text)}\n{text}\n"
        for at, text in enumerate(["x", "y", "z", "b.yml", "apps/", "nothing"], 1)
    ]
    marks = {text: f":{at}" for at, text in enumerate(["x", "y", "z", "b.yml", "apps/", "nothing"], 1)}
    for number, each in enumerate(history, 100):
        stream.append(f"commit refs/heads/main\nmark :{number}\ncommitter A <a@b> {number} +0000\ndata 1\nm\n")
        stream.append("deleteall\n" if number == 100 else f"from :{number - 1}\n")
        for path, mode, text in each:
            name = '"' + "".join(f"\\{byte:03o}" for byte in path.encode()) + '"'
            blob = SUBMODULE_AT if mode == SUBMODULE else marks.get(text)
            stream.append(f"M {mode} {blob} {name}\n" if mode else f"D {name}\n")
        stream.append("\n")
    marked = clone.folder.parent / "marks"
    command = ["git", "fast-import", "--quiet", "--force", f"--export-marks={marked}"]
    environment = {**os.environ, "GIT_DIR": str(clone.folder)}
    subprocess.run(command, input="".join(stream).encode(), check=True, timeout=300, env=environment)
    shas = dict(line.split() for line in marked.read_text().splitlines())
    return [shas[f":{number}"] for number, _ in enumerate(history, 100)]


def whole(clone, sha, path):
    """Return what a commit has, read whole; a sentence where it can't be listed."""
    try:
        return listed(clone, sha, path, list)
    except SourceError as error:
        return f"{type(error).__name__}: {error}"


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(edits(), min_size=2, max_size=8), path=st.sampled_from(["", "", "apps"]), narrow=st.booleans())
def test_by_difference_is_the_same_as_whole(clones, history, path, narrow):
    clone = clones[narrow]
    before = None
    for sha in committed(clones[0], history):
        expected = whole(clone, sha, path)
        brought = []
        found = listed_after(before, clone, sha, path, brought.extend) if before else None
        if found is not None:
            assert found == expected
            assert list(found.revision.files) == list(expected.revision.files)
            assert set(found.revision.files.values()) - set(before.revision.files.values()) <= set(brought)
        before = expected if not isinstance(expected, str) else before


PLAIN = [(file, FILE, "x") for file in FILES]


@pytest.mark.parametrize(
    "edit",
    [
        [("a.yaml", FILE, "y")],
        [("new.yaml", FILE, "y")],
        [("apps", "", ""), ("later/a.yaml", FILE, "y")],
        [("notes.txt", FILE, "z")],
    ],
    ids=["changed", "added", "moved", "no manifest"],
)
def test_a_usual_push_is_listed_by_difference(clones, edit):
    one, other = committed(clones[0], [PLAIN, edit])
    found = listed_after(listed(clones[0], one, "", list), clones[0], other, "", list)
    assert found == listed(clones[0], other, "", list)


@pytest.mark.parametrize(
    "edit",
    [(".reconcileignore", FILE, "b.yml"), ("apps/kustomization.yaml", FILE, "x"), ("a.yaml", LINK, "x"), ("a.yaml", SUBMODULE, "x")],
    ids=["ignore file", "overlay", "link", "submodule"],
)  # fmt: skip
def test_what_says_something_of_others_has_all_of_it_read(clones, edit):
    one, other = committed(clones[0], [PLAIN, [edit]])
    assert listed_after(listed(clones[0], one, "", list), clones[0], other, "", list) is None


def test_only_the_folders_that_changed_are_read(clones):
    one, other = committed(clones[0], [PLAIN, [("apps/deep/er/a.yaml", FILE, "z")]])
    brought = []
    found = listed_after(listed(clones[0], one, "", list), clones[0], other, "", brought.extend)
    assert found is not None
    assert brought == [found.revision.files["apps/deep/er/a.yaml"]]


def test_a_listing_tells_the_folder_that_it_is_of(clones):
    [sha] = committed(clones[0], [[("apps/a.yaml", FILE, "x")]])
    folders = {path: listed(clones[0], sha, path, list).revision.folder for path in ("", "apps", "apps/a.yaml")}
    assert folders == {"": "", "apps": "apps", "apps/a.yaml": "apps"}
