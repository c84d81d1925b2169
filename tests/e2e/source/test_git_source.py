"""A Git repository as a source, on real Git servers: over HTTP, over TLS, over SSH, and as a folder."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import asyncssh
import psutil
import pytest

from kubectl_reconcile.source.git.source import (
    Credentials,
    GitSource,
    Ref,
    RefKind,
    Repository,
    SourceError,
    SourceFault,
)
from tests.certificates import self_signed
from tests.e2e.ssh_host import private
from tests.talking import talking

SECRET = "s3cr3t-t0ken"
MAIN = Ref.of(branch="main")


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def source(git_server, cache):
    """The source of the test's repository: source(ref, path, …)."""

    def make(ref=MAIN, path="", *, url=git_server.url, credentials=None, **options):
        return GitSource(Repository.of(url, credentials), ref, path, cache_dir=cache, **options)

    return make


@pytest.fixture
def git(git_server):
    """git in the served repository itself: git("tag", "v1") -> what it printed."""

    def run(*arguments: str, stdin: str = "") -> str:
        command = ["git", f"--git-dir={git_server.folder}", *arguments]
        return subprocess.run(command, input=stdin, text=True, capture_output=True, check=True).stdout.strip()

    return run


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """The git commands that were run since the last call, as git itself tells: commands() -> ["ls-remote", …]."""
    trace = tmp_path / "trace"
    trace.touch()
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))

    def names() -> list[str]:
        events = [json.loads(line) for line in trace.read_text().splitlines()]
        trace.write_text("")
        return [
            event["name"] for event in events if event["event"] == "cmd_name" and event["hierarchy"] == event["name"]
        ]

    return names


def fault_of(action) -> SourceError:
    with pytest.raises(SourceError) as raised:
        action()
    text = str(raised.value)
    assert text.isprintable()
    assert SECRET not in text
    return raised.value


def clone_of(cache: Path) -> Path:
    [clone] = cache.glob("*.git")
    return clone


# -- revisions ---------------------------------------------------------------------------------------------------------


def test_a_revision_lists_the_manifest_files_of_a_commit(git_server, source):
    sha = git_server.push({"apps/web.yaml": "a: 1", "apps/README.md": "x", "apps/.hidden.yaml": "x", "db.json": "{}"})
    revision = source().revision()
    assert revision.sha == sha
    assert revision.short == sha[:7]
    assert list(revision.files) == ["apps/web.yaml", "db.json"]
    assert revision.problems == ()
    assert datetime.now(UTC) - datetime.fromisoformat(revision.committed_at) < timedelta(minutes=5)
    assert revision.committed_at.endswith("Z")


AUTHORS = {
    "a name": ("Ann Lee <ann@example.com>", "Grow", ("Ann Lee", "Grow")),
    "nobody": ("<ann@example.com>", "Grow", ("", "Grow")),
    "more than a line, after empty ones": ("Ann <a@b>", "\n\nGrow\n\nauthor Bob <b@b>", ("Ann", "Grow")),
    "what moves a cursor": ("\x1b[2JAnn <a@b>", "Gr\x1bow", ("[2JAnn", "Gr ow")),
    "much": ("A" * 500 + " <a@b>", "G" * 500, ("A" * 200, "G" * 200)),
}


@pytest.mark.parametrize(("author", "message", "told"), AUTHORS.values(), ids=AUTHORS)
def test_a_revision_has_who_made_its_commit_and_why(git_server, source, author, message, told):
    git_server.push({"web.yaml": "a: 1"}, message, author=author)
    commit = source().revision().commit
    assert (commit.author, commit.subject) == told


def test_files_are_read_by_blob(git_server, source):
    content = "name: café\r\n".encode() + bytes(range(1, 256))
    git_server.push({"a.yaml": content, "b.yaml": "", "c.yaml": content})
    followed = source()
    files = followed.revision().files
    assert followed.read(files["a.yaml"]) == content
    assert dict(followed.read_many(files.values())) == {files["a.yaml"]: content, files["b.yaml"]: b""}
    assert files["a.yaml"] == files["c.yaml"]


def test_only_the_files_below_the_path_are_listed_from_the_root_of_the_repository(git_server, source):
    git_server.push({"apps/shop/web.yaml": "a", "apps/shop/deep/x.yaml": "a", "apps/shopping.yaml": "a", "x.yaml": "a"})
    assert list(source(path="./apps/shop/").revision().files) == ["apps/shop/deep/x.yaml", "apps/shop/web.yaml"]


