"""What a Git server can make us hold: real servers that flood, and repositories that are far more than they look."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
import tracemalloc
from pathlib import Path

import pytest

from kubectl_reconcile.source.git import GitSource, Ref, Repository, SourceError, SourceFault
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits

MAIN = Ref.of(branch="main")


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def source(git_server, cache):
    """The source of the test's repository under these ceilings: source(files=…)."""

    def make(url=git_server.url, **limits):
        return GitSource(Repository.of(url), MAIN, cache_dir=cache, limits=GitLimits(**limits), fetch_timeout_s=60)

    return make


def refused(action) -> str:
    with pytest.raises(SourceError) as raised:
        action()
    assert raised.value.fault is SourceFault.REFUSED
    return str(raised.value)


def on_disk(cache: Path) -> int:
    return sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())


FLOOD = "#!/bin/sh\nyes 'the server has much to say' >&2\n"


def test_a_server_that_never_stops_talking_is_hung_up_on(own_git_server, source, tmp_path):
    (tmp_path / "hook").write_text(FLOOD)
    (tmp_path / "hook").chmod(0o755)
    repository = own_git_server(config={"uploadpack.packObjectsHook": str(tmp_path / "hook")})
    repository.push({"a.yaml": "a: 1"})
    tracemalloc.start()
    try:
        began = time.monotonic()
        said = refused(source(url=repository.url).revision)
        took_s, (_, peak) = time.monotonic() - began, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "the server said more than 16 MiB" in said
    assert took_s < 30
    assert peak < 8 * MEBIBYTE


def test_a_tree_that_is_a_million_files_in_a_few_bytes_is_refused_before_it_is_held(git_server, source):
    def git(*arguments: str, stdin: str = "") -> str:
        command = ["git", f"--git-dir={git_server.folder}", *arguments]
        return subprocess.run(
            command, input=stdin, text=True, capture_output=True, check=True, timeout=30
        ).stdout.strip()

    entry = f"100644 blob {git('hash-object', '-w', '--stdin', stdin='a: 1')}\t{{}}.yaml"
    for _ in range(6):
        tree = git("mktree", stdin="".join(f"{entry.format(n)}\n" for n in range(10)))
        entry = f"040000 tree {tree}\t{{}}"
    tree = git("mktree", stdin="".join(f"{entry.format(n)}\n" for n in range(10)))
    git("update-ref", "refs/heads/main", git("commit-tree", tree, "-m", "ten million files"))
    tracemalloc.start()
    try:
        began = time.monotonic()
        said = refused(source().revision)
        took_s, (_, peak) = time.monotonic() - began, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "there are more than 100,000 files" in said
    assert "--git-max-files" in said
    assert took_s < 30
    assert peak < 64 * MEBIBYTE


def test_as_many_files_as_may_be_are_followed(git_server, source):
    git_server.push({f"{n}.yaml": "a: 1" for n in range(20)})
    assert len(source(files=20).revision().files) == 20
    assert "more than 19 files" in refused(source(files=19).revision)


def test_a_clone_that_takes_too_much_of_the_disk_is_removed(git_server, source, cache):
    git_server.push({"a.json": secrets.token_bytes(600_000)})
    assert source(clone_bytes=MEBIBYTE).revision().files
    git_server.push({"b.json": secrets.token_bytes(600_000)})
    assert "--git-max-clone" in refused(source(clone_bytes=MEBIBYTE).revision)
    assert on_disk(cache) <= MEBIBYTE


def test_files_that_vanish_while_they_are_counted_are_none(git_server, source, cache):
    git_server.push({"a.yaml": "a: 1"})
    source().revision()
    [clone] = cache.glob("*.git")
    (clone / "objects" / "pack" / "tmp_pack_gone").symlink_to("nowhere")  # what a file is that git removes meanwhile
    sha = git_server.push({"a.yaml": "a: 2"})
    assert source().revision().sha == sha


def test_what_a_killed_fetch_began_is_removed_once_it_is_old(git_server, source, cache):
    git_server.push({"a.yaml": "a: 1"})
    source().revision()
    [clone] = cache.glob("*.git")
    old, young = (clone / "objects" / "pack" / f"tmp_pack_{age}" for age in ("old", "young"))
    old.write_bytes(b"PACK")
    young.write_bytes(b"PACK")
    os.utime(old, (0, 0))
    git_server.push({"a.yaml": "a: 2"})
    source().revision()
    assert (old.exists(), young.exists()) == (False, True)


def test_one_file_that_is_larger_than_the_clone_may_be_ends_the_fetch(git_server, source, cache):
    git_server.push({"a.json": secrets.token_bytes(3 * MEBIBYTE)})
    assert "--git-max-clone" in refused(source(clone_bytes=MEBIBYTE).revision)
    assert on_disk(cache) < 3 * MEBIBYTE


def test_a_file_that_unpacks_to_more_memory_than_git_may_have_is_refused(git_server, source):
    git_server.push({"bomb.json": bytes(200 * MEBIBYTE)})
    assert "--git-max-memory" in refused(source(memory_bytes=64 * MEBIBYTE).revision)


def test_a_sync_names_the_ceiling_that_its_repository_exceeds_and_others_go_on(
    new_daemon, cluster, follow, git_host, config_map
):
    new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, ["--git-max-files", "2"]).start()
    many, few = (git_host.create(f"{name}-{secrets.token_hex(4)}") for name in ("many", "few"))
    many.push({f"{n}.yaml": config_map(f"m{n}") for n in range(3)})
    large, small = follow(many.url, "large"), follow(few.url, "small")
    message = large.until("SourceUnavailable")["message"]
    assert f"{many.url}: there are more than 2 files" in message
    assert "--git-max-files" in message
    small.until_synced(few.push({"a.yaml": config_map("a")}))
    assert cluster.names("ConfigMap") & {"m0", "m1", "m2", "a"} == {"a"}
