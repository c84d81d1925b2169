"""Fetching a packaged chart from a Helm repository: one exact version, and only if its digest is the one that is asked for.

Rules, as for repositories of Git: certificates are always checked; credentials go to the repository's own scheme, host and port, and nowhere
else; a redirect is followed only to what may be followed, and never from https to http. Addresses are judged as they are connected to. Answers are bounded in bytes and time, also
where a server drips. What was fetched is kept by its digest for whoever asks with the same credentials, and looked at again before it is used.
"""

from __future__ import annotations

import functools
import hashlib
import http.client
import os
import posixpath
import re
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit
from weakref import ReferenceType, WeakValueDictionary, ref

from msgspec import Struct, field
from msgspec.structs import astuple

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.url_policy import FLAG, UrlPolicy
from kubectl_reconcile.source.charts.archive import Archive, unpacked
from kubectl_reconcile.source.destination import Destination, UnresolvedError
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.remote import Credentials
from kubectl_reconcile.source.running.ending import ending, taking

MOST_ARCHIVE_BYTES: Final = 16 * MEBIBYTE
MOST_INDEX_BYTES: Final = 32 * MEBIBYTE
"""How long an index may be; that of the largest public repository has 25 MiB."""
_MOST_INDEX_LINES: Final = 3_000_000
_MOST_SECTION_BYTES: Final = 4 * MEBIBYTE
_MOST_KEPT_BYTES: Final = 512 * MEBIBYTE
_MOST_REDIRECTS: Final = 5
_MOST_SECONDS: Final = 120.0
_SOCKET_S: Final = 20.0
_SCRYPT_COST: Final = 2**13
_PIECE: Final = 64 * 1024


class ChartAccess(Struct, frozen=True):
    """What is pinned, with which *credentials* it is asked for, and from where it *may* come; archives are kept below *folder*."""

    pin: ChartSpec
    folder: Path
    limits: GitLimits
    credentials: Credentials = field(default_factory=Credentials)
    may: UrlPolicy = field(default_factory=UrlPolicy)
    most_seconds: float = _MOST_SECONDS


