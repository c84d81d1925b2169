"""Real registries of this machine, in which nothing lasts: the CNCF distribution, open, with passwords or with tokens, and one with the referrers API; and how they are pushed to.

``python -m tests.registry_server`` builds the program that is both.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.server
import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.core.resources.oci.manifest import OCI_INDEX, OCI_MANIFEST
from kubectl_reconcile.core.resources.oci.reference import OciRepository
from kubectl_reconcile.go_programs import GoProgram, Log
from tests.certificates import self_signed

_REGISTRY = GoProgram(
    "the registries that tests pull from",
    Path(__file__).parent / "registry",
    ("go.mod", "go.sum", "main.go"),
    "or leave the tests of registries out",
)
_FLAGS = ("-trimpath", "-ldflags", "-s -w")

USER, PASSWORD = "shop", "pa55word"
_HASHED = "$2b$04$abcdefghijklmnopqrstuupn6eahIV9Ml9lnlQtVt1Wes7/c.Zj26"
"""The password as htpasswd keeps it, at the least cost."""
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def build_registry(log: Log) -> Path:
    """Return the program, building it first if it isn't there: that takes a minute or two the first time.

    Raises:
        GoBuildError: it can't be built.
    """
    environ = {**os.environ, "CGO_ENABLED": "0"}
    return _REGISTRY.built(cache_dir() / "registry", _FLAGS, log, environ, name="registry") / "registry"


# --- pushing ----------------------------------------------------------------------------------------------------------

TAR_GZIP = "application/vnd.oci.image.layer.v1.tar+gzip"
FLUX_CONFIG = "application/vnd.cncf.flux.config.v1+json"
FLUX_LAYER = "application/vnd.cncf.flux.content.v1.tar+gzip"
EMPTY = "application/vnd.oci.empty.v1+json"


@dataclass(frozen=True)
class Layer:
    """A blob that a manifest lists."""

    data: bytes
    media_type: str = TAR_GZIP
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def file(cls, title: str, data: bytes, media_type: str = "application/vnd.oci.image.layer.v1.tar") -> Layer:
        """A file as ORAS pushes it, unless somebody says of which type it is."""
        return cls(data, media_type, {"org.opencontainers.image.title": title})

    def told(self) -> dict:
        more = {"annotations": dict(self.annotations)} if self.annotations else {}
        return {"mediaType": self.media_type, "digest": digest_of(self.data), "size": len(self.data), **more}


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass
class RunningRegistry:
    """A registry at *origin*, which may be asked with *ca*; whoever pushes shows *authorization*, a header for an action on a repository."""

    origin: str
    ca: str = ""
    authorization: object = None
    asked: list = field(default_factory=list)
    """Which scopes tokens were asked for, and with which header."""
    realm: str = ""
    """Where tokens are."""
    lists_referrers: bool = False

    @property
    def host(self) -> str:
        return urlsplit(self.origin).netloc

    def repository(self, name: str) -> OciRepository:
        return OciRepository(self.host, name, plain=self.origin.startswith("http:"))

    def push(
        self,
        name: str,
        tag: str,
        *layers: Layer,
        config: Layer = Layer(b"{}", EMPTY),
        annotations: Mapping[str, str] | None = None,
        **more: object,
    ) -> str:
        """Push an artifact and return the digest of its manifest."""
        for each in (config, *layers):
            self.push_blob(name, each.data)
        said = {
            "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config.told(), "layers": [each.told() for each in layers],
            **({"annotations": dict(annotations)} if annotations else {}), **more,
        }  # fmt: skip
        return self.push_manifest(name, tag, said)

    def push_index(self, name: str, tag: str, entries: Sequence[Mapping[str, object]]) -> str:
        """Push an index that lists these descriptors, and return its digest."""
        return self.push_manifest(name, tag, {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)})

    def push_manifest(self, name: str, tag: str, said: Mapping[str, object], media_type: str = "") -> str:
        data = json.dumps(said).encode()
        headers = {"Content-Type": media_type or str(said["mediaType"])}
        self._ask(name, f"/v2/{name}/manifests/{tag or digest_of(data)}", "PUT", data, headers)
        return digest_of(data)

    def push_blob(self, name: str, data: bytes) -> None:
        begun = self._ask(name, f"/v2/{name}/blobs/uploads/", "POST", b"")
        place = begun.headers["Location"].removeprefix(self.origin)
        asked = f"{place}{'&' if '?' in place else '?'}digest={digest_of(data)}"
        self._ask(name, asked, "PUT", data, {"Content-Type": "application/octet-stream"})

    def delete(self, name: str, digest: str) -> None:
        self._ask(name, f"/v2/{name}/manifests/{digest}", "DELETE")

    def _ask(self, name, path, method, data=None, headers=None):
        shown = {"Authorization": self.authorization(name)} if self.authorization else {}
        request = urllib.request.Request(f"{self.origin}{path}", data, {**(headers or {}), **shown}, method=method)  # noqa: S310 - our own
        context = ssl.create_default_context(cadata=self.ca) if self.ca else None
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:  # noqa: S310 - the same
            answer.read()
            return answer


# --- running ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_registry(program: Path, folder: Path) -> Iterator[RunningRegistry]:
    """A registry over plain http that lets everybody in."""
    with _served(program, folder, {}) as origin:
        yield RunningRegistry(origin)


@contextlib.contextmanager
def password_registry(program: Path, folder: Path) -> Iterator[RunningRegistry]:
    """A registry over https that wants a password with every request."""
    passwords = folder / "passwords"
    passwords.write_text(f"{USER}:{_HASHED}\n")
    certificate, more = _tls(folder)
    with _served(program, folder, {**more, "auth": {"htpasswd": {"realm": "test", "path": str(passwords)}}}) as origin:
        yield RunningRegistry(origin, certificate, lambda _: BASIC)


@contextlib.contextmanager
def token_registry(program: Path, folder: Path) -> Iterator[RunningRegistry]:
    """A registry over https that wants tokens of another server, which gives one for repositories below ``public/`` to everybody."""
    certificate, more = _tls(folder)
    signer = _Signer()
    (folder / "token.crt").write_text(signer.certificate)
    running = RunningRegistry("", certificate, lambda name: f"Bearer {signer.token(name, ('pull', 'push', 'delete'))}")
    with _token_server(signer, running.asked, folder / "both.pem") as realm:
        running.realm = realm
        token = {
            "realm": realm, "service": "tests", "issuer": "tests", "rootcertbundle": str(folder / "token.crt"), "signingalgorithms": ["ES256"],
        }  # fmt: skip
        with _served(program, folder, {**more, "auth": {"token": token}}) as running.origin:
            yield running


@contextlib.contextmanager
def referrers_registry(program: Path) -> Iterator[RunningRegistry]:
    """A registry over plain http that lists what refers to a manifest."""
    port = _free_port()
    with _process([program, "referrers", f"127.0.0.1:{port}"], port):
        yield RunningRegistry(f"http://127.0.0.1:{port}", lists_referrers=True)


def _tls(folder: Path) -> tuple[str, dict]:
    certificate, key = self_signed()
    (folder / "tls.crt").write_text(certificate)
    (folder / "tls.key").write_text(key)
    (folder / "both.pem").write_text(certificate + key)
    return certificate, {"tls": {"certificate": str(folder / "tls.crt"), "key": str(folder / "tls.key")}}


@contextlib.contextmanager
def _served(program: Path, folder: Path, more: Mapping[str, object]) -> Iterator[str]:
    port = _free_port()
    tls = {"tls": more["tls"]} if "tls" in more else {}
    said = {
        "version": 0.1, "log": {"level": "error", "accesslog": {"disabled": True}}, "storage": {"inmemory": {}, "delete": {"enabled": True}},
        "http": {"addr": f"127.0.0.1:{port}", "secret": secrets.token_hex(8), **tls}, **({"auth": more["auth"]} if "auth" in more else {}),
    }  # fmt: skip
    (folder / "registry.yml").write_text(yaml.safe_dump(said))
    with _process([program, "serve", folder / "registry.yml"], port):
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"


@contextlib.contextmanager
def _process(command: Sequence[object], port: int) -> Iterator[None]:
    environ = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    with subprocess.Popen(
        list(map(str, command)), env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _answers(process, port)
            yield
        finally:
            process.kill()


def _answers(process: subprocess.Popen, port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.02)
    raise AssertionError(f"the registry isn't there (exit status {process.poll()})")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


# --- tokens -----------------------------------------------------------------------------------------------------------


class _Signer:
    """Signs tokens as the registry wants them (JWT, ES256)."""

    def __init__(self) -> None:
        self.certificate, key = self_signed()
        self._key = serialization.load_pem_private_key(key.encode(), None)
        der = x509.load_pem_x509_certificate(self.certificate.encode()).public_bytes(serialization.Encoding.DER)
        self._head = _coded({"alg": "ES256", "typ": "JWT", "x5c": [base64.b64encode(der).decode()]})

    def token(self, name: str, actions: Sequence[str]) -> str:
        now = int(time.time())
        access = [{"type": "repository", "name": name, "actions": list(actions)}] if actions else []
        said = {
            "iss": "tests", "sub": USER, "aud": "tests", "exp": now + 300, "nbf": now - 10, "iat": now, "jti": secrets.token_hex(8), "access": access,
        }  # fmt: skip
        text = f"{self._head}.{_coded(said)}"
        r, s = utils.decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_base64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _coded(said: Mapping[str, object]) -> str:
    return _base64(json.dumps(said).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@contextlib.contextmanager
def _token_server(signer: _Signer, asked: list, certificate: Path) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = parse_qs(urlsplit(self.path).query)
            scope, shown = said.get("scope", [""])[0], self.headers.get("Authorization")
            asked.append((scope, shown))
            if shown not in {None, BASIC}:
                self.send_error(401)
                return
            name = scope.removeprefix("repository:").rpartition(":")[0]
            actions = ("pull",) if shown or name.startswith("public/") else ()
            answer = json.dumps({"token": signer.token(name, actions), "expires_in": 300}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}/token"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    print(build_registry(lambda line: print(line, file=sys.stderr)))  # noqa: T201 - it talks on the terminal
