"""Credentials go where their Secret says and nowhere else: judged by servers that record what reaches them."""

from __future__ import annotations

import http.server
import json
import shlex
import socket
import threading
from typing import Self

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.source.git.source import Credentials, GitSource, Ref, Repository, SourceError, SourceFault
from tests.e2e.ssh_host import private

PASSWORD = "s3cr3t-t0ken"


class Recorder:
    """A server that writes down the requests that it gets, answers them all by *answer*, and knows no Git."""

    def __init__(self, answer=lambda _: (404, {})) -> None:
        self.seen: list[tuple[str, str | None]] = []
        record = self.seen

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                record.append((self.path, self.headers.get("Authorization")))
                status, headers = answer(self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def recorder():
    with Recorder() as recorder:
        yield recorder


@pytest.fixture
def repository(own_git_server, config_map):
    """A repository that wants a user and a password."""
    repository = own_git_server(username="robot", password=PASSWORD)
    repository.push({"web.yaml": config_map("web")})
    return repository


@pytest.fixture
def secret(cluster):
    """Make the Secret shop-git: secret("https://git.example.com …", username=…)."""

    def make(urls="", **data):
        metadata = {"name": "shop-git", "annotations": {"reconcile.dev/urls": urls} if urls else {}}
        cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})

    return make


def login():
    return {"username": "robot", "password": PASSWORD}


WITH_SECRET = {"secretRef": {"name": "shop-git"}}


# -- the daemon --------------------------------------------------------------------------------------------------------


def test_a_secret_that_names_no_url_is_sent_nowhere_until_the_line_that_is_shown_is_run(
    daemon, follow, cluster, repository, secret
):
    secret(**login())
    sync = follow(repository.url, git=WITH_SECRET)
    message = sync.until("SourceUnavailable")["message"]
    assert f"Secret {cluster.namespace}/shop-git isn't for {repository.url}" in message
    assert "it doesn't name the repositories it is for" in message
    line = f"kubectl annotate secret shop-git -n {cluster.namespace} reconcile.dev/urls={repository.url}"
    assert line in message
    cluster.kubectl(*shlex.split(line)[1:])
    sync.until_synced(repository.sha())
    assert PASSWORD not in json.dumps(sync.live) + daemon.log


def test_another_team_s_sync_with_a_url_of_its_own_gets_no_credentials(
    daemon, follow, cluster, repository, secret, recorder
):
    secret(repository.url, **login())
    mine = follow(repository.url, "shop", git=WITH_SECRET)
    theirs = follow(f"{recorder.url}/theirs.git", "theirs", git=WITH_SECRET)
    mine.until_synced(repository.sha())
    message = theirs.until("SourceUnavailable")["message"]
    assert f"isn't for {recorder.url}/theirs.git, but for {repository.url} (" in message
    assert recorder.seen == []
    assert f"'reconcile.dev/urls={repository.url} {recorder.url}/theirs.git'" in message
    theirs.ask()
    assert recorder.seen == []


def test_a_secret_that_no_longer_names_the_url_is_no_longer_sent(daemon, follow, cluster, repository, secret):
    secret(repository.url, **login())
    sync = follow(repository.url, git=WITH_SECRET)
    sync.until_synced(repository.sha())
    other = {"reconcile.dev/urls": "https://elsewhere.example"}
    cluster.edit("Secret", "shop-git", {"metadata": {"annotations": other}})
    sync.ask()
    assert "but for https://elsewhere.example" in sync.until("SourceUnavailable")["message"]


def test_the_key_url_names_a_url_too_and_is_never_shown(daemon, follow, cluster, repository, secret):
    secret(**login(), url="https://elsewhere.example/s3cr3t-t0ken")
    sync = follow(repository.url, git=WITH_SECRET)
    assert "elsewhere" not in sync.until("SourceUnavailable")["message"]
    secret(**login(), url=repository.url.rpartition("/")[0])
    sync.until_synced(repository.sha())


# -- the command line --------------------------------------------------------------------------------------------------


def test_doctor_lists_the_syncs_whose_secret_names_no_url(plugin, follow, secret, repository, git_server, namespace):
    git_server.push({"README.md": "x"})
    secret(**login())
    follow(repository.url, "private", git=WITH_SECRET)
    follow(git_server.url, "public")
    found = plugin("doctor")
    line = f"kubectl annotate secret shop-git -n {namespace} reconcile.dev/urls={repository.url}"
    assert found.status != 0
    assert f"{namespace}/private" in found.out
    assert line in found.out
    assert found.out.count("kubectl annotate") == 1


def ssh_url(ssh_host, repository) -> str:
    return f"ssh://git@127.0.0.1:{ssh_host.port}{repository.folder}"


