"""What the one client of HTTP promises to whoever is written on it, against real servers of this machine."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import re
import socket
import threading
import time
from functools import partial
from urllib.parse import urlencode, urlsplit

import pytest

from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.http.client import HttpClient, Redirects
from kubectl_reconcile.source.http.errors import HttpError, HttpFault
from kubectl_reconcile.source.remote import Credentials
from tests.certificates import self_signed
from tests.chart_server import serving
from tests.rendering_tools import silence

BASIC = Credentials(username="shop", password="pa55word")
SHOWN = "Basic " + base64.b64encode(b"shop:pa55word").decode()


def soon() -> float:
    return time.monotonic() + 60


def answering(status, body=b"", **headers):
    """A page that answers so to whoever asks for it."""

    def page(handler):
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return page


def refusal(action) -> HttpError:
    with pytest.raises(HttpError) as caught:
        action()
    return caught.value


# --- what a registry is asked, on a page ----------------------------------------------------------------------


def pulled(repository, reference, credentials=Credentials(), may=None):  # noqa: B008 - it is frozen
    """The blobs of an image of a registry, each held to its digest: challenge, token, manifest, blobs."""
    server = "{0.scheme}://{0.netloc}".format(urlsplit(repository))

    def challenged(answer):
        said = dict(re.findall(r'(\w+)="([^"]*)"', answer.headers["www-authenticate"]))
        realm = f"{said.pop('realm')}?{urlencode(said)}"
        shown = credentials if realm.startswith(f"{server}/") else Credentials()
        token = HttpClient(realm, shown, may).ask(realm, 10_000, soon())
        return {"Authorization": f"Bearer {json.loads(token.body)['token']}"}

    client = HttpClient(repository, may=may, redirects=Redirects.BARE, challenged=challenged)
    base = repository.replace(server, f"{server}/v2")
    manifest = client.ask(f"{base}/manifests/{reference}", 4_000_000, soon())
    for layer in json.loads(manifest.body)["layers"]:
        blob = client.ask(f"{base}/blobs/{layer['digest']}", 16_000_000, soon()).body
        assert f"sha256:{hashlib.sha256(blob).hexdigest()}" == layer["digest"]
        yield blob


def test_a_registry_is_asked_in_a_page_of_code():
    blob = b"a chart"
    digest = f"sha256:{hashlib.sha256(blob).hexdigest()}"
    with serving({f"/store/{digest}": blob}) as (store, stored):

        def for_who_has_a_token(page, handler):
            if handler.headers.get("Authorization") == "Bearer t0ken":
                return page(handler)
            realm = f'Bearer realm="http://{handler.headers["Host"]}/token",service="here",scope="pull"'
            return answering(401, WWW_Authenticate=realm)(handler)

        manifest = answering(200, json.dumps({"layers": [{"digest": digest}]}).encode())
        elsewhere = answering(307, Location=f"{store}/store/{digest}")
        pages = {
            "/token?service=here&scope=pull": json.dumps({"token": "t0ken"}).encode(),
            "/v2/shop/manifests/1.2": partial(for_who_has_a_token, manifest),
            f"/v2/shop/blobs/{digest}": partial(for_who_has_a_token, elsewhere),
        }
        with serving(pages) as (url, asked):
            assert list(pulled(f"{url}/shop", "1.2", BASIC)) == [blob]
    tokens = [shown for path, shown in asked if path.startswith("/token")]
    assert tokens == [SHOWN, SHOWN]
    assert {shown for path, shown in asked if not path.startswith("/token")} == {None, "Bearer t0ken"}
    assert stored == [(f"/store/{digest}", None)], "who stores the blobs isn't told who we are"


# --- who is told who we are -----------------------------------------------------------------------------------


def test_a_challenge_of_another_server_is_not_answered():
    asked_for = []
    with serving({"/x": answering(401)}) as (other, _), serving({"/a": f"{other}/x"}) as (url, _):
        client = HttpClient(url, redirects=Redirects.BARE, challenged=lambda answer: asked_for.append(answer) or {})
        assert client.ask(f"{url}/a", 100, soon()).status == 401
    assert asked_for == []


@pytest.mark.parametrize("name", ["Authorization", "authorization", "Cookie"])
def test_a_header_that_says_who_we_are_goes_to_no_other_server(name):
    heard = []

    def page(handler):
        heard.append((handler.headers.get(name), handler.headers.get("Accept")))
        answering(200)(handler)

    with serving({"/x": page}) as (other, _), serving({"/a": f"{other}/x"}) as (url, _):
        client = HttpClient(url, redirects=Redirects.BARE)
        assert client.ask(f"{url}/a", 100, soon(), {name: "secret", "Accept": "it"}).url == f"{other}/x"
    assert heard == [(None, "it")]


def test_what_is_sent_is_never_sent_on():
    with silence() as (port, heard):
        with posting({"/a": answering(307, Location=f"http://127.0.0.1:{port}/x")}) as url:
            answer = HttpClient(url, redirects=Redirects.BARE).ask(f"{url}/a", 100, soon(), body=b"said")
        assert answer.status == 307
        assert heard == []


@contextlib.contextmanager
def posting(pages):
    """A server that takes POST and keeps connections."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            pages[self.path](self)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# --- answers ---------------------------------------------------------------------------------------------------