class PinnedChart:
    """One version of a chart, as one set of credentials is given it. From any thread; see ``chart_of``.

    Its files are in memory while somebody holds them, and no longer: a chart is read again from disk sooner than memory runs out.
    """

    def __init__(self, access: ChartAccess) -> None:
        self.access = access
        self.pin = access.pin
        self._turn = threading.Lock()
        self._files: ReferenceType[Archive] | None = None

    def files(self) -> Archive:
        """Return the chart's files, fetching it where it isn't here. Blocks.

        Raises:
            SourceError: it can't be read, or isn't the one that is asked for; or nobody waits any more.
        """
        with taking(self._turn):
            held = self._files() if self._files is not None else None
            if held is not None:
                return held
            self._check(f"{self.pin.repository}/")
            packed = self._kept() or self._fetched()
            found = Archive.of(unpacked(packed, self.pin.name, self.access.limits))
            self._files = ref(found)
            return found

    # --- on disk -------------------------------------------------------------------------------------------------

    @functools.cached_property
    def _folder(self) -> Path:
        """Where archives are kept that came with this access: a digest alone, which is no secret, gives nobody an archive.

        Who sees the folder's name can't try passwords against it at any useful rate (scrypt, RFC 7914).
        """
        said = "\0".join(astuple(self.access.credentials)).encode()
        salt = self.pin.repository.encode()
        name = hashlib.scrypt(said, salt=salt, n=_SCRYPT_COST, r=8, p=1, dklen=16).hex()
        return self.access.folder / name

    def _place(self) -> Path:
        return self._folder / f"{self.pin.digest.removeprefix('sha256:')}.tgz"

    def _kept(self) -> bytes | None:
        if not self.pin.digest:
            return None
        try:
            packed = self._place().read_bytes()
        except OSError:
            return None
        if _digest(packed) != self.pin.digest:
            with suppress(OSError):
                self._place().unlink()
            return None
        with suppress(OSError):
            os.utime(self._place())
        return packed

    def _keep(self, packed: bytes) -> None:
        """Keep an archive for the next time; where that isn't possible it is fetched again."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            number, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(number, "wb") as file:
                file.write(packed)
            Path(name).replace(self._place())
            self._trim()

    def _trim(self) -> None:
        """Remove what was used longest ago, beyond a bound."""
        archives = ((each.stat(), each) for each in self.access.folder.glob("*/*"))
        kept = sorted(((facts.st_mtime, facts.st_size, each) for facts, each in archives), reverse=True)
        total = 0
        for _, size, each in kept:
            total += size
            if total > _MOST_KEPT_BYTES:
                each.unlink()

    # --- fetching ------------------------------------------------------------------------------------------------

    def _fetched(self) -> bytes:
        pin = self.pin
        entry = self._entry()
        named = f"sha256:{entry.get('digest')}" if re.fullmatch(r"[0-9a-f]{64}", str(entry.get("digest") or "")) else ""
        if not pin.digest:
            hint = (
                f"if this is the right chart, write digest: {named}, as in the repository's index"
                if named
                else ("set it to what sha256sum prints for the .tgz: digest: sha256:…")
            )
            raise SourceError(SourceFault.REFUSED, f"{pin}: spec.source.helm.chart.digest is missing", hint)
        urls = entry.get("urls")
        url = str(urls[0]) if isinstance(urls, list) and urls else ""
        if not url:
            raise SourceError(SourceFault.NO_SUCH_PATH, f"{pin}: the repository's index has no address for it")
        packed = self._get(_joined(f"{pin.repository}/", url), MOST_ARCHIVE_BYTES)
        if (found := _digest(packed)) != pin.digest:
            also = f"; the index says {named}" if named and named != found else ""
            raise SourceError(
                SourceFault.UNTRUSTED,
                f"{pin}: expected {pin.digest}, found {found}{also}",
                "either another archive was published under the same version, or the digest is of another version; the archive isn't used",
            )
        self._keep(packed)
        return packed

    def _entry(self) -> dict[str, Any]:
        """Return what the repository's index says of the version."""
        pin = self.pin
        index = self._get(f"{pin.repository}/index.yaml", MOST_INDEX_BYTES)
        if index.count(b"\n") > _MOST_INDEX_LINES:
            said = f"{pin}: the repository's index has more than {_MOST_INDEX_LINES:,} lines"
            raise SourceError(SourceFault.REFUSED, said)
        versions = _versions(index, pin.name)
        if not versions:
            raise SourceError(SourceFault.NO_SUCH_PATH, f"{pin}: the repository has no chart {pin.name}")
        for each in versions:
            if str(each.get("version")) == pin.version:
                return each
        some = ", ".join(str(each.get("version")) for each in versions[:_LISTED])
        raise SourceError(
            SourceFault.NO_SUCH_REF,
            f"{pin}: there is no such version; there is {some}{'…' if len(versions) > _LISTED else ''}",
        )

    def _get(self, url: str, most: int) -> bytes:
        """Return what is at *url*, at most so many bytes, having followed redirects to where that is allowed."""
        deadline = time.monotonic() + min(self.access.most_seconds, self.access.limits.seconds)
        for _ in range(_MOST_REDIRECTS + 1):
            self._check(url)
            with _answer(url, self._headers(url), self.access, deadline) as answer:
                if answer.status in {301, 302, 303, 307, 308}:
                    url = self._redirected(url, answer.getheader("Location") or "")
                    continue
                if answer.status in {401, 403}:
                    hint = "name a Secret with credentials that are for it in spec.source.helm.chart.secretRef"
                    raise SourceError(
                        SourceFault.UNAUTHORIZED, f"{_shown(url)}: the server answers {answer.status}", hint
                    )
                if answer.status != 200:
                    raise SourceError(
                        SourceFault.NO_SUCH_REPOSITORY, f"{_shown(url)}: the server answers {answer.status}"
                    )
                return _read(answer, url, most, deadline)
        raise SourceError(SourceFault.REFUSED, f"{_shown(url)}: more than {_MOST_REDIRECTS} redirects")

    def _check(self, url: str) -> None:
        parts = _parts(url)
        if parts.scheme not in {"https", "http"} or not parts.hostname or "@" in parts.netloc:
            raise SourceError(
                SourceFault.REFUSED, f"{_shown(url)}: charts are fetched over https and http, without a user in the URL"
            )
        if parts.scheme == "http" and urlsplit(self.pin.repository).scheme == "https":
            raise SourceError(SourceFault.REFUSED, f"{_shown(url)}: the repository is https, and this isn't")
        if not self.access.may.allows(url):
            said = f"{_shown(url)} isn't allowed here; allowed are only URLs below: {self.access.may}"
            raise SourceError(SourceFault.REFUSED, said, f"the administrator of the daemon can allow more with {FLAG}")

    def _redirected(self, url: str, location: str) -> str:
        there = _joined(url, location)
        if not location or (_origin(there) != _origin(url) and self.access.credentials.header()):
            raise SourceError(
                SourceFault.REFUSED,
                f"{_shown(url)}: it redirects to {_shown(there)}, which isn't followed with credentials",
            )
        return there

    def _headers(self, url: str) -> dict[str, str]:
        name, _, value = self.access.credentials.header().partition(": ")
        own = {name: value} if name and _origin(url) == _origin(self.pin.repository) else {}
        return {"User-Agent": "kubectl-reconcile", "Accept-Encoding": "identity", **own}


