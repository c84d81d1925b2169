"""A clone without the files that nobody asks for, on real Git servers: over HTTP, over SSH, and as a folder.

The server counts its requests, and git tells of its own processes; the bytes are those of the clone's folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import psutil
import pytest

from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.commands import blame
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.sandbox.gitserver import ServedRepository
from kubectl_reconcile.source.git.cloned import objects
from kubectl_reconcile.source.git.cloned.clone import git_version, never_fetches_lazily
from kubectl_reconcile.source.git.commit import FilesCommit
from kubectl_reconcile.source.git.restore import RestoreCommit
from kubectl_reconcile.source.git.source import Credentials, GitSource, Ref, Repository, SourceError, SourceFault
from kubectl_reconcile.source.running.ending import ENDING, Ending
from tests.e2e.ssh_host import private

MAIN = Ref.of(branch="main")
LARGE = 300_000
"""The bytes of a file outside of the path; random, so that nothing makes them fewer."""


def noise() -> bytes:
    return secrets.token_bytes(LARGE)


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def source(git_server, cache):
    """The source of a path of the test's repository: source(path, …)."""

    def make(path="apps", *, url=git_server.url, ref=MAIN, credentials=None, user_config=False):
        repository = Repository.of(url, credentials, allow_local=True, user_config=user_config)
        return GitSource(repository, ref, path, cache_dir=cache)

    return make


@pytest.fixture
def history(git_server):
    """Three commits that change a manifest, and a large file beside the path that is another in each."""
    return [git_server.push({"apps/a.yaml": f"a: {n}\n", "media/large.bin": noise()}, f"Commit {n}") for n in range(3)]


def bytes_of(cache: Path) -> int:
    return sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())


def clone_of(cache: Path) -> Path:
    [clone] = cache.glob("*.git")
    return clone


def is_here(cache: Path, name: str) -> bool:
    """Whether git finds the object *name* in the clone without asking anybody."""
    command = ["git", f"--git-dir={clone_of(cache)}", "cat-file", "-e", name]
    environ = {**os.environ, "GIT_NO_LAZY_FETCH": "1"}
    return subprocess.run(command, capture_output=True, check=False, timeout=300, env=environ).returncode == 0


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """The git processes started since the last call: processes() -> {"fetch": 1, …}."""
    trace = tmp_path / "trace"
    trace.touch()
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))

    def started() -> Counter[str]:
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        trace.write_text("")
        return Counter(event["name"] for event in events if event["event"] == "cmd_name")

    return started


# -- what is fetched ---------------------------------------------------------------------------------------------------


def test_the_first_fetch_brings_the_files_of_the_path_and_no_others(source, history, cache):
    followed = source()
    revision = followed.revision()
    assert revision.sha == history[-1]
    assert bytes_of(cache) < 50_000  # the three large files are 900,000
    assert dict(followed.read_many(revision.files.values())) == {revision.files["apps/a.yaml"]: b"a: 2\n"}
    assert [commit.sha for commit in followed.commits_touching("apps", revision.sha)] == history[::-1]
    assert not is_here(cache, f"{history[0]}:apps/a.yaml")


def test_a_push_that_adds_files_costs_one_request_for_all_of_them(source, history, git_server, processes):
    followed = source()
    followed.revision()
    processes()
    sha = git_server.push({f"apps/{n}.yaml": f"n: {n}\n" for n in range(300)} | {"media/large.bin": noise()})
    revision = followed.revision()
    assert len(dict(followed.read_many(revision.files.values()))) == 301
    assert revision.sha == sha
    started = processes()
    assert started["fetch"] == 2  # commits and folders, then files
    assert started["ls-remote"] == 0  # that is asked without git
    assert sum(started.values()) < 40, started


def test_an_unchanged_remote_costs_no_process_at_all(source, history, processes, eventually, monkeypatch):
    monkeypatch.setattr(objects, "_IDLE_S", 0.0)
    followed = source()
    followed.revision()
    followed.revision()  # the clone has its files now, too, and is looked into once more
    eventually(lambda: not followed._clone.reader.is_open, "whoever read the clone has ended")
    processes()
    followed.revision()
    started = processes()
    assert started == {}


def test_ignore_files_above_the_path_count(source, git_server, cache):
    git_server.push({".reconcileignore": "b.yaml", "x/.reconcileignore": "c.yaml", "large.bin": noise()})
    git_server.push({"x/apps/a.yaml": "a: 1\n", "x/apps/b.yaml": "b: 1\n", "x/apps/c.yaml": "c: 1\n"})
    assert list(source("x/apps").revision().files) == ["x/apps/a.yaml"]
    assert bytes_of(cache) < 50_000