def test_the_path_may_be_one_file_whatever_its_name(git_server, source):
    git_server.push({"apps/web.yaml": "a", "apps/objects": "b", ".deploy/x.yaml": "c"})
    assert list(source(path="apps/objects").revision().files) == ["apps/objects"]
    assert list(source(path=".deploy").revision().files) == [".deploy/x.yaml"]


def test_reconcileignore_counts_from_the_root_down(git_server, source):
    git_server.push(
        {
            ".reconcileignore": "*.json",
            "apps/.reconcileignore": "values-*.yaml\n",
            "apps/web.yaml": "a",
            "apps/values-prod.yaml": "a",
            "apps/x.json": "a",
            "values-other.yaml": "a",
        }
    )
    assert list(source(path="apps").revision().files) == ["apps/web.yaml"]
    assert list(source().revision().files) == ["apps/web.yaml", "values-other.yaml"]


def test_links_out_of_the_repository_and_submodules_are_left_out_with_a_problem(git_server, source, git):
    sha = git_server.push({"web.yaml": "a"})
    blob = git("hash-object", "-w", "--stdin", stdin="/etc/passwd")
    entries = [f"120000 blob {blob}\t{name}" for name in ("evil.yaml", "folder", "README.md")]
    entries += [f"160000 commit {sha}\tvendored", f"100644 blob {git('rev-parse', f'{sha}:web.yaml')}\tweb.yaml"]
    tree = git("mktree", stdin="\n".join(entries) + "\n")
    git("update-ref", "refs/heads/main", git("commit-tree", tree, "-m", "x"))
    revision = source().revision()
    assert list(revision.files) == ["web.yaml"]
    assert {problem.path: problem.message for problem in revision.problems} == {
        "evil.yaml": "a symbolic link to nothing in the repository, which isn't followed",
        "folder": "a symbolic link to nothing in the repository, which isn't followed",
        "vendored": "a submodule, which isn't followed",
    }
    assert source(path="evil.yaml").revision().files == {}


def test_a_file_name_that_a_terminal_would_obey_is_a_problem(git_server, source):
    git_server.push({"a\x1b[31m\n.yaml": "a", "b.yaml": "b"})
    revision = source().revision()
    assert list(revision.files) == ["b.yaml"]
    [problem] = revision.problems
    assert str(problem).isprintable()
    assert "control characters" in problem.message


def test_of_a_huge_file_only_as_much_is_read_as_shows_that_it_is_huge(git_server, source):
    git_server.push({"huge.yaml": b"x" * 30_000_000, "small.yaml": "a: 1"})
    followed = source()
    contents = dict(followed.read_many(followed.revision().files.values()))
    assert sorted(map(len, contents.values())) == [4, 10 * 1024 * 1024 + 1]


def test_ten_thousand_files_take_a_few_commands(git_server, source, gits):
    git_server.push({f"d{n % 50}/m{n}.yaml": f"kind: A\nmetadata:\n  name: m{n}\n" for n in range(10_000)})
    followed = source()
    followed.fetch()
    gits()
    files = followed.revision().files
    contents = dict(followed.read_many(files.values()))
    assert len(contents) == 10_000
    assert 1 <= gits() < 20


# -- refs --------------------------------------------------------------------------------------------------------------


def test_a_branch_is_followed(git_server, source):
    git_server.push({"a.yaml": "1"})
    followed = source()
    first = followed.revision()
    second = git_server.push({"a.yaml": "2"})
    assert followed.remote_sha() == second
    assert followed.revision().sha == second
    assert followed.revision_at(first.sha) == first


def test_an_unchanged_remote_costs_no_fetch(git_server, source, commands):
    git_server.push({"a.yaml": "1"})
    followed = source()
    followed.revision()
    commands()
    followed.revision()
    assert commands() == []
    git_server.push({"a.yaml": "2"})
    followed.revision()
    assert "fetch" in commands()
    source().revision()  # another source, another process: the clone is shared
    assert "fetch" not in commands()


def test_a_rewritten_branch_is_followed(git_server, source, git):
    git_server.push({"a.yaml": "1"})
    old = git_server.push({"a.yaml": "2"})
    followed = source()
    followed.revision()
    git("update-ref", "-d", "refs/heads/main")
    new = git_server.push({"b.yaml": "3"})
    assert list(followed.revision().files) == ["b.yaml"]
    assert followed.revision().sha == new
    assert list(followed.revision_at(old).files) == ["a.yaml"]  # still there, so the base of a merge is


def test_a_deleted_branch_is_no_such_ref(git_server, source, git):
    git_server.push({"a.yaml": "1"}, branch="gone")
    followed = source(Ref.of(branch="gone"))
    followed.revision()
    git("update-ref", "-d", "refs/heads/gone")
    error = fault_of(followed.revision)
    assert error.fault is SourceFault.NO_SUCH_REF
    assert 'it has no branch "gone"' in str(error)


