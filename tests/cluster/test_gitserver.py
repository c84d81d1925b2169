"""The sandbox's Git server, used as any other: by git itself."""

import os
import subprocess
from contextlib import closing
from http.client import HTTPConnection

import pytest

from kubectl_reconcile.sandbox.gitserver import ServedRepository


class GitError(Exception):
    """git failed; the text is what it said."""


@pytest.fixture
def git(tmp_path, monkeypatch):
    """The real git in a folder of the test: git("clone", url, "a") -> what it printed, git.said -> what it told."""
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")
    monkeypatch.setenv("GIT_CURL_VERBOSE", "1")
    return Git(tmp_path)


class Git:
    def __init__(self, folder) -> None:
        self.folder = folder
        self.said = ""

    def __call__(self, *arguments: str) -> str:
        answer = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, errors="replace", check=False
        )
        self.said = answer.stderr
        if answer.returncode:
            raise GitError(answer.stderr)
        return answer.stdout.strip()

    def at(self, name: str) -> "Git":
        return Git(self.folder / name)


# -- commits made for a test -------------------------------------------------------------------------------------------

PATHS = {
    "plain": "web.yaml",
    "in a folder": "apps/shop/web.yaml",
    "with a space and an umlaut": "my apps/wéb.yaml",
    "with a quote, a backslash and a line end": 'a"b\\c\nd.yaml',
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_pushed_file_is_cloned(git_server, git, path):
    sha = git_server.push({path: "kind: Café\n", "binary": bytes(range(256))}, "Say\n\nwhy")
    git("clone", "-q", git_server.url, "clone")
    clone = git.folder / "clone"
    assert (clone / path).read_text() == "kind: Café\n"
    assert (clone / "binary").read_bytes() == bytes(range(256))
    assert git.at("clone")("log", "--format=%H %B") == f"{sha} Say\n\nwhy"


def test_a_push_keeps_what_it_doesn_t_name_and_deletes_what_is_none(git_server, git):
    first = git_server.push({"kept": "1", "changed": "1", "gone": "1"})
    second = git_server.push({"changed": "2", "gone": None}, author="Ann <ann@example.com>")
    git("clone", "-q", git_server.url, "clone")
    clone = git.at("clone")
    assert {path.name: path.read_text() for path in clone.folder.glob("[!.]*")} == {"kept": "1", "changed": "2"}
    assert clone("log", "--format=%H %an") == f"{second} Ann\n{first} Sandbox"


def test_a_branch_of_its_own(git_server, git):
    main, other = git_server.push({"a": "1"}), git_server.push({"a": "2"}, branch="other/one")
    refs = dict(reversed(line.split("\t")) for line in git("ls-remote", git_server.url).splitlines())
    assert refs == {"HEAD": main, "refs/heads/main": main, "refs/heads/other/one": other}


# -- the protocol ------------------------------------------------------------------------------------------------------


def test_a_big_push_comes_in_chunks(git_server, git):
    git("clone", "-q", git_server.url, "clone")
    clone = git.at("clone")
    content = os.urandom(3_000_000)
    (clone.folder / "big").write_bytes(content)
    clone("add", "big")
    clone("commit", "-qm", "Big")
    clone("push", "-q", "origin", "HEAD:main")
    assert "transfer-encoding: chunked" in clone.said.lower()
    assert git_server.sha() == clone("rev-parse", "HEAD")
    git("clone", "-q", git_server.url, "again")
    assert (git.folder / "again" / "big").read_bytes() == content


def test_a_long_negotiation_is_compressed(git_server, git, monkeypatch):
    git_server.push({"a": "0"})
    git("clone", "-q", git_server.url, "clone")
    clone = git.at("clone")
    for number in range(40):
        # git offers the newest commits first: were these as old as the shared one, it might be found at once
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"{2_000_000_000 + number} +0000")
        clone("commit", "-q", "--allow-empty", "-m", f"Only here: {number}")
    sha = git_server.push({"a": "1"})
    clone("fetch", "-q", "origin")
    assert "content-encoding: gzip" in clone.said.lower()
    assert clone("rev-parse", "origin/main") == sha


def test_one_commit_without_history_or_files_by_its_sha(git_server, git):
    first = git_server.push({"a": "1"})
    git_server.push({"a": "2"})
    git("init", "-q", "--bare", "shallow")
    shallow = git.at("shallow")
    shallow("fetch", "-q", "--depth=1", "--filter=blob:none", git_server.url, first)
    assert shallow("rev-list", "FETCH_HEAD") == first


@pytest.mark.parametrize("path", ["/nothing.git/info/refs", "/..%2f..%2fetc/info/refs", "/../../etc/passwd"])
def test_what_is_no_repository_is_refused(git_server, path):
    connection = HTTPConnection(git_server.server.url.removeprefix("http://"))
    with closing(connection):
        connection.request("GET", path)
        with connection.getresponse() as answer:
            assert answer.status >= 400


def test_a_name_with_a_space(git_host, git):
    repository = git_host.create("two words")
    sha = repository.push({"a": "1"})
    assert git("ls-remote", repository.url, "HEAD").split()[0] == sha


# -- a server of one's own ---------------------------------------------------------------------------------------------


@pytest.fixture
def private(own_git_server) -> ServedRepository:
    repository = own_git_server(username="ann", password="p@ss word")
    repository.push({"a": "1"})
    return repository


CREDENTIALS = {"none": "", "a wrong password": "ann:wrong@", "another user": "bob:p%40ss%20word@"}


@pytest.mark.parametrize("credentials", CREDENTIALS.values(), ids=CREDENTIALS)
def test_who_has_no_password_gets_nothing(private, git, credentials):
    with pytest.raises(GitError, match=r"Authentication failed|could not read Username"):
        git("clone", "-q", private.url.replace("//", f"//{credentials}"), "clone")


def test_who_has_the_password_fetches_and_pushes(private, git):
    git("clone", "-q", private.url.replace("//", "//ann:p%40ss%20word@"), "clone")
    clone = git.at("clone")
    clone("commit", "-q", "--allow-empty", "-m", "Mine")
    clone("push", "-q", "origin", "HEAD:main")
    assert private.sha() == clone("rev-parse", "HEAD")


def test_after_an_outage_it_is_where_it_was(own_git_server, git):
    repository = own_git_server()
    sha = repository.push({"a": "1"})
    repository.server.stop()
    with pytest.raises(GitError, match=r"Failed to connect|Connection refused|Couldn't connect"):
        git("ls-remote", repository.url)
    repository.server.start()
    assert git("ls-remote", repository.url, "HEAD").split()[0] == sha