def test_two_paths_share_a_clone(source, git_server, cache):
    git_server.push({"apps/a.yaml": "a: 1\n", "db/b.yaml": "b: 1\n", "large.bin": noise()})
    for path, content in (("apps", b"a: 1\n"), ("db", b"b: 1\n")):
        followed = source(path)
        [blob] = followed.revision().files.values()
        assert followed.read(blob) == content
    assert bytes_of(cache) < 50_000


def test_files_of_all_who_follow_a_ref_come_with_those_of_the_first(source, git_server, processes, cache):
    teams = {f"team-{n}/a.yaml": f"n: {n}\n" for n in range(5)}
    git_server.push(teams | {"media/large.bin": noise()})
    everybody = [source(f"team-{n}") for n in range(5)]
    gone = source("team-gone")
    assert [each.revision().files.keys() for each in everybody] == [{f"team-{n}/a.yaml"} for n in range(5)]
    assert processes()["fetch"] == 2  # commits and folders, then files
    git_server.push({f"team-{n}/b.yaml": f"b: {n}\n" for n in (1, 3)})
    assert [len(each.revision().files) for each in everybody] == [1, 2, 1, 2, 1]
    assert processes()["fetch"] == 2
    assert bytes_of(cache) < 50_000
    with pytest.raises(SourceError, match="there is no team-gone"):
        gone.revision()


def test_each_request_brings_files_of_others_that_no_request_has_brought_before(
    source, git_server, monkeypatch, processes
):
    monkeypatch.setattr("kubectl_reconcile.source.git.missing_files._MOST_FOR_OTHERS", 4)
    git_server.push({f"team-{n}/a.yaml": f"n: {n}\n" for n in range(20)})
    everybody = [source(f"team-{n}") for n in range(20)]
    last_first = everybody[0]._server.followers()[::-1]  # those whose files come along are the last to read them
    for each in last_first:
        assert len(each.revision().files) == 1
    # Commits and folders; then files of one and of four others, of whom the last may be asked for twice.
    assert processes()["fetch"] <= 1 + 5


def test_what_others_can_not_be_given_is_nothing_to_the_one_who_asks(source, git_server, monkeypatch):
    git_server.push({"one/a.yaml": "a: 1\n", "two/b.yaml": "b: 1\n"})
    one, two = source("one"), source("two")
    monkeypatch.setattr(two, "has_listed", lambda _folders: False)
    monkeypatch.setattr("kubectl_reconcile.source.git.source.read_at", lambda *_: iter(["0" * 39 + "1"]))
    [blob] = one.revision().files.values()
    assert one.read(blob) == b"a: 1\n"
    assert one.files._clone.is_partial, "the clone of all is as it was"
    assert list(two.revision().files) == ["two/b.yaml"]


def test_nothing_of_the_server_s_promise_is_left_in_the_clone(source, history, cache):
    source().revision()
    assert "promisor" not in (clone_of(cache) / "config").read_text()


# -- older files -------------------------------------------------------------------------------------------------------


def test_who_changed_a_field_is_found_with_one_request_for_all_versions(source, git_server, config_map, processes):
    shas = [
        git_server.push({"apps/web.yaml": config_map("web", colour=colour), "media/large.bin": noise()}, colour)
        for colour in ("red", "green", "blue", "blue ")
    ]
    followed = source()
    followed.revision()
    processes()
    web = ObjectRef("", "ConfigMap", "shop", "web")
    life = blame.lives_of(followed, "apps/web.yaml", shas[-1], [web], "shop", reader=ManifestReader())[web]
    assert [version.commit.sha for version in life] == shas[::-1]
    assert all(version.manifest for version in life)
    assert blame.who_changed(life[1:], FieldPath.fields("data", "colour"), UNKNOWN).sha == shas[2]
    assert processes()["fetch"] == 1


def test_files_of_an_older_commit_come_together(source, git_server, processes):
    first = git_server.push({f"apps/{n}.yaml": f"n: {n}\n" for n in range(20)})
    git_server.push({f"apps/{n}.yaml": f"n: {n + 1}\n" for n in range(20)})
    followed = source()
    followed.revision()
    processes()
    assert [followed.read_at(first, f"apps/{n}.yaml") for n in range(20)] == [b"n: %d\n" % n for n in range(20)]
    assert followed.read_at(first, "apps/nope.yaml") is None
    assert followed.read_at(first, "apps") is None
    assert followed.read_at("1" * 40, "apps/1.yaml") is None
    assert processes()["fetch"] == 1


