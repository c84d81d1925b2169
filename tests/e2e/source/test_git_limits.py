"""What a Git server can make us hold: real servers that flood, and repositories that are far more than they look."""

from __future__ import annotations

import functools
import os
import secrets
import subprocess
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kubectl_reconcile.cli.verbs.operate.daemon import daemon as daemon_verb
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.parse_cache import ParsedFiles
from kubectl_reconcile.source.git.source import GitSource, Ref, Repository, SourceError, SourceFault
from kubectl_reconcile.source.limits import CEILINGS, MEBIBYTE, GitLimits, variable
from kubectl_reconcile.source.running.budget import PARSING

MAIN = Ref.of(branch="main")


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def source(git_server, cache):
    """The source of the test's repository under these ceilings: source(files=…)."""

    def make(url=git_server.url, path="", **limits):
        return GitSource(
            Repository.of(url), MAIN, path, cache_dir=cache, limits=GitLimits(**limits), fetch_timeout_s=300
        )

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
    assert took_s < 200
    assert peak < 8 * MEBIBYTE


def test_a_tree_that_is_a_million_files_in_a_few_bytes_is_refused_before_it_is_held(git_server, source):
    def git(*arguments: str, stdin: str = "") -> str:
        command = ["git", f"--git-dir={git_server.folder}", *arguments]
        return subprocess.run(
            command, input=stdin, text=True, capture_output=True, check=True, timeout=300
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
    assert took_s < 200
    assert peak < 64 * MEBIBYTE


def git_in(repository):
    """git(…) runs git in a server's own repository."""

    def git(*arguments: str, stdin: str = "") -> str:
        command = ["git", f"--git-dir={repository.folder}", *arguments]
        return subprocess.run(
            command, input=stdin, text=True, capture_output=True, check=True, timeout=300
        ).stdout.strip()

    return git


def test_folders_without_end_and_without_a_file_are_counted_too(git_server, source):
    git = git_in(git_server)
    tree = git("mktree", stdin="")
    for _ in range(12):
        tree = git("mktree", stdin="".join(f"040000 tree {tree}\t{n}\n" for n in range(10)))
    git("update-ref", "refs/heads/main", git("commit-tree", tree, "-m", "a thousand milliard folders"))
    began = time.monotonic()
    said = refused(source(entries=5000).revision)
    assert "there are more than 5,000 files and folders" in said
    assert "--git-max-entries" in said
    assert time.monotonic() - began < 200


IGNORED = {
    "a few bytes that are gigabytes together": (3 * MEBIBYTE, 100, "/.reconcileignore there are more than 1 MiB of ignore"),
    "more files than there may be patterns": (1, 600, "/.reconcileignore there are more than 500 ignore files"),
}  # fmt: skip


@pytest.mark.parametrize(("size", "count", "what"), IGNORED.values(), ids=IGNORED)
def test_ignore_files_that_are_the_same_bytes_again_and_again_are_refused_before_they_are_held(
    size, count, what, git_server, source
):
    git = git_in(git_server)
    blob = git("hash-object", "-w", "--stdin", stdin="#" * size)
    tree = git("mktree", stdin=f"100644 blob {blob}\t.reconcileignore\n")
    tree = git("mktree", stdin="".join(f"040000 tree {tree}\t{n}\n" for n in range(count)))
    git("update-ref", "refs/heads/main", git("commit-tree", tree, "-m", "much is left out"))
    tracemalloc.start()
    try:
        said = refused(source().revision)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert what in said
    assert "use fewer ignore files" in said
    assert peak < 16 * MEBIBYTE


def test_folders_in_folders_are_followed_as_deep_as_they_may_be(git_server, source):
    git_server.push({f"{'a/' * 5}web.yaml": "a: 1"})
    assert source(depth=5).revision().files
    said = refused(source(depth=4).revision)
    assert "is below more than 4 folders" in said
    assert "--git-max-depth" in said


def test_files_that_are_too_much_together_are_refused_before_they_are_read(git_server, source):
    git_server.push({f"{n}.yaml": "a" * 600_000 for n in range(2)})
    said = refused(source(revision_bytes=MEBIBYTE).revision)
    assert "its files take more than 1 MiB" in said
    assert "--max-revision" in said
    git_server.push({"1.yaml": None})
    assert source(revision_bytes=MEBIBYTE).revision().files


def test_objects_beyond_what_a_sync_may_have_are_refused_with_the_file_that_has_them(git_server, source, config_map):
    git_server.push({f"{n}.yaml": "\n---\n".join(config_map(f"m{n}-{k}") for k in range(3)) for n in range(4)})
    assert len(ManifestReader(limits=GitLimits(objects=12)).read(source()).manifests) == 12
    said = refused(lambda: ManifestReader(limits=GitLimits(objects=11)).read(source()))
    assert ".yaml: with this file there are more than 11 objects" in said
    assert "--max-objects" in said


HEAVY = f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "x": [{"[]," * 99}[]]}}'
"""A file of little more than a hundred values."""


def test_values_beyond_what_a_sync_may_have_are_refused_however_small_the_repository(git_server, source):
    git_server.push({f"{n}.json": HEAVY for n in range(3)})
    reader = ManifestReader(limits=GitLimits(values=399))
    assert len(reader.read(source()).manifests) == 3
    git_server.push({"3.json": HEAVY})
    said = refused(lambda: reader.read(source()))
    assert "the files up to 3.json hold more than 399 values" in said
    assert "--max-values" in said
    last = git_server.push({"0.json": None})
    assert reader.read(source()).revision.sha == last
    git_server.push({"1.json": None, "2.json": None, "3.json": HEAVY + HEAVY})
    assert len(reader.read(source()).manifests) == 2
    git_server.push({"1.json": HEAVY + HEAVY})
    assert "the files up to 1.json hold" in refused(lambda: reader.read(source()))