def test_tags_are_followed_to_their_commit(git_server, source, git):
    sha = git_server.push({"a.yaml": "1"})
    git_server.push({"a.yaml": "2"})
    git("tag", "light", sha)
    git("tag", "-a", "-m", "x", "heavy", sha)
    for name in ("light", "heavy"):
        followed = source(Ref.of(tag=name))
        assert followed.remote_sha() == sha
        assert followed.revision().sha == sha
        assert source(Ref(RefKind.ANY, name)).revision().sha == sha
    git("tag", "--force", "heavy", "main")
    assert source(Ref.of(tag="heavy")).revision().sha == git_server.sha()


def test_a_tag_of_a_file_is_no_commit(git_server, source, git):
    git_server.push({"a.yaml": "1"})
    git("tag", "file", "main:a.yaml")
    error = fault_of(source(Ref.of(tag="file")).revision)
    assert error.fault is SourceFault.NO_SUCH_REF


def test_a_commit_stays_where_it_is_and_is_asked_for_once(git_server, source, commands):
    sha = git_server.push({"a.yaml": "1"})
    git_server.push({"a.yaml": "2"})
    followed = source(Ref.of(commit=sha))
    assert followed.revision().sha == sha
    commands()
    assert followed.revision().sha == sha
    assert commands() == []
    assert source(Ref(RefKind.ANY, sha)).revision().sha == sha


def test_without_a_ref_the_default_branch_is_followed(git_server, source, git):
    git_server.push({"a.yaml": "1"})
    trunk = git_server.push({"a.yaml": "2"}, branch="trunk")
    git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert source(None).revision().sha == trunk


def test_a_branch_is_preferred_to_a_tag_of_the_same_name(git_server, source, git):
    first = git_server.push({"a.yaml": "1"})
    git("tag", "main", first)
    second = git_server.push({"a.yaml": "2"})
    assert source(Ref(RefKind.ANY, "main")).revision().sha == second
    assert source(Ref.of(tag="main")).revision().sha == first


MISSING = {
    "a branch": (Ref.of(branch="nope"), "", SourceFault.NO_SUCH_REF, 'it has no branch "nope"'),
    "a tag": (Ref.of(tag="nope"), "", SourceFault.NO_SUCH_REF, 'it has no tag "nope"'),
    "a commit": (Ref.of(commit="1" * 40), "", SourceFault.NO_SUCH_REF, f'it has no commit "{"1" * 40}"'),
    "anything": (Ref(RefKind.ANY, "nope"), "", SourceFault.NO_SUCH_REF, 'it has no "nope"'),
    "a path": (MAIN, "nope", SourceFault.NO_SUCH_PATH, "there is no nope at"),
    "a path below a file": (MAIN, "a.yaml/x", SourceFault.NO_SUCH_PATH, "there is no a.yaml/x at"),
    "a path by pattern": (MAIN, "*.yaml", SourceFault.NO_SUCH_PATH, "there is no *.yaml at"),
}


@pytest.mark.parametrize(("ref", "path", "fault", "text"), MISSING.values(), ids=MISSING)
def test_what_isn_t_there_is_said(git_server, source, ref, path, fault, text):
    git_server.push({"a.yaml": "1"})
    error = fault_of(source(ref, path).revision)
    assert error.fault is fault
    assert text in str(error)


def test_an_empty_repository_says_so(source):
    error = fault_of(source(None).revision)
    assert error.fault is SourceFault.NO_SUCH_REF
    assert "it is empty (hint: push a first commit)" in str(error)


# -- history -----------------------------------------------------------------------------------------------------------


def test_who_changed_what_last(git_server, source):
    first = git_server.push({"apps/a.yaml": "1", "b.yaml": "1"}, "Start", author="Ann <ann@example.com>")
    second = git_server.push({"apps/a.yaml": "2"}, "Scale\x1b[31m up\n\nBecause.", author="Bob <bob@example.com>")
    third = git_server.push({"b.yaml": "2"}, "Other")
    followed = source()
    followed.fetch()
    [last] = followed.commits_touching("apps/a.yaml", third, limit=1)
    assert (last.sha, last.author) == (second, "Bob")
    assert last.subject.startswith("Scale")
    assert last.subject.isprintable()
    assert [commit.sha for commit in followed.commits_touching("apps", third)] == [second, first]
    assert [commit.sha for commit in followed.commits_touching("", third, since=first)] == [third, second]
    assert [commit.sha for commit in followed.commits_touching("", third, limit=1)] == [third]
    assert followed.commits_touching("nope", third, limit=1) == ()
    assert followed.commits_touching("apps/a.yaml", "1" * 40, limit=1) == ()