def test_an_older_file_outside_of_the_path_is_found_too(source, git_server):
    first = git_server.push({"before/a.yaml": "a: 1\n"})
    git_server.push({"before/a.yaml": None, "apps/a.yaml": "a: 2\n"})
    followed = source()
    followed.revision()
    assert followed.read_at(first, "before/a.yaml") == b"a: 1\n"


def test_an_older_revision_is_listed_and_read(source, history):
    followed = source()
    followed.revision()
    older = followed.revision_at(history[0])
    assert followed.read(older.files["apps/a.yaml"]) == b"a: 0\n"


def test_without_the_server_the_versions_that_are_here_have_to_do(own_git_server, source, cache):
    repository = own_git_server()
    shas = [repository.push({"apps/a.yaml": f"a: {n}\n"}) for n in range(3)]
    followed = source(url=repository.url)
    revision = followed.revision()
    repository.server.stop()
    assert list(followed.versions("apps/a.yaml", shas)) == [None, None, b"a: 2\n"]
    assert followed.read_at(shas[0], "apps/a.yaml") is None
    assert followed.read(revision.files["apps/a.yaml"]) == b"a: 2\n"
    with pytest.raises(SourceError) as raised:
        followed.revision_at(shas[0])
    assert raised.value.fault is SourceFault.UNREACHABLE


def test_a_branch_is_taken_back_to_files_that_were_never_here(source, history, git_server, cache):
    made, branch = RestoreCommit(git_server.url, "main", "apps", history[0]).commit("Back", cache)
    assert branch == "main"
    assert git_server.sha() == made
    followed = source()
    [blob] = followed.revision().files.values()
    assert followed.read(blob) == b"a: 0\n"
    assert bytes_of(cache) < 50_000


