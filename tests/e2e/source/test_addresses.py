"""Where a Git server may be, and where it may lead: judged by addresses, as they are connected to, by us and by git."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit, urlunsplit

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.resources.url_policy import UrlPolicy, networks_around
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.asking import question
from kubectl_reconcile.source.git.source import Credentials, GitSource, Ref, Repository
from kubectl_reconcile.source.remote import _MOST_MOVED, _Moved
from tests.e2e.ssh_host import private
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
@pytest.mark.parametrize("behind", [False, True], ids=["", "behind a proxy"])
@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "http://metadata.example/x", "ssh://git@metadata.example/x"]
)
def test_where_clouds_keep_credentials_nobody_is_asked_whatever_the_name(tmp_path, monkeypatch, url, behind):
    looked_up = socket.getaddrinfo

    def answered(host, port, *arguments, **options):
        return looked_up("169.254.169.254" if host == "metadata.example" else host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", answered)
    if behind:
        monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    repository = replace(Repository.of(url, user_config=url.startswith("ssh")), may=UrlPolicy())
    said = refusal(GitSource(repository, MAIN, cache_dir=tmp_path / "cache").fetch)
    assert "is a link-local address, which is never connected to" in said


NAMED = "git.example"


@pytest.fixture
def names(monkeypatch):
    """Where names lead, for us alone: whoever looks them up by themselves finds nothing."""
    known, looked_up = {NAMED: ["127.0.0.1"]}, socket.getaddrinfo

    def answered(host, port, *arguments, **options):
        places = known.get(host, [host])
        if not places:
            raise socket.gaierror(socket.EAI_AGAIN, "try again")
        return [found for each in places for found in looked_up(each, port, *arguments, **options)]

    monkeypatch.setattr(socket, "getaddrinfo", answered)
    return known


@pytest.mark.usefixtures("by", "names")
def test_what_is_connected_to_is_the_address_that_was_judged(source, git_server):
    sha = git_server.push({"a.yaml": "1"})
    followed = source(git_server.url.replace("127.0.0.1", NAMED))
    assert followed.fetch() == sha
    assert followed.revision().files.keys() == {"a.yaml"}


def test_ssh_connects_to_the_address_that_was_judged_and_knows_the_host_by_its_name(
    git_server, ssh_host, tmp_path, monkeypatch, names
):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    sha = git_server.push({"a.yaml": "1"})
    url = f"ssh://git@{NAMED}:{ssh_host.port}{git_server.folder}"
    names[NAMED] = ["127.0.0.3", "127.0.0.1"]  # where nobody answers, and where somebody does
    keys = {"ssh_private_key": private(ssh_host.client_key)}
    known = Credentials(known_hosts=ssh_host.known_hosts.replace("127.0.0.1", NAMED), **keys)
    repository = replace(Repository.of(url, known), may=UrlPolicy())
    assert GitSource(repository, MAIN, cache_dir=tmp_path / "cache").fetch() == sha
    other = Credentials(known_hosts=ssh_host.known_hosts.replace("127.0.0.1", "other.example"), **keys)
    with pytest.raises(SourceError) as untrusted:
        GitSource(replace(repository, credentials=other), MAIN, cache_dir=tmp_path / "cache").fetch()
    assert untrusted.value.fault is SourceFault.UNTRUSTED


@pytest.mark.parametrize("scheme", ["http", "ssh"])
def test_where_no_address_is_found_nobody_is_connected_to(tmp_path, names, gits, monkeypatch, scheme):
    """Git would look the name up again, and might find another address than anybody judged."""
    monkeypatch.setattr(question, "_is_for_us", lambda _: False)
    names[NAMED] = []
    repository = replace(Repository.of(f"{scheme}://git@{NAMED}/x.git", user_config=True), may=UrlPolicy())
    gits()
    with pytest.raises(SourceError) as raised:
        GitSource(repository, MAIN, cache_dir=tmp_path / "cache").fetch()
    assert raised.value.fault is SourceFault.UNREACHABLE
    assert f"Could not resolve host: {NAMED}" in str(raised.value)
    assert gits() == 0


@pytest.mark.parametrize("authority", ["{there}?@stated.example", "{there}#@stated.example"])
@pytest.mark.usefixtures("by")
def test_a_url_whose_host_can_be_read_in_two_ways_is_refused(source, authority):
    with silence() as (port, heard):
        with pytest.raises(SourceError) as raised:
            source(f"http://{authority.format(there=f'127.0.0.1:{port}')}/x.git").fetch()
        assert raised.value.fault is SourceFault.REFUSED
        assert heard == []


@pytest.mark.parametrize("direct", ["127.0.0.0/8", "127.0.0.1:{port}", " 127.0.0.1 "])
def test_whether_there_is_a_proxy_isnt_for_git_to_find_out(source, git_server, monkeypatch, direct):
    """It may read ``no_proxy`` in more ways than we do, and would connect to an address that nobody has given it."""
    sha, port = git_server.push({"a.yaml": "1"}), urlsplit(git_server.url).port
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", direct.format(port=port))
    if direct.strip() == "127.0.0.1":
        assert source(git_server.url).fetch() == sha
    else:
        with pytest.raises(SourceError) as raised:
            source(git_server.url).fetch()
        assert "port 9" in str(raised.value)


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


def test_where_a_server_sends_some_nobody_else_is_sent(git_server):
    mine = Repository.of(git_server.url)
    other = Repository.of(git_server.url, Credentials(bearer_token="other"))
    moved = _Moved()
    moved.note(mine, "http://elsewhere/x.git")
    assert (moved.of(mine), moved.of(other)) == ("http://elsewhere/x.git", git_server.url)
    for number in range(_MOST_MOVED - 1):
        moved.note(Repository.of(f"http://host/{number}"), "http://elsewhere/x.git")
    assert moved.of(mine) == "http://elsewhere/x.git"
    moved.note(other, "http://elsewhere/y.git")
    assert (moved.of(mine), moved.of(other)) == (git_server.url, "http://elsewhere/y.git")
    moved.note(other, git_server.url)
    assert moved.of(other) == git_server.url


@pytest.mark.parametrize("may", [None, UrlPolicy()], ids=["by a person", "by a daemon"])
def test_repositories_of_one_server_are_asked_on_one_connection(git_host, tmp_path, may):
    made = [git_host.create(f"one-of-{number}-{may is None}") for number in range(3)]
    shas = [each.push({"a.yaml": str(number)}) for number, each in enumerate(made)]
    with front(made[0].url) as server:
        for each, sha in zip(made, shas, strict=True):
            url = urlunsplit(urlsplit(server.url)._replace(path=urlsplit(each.url).path))
            repository = replace(Repository.of(url), may=may)
            assert GitSource(repository, MAIN, cache_dir=tmp_path / "cache").remote_sha() == sha
        assert server.connections == 1


def test_a_connection_that_others_have_made_is_used_by_nobody_who_may_not_go_there(git_server, tmp_path):
    sha = git_server.push({"a.yaml": "1"})
    with front(git_server.url) as server:
        for may in (UrlPolicy.of([server.url], IN_CLUSTER.inside), IN_CLUSTER):
            source = GitSource(replace(Repository.of(server.url), may=may), MAIN, cache_dir=tmp_path / "cache")
            if may is IN_CLUSTER:
                assert "is an address within the cluster" in refusal(source.remote_sha)
            else:
                assert source.remote_sha() == sha
        assert server.connections == 1