def test_a_commit_with_an_author_or_a_date_that_is_odd_hides_no_other(git_server, source, git):
    def odd(name, author, committer):
        parent, tree = git("rev-parse", "main"), git("rev-parse", f"{git_server.push({'a.yaml': name})}^{{tree}}")
        head = f"tree {tree}\nparent {parent}\nauthor {author}\ncommitter {committer}\n\n{name}\n"
        sha = git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=head)
        git("update-ref", "refs/heads/main", sha)
        return sha

    first = git_server.push({"a.yaml": "first"}, "First")
    late = odd("late", "Ann <a@b> 1 +0000", "Ann <a@b> 99999999999999 +0000")
    torn = odd("torn", "A\x1fB <a@b> 1 +0000", "A\x1fB <a@b> 2 +0000")
    last = git_server.push({"a.yaml": "last"}, "Last")
    followed = source()
    followed.fetch()
    told = {commit.sha: commit for commit in followed.commits_touching("a.yaml", last)}
    assert [told[sha].subject for sha in (last, torn, late, first)] == ["Last", "torn", "", "First"]
    assert told[late].committed_at == "1970-01-01T00:00:00Z"
    assert told[torn].author.startswith("A")
    assert [followed.commit(sha) for sha in told] == [*told.values()]


def test_a_file_as_it_was(git_server, source):
    first = git_server.push({"apps/a.yaml": "1"})
    second = git_server.push({"apps/a.yaml": None, "b.yaml": "2"})
    followed = source()
    assert followed.read_at(first, "apps/a.yaml") is None  # nothing fetched yet
    followed.fetch()
    assert followed.read_at(first, "apps/a.yaml") == b"1"
    assert followed.read_at(second, "apps/a.yaml") is None
    assert followed.read_at(first, "apps") is None
    assert followed.read_at("1" * 40, "apps/a.yaml") is None
    assert fault_of(lambda: followed.revision_at("1" * 40)).fault is SourceFault.NO_SUCH_REF


# -- refused -----------------------------------------------------------------------------------------------------------

URLS = {
    "a command": "ext::sh -c touch% /tmp/x",
    "a transport helper": "foo::https://example.com",
    "an option": "--upload-pack=touch /tmp/x",
    "an option as host": "ssh://-oProxyCommand=x/y",
    "an option as user": "ssh://-oProxyCommand=x@host/y",
    "an option as path": "git@example.com:-x",
    "an option as path of a URL": "ssh://git@example.com/--upload-pack=x",
    "a file": "file:///etc",
    "a file with a host": "file://host/etc",
    "a folder": "/etc",
    "a relative folder": "../x",
    "unencrypted git": "git://example.com/x",
    "another scheme": "ftp://example.com/x",
    "no host": "https:///x",
    "a port too large": "https://example.com:99999/x",
    "two lines": "https://example.com/x\nhttps://example.com/y",
    "an escape sequence": "https://example.com/\x1b[2J",
    "nothing": "",
    "SSH without a key": "git@example.com:x/y",
    "SSH with a password": "ssh://git:s3cr3t-t0ken@example.com/x",
}


@pytest.mark.parametrize("url", URLS.values(), ids=URLS)
def test_urls_that_git_is_not_given(url):
    assert fault_of(lambda: Repository.of(url)).fault is SourceFault.REFUSED


@pytest.mark.parametrize(
    "name", ["-x", "--upload-pack=x", "a..b", "a b", "a^", "a:b", "a*", "x.lock", "/a", "a//b", "@{1}", "a\x1b"]
)
def test_refs_that_git_is_not_given(source, name):
    assert fault_of(lambda: source(Ref.of(branch=name))).fault is SourceFault.REFUSED
    assert fault_of(lambda: source(Ref(RefKind.ANY, name))).fault is SourceFault.REFUSED


def test_a_commit_is_given_in_full(source):
    assert "give all 40 digits" in str(fault_of(lambda: source(Ref.of(commit="3f9c2e1"))))


@pytest.mark.parametrize("path", ["../x", "/etc", "a/../../b", "a/..", "a\\..\\b", "a\x00b", "a\nb"])
def test_paths_that_lead_out(source, path):
    assert fault_of(lambda: source(path=path)).fault is SourceFault.REFUSED


def test_certificates_are_never_unchecked(git_server, source, monkeypatch):
    git_server.push({"a.yaml": "1"})
    monkeypatch.setenv("GIT_SSL_NO_VERIFY", "1")
    assert fault_of(source().revision).fault is SourceFault.REFUSED


