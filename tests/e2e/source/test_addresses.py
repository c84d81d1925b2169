"""Where a Git server may be, and where it may lead: judged by addresses, as they are connected to, by us and by git."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.resources.url_policy import UrlPolicy, networks_around
from kubectl_reconcile.source.asking import question
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git import GitSource, Ref, Repository
from tests.e2e.web_front import front
from tests.rendering_tools import silence

MAIN = Ref.of(branch="main")
IN_CLUSTER = UrlPolicy((), networks_around(["10.96.0.1"]))


@pytest.fixture(params=["by ourselves", "by git"])
def by(request, monkeypatch):
    """Who asks the server: git does where anything isn't clear."""
    if request.param == "by git":
        monkeypatch.setattr(question, "_is_for_us", lambda _: False)
    return request.param


@pytest.fixture
def source(tmp_path):
    """A source of a URL, of which so much may be connected to."""

    def make(url, may=UrlPolicy()):  # noqa: B008 - it is frozen
        return GitSource(replace(Repository.of(url), may=may), MAIN, cache_dir=tmp_path / "cache")

    return make


def refusal(action):
    with pytest.raises(SourceError) as caught:
        action()
    assert caught.value.fault is SourceFault.REFUSED
    return str(caught.value)


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_daemon_in_a_cluster_asks_nobody_in_its_own_pod_unless_it_is_allowed_to(source, git_server, host):
    sha = git_server.push({"a.yaml": "1"})
    url = git_server.url.replace("127.0.0.1", host)
    assert "is an address within the cluster" in refusal(source(url, IN_CLUSTER).fetch)
    assert source(url, UrlPolicy.of([url], IN_CLUSTER.inside)).fetch() == sha
    assert source(url).fetch() == sha


@pytest.mark.usefixtures("by")
@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "http://metadata.example/x", "ssh://git@metadata.example/x"]
)
def test_where_clouds_keep_credentials_nobody_is_asked_whatever_the_name(tmp_path, monkeypatch, url):
    looked_up = socket.getaddrinfo

    def answered(host, port, *arguments, **options):
        return looked_up("169.254.169.254" if host == "metadata.example" else host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answered)
    repository = replace(Repository.of(url, user_config=url.startswith("ssh")), may=UrlPolicy())
    said = refusal(GitSource(repository, MAIN, cache_dir=tmp_path / "cache").fetch)
    assert "is a link-local address, which is never connected to" in said


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_a_redirect_leads_to_no_private_address_but_the_servers_own(source, git_server, host):
    git_server.push({"a.yaml": "1"})
    with silence() as (port, heard):

        def elsewhere(path, headers, _body):
            headers |= {"Status": "301", "Location": f"http://{host}:{port}/x.git{path[path.index('/info/refs') :]}"}
            return b""

        with front(git_server.url, meddle=elsewhere) as server:
            assert "is a private address, and the Sync states another host" in refusal(source(server.url).fetch)
        assert heard == []


def test_git_follows_no_redirect_by_itself(source, git_server, monkeypatch):
    monkeypatch.setattr(question, "_is_for_us", lambda _: False)
    git_server.push({"a.yaml": "1"})
    with silence() as (port, heard):

        def elsewhere(path, headers, _body):
            headers |= {"Status": "301", "Location": f"http://127.0.0.1:{port}/x.git/info/refs"}
            return b""

        with front(git_server.url, meddle=elsewhere) as server, pytest.raises(SourceError):
            source(server.url).fetch()
        assert heard == []


def test_a_repository_that_was_renamed_at_its_own_server_is_fetched_by_its_new_name(source, git_server):
    sha = git_server.push({"a.yaml": "1"})
    name = urlsplit(git_server.url).path

    def renamed(path, headers, body):
        if path.startswith("/was.git"):
            headers |= {"Status": "301", "Location": path.replace("/was.git", name)}
            return b""
        return body

    with front(git_server.url, meddle=renamed) as server:
        was = server.url.removesuffix(name) + "/was.git"
        followed = source(was)
        assert followed.revision().sha == sha
        assert [each[1] for each in followed.read_many(followed.revision().files.values())] == [b"1"]