def test_a_conditional_request_is_answered_by_whether_anything_changed():
    def page(handler):
        if handler.headers.get("If-None-Match") == '"v1"':
            return answering(304)(handler)
        return answering(200, b"first", ETag='"v1"')(handler)

    with serving({"/index": page}) as (url, _):
        client = HttpClient(url)
        first = client.ask(f"{url}/index", 100, soon())
        again = client.ask(f"{url}/index", 100, soon(), {"If-None-Match": first.headers["etag"]})
    assert (first.status, first.body, again.status, again.body) == (200, b"first", 304, b"")


def test_headers_alone_are_asked_for_on_a_connection_that_is_kept():
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            asked.append((self.command, self.client_address))
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.send_header("ETag", '"v1"')
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/index"
        answers = [HttpClient(url).ask(url, 0, soon(), head=True) for _ in range(2)]
        server.shutdown()
    assert [(each.status, each.headers["etag"], each.body) for each in answers] == [(200, '"v1"', b"")] * 2
    assert asked == [("HEAD", asked[0][1])] * 2


def test_a_header_that_comes_twice_is_a_list():
    def page(handler):
        handler.send_response(401)
        for each in ('Basic realm="a"', 'Bearer realm="b"'):
            handler.send_header("WWW-Authenticate", each)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with serving({"/x": page}) as (url, _):
        answer = HttpClient(url).ask(f"{url}/x", 100, soon())
    assert answer.headers["www-authenticate"] == 'Basic realm="a", Bearer realm="b"'


def test_an_answer_of_just_so_many_bytes_is_whole_and_one_more_is_too_much():
    with serving({"/x": b"12345"}) as (url, _):
        assert HttpClient(url).ask(f"{url}/x", 5, soon()).body == b"12345"
        error = refusal(lambda: HttpClient(url).ask(f"{url}/x", 4, soon()))
    assert (error.what, error.fault) == (HttpFault.TOO_MUCH, SourceFault.REFUSED)
    assert str(error) == f"{url}/x: the answer has more than 4 bytes"


def test_no_error_shows_a_query_or_a_user():
    with serving({}) as (url, _):
        asked = f"{url}/x?signature=s3cret"
        late = refusal(lambda: HttpClient(url).ask(asked, 100, time.monotonic()))
        user = refusal(lambda: HttpClient(url).ask(asked.replace("//", "//me:s3cret@"), 100, soon()))
    assert str(late) == f"{url}/x: it takes too long to answer"
    assert "s3cret" not in f"{late}{user}"


def test_a_query_names_no_other_place_than_the_policy_allows():
    with serving({"/ours/x?of=1": b"it"}) as (url, _):
        client = HttpClient(f"{url}/ours", may=UrlPolicy.of([f"{url}/ours"]))
        assert client.ask(f"{url}/ours/x?of=1", 100, soon()).body == b"it"
        assert refusal(lambda: client.ask(f"{url}/theirs?x=/ours/x", 100, soon())).what is HttpFault.NOT_FOLLOWED


def test_what_is_allowed_instead_is_said_whole():
    prefixes = [f"https://git.example.com/{name}/{'x' * 60}" for name in ("ours", "theirs", "of-all")]
    client = HttpClient(prefixes[0], may=UrlPolicy.of(prefixes))
    said = str(refusal(lambda: client.ask("https://elsewhere.example.com/x", 100, soon())))
    assert all(prefix in said for prefix in prefixes)


