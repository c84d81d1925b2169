"""A local folder as a source: the real file system, links, permissions and changes included."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from tests.waiting import steadily


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def problems_of(source: WorktreeSource) -> list[str]:
    return [str(problem) for problem in source.revision().problems]


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_folder_is_read_with_all_below_it_in_order_of_paths(folder):
    write(
        folder,
        {"b.yaml": "b", "a/z.yml": "z", "a/deep/x.json": "{}", "a/README.md": "x", ".git/x.yaml": "x", ".a.yaml": ""},
    )
    source = WorktreeSource(folder)
    revision = source.revision()
    assert list(revision.files) == ["a/deep/x.json", "a/z.yml", "b.yaml"]
    assert {path: source.read(blob_id) for path, blob_id in revision.files.items()} == {
        "a/deep/x.json": b"{}",
        "a/z.yml": b"z",
        "b.yaml": b"b",
    }
    assert dict(source.read_many(revision.files.values())).keys() == set(revision.files.values())
    assert revision.problems == ()
    assert revision.short == "worktree"


def test_blob_ids_are_git_s(folder):
    write(folder, {"a.yaml": "kind: Café\n", "empty.yaml": ""})
    for path, blob_id in WorktreeSource(folder).revision().files.items():
        command = ["git", "hash-object", str(folder / path)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == blob_id


def test_a_single_file_is_read_whatever_its_name(folder):
    write(folder, {"values.yaml": "a", ".hidden": "b", "other.yaml": "c", ".reconcileignore": "*"})
    assert list(WorktreeSource(folder / "values.yaml").revision().files) == ["values.yaml"]
    assert list(WorktreeSource(folder / ".hidden").revision().files) == [".hidden"]


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="only Linux has files that don't say how large they are")
def test_a_file_that_is_longer_than_it_said_is_read_to_its_end():
    source = WorktreeSource(Path("/proc/version"))
    (blob_id,) = source.revision().files.values()
    assert source.read(blob_id) == Path("/proc/version").read_bytes()


def test_a_revision_is_the_same_while_its_files_are(folder):
    write(folder, {"a.yaml": "1", "b.yaml": "2"})
    source = WorktreeSource(folder)
    first = source.revision()
    os.utime(folder / "a.yaml")
    write(folder, {"README.md": "x"})
    assert source.revision() == first
    assert WorktreeSource(folder).revision() == first
    write(folder, {"a.yaml": "2"})
    second = source.revision()
    assert second.sha != first.sha
    (folder / "b.yaml").rename(folder / "c.yaml")
    assert source.revision().sha not in {first.sha, second.sha}


def test_a_file_rewritten_at_once_with_the_same_size_is_noticed(folder):
    source = WorktreeSource(folder)
    seen = set()
    for number in range(100, 150):
        write(folder, {"a.yaml": f"n: {number}"})
        seen.add(source.revision().files["a.yaml"])
    assert len(seen) == 50


def test_reconcileignore_counts_for_its_folder(folder):
    write(
        folder,
        {".reconcileignore": "*.json\n!\n", "a.json": "", "a/.reconcileignore": "x.yaml", "a/x.yaml": "", "x.yaml": ""},
    )
    source = WorktreeSource(folder)
    assert list(source.revision().files) == ["x.yaml"]
    assert problems_of(source) == [".reconcileignore:2: \"!\" isn't a pattern (hint: write it in .gitignore's syntax)"]


def test_a_file_that_changed_since_the_revision_is_not_read_as_if_it_hadn_t(folder):
    write(folder, {"a.yaml": "1"})
    source = WorktreeSource(folder)
    blob_id = source.revision().files["a.yaml"]
    write(folder, {"a.yaml": "2"})
    assert source.read(blob_id) == b"1", "what was read for the revision is kept for the one who asks next"
    with pytest.raises(SourceError, match="it changed while it was being read"):
        source.read(blob_id)
    (folder / "a.yaml").unlink()
    with pytest.raises(SourceError, match="No such file"):
        source.read(blob_id)
    with pytest.raises(SourceError, match="has no file 1111111"):
        source.read("1" * 40)


# -- what isn't read ---------------------------------------------------------------------------------------------------


def test_links_out_of_the_folder_are_problems(folder, tmp_path):
    write(tmp_path, {"outside/secret.yaml": "s3cr3t"})
    write(folder, {"a.yaml": "a"})
    (folder / "evil.yaml").symlink_to(tmp_path / "outside" / "secret.yaml")
    (folder / "relative.yaml").symlink_to("../outside/secret.yaml")
    (folder / "all").symlink_to(tmp_path / "outside")
    (folder / "root").symlink_to("/")
    (folder / "README.md").symlink_to(tmp_path / "outside" / "secret.yaml")
    (folder / "broken.yaml").symlink_to("nowhere")
    (folder / "loop.yaml").symlink_to("loop.yaml")
    source = WorktreeSource(folder)
    assert list(source.revision().files) == ["a.yaml"]
    assert sorted(line.partition(" (hint")[0] for line in problems_of(source)) == [
        f"{name}: a symbolic link to nothing in the repository, which isn't followed"
        for name in ("all", "broken.yaml", "evil.yaml", "loop.yaml", "relative.yaml", "root")
    ]
    write(folder, {".reconcileignore": "*.yaml\n!a.yaml\nall\nroot\n"})
    assert problems_of(source) == []


def test_links_within_the_folder_add_nothing_that_is_read_anyway(folder):
    write(folder, {"a/b/x.yaml": "x"})
    (folder / "again.yaml").symlink_to("a/b/x.yaml")
    (folder / "a" / "b" / "up").symlink_to("../..")
    (folder / "twice").symlink_to("a")
    source = WorktreeSource(folder)
    assert list(source.revision().files) == ["a/b/x.yaml"]
    assert problems_of(source) == []


def test_a_mounted_config_map_is_read(folder):
    write(folder, {"..2026_11_20/web.yaml": "x"})
    (folder / "..data").symlink_to("..2026_11_20")
    (folder / "web.yaml").symlink_to("..data/web.yaml")
    source = WorktreeSource(folder)
    revision = source.revision()
    assert list(revision.files) == ["web.yaml"]
    assert source.read(revision.files["web.yaml"]) == b"x"


def test_the_folder_itself_may_be_a_link(folder, tmp_path):
    write(folder, {"a.yaml": "a"})
    (tmp_path / "link").symlink_to(folder)
    assert list(WorktreeSource(tmp_path / "link").revision().files) == ["a.yaml"]


def test_pipes_and_sockets_are_not_opened(folder):
    write(folder, {"a.yaml": "a"})
    os.mkfifo(folder / "pipe.yaml")
    assert list(WorktreeSource(folder).revision().files) == ["a.yaml"]
    with pytest.raises(SourceError, match="neither a file nor a folder"):
        WorktreeSource(folder / "pipe.yaml")


def test_a_file_name_that_a_terminal_would_obey_is_a_problem(folder):
    write(folder, {"a.yaml": "a", "b\x1b[2J.yaml": "b"})
    (folder / os.fsdecode(b"\xff.yaml")).write_text("c")
    source = WorktreeSource(folder)
    assert list(source.revision().files) == ["a.yaml"]
    said = problems_of(source)
    assert len(said) == 2
    assert all(line.isprintable() for line in said)


READER = """
import os, sys
from pathlib import Path
from kubectl_reconcile.source.folder.worktree import WorktreeSource
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
revision = WorktreeSource(Path(".")).revision()
print(list(revision.files), *revision.problems, sep="\\n")
"""


@pytest.fixture
def public_folder():
    """A folder that every user can get at, which pytest's own aren't."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_what_can_t_be_read_is_a_problem_and_hides_nothing_else(public_folder):
    folder = public_folder
    write(folder, {"a.yaml": "a", "closed.yaml": "b", "locked/x.yaml": "c"})
    (folder / "closed.yaml").chmod(0)
    (folder / "locked").chmod(0)
    command = [sys.executable, "-c", READER]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    (folder / "locked").chmod(0o755)
    assert answer.stdout.splitlines() == [
        "['a.yaml']",
        "locked: the folder can't be read: Permission denied (hint: check its permissions)",
        "closed.yaml: can't be read: Permission denied (hint: check its permissions)",
    ], answer.stderr