def test_a_hook_s_environment_leads_nobody_astray(git_server, source, tmp_path, monkeypatch):
    sha = git_server.push({"a.yaml": "1"})
    subprocess.run(["git", "init", "-q", str(tmp_path / "other")], check=True)
    for name, value in {
        "GIT_DIR": str(tmp_path / "other" / ".git"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "other"),
        "GIT_NAMESPACE": "other",
        "GIT_CONFIG_PARAMETERS": f"'url.{tmp_path}.insteadOf=http'",
    }.items():
        monkeypatch.setenv(name, value)
    followed = source()
    revision = followed.revision()
    assert revision.sha == sha
    assert followed.read(revision.files["a.yaml"]) == b"1"


# -- credentials -------------------------------------------------------------------------------------------------------


def test_http_wants_the_right_user_and_password(own_git_server, source, cache):
    repository = own_git_server(username="ann", password=SECRET)
    sha = repository.push({"a.yaml": "1"})
    for credentials in (Credentials(username="ann", password="wrong"), Credentials(bearer_token=SECRET)):
        error = fault_of(source(url=repository.url, credentials=credentials).revision)
        assert error.fault is SourceFault.UNAUTHORIZED
        assert f"{repository.url}: the server refused the credentials" in str(error)
    for credentials in (None, Credentials(ca_bundle="x", known_hosts="y")):
        error = fault_of(source(url=repository.url, credentials=credentials).revision)
        assert error.fault is SourceFault.UNAUTHORIZED
        assert f"{repository.url}: the server asks for credentials, and none are given" in str(error)
    good = Credentials(username="ann", password=SECRET)
    assert SECRET not in repr(good)
    assert source(url=repository.url, credentials=good).revision().sha == sha
    for file in clone_of(cache).rglob("*"):
        assert file.is_dir() or SECRET.encode() not in file.read_bytes()


def test_credentials_within_a_url_are_taken_out_of_it(own_git_server, source):
    repository = own_git_server(username="ann", password="s3cr3t/t0ken@x")
    sha = repository.push({"a.yaml": "1"})
    url = repository.url.replace("://", "://ann:s3cr3t%2Ft0ken%40x@")
    followed = source(url=url)
    assert followed.revision().sha == sha
    assert str(followed.repository) == repository.url


def test_a_clone_s_content_is_not_for_those_who_may_not_fetch_it(own_git_server, source):
    repository = own_git_server(username="ann", password=SECRET)
    sha = repository.push({"a.yaml": "1"})
    source(url=repository.url, credentials=Credentials(username="ann", password=SECRET)).revision()
    stranger = source(Ref.of(commit=sha), url=repository.url)
    assert fault_of(stranger.revision).fault is SourceFault.UNAUTHORIZED


def test_credentials_are_not_carried_along_a_redirect(git_server, source):
    git_server.push({"a.yaml": "1"})
    seen: list[str | None] = []

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(301)
            self.send_header("Location", git_server.url + self.path.removeprefix("/old"))
            self.end_headers()

        def log_message(self, *_) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.02,))
        serving.start()
        url = f"http://127.0.0.1:{server.server_port}/old"
        error = fault_of(source(url=url, credentials=Credentials(bearer_token=SECRET)).revision)
        assert error.fault is SourceFault.REFUSED
        assert "use the address that it redirects to" in str(error)
        assert seen == [f"Bearer {SECRET}"]
        assert source(url=url).revision().sha == git_server.sha()  # without credentials nothing can leak
        server.shutdown()
        serving.join()


def test_tls_trusts_the_given_ca_and_no_other(own_git_server, source, tmp_path):
    repository = own_git_server()
    sha = repository.push({"a.yaml": "1"})
    certificate, key = self_signed()
    url = over_tls(repository, tmp_path, certificate + key)
    assert source(url=url, credentials=Credentials(ca_bundle=certificate)).revision().sha == sha
    for other in (None, Credentials(ca_bundle=self_signed()[0])):
        error = fault_of(source(url=url, credentials=other).remote_sha)
        assert error.fault is SourceFault.UNTRUSTED
        assert "put the CA that signed it into key ca.crt" in error.hint


def test_the_given_ca_counts_whatever_the_environment_says(own_git_server, source, tmp_path, monkeypatch):
    repository = own_git_server()
    sha = repository.push({"a.yaml": "1"})
    (right, key), (wrong, _) = self_signed(), self_signed()
    url = over_tls(repository, tmp_path, right + key)
    for name, given, expected in (("wrong", right, True), ("right", wrong, False)):
        (tmp_path / "environment.pem").write_text({"wrong": wrong, "right": right}[name])
        monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "environment.pem"))
        followed = source(url=url, credentials=Credentials(ca_bundle=given))
        if expected:
            assert followed.revision().sha == sha
        else:
            assert fault_of(followed.revision).fault is SourceFault.UNTRUSTED


