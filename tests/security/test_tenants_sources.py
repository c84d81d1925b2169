"""Classes: starvation of others by one tenant (servers that flood, drip, redirect and list without end) · symlink and path traversal
out of the repository · code from the repository run by the controller · huge files, YAML alias bombs, deep nesting · unsafe YAML
loaders · git options injected through a URL, ref or path · escape sequences in terminal output.

Team A's Syncs follow them all at once, and team B's commits and drift are dealt with meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time

import psutil
import pytest

from tests.e2e.api import RefusedError
from tests.e2e.program import Plugin
from tests.security.tenants import config, following, said_of
from tests.waiting import patiently

pytestmark = pytest.mark.xdist_group("tenants")  # one cluster and one daemon for all of them

MEBIBYTE = 2**20


@pytest.fixture
def follow_all(world):
    """follow_all({name: git}) has Syncs of team A follow all these, and returns those that the API server takes; they go afterwards."""
    cluster, *_ = world
    a, made = cluster.at("team-a"), []

    def follow(**sources):
        for name, git in sources.items():
            with contextlib.suppress(RefusedError):
                made.append(following(a, name.replace("_", "-"), **git))
        return {sync.name.replace("-", "_"): sync for sync in made}

    yield follow
    for sync in made:
        with contextlib.suppress(Exception):
            a.delete("Sync", sync.name)


def until_said(sync, *words):
    def said():
        message = sync.condition().get("message", "")
        return message if all(word in message for word in words) else ""

    try:
        return patiently(said, f"{sync.name} says {' and '.join(words)}")
    except AssertionError as error:
        raise AssertionError(f"{error}; it says {sync.condition()}") from None


# --- servers ----------------------------------------------------------------------------------------------------------


def refs_without_end(repository, count):
    """Give a repository so many refs, as its server packs them."""
    sha = repository.sha()
    lines = "".join(f"{sha} refs/changes/{number:07}/head\n" for number in range(count))
    (repository.folder / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{lines}")


def test_servers_that_flood_drip_redirect_or_list_without_end_are_left_and_nobody_waits(
    world, evil, bakery, follow_all, git_host
):
    _, _, daemon = world
    for one in (evil.dripping, evil.flooding):
        one.push({"a.json": json.dumps(config("from-an-evil-server"))})
    many = git_host.create(f"refs-{time.time_ns()}")
    sha = many.push({"a.json": json.dumps(config("from-many-refs"))})
    refs_without_end(many, 200_000)
    process = psutil.Process(daemon.process.pid)
    before = process.memory_info().rss
    urls = {
        "redirects": evil.redirecting,
        "drips": evil.dripping.url,
        "floods": evil.flooding.url,
        "lists": evil.listing,
        "lists_without_end": evil.endless,
        "has_many_refs": many.url,
    }
    began = time.monotonic()
    syncs = follow_all(**{name: {"url": url, "branch": "main"} for name, url in urls.items()})
    assert bakery.goes_on()
    until_said(syncs["redirects"], "the server redirects to another address")
    until_said(syncs["floods"], "the server said more than 1 MiB")
    until_said(syncs["lists"], "git printed more than 1 MiB")
    until_said(syncs["lists_without_end"], "git needs more memory than it is allowed", "--git-max-memory")
    until_said(syncs["drips"], "no answer within 10 s", "--git-max-seconds")
    syncs["has_many_refs"].until_synced(sha)
    assert bakery.goes_on()
    assert time.monotonic() - began < 300
    assert evil.forbidden.taken == 0, "where nobody allowed, nobody went"
    assert world[0].at("team-a").get("ConfigMap", "from-an-evil-server") is None
    assert process.memory_info().rss - before < 96 * MEBIBYTE
    assert daemon.answer("/healthz")[0] == 200


# --- options ----------------------------------------------------------------------------------------------------------


def test_no_url_ref_or_path_is_an_option_or_a_command(world, bakery, follow_all, git_host, tmp_path):
    cluster, _, daemon = world
    good = git_host.create(f"options-{time.time_ns()}")
    good.push({"a.json": json.dumps(config("by-an-option"))})
    mark = tmp_path / "executed"
    option = f"--upload-pack=touch {mark};"
    sources = {
        "url_command": {"url": f"ext::sh -c touch% {mark}"},
        "url_option": {"url": option},
        "url_proxy": {"url": f"ssh://-oProxyCommand=touch%20{mark}/x"},
        "url_path": {"url": f"git@127.0.0.1:{option}"},
        "url_file": {"url": f"file://{good.folder}"},
        "url_folder": {"url": str(good.folder)},
        "branch": {"url": good.url, "branch": option},
        "tag": {"url": good.url, "tag": option},
        "commit": {"url": good.url, "commit": option},
        "refspec": {"url": good.url, "branch": f"main:{tmp_path}"},
        "path_option": {"url": good.url, "path": f"--output={mark}"},
        "path_out": {"url": good.url, "path": "../../../../etc"},
        "path_root": {"url": good.url, "path": "/etc"},
        "path_magic": {"url": good.url, "path": ":(top,glob)*"},
    }
    syncs = follow_all(**sources)
    for sync in syncs.values():
        failed = patiently(
            lambda s=sync: s.condition().get("status") == "False" and s.condition(), f"{sync.name} is refused"
        )
        assert failed["reason"] not in {"Synced", "ApplyFailed"}, failed
    assert bakery.goes_on()
    assert not mark.exists()
    assert cluster.at("team-a").get("ConfigMap", "by-an-option") is None
    assert "root:" not in json.dumps([sync.live for sync in syncs.values()]) + daemon.log


# --- what a repository holds --------------------------------------------------------------------------------------------


def commit(repository, *entries):
    """Commit entries of any mode, as no honest git would: (mode, path, content); return the commit."""

    def git(*arguments, data=b""):
        command = ["git", f"--git-dir={repository.folder}", *arguments]
        return subprocess.run(command, input=data, capture_output=True, check=True, timeout=300).stdout.decode().strip()

    stream = [b"commit refs/heads/main\ncommitter x <x@localhost> 0 +0000\ndata 1\nx\n"]
    for mode, path, content in entries:
        name = '"' + path.replace("\\", "\\\\").replace("\x1b", "\\033") + '"'
        if mode == "160000":
            stream.append(f"M {mode} {'1' * 40} {name}\n".encode())
        else:
            data = content.encode()
            stream.append(f"M {mode} inline {name}\ndata {len(data)}\n".encode() + data + b"\n")
    git("fast-import", "--quiet", data=b"".join(stream))
    return git("rev-parse", "refs/heads/main")


ALIASES = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def test_a_repository_with_all_of_it_harms_nobody(world, bakery, follow_all, git_host, tmp_path, kubectl):
    cluster, sandbox, daemon = world
    secret, mark = tmp_path / "secret.yaml", tmp_path / "executed"
    secret.write_text(json.dumps(config("from-the-daemons-disk", word="opensesame")))
    repository = git_host.create(f"all-of-it-{time.time_ns()}")
    sha = commit(
        repository,
        ("100644", "good.json", json.dumps(config("good"))),
        ("120000", "linked.yaml", str(secret)),
        ("120000", "access.yaml", daemon.kubeconfig),
        ("120000", "root", "/"),
        ("120000", "up.yaml", "../../../../../../../etc/passwd"),
        ("160000", "module", ""),
        ("100644", ".gitmodules", f'[submodule "module"]\n\tpath = module\n\turl = ext::sh -c touch% {mark}\n\tupdate = !touch {mark}\n'),
        ("100644", ".gitattributes", "* filter=evil diff=evil merge=evil\n"),
        ("100644", "config", f'[core]\n\tfsmonitor = touch {mark}\n[filter "evil"]\n\tsmudge = touch {mark}\n'),
        ("100755", "hooks/post-checkout", f"#!/bin/sh\ntouch {mark}\n"),
        ("100644", "kustomized/kustomization.yaml", f"generators: [{{exec: {{path: touch {mark}}}}}]\n"),
        ("100644", "kustomized/inside.json", json.dumps(config("not-rendered"))),
        ("100644", "aliases.yaml", ALIASES),
        ("100644", "deep.yaml", "[" * 100_000),
        ("100644", "loader.yaml", f"!!python/object/apply:os.system ['touch {mark}']\n"),
        ("100644", "large.yaml", "# " + "x" * 11 * MEBIBYTE),
        ("100644", "bell\x1b[2J.yaml", "a: 1\n"),
        ("100644", "name.yaml", '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "\\u001b[31mred"}}'),
    )  # fmt: skip
    [sync] = follow_all(all_of_it={"url": repository.url}).values()
    sync.until("ProblemsInSource", sha)
    assert cluster.at("team-a").get("ConfigMap", "good"), "what is whole is applied"
    assert bakery.goes_on()
    person = Plugin(kubectl.using(sandbox.kubeconfig), "team-a")
    answers = [person("status", sync.name), person("diff", sync.name), person("events", sync.name)]
    said = said_of(sync, daemon) + "".join(each.out + each.err for each in answers)
    named = ["linked.yaml", "access.yaml", "root", "module", "aliases.yaml", "deep.yaml", "loader.yaml", "large.yaml"]
    assert all(each in said for each in (*named, "kustomized/kustomization.yaml"))
    for never in (
        "\x1b",
        "opensesame",
        "root:x:0",
        "client-key",
        sandbox.kubeconfig.read_text().rpartition("token:")[2].strip(),
    ):
        assert never not in said
    assert not mark.exists()
    names = cluster.at("team-a").names("ConfigMap")
    assert not names & {"from-the-daemons-disk", "not-rendered"}
    assert daemon.answer("/healthz")[0] == 200