def test_nothing_there_says_so(folder):
    with pytest.raises(SourceError) as raised:
        WorktreeSource(folder / "nope")
    assert raised.value.fault is SourceFault.NO_SUCH_PATH
    assert "nope: No such file or directory (hint: give a folder or a file of manifests)" in str(raised.value)
    source = WorktreeSource(folder)
    folder.rmdir()
    with pytest.raises(SourceError) as raised:
        source.revision()
    assert raised.value.fault is SourceFault.NO_SUCH_PATH


# -- ceilings ----------------------------------------------------------------------------------------------------------


TOO_MUCH = {
    "files and folders": (
        {f"{n}.yaml": "a" for n in range(6)},
        {"entries": 5},
        "",
        "there are more than 5 files and folders",
        "_GIT_MAX_ENTRIES",
    ),
    "folders in folders": (
        {"a/b/c/web.yaml": "a"},
        {"depth": 2},
        "a/b/c/",
        "is below more than 2 folders",
        "_GIT_MAX_DEPTH",
    ),
    "bytes": (
        {f"{n}.yaml": "a" * 600_000 for n in range(3)},
        {"revision_bytes": MEBIBYTE},
        "with 1.yaml",
        "its manifests take more than 1 MiB",
        "_MAX_REVISION",
    ),
    "ignore files": (
        {f"{n}/.reconcileignore": "a" for n in range(501)}, {}, "/.reconcileignore", "more than 500 ignore files", "",
    ),
    "bytes of ignore files": (
        {f"{n}/.reconcileignore": "#" * 600_000 for n in range(2)}, {}, "with 1/.reconcileignore", "1 MiB of ignore", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "limits", "where", "what", "way_out"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_folder_that_holds_too_much_is_refused_with_the_file_and_the_way_out(
    files, limits, where, what, way_out, folder
):
    write(folder, files)
    with pytest.raises(SourceError) as raised:
        WorktreeSource(folder, limits=GitLimits(**limits)).revision()
    said = str(raised.value)
    assert raised.value.fault is SourceFault.REFUSED
    assert str(folder) in said
    assert where in said
    assert what in said
    assert f"KUBECTL_RECONCILE{way_out}" in said or not way_out
    if limits:
        [(name, most)] = limits.items()
        assert WorktreeSource(folder, limits=GitLimits(**{name: 2 * most})).revision().files


def test_a_path_in_a_folder_counts_from_there(folder):
    write(folder, {"x/a/b/web.yaml": "a", "many/1.yaml": "a", "many/2.yaml": "a"})
    limits = GitLimits(depth=2, entries=3)
    assert list(WorktreeSource(folder, "x", limits=limits).revision().files) == ["x/a/b/web.yaml"]


def test_a_file_is_read_as_far_as_it_may_be_long(folder):
    large = "#" * 11 * MEBIBYTE + "\na: 1"
    write(folder, {"large.yaml": large})
    for most, read in ((20 * MEBIBYTE, len(large)), (MEBIBYTE, MEBIBYTE + 1)):
        source = WorktreeSource(folder, limits=GitLimits(file_bytes=most))
        [blob] = source.revision().files.values()
        assert len(source.read(blob)) == read


def test_what_is_read_is_not_held_beyond_what_may_be(folder):
    write(folder, {f"{n}.yaml": f"{n}" * MEBIBYTE for n in range(8)})
    tracemalloc.start()
    try:
        source = WorktreeSource(folder, limits=GitLimits(parsing_bytes=MEBIBYTE, file_bytes=MEBIBYTE))
        files = source.revision().files
        assert all(len(data) == MEBIBYTE for _, data in source.read_many(files.values()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 * MEBIBYTE


# -- watching ----------------------------------------------------------------------------------------------------------


class Calls:
    """Counts calls from whatever thread."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_changes_are_heard_of(folder, eventually):
    write(folder, {"a.yaml": "1", "deep/er/b.yaml": "1"})
    source, calls = WorktreeSource(folder), Calls()
    changes = {
        "a write": lambda: write(folder, {"a.yaml": "2"}),
        "a write below": lambda: write(folder, {"deep/er/b.yaml": "2"}),
        "a new file": lambda: write(folder, {"c.yaml": "1"}),
        "a new folder": lambda: write(folder, {"new/d.yaml": "1"}),
        "a file put in place": lambda: (folder / "c.yaml").rename(folder / "a.yaml"),
        "a deletion": (folder / "a.yaml").unlink,
        "an ignore file": lambda: write(folder, {".reconcileignore": "x"}),
    }
    with source.watch(calls, quiet_s=0.02):
        for what, change in changes.items():
            before = calls.count
            change()
            eventually(lambda before=before: calls.count > before, f"{what} is heard of")


def test_a_burst_makes_one_call(folder, eventually):
    calls = Calls()
    with WorktreeSource(folder).watch(calls, quiet_s=4.0):
        for number in range(200):
            write(folder, {f"{number}.yaml": "x"})
        eventually(lambda: calls.count, "the burst is heard of")
        assert calls.count == 1


def test_what_doesn_t_count_is_not_heard_of(folder, eventually):
    write(folder, {"a.yaml": "1", ".git/index": "1", "README.md": "1"})
    calls = Calls()
    with WorktreeSource(folder).watch(calls, quiet_s=3.0):
        write(folder, {".git/index": "2", "README.md": "2"})
        (folder / "a.yaml").read_text()
        write(folder, {"a.yaml": "2"})
        eventually(lambda: calls.count, "the write is heard of")
    assert calls.count == 1


def test_a_single_file_is_watched_alone(folder, eventually):
    write(folder, {"a.yaml": "1", "b.yaml": "1"})
    calls = Calls()
    with WorktreeSource(folder / "a.yaml").watch(calls, quiet_s=3.0):
        write(folder, {"b.yaml": "2"})
        write(folder, {"new": "2"})
        (folder / "new").rename(folder / "a.yaml")
        eventually(lambda: calls.count, "the file put in place is heard of")
    assert calls.count == 1


def test_of_an_overlay_all_that_was_consulted_is_watched_wherever_it_is_and_nothing_else(renders, folder, eventually):
    write(
        folder,
        {
            "base/kustomization.yaml": "configMapGenerator: [{name: settings, envs: [settings.env]}]\n",
            "base/settings.env": "A=1\n",
            "base/unlisted.yaml": "1",
            "more/kustomization.yaml": "configMapGenerator: [{name: more, files: [.hidden]}]\n",
            "more/.hidden": "1",
            "prod/kustomization.yaml": "resources: [../base]\n",
            "prod/README.md": "1",
            ".git/index": "1",
        },
    )
    source, reader, calls = WorktreeSource(folder / "prod"), ManifestReader(), Calls()

    def values(change: dict[str, str]) -> list[dict[str, str]]:
        """What the overlay has after a change, once that was heard of."""
        before = calls.count
        write(folder, change)
        eventually(lambda: calls.count > before, f"{change} is heard of")
        time.sleep(0.3)  # each write has two events, which a busy machine may tell one after the other
        return [each.manifest["data"] for each in reader.read(source).manifests]

    with source.watch(calls, quiet_s=0.1, consulted=reader.consulted) as watch:
        assert len(reader.read(source).manifests) == 1
        assert watch.follow()
        assert not watch.follow()
        write(folder, {"prod/README.md": "2", "base/unlisted.yaml": "2", "more/.hidden": "2", ".git/index": "2"})
        steadily(lambda: calls.count == 0, "nothing else is heard of", for_s=0.5)
        assert values({"base/settings.env": "A=2\n"}) == [{"A": "2"}]
        assert values({"prod/kustomization.yaml": "resources: [../base, ../more]\n"}) == [{".hidden": "2"}, {"A": "2"}]
        watch.follow()
        assert values({"more/.hidden": "3"}) == [{".hidden": "3"}, {"A": "2"}]
        assert values({"prod/kustomization.yml": "resources: []\n"}) == []  # one of two: which was absent, before


def test_a_closed_watch_is_silent_and_leaves_no_thread(folder, eventually):
    threads = set(threading.enumerate())
    calls = Calls()
    watch = WorktreeSource(folder).watch(calls, quiet_s=0.05)
    write(folder, {"a.yaml": "1"})
    watch.close()
    heard = calls.count
    write(folder, {"b.yaml": "1"})
    eventually(lambda: not set(threading.enumerate()) - threads, "no thread is left")
    assert calls.count == heard
    watch.close()


def test_a_watch_may_be_closed_by_what_it_calls(folder, eventually):
    closed = threading.Event()

    def close() -> None:
        watch.close()
        closed.set()

    watch = WorktreeSource(folder).watch(close, quiet_s=0.02)
    write(folder, {"a.yaml": "1"})
    eventually(closed.is_set, "it is closed")