def test_files_are_put_on_top_of_files_that_were_never_here(source, history, git_server, cache):
    source().revision()
    before = bytes_of(cache)
    made = FilesCommit(git_server.url, history[-1], "main").commit({"apps/b.yaml": b"b: 1\n"}, "Add b", cache)
    assert git_server.sha() == made
    revision = source().revision()
    assert list(revision.files) == ["apps/a.yaml", "apps/b.yaml"]
    assert bytes_of(cache) < before + 50_000
    shown = subprocess.run(
        ["git", f"--git-dir={git_server.folder}", "ls-tree", "-r", "--name-only", "main"],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert shown.stdout.split() == ["apps/a.yaml", "apps/b.yaml", "media/large.bin"]


# -- servers of every kind ---------------------------------------------------------------------------------------------

NO_FILTER = {"uploadpack.allowFilter": "false"}
NOTHING_BY_NAME = {"uploadpack.allowAnySHA1InWant": "false"}
SERVERS = {
    "that gives files by name": ({}, "2", True),
    "that speaks the old protocol": ({}, "0", True),
    "without a filter": (NO_FILTER, "2", False),
    "without a filter, in the old protocol": (NO_FILTER | NOTHING_BY_NAME, "0", False),
    "with a filter, but nothing by name": (NOTHING_BY_NAME, "0", False),
}
"""What the server is told, the version of the protocol, and whether the clone stays partial."""


@pytest.fixture
def protocol(tmp_path, monkeypatch):
    """Have git speak that version of its protocol: protocol("0")."""

    def speak(version: str) -> None:
        (tmp_path / "gitconfig").write_text(f"[protocol]\n\tversion = {version}\n[safe]\n\tdirectory = *\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))

    return speak


def reached(how: str, repository, ssh_host) -> dict:
    """How *repository* is reached over HTTP, over SSH or as a folder."""
    if how == "over SSH":
        credentials = Credentials(ssh_private_key=private(ssh_host.client_key), known_hosts=ssh_host.known_hosts)
        return {"url": f"ssh://git@127.0.0.1:{ssh_host.port}{repository.folder}", "credentials": credentials}
    return {"url": repository.folder.as_uri() if how == "as a folder" else repository.url}


@pytest.mark.parametrize("how", ["over HTTP", "over SSH", "as a folder"])
@pytest.mark.parametrize(("config", "version", "partial"), SERVERS.values(), ids=SERVERS)
def test_a_server(own_git_server, source, cache, protocol, processes, ssh_host, config, version, partial, how):
    repository = own_git_server(config=config)
    for key, value in {"uploadpack.allowFilter": "true", "uploadpack.allowAnySHA1InWant": "true", **config}.items():
        set_in(repository, key, value)
    shas = [repository.push({"apps/a.yaml": f"a: {n}\n", "media/large.bin": noise()}) for n in range(3)]
    protocol(version)
    followed = source(**reached(how, repository, ssh_host), user_config=True)
    revision = followed.revision()
    assert followed.read(revision.files["apps/a.yaml"]) == b"a: 2\n"
    assert (bytes_of(cache) < LARGE) == partial
    assert followed.read_at(shas[0], "apps/a.yaml") == b"a: 0\n"
    sha = repository.push({"apps/b.yaml": "b: 1\n"})
    revision = followed.revision()
    assert revision.sha == sha
    assert sorted(dict(followed.read_many(revision.files.values())).values()) == [b"a: 2\n", b"b: 1\n"]
    assert (bytes_of(cache) < LARGE) == partial
    assert processes()["fetch"] <= 7  # one more where the server refuses what it said it would give


def set_in(repository, key: str, value: str) -> None:
    subprocess.run(["git", f"--git-dir={repository.folder}", "config", key, value], check=True, timeout=300)


@pytest.mark.parametrize("how", ["over SSH", "as a folder"])
def test_a_server_with_a_shallow_clone_starts_no_process_without_end(
    git_server, source, processes, tmp_path, ssh_host, history, how
):
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--bare", "--depth=1", git_server.url, str(shallow)], check=True, timeout=300)
    served = ServedRepository(shallow, git_server.server)
    for key in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        set_in(served, key, "true")
    followed = source(**reached(how, served, ssh_host))
    for expected in (b"a: 2\n", b"a: 3\n"):
        revision = followed.revision()
        assert followed.read(revision.files["apps/a.yaml"]) == expected
        assert followed.read_at(history[0], "apps/a.yaml") is None
        served.push({"apps/a.yaml": "a: 3\n"})
    assert processes()["fetch"] == 4


@pytest.mark.parametrize("version", [(2, 39, 3), (2, 38, 9), (2, 44), (2, 44, 0), (2, 31), (), (1, 9)])
def test_a_git_that_would_fetch_lazily_makes_no_partial_clone(version):
    assert not never_fetches_lazily(version)


@pytest.mark.parametrize("version", [(2, 39, 4), (2, 39, 5), (2, 44, 1), (2, 45), (2, 45, 0), (2, 51, 1), (3, 0)])
def test_a_git_that_obeys_does(version):
    assert never_fetches_lazily(version)


# The server of these tests starts git in this process too, for whoever still asks it: all but the one question goes on to git.
ANOTHER_GIT = """#!/bin/sh
[ "$*" = "--no-pager version" ] || exec {git} "$@"
{answer}
"""


@pytest.fixture
def another_git(tmp_path, monkeypatch):
    """A function that puts another git in the place of ours: it answers the question for its version with that script."""
    program, git = tmp_path / "bin" / "git", shutil.which("git")
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def put(answer, changed_s):
        program.write_text(ANOTHER_GIT.format(git=git, answer=answer))
        program.chmod(0o755)
        os.utime(program, (changed_s, changed_s))

    return put


def test_an_older_git_clones_the_whole_and_makes_a_partial_clone_whole(source, history, cache, another_git):
    source().revision()
    assert bytes_of(cache) < LARGE
    another_git("echo git version 2.38.1", 1)
    other = source()
    assert other.read_at(history[0], "apps/a.yaml") == b"a: 0\n"
    revision = other.revision()
    assert other.read(revision.files["apps/a.yaml"]) == b"a: 2\n"
    assert bytes_of(cache) > LARGE
    assert not (clone_of(cache) / "reconcile-partial").exists()


def test_git_is_asked_for_its_version_once_and_again_when_it_is_another(tmp_path, another_git):
    counted = tmp_path / "asked"
    for at, version in enumerate(("2.38.1", "2.50.0")):
        another_git(f"echo x >> {counted}\necho git version {version}", at)
        assert {git_version() for _ in range(3)} == {tuple(map(int, version.split(".")))}
        assert counted.read_text() == "x\n" * (at + 1)


def test_a_question_for_the_version_that_was_ended_is_asked_again(tmp_path, another_git, eventually):
    asked = tmp_path / "asked"
    another_git(f"[ -e {asked} ] || {{ touch {asked}; exec sleep 60; }}\necho git version 2.50.0", 1)
    ended = Ending()
    token = ENDING.set(ended)
    try:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(copy_context().run, git_version)
            eventually(asked.exists, "git is asked")
            ended.end()
            with pytest.raises(SourceError) as refused:
                first.result(60)
    finally:
        ENDING.reset(token)
    assert refused.value.fault is SourceFault.ENDED
    assert git_version() == (2, 50, 0)


def test_a_git_without_a_version_is_refused_and_asked_again(another_git):
    for status in (1, 0):  # one and the same program
        another_git(f"echo git version 2.50.0\nexit {status}", 1)
        with contextlib.nullcontext() if status == 0 else pytest.raises(SourceError, match="which version"):
            assert git_version() == (2, 50, 0)


# -- damage ------------------------------------------------------------------------------------------------------------

KILLED = """
import sys
from pathlib import Path
from kubectl_reconcile.source.git.source import Credentials, GitSource, Ref, Repository
GitSource(Repository.of(sys.argv[1]), Ref.of(branch="main"), "media", cache_dir=Path(sys.argv[2])).files.bring([sys.argv[3]])
"""


HALTING = """#!/bin/sh
"$@" | { head -c 200000; while [ -e %s ]; do sleep 0.05; done; cat; }
"""


def test_a_fetch_of_files_that_was_killed_is_made_up_for(own_git_server, source, cache, tmp_path, eventually):
    halt = tmp_path / "halt"
    (tmp_path / "hook").write_text(HALTING % halt)
    (tmp_path / "hook").chmod(0o755)
    repository = own_git_server(config={"uploadpack.packObjectsHook": str(tmp_path / "hook")})
    repository.push({"apps/a.yaml": "a: 1\n", "media/large.json": noise() * 40})
    blob = source(url=repository.url).revision() and object_id(repository, "main:media/large.json")
    command = [sys.executable, "-c", KILLED, repository.url, str(cache), blob]
    packs = clone_of(cache) / "objects" / "pack"
    halt.touch()
    with subprocess.Popen(command, start_new_session=True) as killed:
        eventually(lambda: list(packs.glob("tmp_pack_*")), "a pack has begun")
        for child in psutil.Process(killed.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # one may end with the other
                child.kill()
        killed.kill()
    halt.unlink()
    assert not is_here(cache, blob)
    followed = source("media", url=repository.url)
    revision = followed.revision()
    assert len(followed.read(revision.files["media/large.json"])) > LARGE


def object_id(repository, name: str) -> str:
    command = ["git", f"--git-dir={repository.folder}", "rev-parse", name]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.strip()


def cut_short(file: Path) -> None:
    file.chmod(0o600)
    os.truncate(file, min(20, file.stat().st_size))


def of_the_newest(clone: Path, *suffixes: str) -> list[Path]:
    """The files of the pack that came last: that of the files."""
    newest = max(clone.glob("objects/pack/*.pack"), key=lambda pack: pack.stat().st_mtime_ns)
    return [newest.with_suffix(suffix) for suffix in suffixes]


DAMAGES = {
    "the files' pack is gone": lambda clone: [
        file.unlink() for file in of_the_newest(clone, ".pack", ".idx", ".promisor")
    ],
    "the files' pack is cut short": lambda clone: [cut_short(file) for file in of_the_newest(clone, ".pack")],
    "the files' index is cut short": lambda clone: [cut_short(file) for file in of_the_newest(clone, ".idx")],
    "its configuration is garbage": lambda clone: (clone / "config").write_text("[[["),
    "everything is gone": lambda clone: [file.unlink() for file in clone.glob("objects/pack/*")],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_partial_clone_is_recreated(source, history, git_server, cache, damage):
    followed = source()
    revision = followed.revision()
    damage(clone_of(cache))
    assert followed.read(revision.files["apps/a.yaml"]) == b"a: 2\n"
    damage(clone_of(cache))
    sha = git_server.push({"apps/a.yaml": "a: 3\n"})
    again = source()
    revision = again.revision()
    assert revision.sha == sha
    assert again.read(revision.files["apps/a.yaml"]) == b"a: 3\n"
    assert again.read_at(history[0], "apps/a.yaml") == b"a: 0\n"
    assert bytes_of(cache) < LARGE


def test_packing_loses_nothing_and_brings_nothing(source, history, git_server, cache):
    followed = source()
    followed.revision()
    for setting, value in {"gc.autoPackLimit": "4", "gc.autoDetach": "false", "gc.pruneExpire": "now"}.items():
        command = ["git", f"--git-dir={clone_of(cache)}", "config", setting, value]
        subprocess.run(command, check=True, timeout=300)
    shas = []
    for number in range(8):
        shas.append(git_server.push({f"apps/{number}.yaml": f"n: {number}\n", "media/large.bin": noise()}))
        followed.revision()
    assert len(list(clone_of(cache).glob("objects/pack/*.pack"))) <= 6  # 18 were fetched
    assert bytes_of(cache) < LARGE
    for number, sha in enumerate(shas):
        revision = followed.revision_at(sha)
        assert followed.read(revision.files[f"apps/{number}.yaml"]) == b"n: %d\n" % number
    assert followed.commits_touching("", shas[-1])[-1].sha == history[0]
