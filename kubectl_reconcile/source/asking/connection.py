"""One connection to a Git server over HTTP or HTTPS, each step of which ends when the time is up or nobody waits any more.

It blocks the thread that uses it, and no longer than it is given: whoever drips is left like whoever is silent. Names of hosts are
looked up in threads of their own, since that can't be ended. Certificates are always checked.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

from msgspec import Struct

from kubectl_reconcile.source.asking.packets import UnclearError
from kubectl_reconcile.source.destination import Destination, UnresolvedError
from kubectl_reconcile.source.running.ending import Ending

_ADDRESS_S: Final = 4.0
"""How long one address of a host is tried before the next, in seconds."""
_LOOK_S: Final = 0.1
_BUFFER: Final = 16 * 1024


class LateError(Exception):
    """The time is up."""


class UnreachableError(Exception):
    """Nobody answers there; the message is what git would say."""


class Server(Struct, frozen=True):
    """Where a server is, and which certificates it is trusted by: those in *ca_bundle* (PEM), else in *ca_file*, else the system's.

    Who asks it for several repositories does so on the same connections.
    """

    scheme: str
    host: str
    port: int
    ca_bundle: str = ""
    ca_file: str = ""

    @property
    def authority(self) -> str:
        """Return what the header ``Host`` says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{self.port}"


class HttpAnswer(Struct, frozen=True):
    """What a server answered; no more of the *body* than was asked for."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class GitConnection:
    """A connection to *server*, made with the first request, to an *address* that may be connected to. One thread at a time uses it, within a block of ``used``."""

    def __init__(self, server: Server, there: Destination) -> None:
        self.server, self._there = server, there
        self.address = ""
        self._socket: socket.socket | None = None
        self._waited = Ending()
        self._deadline_s = 0.0
        self._is_ended = False

    @property
    def is_open(self) -> bool:
        """Whether another request may be made on it: the last answer was read to its end, and nothing has come since."""
        if self._socket is None or self._is_ended:
            return False
        looker = select.poll()
        looker.register(self._socket, select.POLLIN)
        return not looker.poll(0)

    @contextmanager
    def used(self, waited: Ending, deadline_s: float) -> Iterator[None]:
        """Have all that is done within the block end at *deadline_s* (monotonic), or when what is *waited* for ends."""
        self._waited, self._deadline_s = waited, deadline_s
        with waited.around(self._hang_up):
            try:
                yield
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End it."""
        self._is_ended = True
        if self._socket is not None:
            self._socket.close()

    def ask(self, path: str, headers: Mapping[str, str], most_bytes: int, body: bytes | None = None) -> HttpAnswer:
        """Return what the server answers: to a GET, or with a *body* to a POST.

        Raises:
            SourceError: nobody waits any more (``ENDED``); it answers with more than *most_bytes*, or what isn't HTTP (``UnclearError``).
            LateError, UnreachableError, OSError: there is no answer.
        """
        if self._socket is None:
            self._connect()
        talk = http.client.HTTPConnection(self.server.host, self.server.port)
        talk.auto_open = 0
        talk.sock = cast("socket.socket", _Line(self))
        try:
            sent = {"Host": self.server.authority, "Accept-Encoding": "identity", **headers}
            talk.request("GET" if body is None else "POST", path, body, sent)
            with talk.getresponse() as answer:
                said = self._read(answer, most_bytes)
                if answer.will_close:
                    self.close()
                return HttpAnswer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, said)
        except TimeoutError:
            raise LateError from None
        except OSError:
            self._waited.check()
            raise
        except (http.client.HTTPException, ValueError) as error:
            self._waited.check()
            raise UnclearError(f"the server sends invalid HTTP: {error}") from None

    def timed(self) -> socket.socket:
        """Return the socket, for one step within the time that is left."""
        self._check()
        if self._socket is None:
            raise UnreachableError("the connection is closed")
        self._socket.settimeout(max(self._deadline_s - time.monotonic(), 0.001))
        return self._socket

    def _read(self, answer: http.client.HTTPResponse, most_bytes: int) -> bytes:
        said = answer.read(most_bytes + 1)
        if len(said) > most_bytes:
            raise UnclearError("the server sends more than was requested")
        if answer.length:
            raise UnclearError("the server's answer is incomplete")
        return said

    def _check(self) -> None:
        """Return if somebody still waits, and there is time."""
        self._waited.check()
        if time.monotonic() >= self._deadline_s:
            raise LateError

    def _hang_up(self) -> None:
        """Have whoever waits for the server wait no longer; from any thread."""
        self._is_ended = True
        if (current := self._socket) is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(current, socket.SHUT_RDWR)

    def _connect(self) -> None:
        context = context_for(self.server) if self.server.scheme == "https" else None
        addresses = self._addresses()
        for left, address in zip(reversed(range(len(addresses))), addresses, strict=True):
            try:
                self._connect_to(address, is_last=not left)
                break
            except OSError as error:
                self._check()
                if not left:
                    why = error.strerror or str(error)
                    raise UnreachableError(
                        f"Failed to connect to {self.server.host} port {self.server.port}: {why}"
                    ) from None
        if context is not None and self._socket is not None:
            self._socket = context.wrap_socket(
                self._socket, server_hostname=self.server.host, do_handshake_on_connect=False
            )
            try:
                cast("ssl.SSLSocket", self.timed()).do_handshake()
            except TimeoutError:
                raise LateError from None

    def _connect_to(self, address: str, *, is_last: bool) -> None:
        self._check()
        made = self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        left_s = max(self._deadline_s - time.monotonic(), 0.001)
        made.settimeout(left_s if is_last else min(left_s, _ADDRESS_S))
        try:
            made.connect((address, self.server.port))
        except OSError:
            made.close()
            raise
        self.address = address
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _addresses(self) -> tuple[str, ...]:
        found: list[str] = []
        failed: list[UnresolvedError] = []

        def look_up() -> None:
            try:
                found.extend(self._there.looked_up())
            except UnresolvedError as error:
                failed.append(error)

        looking = threading.Thread(target=look_up, name="name-of-host", daemon=True)
        looking.start()
        while looking.is_alive():
            self._check()
            looking.join(min(_LOOK_S, max(self._deadline_s - time.monotonic(), 0.001)))
        if failed:
            raise UnreachableError(str(failed[0]))
        return self._there.judged(found)


