"""Fetching a packaged chart from a Helm repository: one exact version, and only if its digest is the one that is asked for.

The rules are those of our client (``source.http.client``). What was fetched is kept by its digest for whoever asks with the same credentials, and looked at again before it is used.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from weakref import ReferenceType, ref

from msgspec import Struct, field
from msgspec.structs import astuple

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.url_policy import UrlPolicy
from kubectl_reconcile.source.charts.archive import Archive, unpacked
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.http.client import HttpClient
from kubectl_reconcile.source.http.errors import shown
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.remote import Credentials
from kubectl_reconcile.source.running.ending import taking
from kubectl_reconcile.source.running.shared import Shared

MOST_ARCHIVE_BYTES: Final = 16 * MEBIBYTE
MOST_INDEX_BYTES: Final = 32 * MEBIBYTE
"""How long an index may be; that of the largest public repository has 25 MiB."""
_MOST_INDEX_LINES: Final = 3_000_000
_MOST_SECTION_BYTES: Final = 4 * MEBIBYTE
_MOST_KEPT_BYTES: Final = 512 * MEBIBYTE
_MOST_SECONDS: Final = 120.0
_SCRYPT_COST: Final = 2**13


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
        self._client = HttpClient(access.pin.repository, access.credentials, access.may)
        self._turn = threading.Lock()
        self._files: ReferenceType[Archive] | None = None

    @property
    def verified(self) -> None:
        """None: there are no signatures, and it is known by its digest."""

    def verify(self) -> None:
        """Verify nothing."""

    def files(self) -> Archive:
        """Return the chart's files, fetching it where it isn't here. Blocks.

        Raises:
            SourceError: it can't be read, or isn't the one that is asked for; or nobody waits any more.
        """
        with taking(self._turn):
            held = self._files() if self._files is not None else None
            if held is not None:
                return held
            self._client.check(f"{self.pin.repository}/")
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
        named = ("named",) if self.access.may.states else ()  # by a file: whoever states it may have it from elsewhere
        said = "\0".join((*astuple(self.access.credentials), *named)).encode()
        salt = self.pin.repository.encode()
        name = hashlib.scrypt(said, salt=salt, n=_SCRYPT_COST, r=8, p=1, dklen=16).hex()
        return self.access.folder / name

    def _place(self, digest: str) -> Path:
        return self._folder / f"{digest.removeprefix('sha256:')}.tgz"

    def _kept(self) -> bytes | None:
        if not self.pin.digest:
            return None
        try:
            packed = self._place(self.pin.digest).read_bytes()
        except OSError:
            return None
        if _digest(packed) != self.pin.digest:
            with suppress(OSError):
                self._place(self.pin.digest).unlink()
            return None
        with suppress(OSError):
            os.utime(self._place(self.pin.digest))
        return packed

    def _keep(self, packed: bytes, digest: str) -> None:
        """Keep an archive for the next time; where that isn't possible it is fetched again."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            number, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(number, "wb") as file:
                file.write(packed)
            Path(name).replace(self._place(digest))
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

    def published(self) -> str:
        """Return the digest of the archive that the repository has for the version now, once it was looked at. Blocks.

        Raises:
            SourceError: it can't be read, is no such chart, or isn't what the repository's own index says; or nobody waits any more.
        """
        with taking(self._turn):
            self._client.check(f"{self.pin.repository}/")
            entry = self._entry()
            packed = self._archive(entry)
            unpacked(packed, self.pin.name, self.access.limits)
            found = _digest(packed)
            if (said := _said(entry)) not in {"", found}:
                raise SourceError(
                    SourceFault.UNTRUSTED, f"{self.pin}: its archive is {found}, and the index says {said}"
                )
            self._keep(packed, found)
            return found

    def _fetched(self) -> bytes:
        pin = self.pin
        entry = self._entry()
        named = _said(entry)
        if not pin.digest:
            hint = (
                f"if this is the right chart, write digest: {named}, as in the repository's index"
                if named
                else ("set it to what sha256sum prints for the .tgz: digest: sha256:…")
            )
            raise SourceError(SourceFault.REFUSED, f"{pin}: spec.source.chart.digest is missing", hint)
        packed = self._archive(entry)
        if (found := _digest(packed)) != pin.digest:
            also = f"; the index says {named}" if named and named != found else ""
            raise SourceError(
                SourceFault.UNTRUSTED,
                f"{pin}: expected {pin.digest}, found {found}{also}",
                "either another archive was published under the same version, or the digest is of another version; the archive isn't used",
            )
        self._keep(packed, pin.digest)
        return packed

    def _archive(self, entry: Mapping[str, Any]) -> bytes:
        """Return the archive that an *entry* of the index names first, whatever is in it."""
        urls = entry.get("urls")
        url = str(urls[0]) if isinstance(urls, list) and urls else ""
        if not url:
            raise SourceError(SourceFault.NO_SUCH_PATH, f"{self.pin}: the repository's index has no address for it")
        return self._get(self._client.named(f"{self.pin.repository}/", url), MOST_ARCHIVE_BYTES)

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
        deadline_s = time.monotonic() + min(self.access.most_seconds, self.access.limits.seconds)
        answer = self._client.ask(url, most, deadline_s)
        if answer.status in {401, 403}:
            hint = "name a Secret with credentials that are for it in spec.source.chart.secretRef"
            said = f"{shown(answer.url)}: the server answers {answer.status}"
            raise SourceError(SourceFault.UNAUTHORIZED, said, hint)
        if answer.status != 200:
            raise SourceError(
                SourceFault.NO_SUCH_REPOSITORY, f"{shown(answer.url)}: the server answers {answer.status}"
            )
        return answer.body


_LISTED = 5

_KNOWN: Final = Shared[ChartAccess, PinnedChart]()


def chart_of(access: ChartAccess) -> PinnedChart:
    """Return the chart that *access* is for, the same for all of this process who ask for it in the same way."""
    return _KNOWN.of(access, lambda: PinnedChart(access))


def _said(entry: Mapping[str, Any]) -> str:
    """Return the digest that an index says of an archive; empty where it says none."""
    text = str(entry.get("digest") or "")
    return f"sha256:{text}" if re.fullmatch(r"[0-9a-f]{64}", text) else ""


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