# --- behind a proxy --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def proxying(status=200):
    """A proxy of HTTP that passes on what it is asked for; yields its address and the first line and authorization of each request."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_CONNECT(self):
            asked.append((self.requestline, self.headers.get("Proxy-Authorization")))
            self.send_response(status)
            self.end_headers()
            if status != 200:
                return
            host, port = self.path.rsplit(":", 1)
            with socket.create_connection((host, int(port))) as there:
                back = threading.Thread(target=pass_on, args=(there, self.connection), daemon=True)
                back.start()
                pass_on(self.connection, there)
                back.join(60)

        def do_GET(self):
            asked.append((self.requestline, self.headers.get("Proxy-Authorization")))
            answering(200, b"by the proxy")(self)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", asked
        server.shutdown()


def pass_on(one, other):
    with contextlib.suppress(OSError):
        while said := one.recv(65536):
            other.sendall(said)
        other.shutdown(socket.SHUT_WR)


def test_a_server_that_speaks_no_tls_is_said_to_do_so():
    with serving({"/x": b"it"}) as (url, asked):
        secure = url.replace("http:", "https:")
        error = refusal(lambda: HttpClient(secure).ask(f"{secure}/x", 100, soon()))
        assert str(error).startswith(f"{secure}/x: the server doesn't speak TLS")
        assert "are never asked over http" in error.hint
        assert asked == []


@pytest.fixture
def certificate(tmp_path):
    """A certificate of this machine, and the file with its key."""
    text, key = self_signed()
    (tmp_path / "both.pem").write_text(text + key)
    return text, tmp_path / "both.pem"


def test_a_proxy_connects_and_hears_nothing_of_what_is_said_by_tls(certificate, monkeypatch):
    with proxying() as (proxy, asked), serving({"/x": b"it"}, SHOWN, certificate[1]) as (url, _):
        monkeypatch.setenv("https_proxy", f"http://me:word@{proxy}")
        mine = Credentials(username="shop", password="pa55word", ca_bundle=certificate[0])
        assert HttpClient(url, mine).ask(f"{url}/x", 100, soon()).body == b"it"
        untrusted = refusal(lambda: HttpClient(url, BASIC).ask(f"{url}/x", 100, soon()))
    place = url.removeprefix("https://")
    assert asked == [(f"CONNECT {place} HTTP/1.1", "Basic " + base64.b64encode(b"me:word").decode())] * 2
    assert untrusted.fault is SourceFault.UNTRUSTED


def test_a_proxy_is_handed_what_is_asked_by_plain_http(monkeypatch):
    with proxying() as (proxy, asked):
        monkeypatch.setenv("http_proxy", proxy)
        url = "http://charts.invalid/x?y=1"
        assert HttpClient(url).ask(url, 100, soon()).body == b"by the proxy"
        monkeypatch.setenv("no_proxy", "invalid")
        assert refusal(lambda: HttpClient(url).ask(url, 100, soon())).what is HttpFault.UNREACHABLE
    assert asked == [("GET http://charts.invalid/x?y=1 HTTP/1.1", None)]


def test_a_proxy_is_no_way_to_an_address_that_is_not_allowed(monkeypatch):
    with proxying() as (proxy, asked), serving({"/x": b"it"}) as (url, _):
        monkeypatch.setenv("http_proxy", proxy)
        client = HttpClient("http://stated.invalid/", may=UrlPolicy())
        with pytest.raises(SourceError, match="is a private address, and the Sync states another host"):
            client.ask(f"{url}/x", 100, soon())
    assert asked == []


REFUSED_PROXIES = {
    "one that refuses": ("http://{proxy}", "the proxy answers 407"),
    "one of another kind": ("socks5://{proxy}", "isn't one of HTTP"),
    "one that is no address": ("http://[x", "isn't one of HTTP"),
}


@pytest.mark.parametrize(("named", "said"), REFUSED_PROXIES.values(), ids=REFUSED_PROXIES)
def test_where_the_proxy_does_not_connect_nobody_is_asked(monkeypatch, named, said):
    with proxying(407) as (proxy, _), silence() as (port, heard):
        monkeypatch.setenv("all_proxy", named.format(proxy=proxy))
        error = refusal(lambda: HttpClient(f"https://127.0.0.1:{port}").ask(f"https://127.0.0.1:{port}/x", 100, soon()))
        assert (error.what, said in str(error)) == (HttpFault.UNREACHABLE, True)
        assert heard == []
