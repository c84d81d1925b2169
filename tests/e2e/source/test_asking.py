"""The question where refs are, as we put it ourselves: to git's own server, behind web servers that do what web servers do."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.source.git.asking.packets import UnclearError, advertised, question, told
from kubectl_reconcile.source.git.source import (
    Credentials,
    GitSource,
    Ref,
    RefKind,
    Repository,
    SourceError,
    SourceFault,
)
from kubectl_reconcile.source.running.ending import ENDING, Ending
from tests.e2e.web_front import front

MAIN = Ref.of(branch="main")
SECRET = "s3cr3t-t0ken"


@pytest.fixture
def asks(tmp_path):
    """asks(url, ref) is where the server has the ref."""

    def asked(url, ref=MAIN, credentials=None, **options):
        return followed(tmp_path, url, ref, credentials, **options).remote_sha()

    return asked


def followed(folder: Path, url, ref=MAIN, credentials=None, **options) -> GitSource:
    return GitSource(Repository.of(url, credentials), ref, cache_dir=folder / "cache", **options)


def failure(action) -> SourceError:
    with pytest.raises(SourceError) as raised:
        action()
    assert SECRET not in str(raised.value)
    return raised.value


def git(repository, *arguments: str) -> str:
    command = ["git", f"--git-dir={repository.folder}", "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
    return subprocess.run(command, text=True, capture_output=True, check=True, timeout=300).stdout.strip()


# -- what is found -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("older", [False, True], ids=["version 2", "an older protocol"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_what_is_found_is_what_git_finds_and_no_git_is_started(own_git_server, gits, asks, older, form):
    repository = own_git_server()
    if form == "sha256":
        subprocess.run(["rm", "-r", str(repository.folder)], check=True, timeout=300)
        made = [
            "git",
            "init",
            "-q",
            "--bare",
            "--object-format=sha256",
            "--initial-branch=main",
            str(repository.folder),
        ]
        subprocess.run(made, check=True, timeout=300)
    sha = repository.push({"a.yaml": "1"})
    git(repository, "tag", "-a", "-m", "x", "heavy", sha)
    repository.push({"a.yaml": "2"})
    git(repository, "tag", "light")
    git(repository, "update-ref", "refs/pull/12/head", sha)
    repository.push({"a.yaml": "3"}, branch="main-2")  # begins with the name of another
    git(repository, "tag", "-a", "-m", "x", "v1.2.3", sha)
    refs = [Ref(), MAIN, Ref.of(branch="main-2"), Ref.of(tag="heavy"), Ref.of(tag="light")]
    refs += [Ref(RefKind.ANY, name) for name in ("heavy", "pull/12/head", "refs/pull/12/head")]
    refs.append(Ref.of(semver="1.x"))
    gits()
    with front(repository.url, older=older) as server:
        found = [asks(server.url, ref) for ref in refs]
        assert failure(lambda: asks(server.url, Ref.of(branch="mai"))).fault is SourceFault.NO_SUCH_REF
    assert gits() == 0
    listed = git(repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    at = dict(line.split() for line in listed)
    assert found == [
        at["refs/heads/main"], at["refs/heads/main"], at["refs/heads/main-2"], sha, at["refs/tags/light"], sha, sha, sha,
        sha,
    ]  # fmt: skip


def test_an_empty_repository_is_told_from_a_missing_one(git_host, git_server, gits, asks):
    assert "it is empty" in str(failure(lambda: asks(git_server.url, Ref())))
    assert failure(lambda: asks(f"{git_host.url}/none.git")).fault is SourceFault.NO_SUCH_REPOSITORY
    assert gits() == 0


def test_a_server_is_asked_at_an_address_of_ip_version_6(git_server, gits, asks):
    sha = git_server.push({"a.yaml": "1"})
    with front(git_server.url, "::1") as server:
        assert server.url.startswith("http://[::1]:")
        gits()
        assert asks(server.url) == sha
        assert gits() == 0


# -- connections -------------------------------------------------------------------------------------------------------


def test_a_connection_is_kept_for_those_with_the_same_credentials_alone(own_git_server, asks):
    repository = own_git_server()
    sha = repository.push({"a.yaml": "1"})
    ann, bob = (Credentials(username=name, password=SECRET) for name in ("ann", "bob"))
    with front(repository.url) as server:
        for _ in range(3):
            assert [asks(server.url, MAIN, who) for who in (None, ann, bob)] == [sha] * 3
        assert server.connections == 3
        by_connection: dict[int, set[str]] = {}
        for (_, connection), shown in zip(server.requests, server.shown, strict=True):
            by_connection.setdefault(connection, set()).add(shown)
        assert sorted(map(len, by_connection.values())) == [1, 1, 1]
        # What the server speaks is asked once by who follows it, and then the question alone is put.
        kept = GitSource(Repository.of(server.url), MAIN, cache_dir=Path("/nowhere"))
        kept.remote_sha()
        del server.requests[:]
        assert [kept.remote_sha() for _ in range(3)] == [sha] * 3
        assert [what.partition(" ")[0] for what, _ in server.requests] == ["POST"] * 3


def test_a_connection_that_the_server_ends_is_replaced_without_a_word(git_server, gits, tmp_path):
    sha = git_server.push({"a.yaml": "1"})
    with front(git_server.url) as server:
        source = followed(tmp_path, server.url)
        source.remote_sha()
        server.hang_up = True  # after the next answer, of which it doesn't tell in advance
        gits()
        assert [source.remote_sha() for _ in range(4)] == [sha] * 4
        assert server.connections == 4
        assert gits() == 0


# -- redirects ---------------------------------------------------------------------------------------------------------


def test_a_redirect_is_followed_where_nothing_can_leak_and_looked_at_anew_each_time(
    git_server, own_git_server, gits, tmp_path
):
    first, second = git_server.push({"a.yaml": "1"}), (other := own_git_server()).push({"b.yaml": "1"})
    to = [git_server.url]

    def elsewhere(path, headers, _body):
        headers |= {"Status": "301", "Location": to[0] + path[path.index("/info/refs") :]}
        return b""

    with front(git_server.url, meddle=elsewhere) as server:
        source = followed(tmp_path, server.url)
        gits()
        assert (source.remote_sha(), source.remote_sha()) == (first, first)
        to[0] = other.url  # a repository that was renamed, and another that was made under its name
        assert source.remote_sha() == second
        assert gits() == 0
        token = Credentials(bearer_token=SECRET)
        error = failure(lambda: followed(tmp_path, server.url, MAIN, token).remote_sha())
        assert error.fault is SourceFault.REFUSED
        assert "the server redirects to another address" in str(error)
        assert gits() == 0


# -- servers that mean no good -----------------------------------------------------------------------------------------

BROKEN = {
    "cut off in the middle of a line": lambda body: body[:-20],
    "cut off between two lines": lambda body: body[:-4],
    "garbage": lambda _body: b"<html>log in, please</html>",
    "nothing": lambda _body: b"",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("older", [False, True], ids=["version 2", "an older protocol"])
def test_an_answer_that_is_not_whole_is_never_taken_for_no_such_ref(git_server, asks, broken, older):
    git_server.push({"a.yaml": "1"})
    is_last = lambda path: path.endswith("/git-upload-pack") or older  # noqa: E731
    with front(
        git_server.url, older=older, meddle=lambda path, _, body: broken(body) if is_last(path) else body
    ) as server:
        error = failure(lambda: asks(server.url, Ref.of(branch="none"), timeout_s=200))
        assert error.fault is not SourceFault.NO_SUCH_REF


def test_where_our_own_question_is_not_understood_git_puts_it_and_goes_on_to(git_server, gits, tmp_path):
    sha = git_server.push({"a.yaml": "1"})
    with front(git_server.url, older=True) as server:
        git(git_server, "pack-refs", "--all")
        lines = "".join(f"{sha} refs/changes/{number:05}/head\n" for number in range(30_000))
        (git_server.folder / "packed-refs").write_text(
            f"# pack-refs with: peeled fully-peeled sorted \n{lines}{sha} refs/heads/main\n"
        )
        source = followed(tmp_path, server.url)
        gits()
        assert source.remote_sha() == sha  # of two megabytes of refs
        asked = len(server.requests)
        assert gits() > 0
        assert source.remote_sha() == sha
        assert len(server.requests) == asked + 1


def words_of(process) -> str:
    """What a process was started with; nothing where it has ended by now."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


