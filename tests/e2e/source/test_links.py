"""Symbolic links: one rule for folders, commits, overlays and charts. What stays within the tree is followed, everything else isn't."""

from __future__ import annotations

import itertools
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.git.missing_files import MissingFiles
from kubectl_reconcile.source.git.source import GitSource, Ref, Repository
from kubectl_reconcile.source.render.renderer import _Recorder
from tests.e2e.source.overlays import CONFIG

NOWHERE = "a symbolic link to nothing in the repository, which isn't followed"


class Checkout:
    """A working tree with all of it committed, read at the path ``prod`` as a folder and as a repository."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.numbers = folder / "checkout", itertools.count()
        self.folder.mkdir()
        self.cache = folder / "cache"
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, stdin: str = "") -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        return subprocess.run(
            ["git", *who, *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
            input=stdin,
        ).stdout

    def write(self, files: dict[str, str], links: dict[str, str] | None = None) -> None:
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        for name, target in (links or {}).items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).symlink_to(target)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"Change {next(self.numbers)}")

    def commit(self, path: str = "prod") -> GitSource:
        repository = Repository.of(self.folder.as_uri(), allow_local=True)
        return GitSource(repository, Ref.of(branch="main"), path, cache_dir=self.cache)

    def both(self, path: str = "prod") -> tuple[dict[str, bytes], list[str]]:
        """What is read, and the paths of the problems: the same both ways."""
        commit, found = self.commit(path), []
        for source in (WorktreeSource(self.folder, path), commit):
            revision = source.revision()
            files = {name: source.read(blob) for name, blob in revision.files.items()}
            found.append((files, sorted(f"{each.path}: {each.message}" for each in revision.problems)))
        assert found[0] == found[1]
        return found[1]


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


FOLLOWED = {
    "a file beside the path": ({"base/x.yaml": "x"}, {"prod/x.yaml": "../base/x.yaml"}, {"prod/x.yaml"}),
    "a file by another name": ({"base/x.tmpl": "x"}, {"prod/x.yaml": "../base/x.tmpl"}, {"prod/x.yaml"}),
    "a folder beside the path": (
        {"base/x.yaml": "x", "base/deep/y.yaml": "y", "base/README.md": "z"}, {"prod/base": "../base"},
        {"prod/base/x.yaml", "prod/base/deep/y.yaml"},
    ),
    "a link to a link": ({"base/x.yaml": "x"}, {"base/y": "x.yaml", "prod/x.yaml": "../base/y"}, {"prod/x.yaml"}),
    "a link in a folder behind a link": (
        {"base/x.yaml": "x", "more/y.yaml": "y"}, {"base/more": "../more", "prod/base": "../base"},
        {"prod/base/x.yaml", "prod/base/more/y.yaml"},
    ),
    "a hidden folder, as ConfigMaps are mounted": (
        {"prod/..2026/x.yaml": "x"}, {"prod/..data": "..2026", "prod/x.yaml": "..data/x.yaml"}, {"prod/x.yaml"},
    ),
    "what is read where it is": ({"prod/a/x.yaml": "x"}, {"prod/y.yaml": "a/x.yaml", "prod/b": "a"}, {"prod/a/x.yaml"}),
    "one file behind two links, once": (
        {"base/x.yaml": "x"}, {"prod/a.yaml": "../base/x.yaml", "prod/b.yaml": "../base/x.yaml"}, {"prod/a.yaml"},
    ),
    "no more of a folder that the link is in": ({"prod/x.yaml": "x", "y.yaml": "y"}, {"prod/up": ".."}, {"prod/x.yaml"}),
    "folders that lead to each other, once": (
        {"a/x.yaml": "x", "b/y.yaml": "y"}, {"a/b": "../b", "b/a": "../a", "prod/a": "../a"},
        {"prod/a/x.yaml", "prod/a/b/y.yaml"},
    ),
    "a file behind the link that isn't ignored": (
        {"base/x.yaml": "x", "prod/.reconcileignore": "a.yaml\n"},
        {"prod/a.yaml": "../base/x.yaml", "prod/b.yaml": "../base/x.yaml"}, {"prod/b.yaml"},
    ),
    "a folder behind the link that isn't ignored": (
        {"base/x.yaml": "x", "prod/.reconcileignore": "a/\n"}, {"prod/a": "../base", "prod/b": "../base"},
        {"prod/b/x.yaml"},
    ),
    "what is ignored where it really is": (
        {"prod/a/x.yaml": "x", "prod/.reconcileignore": "a/\n"}, {"prod/b": "a"}, {"prod/b/x.yaml"},
    ),
    "what an ignore file behind a link leaves": (
        {"base/x.yaml": "x", "base/y.yaml": "y", "base/.reconcileignore": "y.yaml\nmore\n", "more/z.yaml": "z"},
        {"prod/a": "../base", "base/more": "../more", "prod/z": "../more"}, {"prod/a/x.yaml", "prod/z/z.yaml"},
    ),
    "the first of two links by their paths": (
        {"base/x.yaml": "x"}, {"prod/a/l.yaml": "../../base/x.yaml", "prod/a.yaml": "../base/x.yaml"}, {"prod/a.yaml"},
    ),
    "what isn't ignored": (
        {"base/x.yaml": "x", "base/y.yaml": "y", "prod/.reconcileignore": "y.yaml\n"}, {"prod/base": "../base"}, {"prod/base/x.yaml"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "links", "read"), FOLLOWED.values(), ids=FOLLOWED)
def test_a_link_within_the_repository_is_followed(checkout, files, links, read):
    checkout.write({"prod/own.yaml": "own", **files}, links)
    found, problems = checkout.both()
    assert (found.keys(), problems) == ({"prod/own.yaml", *read}, [])


NAMES = ["a", "b", "c", "a.yaml", "x.yaml", ".reconcileignore", "kustomization.yaml"]
FOLDERS = ["prod", "prod/a", "prod/b", "base", "base/a"]
TARGETS = [
    "..",
    "../base",
    "../prod",
    "../../base",
    "a",
    "b",
    "x.yaml",
    "a/x.yaml",
    "../base/x.yaml",
    "../prod/a",
    "c",
    "base",
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)), st.sampled_from(["x", "a", "b/", "*.yaml", "!a"])),
    st.dictionaries(st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)), st.sampled_from(TARGETS), min_size=2),
)  # fmt: skip
def test_whatever_there_is_a_folder_is_read_as_the_commit_of_it(tmp_path_factory, files, links):
    checkout = Checkout(tmp_path_factory.mktemp("any"))
    checkout.write({"prod/own.yaml": "own"})
    for (folder, name), text in [*files.items(), *links.items()]:
        place = checkout.folder / folder / name
        with suppress(OSError):  # something else is there, or on the way
            place.parent.mkdir(parents=True, exist_ok=True)
            if (folder, name) in files:
                place.write_text(text)
            else:
                place.symlink_to(text)
    checkout.git("add", "-A")
    checkout.git("commit", "-q", "--allow-empty", "-m", "any")
    checkout.both()


def test_a_link_that_is_an_ignore_file_says_nothing(checkout):
    checkout.write(
        {"prod/x.yaml": "x", "ignored": "x.yaml\n"},
        {".reconcileignore": "ignored", "prod/.reconcileignore": "../ignored"},
    )
    assert checkout.both() == ({"prod/x.yaml": b"x"}, [])


def test_a_link_to_anywhere_else_is_a_problem(checkout, tmp_path):
    (tmp_path / "secret.yaml").write_text("s3cr3t")
    links = {
        "prod/absolute.yaml": str(tmp_path / "secret.yaml"),
        "prod/out.yaml": "../../secret.yaml",
        "prod/nothing.yaml": "gone.yaml",
        "prod/round.yaml": "round.yaml",
        "prod/root": "/",
        "prod/through.yaml": "../away/secret.yaml",
        "away": "..",
        "prod/git": "../.git",
    }
    checkout.write({"prod/own.yaml": "own"}, links)
    found, problems = checkout.both()
    assert found == {"prod/own.yaml": b"own"}
    assert problems == sorted(f"{name}: {NOWHERE}" for name in links if name != "away")


@pytest.fixture
def bomb(checkout):
    """A tree of folders that are the same again and again, eight times eight times …, in a few bytes."""
    checkout.write({"prod/own.yaml": "own"})
    entry = f"100644 blob {checkout.git('hash-object', '-w', 'prod/own.yaml').strip()}\tREADME"
    for _ in range(9):
        tree = checkout.git("mktree", stdin="".join(f"{entry}{n}\n" for n in range(8))).strip()
        entry = f"040000 tree {tree}\t"
    return f"{entry}bomb"


def test_what_is_behind_a_link_is_counted_as_what_is_in_front_of_it(checkout, bomb):
    link = checkout.git("hash-object", "-w", "--stdin", stdin="../bomb").strip()
    own = checkout.git("mktree", stdin=f"120000 blob {link}\tlink\n").strip()
    top = checkout.git("mktree", stdin=f"{bomb}\n040000 tree {own}\tprod\n").strip()
    sha = checkout.git("commit-tree", top, "-m", "a hundred million files").strip()
    checkout.git("update-ref", "refs/heads/main", sha)
    with pytest.raises(SourceError) as refused:
        checkout.commit().revision()
    assert "prod: there are more than 100,000 files (hint: " in str(refused.value)


def test_many_links_that_lead_through_one_another_are_refused(checkout):
    checkout.write({"prod/own.yaml": "own", "d/own.yaml": "own"})
    far = {f"far{n}": f"{'d/../' * 90}far{n + 1}" for n in range(39)}
    checkout.write({"far39": "own"}, {**far, **{f"prod/l{n}.yaml": "../far0" for n in range(200)}})
    with pytest.raises(SourceError) as refused:
        checkout.commit().revision()
    assert "too many symbolic links lead through one another, up to prod/l" in str(refused.value)


def test_the_path_itself_may_lead_through_a_link(checkout):
    checkout.write({"releases/v2/x.yaml": "x"}, {"current": "releases/v2", "prod": "current"})
    assert checkout.commit().revision().files.keys() == {"prod/x.yaml"}


def test_a_change_behind_a_link_is_a_change(checkout):
    checkout.write({"base/x.yaml": "x", "prod/own.yaml": "own"}, {"prod/x.yaml": "../base/x.yaml"})
    source = checkout.commit()
    before = source.revision()
    checkout.write({"base/x.yaml": "y"})
    sha = source.fetch()
    assert source.differs(before.sha, sha)
    assert source.read(source.revision().files["prod/x.yaml"]) == b"y"
    checkout.write({"other.txt": "z"})
    assert not source.differs(sha, source.fetch())


def test_overlays_and_charts_follow_links_as_well(checkout, renderer):
    checkout.write(
        {
            "prod/kustomization.yaml": "resources: [linked.yaml, base]\n",
            "prod/own.txt": CONFIG % "own",
            "base/kustomization.yaml": "resources: [x.yaml]\n",
            "base/x.yaml": CONFIG % "x",
        },
        {"prod/linked.yaml": "own.txt", "prod/base": "../base"},
    )
    for source in (WorktreeSource(checkout.folder, "prod"), checkout.commit()):
        found = ManifestReader(renderer=renderer).read(source)
        assert [each.ref.name for each in found.manifests] == ["own", "x"], found.problems


def test_links_of_a_partial_clone_are_fetched_between_renderings_a_folder_at_a_time(
    renderer, own_git_server, tmp_path, monkeypatch
):
    checkout = Checkout(tmp_path)
    names = [f"c{number}" for number in range(12)]
    files = {f"base/{name}.yaml": CONFIG % name for name in names}
    resources = "".join(f"- {name}.yaml\n" for name in names)
    links = {f"prod/{name}.yaml": f"../through/{name}.yaml" for name in names}
    links |= {f"through/{name}.yaml": f"../base/{name}.yaml" for name in names}
    checkout.write({"prod/kustomization.yaml": f"resources:\n{resources}", **files}, links)
    served = own_git_server()
    checkout.git("push", "-q", f"{served.folder}", "main")
    source = GitSource(Repository.of(served.url), Ref.of(branch="main"), "prod", cache_dir=tmp_path / "partial")
    source.revision()
    assert source._clone.is_partial
    fetched, bring, answer = [], MissingFiles.bring, _Recorder.answer
    answering = []

    def counted(self, ids, *others):
        assert not answering, "a server may be slow, and others wait for the place"
        fetched.append(1)
        bring(self, ids, *others)

    def within(self, question, path):
        answering.append(path)
        try:
            return answer(self, question, path)
        finally:
            answering.clear()

    monkeypatch.setattr(MissingFiles, "bring", counted)
    monkeypatch.setattr(_Recorder, "answer", within)
    found = ManifestReader(renderer=renderer).read(source)
    assert [each.ref.name for each in found.manifests] == sorted(names), found.problems
    assert len(fetched) <= 6