_LISTED = 5

_KNOWN: Final[WeakValueDictionary[ChartAccess, PinnedChart]] = WeakValueDictionary()
_GUARD: Final = threading.Lock()


def chart_of(access: ChartAccess) -> PinnedChart:
    """Return the chart that *access* is for, the same for all of this process who ask for it in the same way."""
    with _GUARD:
        found = _KNOWN.get(access)
        if found is None:
            found = _KNOWN[access] = PinnedChart(access)
        return found


@contextmanager
def _answer(
    url: str, headers: dict[str, str], access: ChartAccess, deadline: float
) -> Iterator[http.client.HTTPResponse]:
    """Ask for *url* as it may be asked; when the time is up, or nobody waits any more, the connection is closed."""
    ca_bundle = access.credentials.ca_bundle
    parts, waited = urlsplit(url), ending()
    waited.check()
    usual = _PORTS[parts.scheme]
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or usual, timeout=_SOCKET_S)
    connection.default_port = usual  # which isn't said to the server
    reached: list[socket.socket] = []

    def hang_up() -> None:
        for each in reached:  # the connection itself releases its socket once the answer has begun
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)  # that of TLS would take its state from who uses it

    timer = threading.Timer(max(deadline - time.monotonic(), 0.01), hang_up)
    timer.daemon = True
    try:
        with waited.around(hang_up):
            timer.start()
            path = quote(parts.path or "/", safe="/%:@+~!$&'()*,;=-._") + (
                f"?{quote(parts.query, safe='=&%:@/?+,;-._~')}" if parts.query else ""
            )
            connection.sock = _connected(url, connection, access)
            secured = _secured(connection, ca_bundle) if parts.scheme == "https" else None
            reached.append(connection.sock)
            if time.monotonic() >= deadline or waited.is_over():
                hang_up()
            if secured:
                secured.do_handshake()  # which a server can draw out, so that it has to be possible to hang up
            connection.request("GET", path, headers=headers)
            with connection.getresponse() as answer:
                yield answer
    except ssl.SSLCertVerificationError as error:
        raise SourceError(
            SourceFault.UNTRUSTED,
            f"{_shown(url)}: {error.verify_message}",
            "give its ca.crt in the Secret, or correct its certificate",
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        waited.check()
        late = time.monotonic() >= deadline
        raise SourceError(SourceFault.UNREACHABLE, f"{_shown(url)}: {_LATE if late else _why(error)}") from None
    finally:
        timer.cancel()
        connection.close()


def _connected(url: str, connection: http.client.HTTPConnection, access: ChartAccess) -> socket.socket:
    """Return a connection to the first address of the host that answers, of those that may be connected to."""
    there, failed = Destination(url, access.pin.repository, access.may), OSError("it has no address")
    try:
        addresses = there.judged(there.looked_up())
    except UnresolvedError as error:
        raise OSError(str(error)) from None
    for each in addresses:
        try:
            return socket.create_connection((each, there.place.port), connection.timeout)
        except OSError as error:
            failed = error
    raise failed


def _secured(connection: http.client.HTTPConnection, ca_bundle: str) -> ssl.SSLSocket:
    """Have a connection speak TLS, once hands were shaken."""
    context = ssl.create_default_context(cadata=ca_bundle or None)
    secured = context.wrap_socket(connection.sock, server_hostname=connection.host, do_handshake_on_connect=False)
    connection.sock = secured
    return secured


_PORTS: Final = {"https": 443, "http": 80}
_LATE = "it takes too long to answer"


def _why(error: Exception) -> str:
    return one_line(str(error) or type(error).__name__, 200)


def _read(answer: http.client.HTTPResponse, url: str, most: int, deadline: float) -> bytes:
    pieces, total = [], 0
    while piece := answer.read1(_PIECE):
        total += len(piece)
        if total > most:
            raise SourceError(SourceFault.REFUSED, f"{_shown(url)}: the answer has more than {most // MEBIBYTE} MiB")
        if time.monotonic() > deadline:
            raise SourceError(SourceFault.UNREACHABLE, f"{_shown(url)}: {_LATE}")
        pieces.append(piece)
    length = answer.getheader("Content-Length")
    if time.monotonic() > deadline or (length and length.isdecimal() and total < int(length)):
        raise SourceError(
            SourceFault.UNREACHABLE,
            f"{_shown(url)}: {_LATE if time.monotonic() > deadline else 'the answer is incomplete'}",
        )
    return b"".join(pieces)


def _versions(index: bytes, name: str) -> list[dict[str, Any]]:
    """Return what an index says of the versions of one chart; of a long one only the lines of that chart are read."""
    section = _section(index, name)
    documents, _ = yaml_reader.read(section, "index.yaml", most_bytes=_MOST_SECTION_BYTES)
    tree = documents[0].tree if documents else None
    entries = tree.get("entries") if isinstance(tree, dict) else None
    found = entries.get(name) if isinstance(entries, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _section(index: bytes, name: str) -> bytes:
    """Return an index with the entries of one chart alone, as far as it is written as Helm writes it; else as it is."""
    lines = _lines(index)
    if not any(line.rstrip() == b"entries:" for line in lines):
        return index
    wanted = re.compile(rb"(\s+)(?:%b|\"%b\"|'%b'):\s*" % ((re.escape(name.encode()),) * 3))
    for line in lines:
        if line[:1] not in {b" ", b"", b"#", b"-", b"\r"}:
            break
        if found := wanted.fullmatch(line):
            return b"entries:\n%b\n%b" % (line, _deeper(lines, len(found[1])))
    return b""


def _lines(index: bytes) -> Iterator[bytes]:
    """Yield one line after the other: all at once would take many times the memory of an index that is made for that."""
    at, end = 0, 0
    while end >= 0:
        end = index.find(b"\n", at)
        yield index[at : end if end >= 0 else None]
        at = end + 1


def _deeper(lines: Iterator[bytes], depth: int) -> bytes:
    """Return the next of *lines* that belong to a key at *depth*, and no more of them than are read."""
    taken = bytearray()
    for line in lines:
        indent = len(line) - len(line.lstrip(b" "))
        if line.strip() and (indent < depth or (indent == depth and not line.lstrip().startswith(b"-"))):
            break
        taken += line + b"\n"
        if len(taken) > _MOST_SECTION_BYTES:
            break
    return bytes(taken)


def _digest(packed: bytes) -> str:
    return f"sha256:{hashlib.sha256(packed).hexdigest()}"


def _joined(base: str, url: str) -> str:
    """Return where *url*, which a server says, leads from *base*.

    Raises:
        SourceError: it is no URL (``REFUSED``).
    """
    _parts(url)
    return urljoin(base, url)


def _parts(url: str) -> SplitResult:
    """Return the parts of a URL, each of which can be read.

    Raises:
        SourceError: it is no URL (``REFUSED``).
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # which is read only here
    except ValueError as error:
        text = one_line(url.partition("?")[0].rpartition("@")[2], 200)
        said = f"{text}: this is no URL: {error}"
        raise SourceError(SourceFault.REFUSED, said, "correct it where it is written") from None
    return parts


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


def _shown(url: str) -> str:
    """Return a URL as it may be shown: without a query, which may be a signature, and without a user."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return one_line(f"{parts.scheme}://{host}{posixpath.join('/', parts.path.lstrip('/'))}", 200)
