"""Git servers that take connections and never answer: they hold up those who follow them, and nobody else.

Where a time is asserted it is between what is right (moments) and what was wrong (a minute for each few of the Syncs that
hang), far from either. Elsewhere git is given an hour, so that nothing ends by itself.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil
import pytest

from tests.security.servers import talking
from tests.security.tarpit import tarpit

MANY = 40
AT_WORK_FOR_EVER = "while echo still at work >&2; do sleep 0.2; done"
AT_ONCE_S = 100.0
"""Moments on a machine that is busy with other tests. Forty Syncs that hang held the others up for minutes."""


@pytest.fixture
def patient(new_daemon, cluster):
    """A daemon that waits for servers for an hour."""
    return new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, ["--git-max-seconds=3600"]).start()


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


def fetching(process: int) -> list[psutil.Process]:
    """The gits of a process that fetch, with their helpers; others read clones."""
    return [each for each in gits_of(process) if _words(each) & {"fetch", "remote-http", "remote-https"}]


def _words(process: psutil.Process) -> set[str]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return set(process.cmdline())
    return set()


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


@pytest.fixture
def stuck(tmp_path):
    """stuck(3) are so many repositories whose servers say where refs are, and are at work for ever on what is fetched."""
    with contextlib.ExitStack() as stack:

        def made(count):
            servers = [
                stack.enter_context(talking(tmp_path / f"stuck-{number}", AT_WORK_FOR_EVER)) for number in range(count)
            ]
            for server in servers:
                server.push({"a.yaml": "a: 1"})
            return [server.url for server in servers]

        yield made


def test_a_sync_that_goes_or_changes_while_its_server_hangs_leaves_nothing_behind(
    patient, follow, cluster, eventually, stuck
):
    with tarpit(3) as hanging:
        for what, urls in (("asked", hanging.urls), ("fetched", stuck(3))):
            for name, url in zip(("goes", "moves", "rests"), urls, strict=True):
                follow(url, f"{name}-{what}")
        eventually(lambda: hanging.waiting == 3, "three servers are asked, and waited for")
        eventually(lambda: len(fetching(patient.process.pid)) >= 3, "three gits wait for theirs")
        for what in ("asked", "fetched"):
            cluster.delete("Sync", f"goes-{what}")
            cluster.edit("Sync", f"rests-{what}", {"spec": {"suspend": True}})
            moved = {"spec": {"source": {"git": {"url": "http://127.0.0.1:1/none.git"}}}}
            cluster.edit("Sync", f"moves-{what}", moved)
        eventually(lambda: not gits_of(patient.process.pid), "their gits are ended")
        eventually(lambda: hanging.waiting == 0, "nobody waits for an answer")


def test_a_daemon_that_is_told_to_end_does_not_wait_for_servers_that_hang(patient, follow, eventually, stuck):
    with tarpit() as hanging:
        follow(hanging.urls[0], "asked")
        follow(stuck(1)[0], "fetched")
        gits = eventually(lambda: fetching(patient.process.pid), "a git waits for its server")
        eventually(lambda: hanging.waiting == 1, "a server is asked, and waited for")
        assert patient.stop() == 0
        eventually(lambda: not any(map(alive, gits)), "no git is left")


def test_a_daemon_that_is_killed_leaves_no_git_behind(patient, follow, eventually, stuck):
    for number, url in enumerate(stuck(2)):
        follow(url, f"hangs-{number}")
    gits = eventually(
        lambda: len(found := fetching(patient.process.pid)) >= 4 and found, "gits and their helpers wait for servers"
    )
    patient.kill()
    eventually(lambda: not any(map(alive, gits)), "no git is left")


def test_what_git_starts_is_held_to_its_limits_from_the_beginning(stuck, new_daemon, cluster, follow, eventually):
    options = ["--git-max-memory", "512", "--git-max-clone", "100", "--git-max-seconds", "600"]
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, options).start()
    for number, url in enumerate(stuck(2)):
        follow(url, f"hangs-{number}")

    def held():
        return [found for process in fetching(daemon.process.pid) if (found := limits_of(process))]

    limits = eventually(lambda: len(found := held()) >= 4 and found, "each git has a helper that talks to its server")
    assert {each["Max data size"] for each in limits} == {str(48 << 20)}, (
        "as all have it at first; what needs more gets 512 MiB, one at a time"
    )
    assert {each["Max file size"] for each in limits} == {str(100 << 20)}
    assert {each["Max cpu time"] for each in limits} == {"600"}