class _Line:
    """What http.client takes for a socket. It has no say in when the connection ends."""

    def __init__(self, connection: GitConnection) -> None:
        self._connection = connection

    def sendall(self, data: bytes) -> None:
        self._connection.timed().sendall(data)

    def makefile(self, *_: Any) -> IO[bytes]:
        return io.BufferedReader(_Incoming(self._connection), _BUFFER)

    def close(self) -> None:
        pass


class _Incoming(io.RawIOBase):
    """Reads from a connection."""

    def __init__(self, connection: GitConnection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._connection.timed().recv_into(buffer)


def context_for(server: Server) -> ssl.SSLContext:
    """Return what checks the certificate of *server* by those that it is trusted by, as they are now.

    Raises:
        UnclearError: they can't be read.
    """
    system = ssl.get_default_verify_paths()
    files = () if server.ca_bundle else (server.ca_file,) if server.ca_file else (system.cafile, system.capath)
    changed = tuple(Path(each).stat().st_mtime_ns for each in files if each and Path(each).exists())
    try:
        return _context(server.ca_bundle, server.ca_file, changed)
    except (OSError, ValueError):
        raise UnclearError("the given CA can't be read") from None


@functools.lru_cache(maxsize=64)
def _context(ca_bundle: str, ca_file: str, _changed: tuple[int, ...]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_bundle or None, cafile=ca_file or None)
    context.set_alpn_protocols(["http/1.1"])
    return context
