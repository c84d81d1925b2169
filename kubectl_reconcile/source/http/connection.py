"""One connection to a server over HTTP or HTTPS, each step of which ends when the time is up or nobody waits any more.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast
from urllib.parse import quote, urlsplit

from msgspec import Struct

from kubectl_reconcile.source.destination import Destination, UnresolvedError, addresses_of
from kubectl_reconcile.source.http.errors import HttpError, HttpFault
from kubectl_reconcile.source.http.proxies import HttpProxy
from kubectl_reconcile.source.limits import MEBIBYTE
from kubectl_reconcile.source.running.ending import Ending

_ADDRESS_S: Final = 4.0
"""How long one address of a host is tried before the next, in seconds."""
_LOOK_S: Final = 0.1
_BUFFER: Final = 16 * 1024
_PIECE: Final = 64 * 1024
_LATE: Final = "it takes too long to answer"
_NO_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL"}
)
"""What OpenSSL calls an answer over http, by its version."""


class Server(Struct, frozen=True):
    """Where a server is, which certificates it is trusted by, those in *ca_bundle* (PEM), else in *ca_file*, else the system's, and the *proxy* before it, if any.

    Who asks it for several repositories does so on the same connections.
    """

    scheme: str
    host: str
    port: int
    ca_bundle: str = ""
    ca_file: str = ""
    proxy: HttpProxy | None = None

    @property
    def authority(self) -> str:
        """Return what the header ``Host`` says."""
        host, port = self.place.rsplit(":", 1)
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{port}"

    @property
    def place(self) -> str:
        """Return the host and the port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HttpAnswer(Struct, frozen=True):
    """What a server answered at *url*; names of headers are in small letters."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpConnection:
    """A connection to *server*, made with the first request, to an *address* that may be connected to (that of a proxy counts as none). One thread at a time uses it, within a block of ``used``."""

    def __init__(self, server: Server, there: Destination) -> None:
        self.server, self._there = server, there
        self.address = ""
        self._url = ""
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

    def ask(
        self, method: str, url: str, headers: Mapping[str, str], most_bytes: int, body: bytes | None = None
    ) -> HttpAnswer:
        """Return what the server answers to *method* for *url*, with a *body* or without one.

        Raises:
            SourceError: nobody waits any more (``ENDED``), or the host has no address that may be connected to (``REFUSED``).
            HttpError: it answers with more than *most_bytes*, or what isn't HTTP; or there is no answer.
            ConnectionError: it hung up.
        """
        self._url = url
        try:
            if self._socket is None:
                self._connect()
            talk = self._talk()
            talk.request(method, self._target(url), body, self._sent(headers))
            with talk.getresponse() as answer:
                said = self._read(answer, most_bytes)
                if answer.will_close:
                    self.close()
                return HttpAnswer(url, answer.status, _by_name(answer.getheaders()), said)
        except TimeoutError:
            raise self._failed(HttpFault.LATE, _LATE) from None
        except UnresolvedError as error:
            raise self._failed(HttpFault.UNREACHABLE, str(error)) from None
        except ssl.SSLCertVerificationError as error:
            hint = "give its ca.crt in the Secret, or correct its certificate"
            raise HttpError(HttpFault.UNTRUSTED, url, error.verify_message, hint, error.verify_code) from None
        except ConnectionError:
            self._waited.check()
            raise
        except OSError as error:
            self._waited.check()
            if isinstance(error, ssl.SSLError) and error.reason in _NO_TLS:
                hint = "registries, and what is stated with https, are never asked over http: give the server a certificate"
                raise HttpError(HttpFault.BROKEN, url, "the server doesn't speak TLS", hint) from None
            raise self._failed(HttpFault.BROKEN, str(error) or type(error).__name__) from None
        except (http.client.HTTPException, ValueError) as error:
            self._waited.check()
            raise self._failed(HttpFault.UNCLEAR, f"the server sends invalid HTTP: {error}") from None

    def timed(self) -> socket.socket:
        """Return the socket, for one step within the time that is left."""
        self._check()
        if self._socket is None:
            raise self._failed(HttpFault.BROKEN, "the connection is closed")
        self._socket.settimeout(max(self._deadline_s - time.monotonic(), 0.001))
        return self._socket

    def _talk(self) -> http.client.HTTPConnection:
        talk = http.client.HTTPConnection(self.server.host, self.server.port)
        talk.auto_open = 0
        talk.sock = cast("socket.socket", _Line(self))
        return talk

    def _target(self, url: str) -> str:
        """Return what a request names: the path and the query; a proxy that forwards requests needs all of it."""
        parts = urlsplit(url)
        path = quote(parts.path or "/", safe="/%:@+~!$&'()*,;=-._")
        query = f"?{quote(parts.query, safe='=&%:@/?+,;-._~')}" if parts.query else ""
        there = f"http://{self.server.authority}" if self.server.proxy and self.server.scheme == "http" else ""
        return f"{there}{path}{query}"

    def _sent(self, headers: Mapping[str, str]) -> dict[str, str]:
        forwarded = self._to_proxy() if self.server.scheme == "http" else {}
        return {"Host": self.server.authority, "Accept-Encoding": "identity", **forwarded, **headers}

    def _to_proxy(self) -> dict[str, str]:
        proxy = self.server.proxy
        return {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization else {}

    def _read(self, answer: http.client.HTTPResponse, most_bytes: int) -> bytes:
        pieces, total = [], 0
        while piece := answer.read(_PIECE):
            total += len(piece)
            if total > most_bytes:
                shown = f"{most_bytes // MEBIBYTE} MiB" if most_bytes >= MEBIBYTE else f"{most_bytes} bytes"
                raise self._failed(HttpFault.TOO_MUCH, f"the answer has more than {shown}")
            pieces.append(piece)
        if answer.length:
            raise self._failed(HttpFault.UNCLEAR, "the answer is incomplete")
        return b"".join(pieces)

    def _failed(self, what: HttpFault, why: str) -> HttpError:
        return HttpError(what, self._url, why)

    def _check(self) -> None:
        """Return if somebody still waits, and there is time."""
        self._waited.check()
        if time.monotonic() >= self._deadline_s:
            raise self._failed(HttpFault.LATE, _LATE)

    def _hang_up(self) -> None:
        """Have whoever waits for the server wait no longer; from any thread."""
        self._is_ended = True
        if (current := self._socket) is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(current, socket.SHUT_RDWR)

    def _connect(self) -> None:
        """Connect to the server, or to the proxy before it, and shake hands with the server where it speaks TLS.

        Behind a proxy it is the proxy that connects; what is known of the server is judged anyway.
        """
        context = self._context() if self.server.scheme == "https" else None
        proxy = self.server.proxy
        if proxy is None:
            self._reach(self.server.host, self.server.port, self._there.judged(self._looked_up(self._there.looked_up)))
        else:
            with contextlib.suppress(UnresolvedError):
                self._there.judged(self._looked_up(self._there.looked_up))
            self._reach(proxy.host, proxy.port, self._looked_up(lambda: addresses_of(proxy.host, proxy.port)))
            self.address = ""
            if context is not None:
                self._tunnel()
        if context is not None and self._socket is not None:
            self._socket = context.wrap_socket(
                self._socket, server_hostname=self.server.host, do_handshake_on_connect=False
            )
            cast("ssl.SSLSocket", self.timed()).do_handshake()

    def _context(self) -> ssl.SSLContext:
        try:
            return context_for(self.server)
        except (OSError, ValueError):
            raise self._failed(HttpFault.UNTRUSTED, "the given CA can't be read") from None

    def _reach(self, host: str, port: int, addresses: Sequence[str]) -> None:
        for left, address in zip(reversed(range(len(addresses))), addresses, strict=True):
            try:
                self._connect_to(address, port, is_last=not left)
                break
            except OSError as error:
                self._check()
                if not left:
                    why = error.strerror or str(error)
                    raise self._failed(
                        HttpFault.UNREACHABLE, f"Failed to connect to {host} port {port}: {why}"
                    ) from None

    def _tunnel(self) -> None:
        """Have the proxy connect to the server, and pass on whatever is said from then on."""
        talk = self._talk()
        talk.request("CONNECT", self.server.place, headers={"Host": self.server.place, **self._to_proxy()})
        answer = talk.getresponse()  # what follows is the server's, and nothing of it is there before we have spoken
        if answer.status != 200:
            raise self._failed(HttpFault.UNREACHABLE, f"the proxy answers {answer.status}")

    def _connect_to(self, address: str, port: int, *, is_last: bool) -> None:
        self._check()
        made = self._socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        left_s = max(self._deadline_s - time.monotonic(), 0.001)
        made.settimeout(left_s if is_last else min(left_s, _ADDRESS_S))
        try:
            made.connect((address, port))
        except OSError:
            made.close()
            raise
        self.address = address
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _looked_up(self, looking_up: Callable[[], Iterable[str]]) -> tuple[str, ...]:
        found: list[str] = []
        failed: list[UnresolvedError] = []

        def look_up() -> None:
            try:
                found.extend(looking_up())
            except UnresolvedError as error:
                failed.append(error)

        looking = threading.Thread(target=look_up, name="name-of-host", daemon=True)
        looking.start()
        while looking.is_alive():
            self._check()
            looking.join(min(_LOOK_S, max(self._deadline_s - time.monotonic(), 0.001)))
        if failed:
            raise failed[0]
        return tuple(found)


class _Line:
    """What http.client takes for a socket. It has no say in when the connection ends."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def sendall(self, data: bytes) -> None:
        self._connection.timed().sendall(data)

    def makefile(self, *_: Any) -> IO[bytes]:
        return io.BufferedReader(_Incoming(self._connection), _BUFFER)

    def close(self) -> None:
        pass


class _Incoming(io.RawIOBase):
    """Reads from a connection."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._connection.timed().recv_into(buffer)


def _by_name(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by their names; one that is there several times is a list (RFC 9110)."""
    found: dict[str, str] = {}
    for name, value in headers:
        found[name.lower()] = f"{found[name.lower()]}, {value}" if name.lower() in found else value
    return found


def context_for(server: Server) -> ssl.SSLContext:
    """Return what checks the certificate of *server* by those that it is trusted by, as they are now.

    Raises:
        OSError, ValueError: they can't be read.
    """
    system = ssl.get_default_verify_paths()
    files = () if server.ca_bundle else (server.ca_file,) if server.ca_file else (system.cafile, system.capath)
    changed = tuple(Path(each).stat().st_mtime_ns for each in files if each and Path(each).exists())
    return _context(server.ca_bundle, server.ca_file, changed)


@functools.lru_cache(maxsize=64)
def _context(ca_bundle: str, ca_file: str, _changed: tuple[int, ...]) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca_bundle or None, cafile=ca_file or None)
    context.set_alpn_protocols(["http/1.1"])
    return context