def test_values_are_counted_of_files_that_were_parsed_for_others_too(git_server, source, tmp_path):
    git_server.push({f"{team}/{n}.json": HEAVY for team in ("one", "other") for n in range(2)})
    kept = ParsedFiles(tmp_path / "parsed.sqlite")
    reader = functools.partial(ManifestReader, kept, GitLimits(values=399))
    for team in ("one", "other"):
        assert len(reader().read(source(path=team)).manifests) == 2
    assert "its files hold more than 399 values" in refused(lambda: reader().read(source()))


def test_of_a_file_that_is_larger_than_it_may_be_nothing_is_read(git_server, source, config_map):
    large = config_map("large") + "\n#" + "x" * 2 * MEBIBYTE
    git_server.push({"large.yaml": large, "small.yaml": config_map("small")})
    limits = {"file_bytes": MEBIBYTE}
    read = ManifestReader(limits=GitLimits(**limits)).read(source(**limits))
    assert [each.ref.name for each in read.manifests] == ["small"]
    [problem] = read.problems
    assert (problem.path, problem.is_error) == ("large.yaml", True)
    assert "the file has more than 1 MiB" in problem.message
    assert "--max-file" in problem.hint
    limits = {"file_bytes": 20 * MEBIBYTE}
    git_server.push({"large.yaml": config_map("large") + "\n#" + "x" * 11 * MEBIBYTE})
    assert len(ManifestReader(limits=GitLimits(**limits)).read(source(**limits)).manifests) == 2


def test_files_are_parsed_one_after_the_other_and_never_held_together(git_server, source, config_map):
    git_server.push(
        {f"{n}.yaml": config_map(f"m{n}") + "\n#" + secrets.token_hex(32) * (MEBIBYTE // 32) for n in range(12)}
    )
    followed = source()
    followed.revision()
    tracemalloc.start()
    try:
        read = ManifestReader().read(followed)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(read.manifests) == 12
    assert peak < 20 * MEBIBYTE  # all together they are 24


def test_all_syncs_together_hold_no_more_of_files_than_they_may(git_host, cache):
    """Each by itself is within its ceilings; six of them at once would hold three times what they may."""
    limits = GitLimits(parsing_bytes=2 * MEBIBYTE)
    sources = []
    for number in range(6):
        repository = git_host.create(f"many-{secrets.token_hex(4)}")
        repository.push({f"{n}.yaml": f"# {number}" + "x" * MEBIBYTE for n in range(4)})
        sources.append(GitSource(Repository.of(repository.url), MAIN, cache_dir=cache, limits=limits))
        sources[-1].revision()
    PARSING.most = 0
    with ThreadPoolExecutor(6) as pool:
        read = list(pool.map(lambda each: ManifestReader(limits=limits).read(each), sources))
    assert [len(each.revision.files) for each in read] == [4] * 6
    assert MEBIBYTE < PARSING.most <= 2 * MEBIBYTE
    assert PARSING.held == 0


def test_a_fetch_that_fails_leaves_nothing_of_it_on_the_disk(git_server, source, cache):
    git_server.push({"a.yaml": "a: 1"})
    source().revision()
    before = on_disk(cache)
    git_server.push({"big.json": secrets.token_bytes(3 * MEBIBYTE)})
    refused(source(clone_bytes=MEBIBYTE).revision)
    assert on_disk(cache) < before + MEBIBYTE // 2


def test_a_command_takes_its_ceilings_from_variables(monkeypatch):
    assert GitLimits.of_environment() == GitLimits()
    monkeypatch.setenv("KUBECTL_RECONCILE_GIT_MAX_FILES", "7")
    monkeypatch.setenv("KUBECTL_RECONCILE_MAX_REVISION", "3")
    assert GitLimits.of_environment() == GitLimits(files=7, revision_bytes=3 * MEBIBYTE)
    monkeypatch.setenv("KUBECTL_RECONCILE_GIT_MAX_FILES", "many")
    assert "KUBECTL_RECONCILE_GIT_MAX_FILES isn't a number" in refused(GitLimits.of_environment)


def test_each_ceiling_has_a_flag_with_its_default_and_its_variable():
    options = {each.opts[0]: each for each in daemon_verb.params}
    for field, (flag, unit) in CEILINGS.items():
        assert options[flag].default * unit == getattr(GitLimits(), field), flag
        assert options[flag].envvar == variable(flag)


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


def test_a_clone_of_a_server_that_knows_no_filter_grows_no_further_by_little_fetches(own_git_server, source, cache):
    repository = own_git_server(config={"uploadpack.allowFilter": "false"})
    for number in range(2):
        repository.push({f"{number}.json": secrets.token_bytes(400_000)})
        assert source(url=repository.url, clone_bytes=MEBIBYTE).revision().files
    repository.push({"2.json": secrets.token_bytes(400_000)})
    assert "--git-max-clone" in refused(source(url=repository.url, clone_bytes=MEBIBYTE).revision)
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


def test_a_file_that_unpacks_to_more_memory_than_git_may_have_is_held_by_nobody(git_server, source):
    git_server.push({"bomb.json": bytes(200 * MEBIBYTE)})
    follows = source(memory_bytes=64 * MEBIBYTE)
    [blob] = follows.revision().files.values()
    assert len(follows.read(blob)) == follows._clone.limits.file_bytes + 1, "one byte more than is parsed"


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
