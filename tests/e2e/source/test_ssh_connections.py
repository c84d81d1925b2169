"""SSH connections that gits share, on a real SSH server: who may use one, what it saves, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import asyncssh
import psutil
import pytest

from kubectl_reconcile.source.git.source import Credentials, GitSource, Ref, Repository, SourceError, SourceFault
from kubectl_reconcile.source.git.ssh_connections import SHARED
from tests.e2e.ssh_host import private

MAIN = Ref.of(branch="main")


@pytest.fixture
def source(git_server, ssh_host, tmp_path, monkeypatch):
    """source(credentials) follows the test's repository over SSH; all connections are ended before and afterwards."""
    end_all()  # tests before this one, in the same process, may have asked often enough
    monkeypatch.setattr(SHARED, "_times", {})
    git_server.push({"a.yaml": "1"})
    url = f"ssh://git@127.0.0.1:{ssh_host.port}{git_server.folder}"
    good = Credentials(ssh_private_key=private(ssh_host.client_key), known_hosts=ssh_host.known_hosts)

    def made(credentials=good, url=url):
        return GitSource(Repository.of(url, credentials), MAIN, cache_dir=tmp_path / "cache")

    yield made
    end_all()


def end_all():
    for way in list(SHARED._masters):
        SHARED._forget(way)
    SHARED._end_retired()


def masters() -> list[psutil.Process]:
    """The masters that are children of ours; a child may end while it is looked at."""
    found = []
    for each in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            found += [each] if "-M" in each.cmdline() else []
    return found


def test_a_connection_is_shared_once_the_server_has_taken_the_credentials_a_few_times(source, ssh_host, git_server):
    followed = source()
    before = ssh_host.connections
    for _ in range(3):
        followed.remote_sha()
    assert ssh_host.connections == before + 3
    assert masters() == []  # a command of a person asks less often
    served = ssh_host.served
    for _ in range(5):
        followed.remote_sha()
    sha = git_server.push({"a.yaml": "2"})
    assert followed.revision().sha == sha
    assert ssh_host.served >= served + 7
    assert ssh_host.connections == before + 4
    [master] = masters()
    socket = Path(master.cmdline()[master.cmdline().index("-S") + 1])
    assert socket.is_socket()
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert socket.parent.stat().st_uid == os.getuid()
    key = Path(master.cmdline()[master.cmdline().index("-i") + 1])
    assert key.name == "key"
    assert not key.exists()


def test_nobody_comes_in_by_the_connection_of_somebody_else(source, ssh_host):
    followed = source()
    for _ in range(4):
        followed.remote_sha()
    assert len(masters()) == 1
    other = private(asyncssh.generate_private_key("ssh-ed25519"))
    strangers = (
        (Credentials(ssh_private_key=other, known_hosts=ssh_host.known_hosts), SourceFault.UNAUTHORIZED),
        (Credentials(ssh_private_key=private(ssh_host.client_key), known_hosts="example.com ssh-ed25519 AAAA"), SourceFault.UNTRUSTED),
    )  # fmt: skip
    for credentials, fault in strangers:
        for _ in range(5):
            with pytest.raises(SourceError) as refused:
                source(credentials).remote_sha()
            assert refused.value.fault is fault
    assert len(masters()) == 1, "credentials that are refused never have a connection"


def test_a_connection_that_dies_is_replaced(source, ssh_host, git_server, eventually):
    followed = source()
    for _ in range(4):
        followed.remote_sha()
    [master] = masters()
    os.killpg(master.pid, signal.SIGKILL)
    for _ in range(6):
        assert followed.remote_sha() == git_server.sha()
    assert [each.pid for each in masters()] != [master.pid]
    assert len(masters()) == 1


def test_a_repository_that_is_missing_costs_others_no_connection(source, ssh_host, tmp_path):
    followed = source()
    for _ in range(4):
        followed.remote_sha()
    [master] = masters()
    missing = source(url=f"ssh://git@127.0.0.1:{ssh_host.port}{tmp_path}/none")
    with pytest.raises(SourceError) as error:
        missing.remote_sha()
    assert error.value.fault is SourceFault.NO_SUCH_REPOSITORY
    followed.remote_sha()
    assert [each.pid for each in masters()] == [master.pid]


FOLLOWER = """
import sys
from pathlib import Path
from kubectl_reconcile.source.git.source import Credentials, GitSource, Ref, Repository
url, cache, key, hosts = sys.argv[1:]
credentials = Credentials(ssh_private_key=Path(key).read_text(), known_hosts=Path(hosts).read_text())
source = GitSource(Repository.of(url, credentials), Ref.of(branch="main"), cache_dir=Path(cache))
for _ in range(5):
    source.remote_sha()
print("asked", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, None], ids=["killed", "at its end"])
def test_a_process_takes_its_connections_along_however_it_ends(git_server, ssh_host, tmp_path, eventually, how):
    git_server.push({"a.yaml": "1"})
    (tmp_path / "key").write_text(private(ssh_host.client_key))
    (tmp_path / "hosts").write_text(ssh_host.known_hosts)
    (tmp_path / "key").chmod(0o600)
    url = f"ssh://git@127.0.0.1:{ssh_host.port}{git_server.folder}"
    command = [sys.executable, "-c", FOLLOWER, url, *(str(tmp_path / each) for each in ("cache", "key", "hosts"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout.readline() == "asked\n"
        started = [each for each in psutil.Process(follower.pid).children() if "-M" in each.cmdline()]
        assert len(started) == 1
        folder = Path(started[0].cmdline()[started[0].cmdline().index("-S") + 1]).parent
        if how is not None:
            follower.send_signal(how)
        follower.stdin.close()
        follower.wait(200)
    eventually(lambda: not started[0].is_running() or started[0].status() == psutil.STATUS_ZOMBIE, "it has ended")
    assert how is not None or not folder.exists()