OUT_OF_TIME = {
    "expired": (
        -timedelta(days=2),
        -timedelta(days=1),
        "has expired (hint: renew it on the server; if the CA has a new certificate, update ca.crt",
    ),
    "not yet valid": (timedelta(days=1), timedelta(days=2), "isn't valid yet (hint: compare the clocks"),
}


@pytest.mark.parametrize(("begins", "ends", "said"), OUT_OF_TIME.values(), ids=OUT_OF_TIME)
def test_a_certificate_out_of_its_time_is_said_to_be(own_git_server, source, tmp_path, begins, ends, said):
    certificate, key = self_signed(begins, ends)
    url = over_tls(own_git_server(), tmp_path, certificate + key)
    error = fault_of(source(url=url, credentials=Credentials(ca_bundle=certificate)).revision)
    assert error.fault is SourceFault.UNTRUSTED
    assert said in str(error)


def test_a_certificate_for_another_name_is_said_to_be(own_git_server, source, tmp_path):
    certificate, key = self_signed()
    url = over_tls(own_git_server(), tmp_path, certificate + key).replace("127.0.0.1", "localhost")
    error = fault_of(source(url=url, credentials=Credentials(ca_bundle=certificate)).revision)
    assert error.fault is SourceFault.UNTRUSTED
    assert "its TLS certificate is for another name" in str(error)


def test_a_ca_that_is_none_is_said_to_be(own_git_server, source, tmp_path):
    url = over_tls(own_git_server(), tmp_path, "".join(self_signed()))
    error = fault_of(source(url=url, credentials=Credentials(ca_bundle="no certificate")).revision)
    assert error.fault is SourceFault.UNTRUSTED
    assert "ca.crt" in error.hint


def test_a_server_with_a_shallow_clone_is_followed_as_far_as_it_goes(own_git_server, git_server, source, tmp_path):
    for number in range(3):
        sha = git_server.push({"a.yaml": str(number)})
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", git_server.url, str(shallow)], check=True)
    repository = Repository.of(shallow.as_uri(), allow_local=True)
    followed = GitSource(repository, MAIN, cache_dir=tmp_path / "other-cache")
    revision = followed.revision()
    assert revision.sha == sha
    assert followed.read(revision.files["a.yaml"]) == b"2"
    assert [commit.sha for commit in followed.commits_touching("a.yaml", sha)] == [sha]


