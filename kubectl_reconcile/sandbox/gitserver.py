"""A small real Git server: git's own ``http-backend`` behind Python's HTTP server.

Vocabulary: a *server* serves a folder of bare repositories over smart HTTP, to fetch from and to push to, on a
loopback port; a *repository* is one of them, with a short way to make commits in it.

The protocol is git's business: this file hands requests to ``git http-backend`` as CGI prescribes it, and adds what a
web server in front of it adds, a user and a password. Not for the network: no TLS, one process per request.
"""

from __future__ import annotations

import base64
import hmac
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import quote, unquote, urlsplit

from kubectl_reconcile.sandbox.processes import free_ports

_BLOCK = 64 * 1024
_TIMEOUT_S = 60.0
# No setting of the user or the machine; what hosts of repositories allow is allowed; everybody may push.
_SETTINGS = {
    "http.receivepack": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
    "safe.directory": "*",
    "gc.auto": "0",
}


@dataclass(frozen=True, slots=True)
class ServedRepository:
    """A bare repository, and where it is served."""

    folder: Path
    server: GitServer

    @property
    def url(self) -> str:
        """Where to clone it from. Holds no credentials."""
        return f"{self.server.url}/{quote(self.folder.name)}"

    def push(
        self,
        changes: Mapping[str, str | bytes | None],
        message: str = "Change",
        *,
        branch: str = "main",
        author: str = "Sandbox <sandbox@localhost>",
    ) -> str:
        """Add a commit to *branch* and return its SHA, as if somebody had pushed it.

        *changes* maps a file's path to its new content, or to None to delete it; all other files stay as they are.
        """
        ref = f"refs/heads/{branch}"
        who = f"{author} {int(time.time())} +0000"
        stream = [f"commit {ref}\nmark :1\nauthor {who}\ncommitter {who}\n".encode(), _data(message)]
        if self._exists(ref):
            stream.append(f"from {ref}^0\n".encode())
        for path, content in changes.items():
            name = '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
            if content is None:
                stream.append(f"D {name}\n".encode())
            else:
                stream += [f"M 100644 inline {name}\n".encode(), _data(content)]
        stream.append(b"get-mark :1\n")
        return self._git("fast-import", "--quiet", stdin=b"".join(stream))

    def sha(self, branch: str = "main") -> str:
        """Return the SHA of the commit that *branch* points at."""
        return self._git("rev-parse", "--verify", f"refs/heads/{branch}")

    def _exists(self, ref: str) -> bool:
        """Tell whether there is such a ref; git is asked only where no file tells it, for it is a process each time."""
        if (self.folder / ref).exists():
            return True
        packed = any((self.folder / name).exists() for name in ("packed-refs", "reftable"))
        return packed and bool(self._git("for-each-ref", ref))

    def _git(self, *arguments: str, stdin: bytes = b"") -> str:
        command = ["git", f"--git-dir={self.folder}", *arguments]
        answer = subprocess.run(command, input=stdin, capture_output=True, check=False, env=_environ())
        if answer.returncode:
            raise OSError(f"git {arguments[0]} in {self.folder}: {answer.stderr.decode(errors='replace').strip()}")
        return answer.stdout.decode().strip()


class GitServer:
    """A server of the bare repositories in *folder*, once started; a context manager that starts and stops it.

    With *username* and *password* it refuses everybody else. *config* are settings of git for those who fetch and push; they
    win over what is allowed otherwise. After :meth:`stop`, :meth:`start` serves the same folder on the same port again.
    """

    def __init__(
        self,
        folder: Path,
        *,
        username: str = "",
        password: str = "",
        port: int = 0,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._config = {**_SETTINGS, **(config or {})}
        self._credentials = base64.b64encode(f"{username}:{password}".encode()).decode() if username else ""
        self._port = port
        self._http: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._creating = threading.Lock()
        self._empty: dict[Path, bytes | None] = {}  # what an empty repository consists of: folders have no content

    @property
    def url(self) -> str:
        """The server's URL, without credentials and without a slash at the end."""
        return f"http://127.0.0.1:{self._port}"

    def create(self, name: str) -> ServedRepository:
        """Create the bare repository *name*, whose default branch will be ``main``: the first by git, all others like it."""
        folder = self.folder / f"{name}.git"
        with self._creating:
            if not self._empty:
                command = ["git", "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(folder)]
                subprocess.run(command, check=True, capture_output=True, env=_environ())
                self._empty = {each.relative_to(folder): _content(each) for each in sorted(folder.rglob("*"))}
                return ServedRepository(folder, self)
        folder.mkdir()
        for path, content in self._empty.items():
            if content is None:
                (folder / path).mkdir()
            else:
                (folder / path).write_bytes(content)
        return ServedRepository(folder, self)

    def start(self) -> Self:
        """Serve from now on, in threads of this process.

        Raises:
            OSError: the port is taken, or git has no ``http-backend``.
        """
        backend = Path(
            subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True).stdout.strip(),
            "git-http-backend",
        )
        if not os.access(backend, os.X_OK):
            raise OSError(f"{backend} is missing: install the whole of git (some systems split it)")
        self.folder.mkdir(parents=True, exist_ok=True)
        handler = partial(
            _GitHttpHandler,
            backend=backend,
            root=self.folder,
            credentials=self._credentials,
            environ=_environ(self._config),
        )
        self._http = self._listening(handler)
        self._port = self._http.server_port
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, name="git-server", daemon=True
        )
        self._thread.start()
        return self

    def _listening(self, handler: Callable[..., BaseHTTPRequestHandler]) -> _Server:
        """Return a listener on the port. Ports that no outgoing connection is given are tried first, so that it is still free after a stop."""
        for port in [self._port] if self._port else free_ports():
            try:
                return _Server(("127.0.0.1", port), handler)
            except OSError:  # of two who find it free one gets it
                if self._port:
                    raise
        return _Server(("127.0.0.1", 0), handler)

    def stop(self) -> None:
        """Stop to serve: new connections are refused from now on. Does nothing if it doesn't serve."""
        if self._http and self._thread:
            self._http.shutdown()
            self._thread.join()
            self._http.server_close()
        self._http = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing it waits for what is under way
    request_queue_size = 128