class Dripping:
    """A server that sends a byte of an answer now and then, for ever. *left* counts who has left it."""

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/x.git"
        self.taken = self.left = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def _serve(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                visitor, _ = self._listener.accept()
                self.taken += 1
                try:
                    visitor.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                    while not self._over.wait(0.05):
                        visitor.sendall(b"x")
                except OSError:
                    self.left += 1
                visitor.close()

    def __exit__(self, *_) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(200)


def test_who_drips_is_left_when_the_time_is_up(asks, eventually, gits):
    with Dripping() as server:
        began = time.monotonic()
        error = failure(lambda: asks(server.url, timeout_s=0.5))
        assert error.fault is SourceFault.UNREACHABLE
        assert "no answer within 0.5 s" in str(error)
        assert time.monotonic() - began < 200, "it drips for ever"
        eventually(lambda: server.left == 1, "the server was left")
        assert gits() == 0


def test_a_question_that_nobody_waits_for_any_more_ends_at_once(asks, eventually):
    with Dripping() as server:
        ending, said = Ending(), []

        def ask() -> None:
            ENDING.set(ending)
            said.append(failure(lambda: asks(server.url, timeout_s=1000)))

        asking = threading.Thread(target=ask)
        asking.start()
        eventually(lambda: server.taken, "the server is asked")
        ending.end()
        asking.join(200)
        assert not asking.is_alive()
        assert said[0].fault is SourceFault.ENDED
        eventually(lambda: server.left == 1, "the server was left")


def test_behind_a_proxy_git_asks_and_shows_no_credentials_in_any_process_list(
    git_server, tmp_path, monkeypatch, eventually
):
    git_server.push({"a.yaml": "1"})
    with Dripping() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/x.git"))
        source = followed(tmp_path, "http://git.example.com/x.git", MAIN, Credentials(username="ann", password=SECRET))
        ending = Ending()

        def ask() -> None:
            ENDING.set(ending)
            failure(source.remote_sha)

        asking = threading.Thread(target=ask)
        asking.start()
        eventually(lambda: proxy.taken, "git talks to the proxy")
        lines = [words_of(each) for each in [psutil.Process(), *psutil.Process().children(recursive=True)]]
        ending.end()
        asking.join(200)
        assert not asking.is_alive()
        assert any("ls-remote" in line for line in lines)
        assert not any(SECRET in line or "YW5uOn" in line for line in lines)
        monkeypatch.setenv("no_proxy", "example.org, 127.0.0.1")
        assert followed(tmp_path, git_server.url).remote_sha() == git_server.sha()


# -- packet lines ------------------------------------------------------------------------------------------------------

HASH = "1" * 40
NAMES = ["HEAD", "refs/heads/main", "refs/tags/v1^{}", "refs/tags/v1"]


def packet(text: str) -> bytes:
    return b"%04x%b" % (len(text) + 4, text.encode())


LISTED = (
    packet(f"{HASH} HEAD symref-target:refs/heads/main\n") + packet(f"{HASH} refs/heads/main\n")
    + packet(f"{'2' * 40} refs/tags/v1 peeled:{HASH}\n") + packet(f"{HASH} refs/heads/main-2\n") + b"0000"
)  # fmt: skip
OFFERED = (
    packet("version 2\n") + packet("agent=git/2\n") + packet("ls-refs=unborn\n") + packet("object-format=sha256\n")
)


def test_the_words_of_the_protocol():
    assert told(LISTED, NAMES) == {
        "HEAD": HASH, "refs/heads/main": HASH, "refs/tags/v1^{}": HASH, "refs/tags/v1": "2" * 40,
    }  # fmt: skip
    assert told(b"0000", NAMES) == {}
    assert told(packet("unborn HEAD symref-target:refs/heads/main\n") + b"0000", NAMES) == {}
    service = packet("# service=git-upload-pack\n") + b"0000"
    for before in (b"", service):
        assert advertised(before + OFFERED + b"0000", NAMES).object_format == "sha256"
    older = packet(f"{HASH} HEAD\0multi_ack symref=HEAD:refs/heads/main\n") + packet(f"{HASH} refs/tags/v1^{{}}\n")
    for before in (service, service + packet("version 1\n")):
        assert advertised(before + older + b"0000", NAMES).refs == {"HEAD": HASH, "refs/tags/v1^{}": HASH}
    empty = packet(f"{'0' * 40} capabilities^{{}}\0agent=git/2\n")
    assert advertised(service + empty + b"0000", NAMES).refs == {}
    with pytest.raises(UnclearError, match="can't list its refs"):
        advertised(packet("version 2\n") + packet("fetch\n") + b"0000", NAMES)
    assert question(["refs/tags/v1^{}", "refs/tags/v1"], "sha256") == (
        b"0014command=ls-refs\n0019object-format=sha256\n00010009peel\n001cref-prefix refs/tags/v1\n0000"
    )


@given(st.integers(0, len(LISTED) - 1))
def test_no_part_of_an_answer_is_taken_for_all_of_it(size):
    with pytest.raises(UnclearError):
        told(LISTED[:size], NAMES)
    with pytest.raises(UnclearError):
        advertised((OFFERED + b"0000")[: min(size, len(OFFERED) + 3)], NAMES)


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([b"0000", b"0001", b"0004", packet("x"), *LISTED.split(b"\n")])).map(b"".join)
)
def test_whatever_a_server_says_is_understood_or_unclear(answer):
    for read in (told, advertised):
        with contextlib.suppress(UnclearError):
            read(answer, NAMES)
