"""Git servers that take connections and never answer: they hold up those who follow them, and nobody else.

Where a time is asserted it is between what is right (moments) and what was wrong (a minute for each few of the Syncs that
hang), far from either.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil
import pytest

from tests.security.tarpit import tarpit

MANY = 40
AT_ONCE_S = 30.0
"""Moments on a machine that is busy with other tests. Forty Syncs that hang held the others up for minutes."""


@pytest.fixture
def others(daemon, follow, git_server, config_map, cluster, eventually):
    """Another tenant's Sync, in step; others() pushes a commit and has somebody change an object, and waits for both to be dealt with."""
    sync = follow(git_server.url, "others", interval="2s")
    sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red")}))

    def go_on():
        began = time.monotonic()
        cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "red", "the drift is put back")
        sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red", at=str(time.time()))}))
        return time.monotonic() - began

    return go_on


def gits_of(process: int) -> list[psutil.Process]:
    """The gits that a process runs, and all that they started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [each for each in psutil.Process(process).children(recursive=True) if is_git(each)]
    return []


def is_git(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.name().startswith("git")
    return False


def alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def limits_of(process: psutil.Process) -> dict[str, str]:
    """The kernel's limits of a process by name, the hard ones."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{process.pid}/limits").read_text().splitlines()[1:]
        return {line[:25].strip(): line[26:].split()[1] for line in lines}
    return {}


SERVERS = {"on one server": 1, "on a server each": MANY}


@pytest.mark.parametrize("servers", SERVERS.values(), ids=SERVERS)
def test_forty_syncs_that_hang_hold_up_nobody_else(daemon, others, follow, eventually, servers):
    with tarpit(servers) as hanging:
        for number in range(MANY):
            follow(hanging.urls[number % servers], f"hangs-{number}", interval="1s")
        eventually(
            lambda: hanging.taken >= min(servers, 4), "some hang"
        )  # a repository is asked once for all who follow it
        for _ in range(3):
            assert others() < AT_ONCE_S


def test_a_sync_that_goes_or_changes_while_its_server_hangs_leaves_no_git_behind(daemon, follow, cluster, eventually):
    with tarpit(3) as hanging:
        for name, url in zip(("goes", "moves", "rests"), hanging.urls, strict=True):
            follow(url, name)
        eventually(lambda: len(gits_of(daemon.process.pid)) >= 3, "three gits wait for their servers")
        began = time.monotonic()
        cluster.delete("Sync", "goes")
        cluster.edit("Sync", "rests", {"spec": {"suspend": True}})
        cluster.edit("Sync", "moves", {"spec": {"source": {"git": {"url": "http://127.0.0.1:1/none.git"}}}})
        eventually(lambda: not gits_of(daemon.process.pid), "their gits are ended")
        assert time.monotonic() - began < AT_ONCE_S  # a server is waited for for a minute


def test_a_daemon_that_is_told_to_end_does_not_wait_for_servers_that_hang(daemon, follow, eventually):
    with tarpit() as hanging:
        follow(hanging.urls[0])
        gits = eventually(lambda: gits_of(daemon.process.pid), "a git waits for its server")
        assert daemon.stop(within_s=AT_ONCE_S) == 0
        eventually(lambda: not any(map(alive, gits)), "no git is left")


def test_a_daemon_that_is_killed_leaves_no_git_behind(daemon, follow, eventually):
    with tarpit(2) as hanging:
        for number, url in enumerate(hanging.urls):
            follow(url, f"hangs-{number}")
        gits = eventually(
            lambda: len(found := gits_of(daemon.process.pid)) >= 4 and found, "gits and their helpers wait for servers"
        )
        began = time.monotonic()
        daemon.kill()
        eventually(lambda: not any(map(alive, gits)), "no git is left")
        assert time.monotonic() - began < AT_ONCE_S


def test_what_git_starts_is_held_to_its_limits_from_the_beginning(new_daemon, cluster, follow, eventually):
    options = ["--git-max-memory", "512", "--git-max-clone", "100"]
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, options).start()
    with tarpit(20) as hanging:
        for number, url in enumerate(hanging.urls):
            follow(url, f"hangs-{number}")
        eventually(lambda: hanging.taken >= 8, "many hang")
        limits = [found for process in gits_of(daemon.process.pid) if (found := limits_of(process))]
    assert len(limits) >= 16  # each has a helper that talks to the server
    assert {each["Max data size"] for each in limits} == {str(512 << 20)}
    assert {each["Max file size"] for each in limits} == {str(100 << 20)}
    assert {each["Max cpu time"] for each in limits} == {"600"}