def test_create_has_the_secret_name_the_url(plugin, cluster, secret, git_server, ssh_host, config_map):
    git_server.push({"web.yaml": config_map("web")})
    url = ssh_url(ssh_host, git_server)
    secret(identity=private(ssh_host.client_key), known_hosts=ssh_host.known_hosts)
    trial = plugin("create", "shop", "--url", url, "--secret", "shop-git", "--dry-run")
    assert trial.status == ExitStatus.SOURCE
    assert f"kubectl annotate secret shop-git -n {cluster.namespace} reconcile.dev/urls={url}" in trial.err
    done = plugin("create", "shop", "--url", url, "--secret", "shop-git")
    assert done.status == 0
    assert f"annotated Secret shop-git: its credentials may be used for {url} (reconcile.dev/urls)" in done.err
    assert cluster.get("Secret", "shop-git")["metadata"]["annotations"]["reconcile.dev/urls"] == url
    again = plugin("create", "other", "--url", f"{url}/other", "--secret", "shop-git", "--no-check")
    assert (again.status, "says now" in again.err) == (0, False)


NOT_WRITTEN = {
    "where it names another": ("https://git.example.com/a", "ssh://git@git.example.com/b"),
    "plain http": ("", "http://git.example.com/a"),
}


@pytest.mark.parametrize(("named", "url"), NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_create_leaves_to_the_owner_of_the_secret(plugin, cluster, secret, ssh_host, named, url):
    secret(named, **login(), identity=private(ssh_host.client_key), known_hosts=ssh_host.known_hosts)
    refused = plugin("create", "shop", "--url", url, "--secret", "shop-git")
    assert refused.status == ExitStatus.SOURCE
    assert f"isn't for {url}" in refused.err
    assert cluster.get("Secret", "shop-git")["metadata"].get("annotations", {}).get("reconcile.dev/urls", "") == named
    assert ("plain http shows its password to everybody on the network" in refused.err) == url.startswith("http:")


def test_a_key_for_one_host_is_not_tried_at_another(plugin, follow, secret, git_server, ssh_host, config_map):
    git_server.push({"web.yaml": config_map("web")})
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.1)
        port = other.getsockname()[1]
        secret(
            ssh_url(ssh_host, git_server), identity=private(ssh_host.client_key),
            known_hosts=f"{ssh_host.known_hosts}\n{ssh_host.known_hosts.replace(str(ssh_host.port), str(port))}",
        )  # fmt: skip
        follow(f"ssh://git@127.0.0.1:{port}{git_server.folder}", "other", git=WITH_SECRET)
        refused = plugin("diff", "other")
        assert refused.status == ExitStatus.SOURCE
        assert f"isn't for ssh://git@127.0.0.1:{port}{git_server.folder}" in refused.err
        with pytest.raises(TimeoutError):
            other.accept()
    follow(ssh_url(ssh_host, git_server), "mine", git=WITH_SECRET)
    assert plugin("diff", "mine").status == ExitStatus.DIFFERENT


# -- redirects ---------------------------------------------------------------------------------------------------------


REDIRECTS = [301, 302, 303, 307, 308]


@pytest.mark.parametrize("status", REDIRECTS)
def test_a_redirect_is_not_followed_with_credentials(recorder, tmp_path, status):
    def away(path):
        return status, {"Location": f"{recorder.url}/stolen{path}"}

    with Recorder(away) as named:
        repository = Repository.of(f"{named.url}/shop.git", Credentials(**login()))
        with pytest.raises(SourceError) as raised:
            GitSource(repository, Ref.of(branch="main"), cache_dir=tmp_path).fetch()
        assert raised.value.fault is SourceFault.REFUSED
        assert [authorization for _, authorization in named.seen if authorization]
    assert recorder.seen == []


def test_a_redirect_of_the_second_request_is_not_followed_either(recorder, own_git_server, tmp_path, monkeypatch):
    repository = own_git_server(username="robot", password=PASSWORD)
    repository.push({"a.yaml": "a: 1"})

    def redirected(request) -> None:
        request.rfile.read(int(request.headers.get("Content-Length", "0")))
        request.send_response(307)
        request.send_header("Location", f"{recorder.url}{request.path}")
        request.send_header("Content-Length", "0")
        request.send_header("Connection", "close")
        request.end_headers()

    monkeypatch.setattr(repository.server._http.RequestHandlerClass.func, "do_POST", redirected)
    followed = GitSource(
        Repository.of(repository.url, Credentials(**login())), Ref.of(branch="main"), cache_dir=tmp_path
    )
    with pytest.raises(SourceError):
        followed.fetch()
    assert recorder.seen == []