def over_tls(repository, folder: Path, pem: str) -> str:
    """Have the server of *repository* speak TLS with the certificate and key in *pem*; return the new URL."""
    (folder / "tls.pem").write_text(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem")
    listening = repository.server._http
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    listening.handle_error = lambda *_: None  # a client that hangs up is what is tested
    listening.shutdown_request = end_tls
    return repository.url.replace("http:", "https:")


def end_tls(request: ssl.SSLSocket) -> None:
    """Say goodbye as TLS wants it, or git takes the end of an answer for an attack."""
    request.settimeout(5)
    with contextlib.suppress(OSError):
        request = request.unwrap()
    request.close()


# -- SSH ---------------------------------------------------------------------------------------------------------------


def test_ssh_with_a_key_and_a_known_host(git_server, source, ssh_host):
    sha = git_server.push({"a.yaml": "1"})
    credentials = Credentials(ssh_private_key=private(ssh_host.client_key), known_hosts=ssh_host.known_hosts)
    followed = source(url=f"ssh://git@127.0.0.1:{ssh_host.port}{git_server.folder}", credentials=credentials)
    revision = followed.revision()
    assert revision.sha == sha
    assert followed.read(revision.files["a.yaml"]) == b"1"


def test_ssh_refuses_another_key(git_server, source, ssh_host):
    git_server.push({"a.yaml": "1"})
    url = f"ssh://git@127.0.0.1:{ssh_host.port}{git_server.folder}"
    for key in (private(asyncssh.generate_private_key("ssh-ed25519")), "no key at all"):
        error = fault_of(
            source(url=url, credentials=Credentials(ssh_private_key=key, known_hosts=ssh_host.known_hosts)).revision
        )
        assert error.fault is SourceFault.UNAUTHORIZED


def test_ssh_refuses_a_host_that_isn_t_known(git_server, source, ssh_host):
    git_server.push({"a.yaml": "1"})
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    url = f"ssh://git@127.0.0.1:{ssh_host.port}{git_server.folder}"
    for known_hosts in (f"[127.0.0.1]:{ssh_host.port} {other}", f"example.com {other}"):
        credentials = Credentials(ssh_private_key=private(ssh_host.client_key), known_hosts=known_hosts)
        error = fault_of(source(url=url, credentials=credentials).revision)
        assert error.fault is SourceFault.UNTRUSTED


def test_ssh_says_when_there_is_no_such_repository(source, ssh_host, tmp_path):
    credentials = Credentials(ssh_private_key=private(ssh_host.client_key), known_hosts=ssh_host.known_hosts)
    url = f"ssh://git@127.0.0.1:{ssh_host.port}{tmp_path}/nope"
    assert fault_of(source(url=url, credentials=credentials).revision).fault is SourceFault.NO_SUCH_REPOSITORY


def test_no_key_is_left_behind(git_server, source, ssh_host, tmp_path, monkeypatch):
    git_server.push({"a.yaml": "1"})
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    credentials = Credentials(ssh_private_key=private(ssh_host.client_key), known_hosts=ssh_host.known_hosts)
    followed = source(url=f"ssh://git@127.0.0.1:{ssh_host.port}{git_server.folder}", credentials=credentials)
    with followed.repository.environment():
        [folder] = (tmp_path / "tmp").iterdir()
        assert (folder / "key").stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
    followed.revision()
    assert list((tmp_path / "tmp").iterdir()) == []


# -- outages -----------------------------------------------------------------------------------------------------------


class Silent:
    """A server that takes connections and never says a word."""

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(30)
        self.port = self._socket.getsockname()[1]
        return self

    def __exit__(self, *_) -> None:
        self._socket.close()


def test_a_server_that_doesn_t_answer_is_given_up_with_all_that_was_started_for_it(source, eventually):
    before = set(psutil.Process().children(recursive=True))
    with Silent() as silent:
        started = time.monotonic()
        error = fault_of(source(url=f"http://127.0.0.1:{silent.port}/x", timeout_s=0.5).revision)
        assert error.fault is SourceFault.UNREACHABLE
        assert "no answer within 0.5 s" in str(error)
        assert time.monotonic() - started < 100
    eventually(lambda: not set(psutil.Process().children(recursive=True)) - before, "no process is left")


def test_an_outage_is_unreachable_and_ends(own_git_server, source):
    repository = own_git_server()
    repository.push({"a.yaml": "1"})
    followed = source(url=repository.url)
    revision = followed.revision()
    repository.server.stop()
    assert fault_of(followed.revision).fault is SourceFault.UNREACHABLE
    assert followed.read(revision.files["a.yaml"]) == b"1"  # what is here stays readable
    repository.server.start()
    assert followed.revision() == revision


UNREACHABLE = {
    "a host that doesn't exist": ("https://no-such-host.invalid/x", SourceFault.UNREACHABLE, "no-such-host.invalid"),
    "a closed port": ("http://127.0.0.1:1/x", SourceFault.UNREACHABLE, "Failed to connect"),
}


@pytest.mark.parametrize(("url", "fault", "text"), UNREACHABLE.values(), ids=UNREACHABLE)
def test_unreachable(source, url, fault, text):
    error = fault_of(source(url=url).revision)
    assert error.fault is fault
    assert text in str(error)


def test_no_such_repository(git_host, source):
    error = fault_of(source(url=f"{git_host.url}/nope.git").revision)
    assert error.fault is SourceFault.NO_SUCH_REPOSITORY


def test_a_machine_without_git_says_so(git_server, source, monkeypatch):
    git_server.push({"a.yaml": "1"})
    monkeypatch.setenv("PATH", "/nowhere")
    assert "git is not installed here" in str(fault_of(source().revision))


# -- the clone ---------------------------------------------------------------------------------------------------------


def truncate_packs(clone: Path) -> None:
    for file in (*clone.glob("objects/pack/*.pack"), *clone.glob("objects/??/*")):
        file.chmod(0o600)
        os.truncate(file, min(20, file.stat().st_size))


def remove_objects(clone: Path) -> None:
    for file in (*clone.glob("objects/pack/*"), *clone.glob("objects/??/*")):
        file.unlink()


DAMAGES = {
    "its objects are cut short": truncate_packs,
    "its objects are gone": remove_objects,
    "its head is gone": lambda clone: (clone / "HEAD").unlink(),
    "its head is garbage": lambda clone: (clone / "HEAD").write_text("garbage"),
    "its configuration is garbage": lambda clone: (clone / "config").write_text("[[["),
    "its ref is empty": lambda clone: (clone / "refs/heads/main").write_text(""),
    "its ref is garbage": lambda clone: (clone / "refs/heads/main").write_text("garbage"),
    "a plain file stands in its place": lambda clone: (shutil.rmtree(clone), clone.write_text("no clone")),
    "its ref points at nothing": lambda clone: (clone / "refs/heads/main").write_text("1" * 40 + "\n"),
    "a killed git left its locks": lambda clone: [
        (clone / name).touch() for name in ("packed-refs.lock", "refs/heads/main.lock")
    ],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_clone_is_recreated(git_server, source, cache, damage):
    git_server.push({"a.yaml": "1"})
    source().revision()
    damage(clone_of(cache))
    assert source().revision().sha == git_server.sha()
    damage(clone_of(cache))
    sha = git_server.push({"a.yaml": "2"})
    followed = source()
    revision = followed.revision()
    assert revision.sha == sha
    assert followed.read(revision.files["a.yaml"]) == b"2"


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_who_follows_a_repository_goes_on_after_its_clone_was_damaged(git_server, source, cache, damage):
    first = git_server.push({"a.yaml": "1"})
    followed = source()
    followed.revision()
    followed._clone.reader.close()  # as after a while without a question
    damage(clone_of(cache))
    assert followed.revision().sha == first
    sha = git_server.push({"a.yaml": "2"})
    revision = followed.revision()
    assert revision.sha == sha
    assert followed.read(revision.files["a.yaml"]) == b"2"


def test_a_clone_that_lost_its_packs_is_recreated_when_the_server_is_asked_next(git_server, source, cache):
    git_server.push({"a.yaml": "1"})
    followed = source()
    followed.revision()
    followed._clone.reader.close()
    remove_objects(clone_of(cache))
    followed.revision()
    assert [*clone_of(cache).glob("objects/pack/*.pack")]


def test_a_clone_damaged_between_listing_and_reading_is_recreated(git_server, source, cache):
    git_server.push({f"{n}.yaml": f"n: {n}" for n in range(300)})
    followed = source()
    revision = followed.revision()
    truncate_packs(clone_of(cache))
    assert len(dict(followed.read_many(revision.files.values()))) == 300


def test_threads_share_a_clone(git_server, source):
    sha = git_server.push({f"{n}.yaml": f"n: {n}" for n in range(200)})

    def follow(_: int) -> tuple[str, int]:
        followed = source()
        revision = followed.revision()
        return revision.sha, len(dict(followed.read_many(revision.files.values())))

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(follow, range(8))) == {(sha, 200)}


HOLDER = """
import sys
from ipaddress import ip_address
from pathlib import Path
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.remote import Repository
with Clone(Repository.of(sys.argv[1]), Path(sys.argv[2])).locked(200):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_processes_take_turns_and_a_killed_one_holds_nobody_up(git_server, source, cache):
    git_server.push({"a.yaml": "1"})
    command = [sys.executable, "-c", HOLDER, git_server.url, str(cache)]
    with talking(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == "held\n"
        error = fault_of(source(fetch_timeout_s=0.2).revision)
        assert "another process is still fetching it" in str(error)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(source().revision)
            holder.send_signal(signal.SIGKILL)
            assert waiting.result(200).sha == git_server.sha()


def test_a_cache_that_can_t_be_written_says_so(git_server, tmp_path):
    git_server.push({"a.yaml": "1"})
    (tmp_path / "file").write_text("")
    followed = GitSource(Repository.of(git_server.url), cache_dir=tmp_path / "file" / "cache")
    assert fault_of(followed.revision).fault is SourceFault.UNREADABLE


def test_a_local_repository_for_those_at_the_keyboard(git_server, cache):
    sha = git_server.push({"a.yaml": "1"})
    for url in (str(git_server.folder), git_server.folder.as_uri()):
        repository = Repository.of(url, allow_local=True, user_config=True)
        assert GitSource(repository, cache_dir=cache).revision().sha == sha
    missing = Repository.of(str(cache / "nope"), allow_local=True)
    assert fault_of(GitSource(missing, cache_dir=cache).revision).fault is SourceFault.NO_SUCH_REPOSITORY


def test_nothing_of_a_repository_reaches_the_clone_but_objects(git_server, source, cache):
    git_server.push(
        {".gitattributes": "* filter=x\n", ".gitmodules": "x", "hooks/post-fetch": "x", "config": "[core]\nx=y"}
    )
    source().revision()
    clone = clone_of(cache)
    assert not (clone / "hooks").exists()
    assert "x=y" not in (clone / "config").read_text()