class _GitHttpHandler(BaseHTTPRequestHandler):
    """One connection, which is one request: the backend says nothing about the length of its answer."""

    protocol_version = "HTTP/1.1"  # git pushes anything big in chunks, which 1.0 doesn't know
    server_version = "sandbox-git"
    timeout = _TIMEOUT_S

    def __init__(
        self, *arguments: object, backend: Path, root: Path, credentials: str, environ: Mapping[str, str]
    ) -> None:
        self._environ = environ
        self._backend = backend
        self._root = root
        self._credentials = credentials
        super().__init__(*arguments)  # type: ignore[arg-type]  # what socketserver passes

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name for it
        """Say nothing: who talks to this server sees the same from the other side."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.close_connection = True
        if not self._is_welcome():
            self._refuse(HTTPStatus.UNAUTHORIZED)
            return
        with tempfile.TemporaryFile() as body:  # complete before git starts: it may answer before it has read all
            try:
                for block in self._body():
                    body.write(block)
            except ValueError:
                self._refuse(HTTPStatus.BAD_REQUEST)
                return
            length = body.tell()
            body.seek(0)
            self._run_backend(body, length)

    def _is_welcome(self) -> bool:
        if not self._credentials:
            return True
        scheme, _, credentials = self.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "basic" and hmac.compare_digest(credentials.strip(), self._credentials)

    def _refuse(self, status: HTTPStatus) -> None:
        self.send_response(status)
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()

    def _body(self) -> Iterator[bytes]:
        """Yield the request's body as it came, compressed or not, without the chunks' frames."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            yield from self._exactly(int(self.headers.get("Content-Length", "0")))
            return
        while size := int(self.rfile.readline(1024).partition(b";")[0], 16):
            yield from self._exactly(size)
            self.rfile.readline(1024)
        while self.rfile.readline(_BLOCK).strip():
            pass

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size > 0:
            block = self.rfile.read(min(size, _BLOCK))
            if not block:
                raise ValueError("the connection ended within the body")
            yield block
            size -= len(block)

    def _run_backend(self, body: IO[bytes], length: int) -> None:
        url = urlsplit(self.path)
        variables = {
            "GATEWAY_INTERFACE": "CGI/1.1",
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": str(self._root),
            "PATH_INFO": unquote(url.path),
            "QUERY_STRING": url.query,
            "REMOTE_ADDR": self.client_address[0],
            "REQUEST_METHOD": self.command,
            "SERVER_PROTOCOL": self.request_version,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        with subprocess.Popen(
            [self._backend],
            stdin=body,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**self._environ, **variables},
        ) as git:
            assert git.stdout is not None  # noqa: S101 - for the type checker: PIPE was asked for
            try:
                self._relay(git.stdout)
            except OSError:  # the client went away
                git.kill()

    def _relay(self, answer: IO[bytes]) -> None:
        headers = dict(_header_lines(answer))
        status = headers.pop("status", "200").split()[0]
        self.send_response(int(status))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        while block := answer.read1(_BLOCK) if hasattr(answer, "read1") else answer.read(_BLOCK):
            self.wfile.write(block)


def _header_lines(answer: IO[bytes]) -> Iterator[tuple[str, str]]:
    while line := answer.readline().decode("latin-1").strip():
        name, _, value = line.partition(":")
        yield name.lower(), value.strip()


def _environ(config: Mapping[str, str] = _SETTINGS) -> dict[str, str]:
    settings = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_COUNT": str(len(config))}
    for number, (key, value) in enumerate(config.items()):
        settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.devnull, **settings}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _data(content: str | bytes) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return b"data %d\n%b\n" % (len(content), content)
