"""Parsed manifest files kept on disk, so that a program that starts needn't parse ten thousand of them again.

Equal blob ids mean equal bytes, so what was parsed once is good forever, for this very parser. It is a cache and
nothing else: it may be deleted, damaged, locked or full at any time, and then files are parsed as if it weren't there.

Rules: nothing that holds a Secret is kept, nor anything of a file that SOPS has encrypted, and nobody else may read the file. Each entry carries a digest of itself and isn't used without; a file that is no database any more is removed. Beyond
a bound the entries go that were used longest ago. Other programs may use the same file meanwhile.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from math import inf
from pathlib import Path
from typing import TypeAlias

import orjson
from msgspec import Struct, field
from msgspec.structs import asdict

from kubectl_reconcile.core import manifests, other_tools
from kubectl_reconcile.core.manifests.parse import Located, Parsed
from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.engine.telemetry.logs import News, event

MOST_BYTES = 256 * 2**20
"""What all entries may take together."""

File: TypeAlias = tuple[str, str]
"""A blob id and the path that it is found at, which problems name."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS parsed (key BLOB PRIMARY KEY, used INTEGER, content BLOB)"
_SIZES = ("page_count", "freelist_count", "page_size")
_AT_ONCE = 500
_LOCKED_S = 1.0
_DAY_S = 86_400
_DIGEST = 16
_DAMAGED = ("malformed", "not a database", "disk image", "no such table", "no such column")

log = logging.getLogger(__name__)


class ParsedFiles(Struct):
    """What was parsed, at *path*. May be used from any thread; nothing here ever fails."""

    path: Path
    most_bytes: int = MOST_BYTES
    _news: News = field(default_factory=News)

    def find(self, files: Iterable[File], most_values: float = inf) -> dict[File, Parsed]:
        """Return those of *files* that were parsed before; no more of them once they weigh more than *most_values*."""
        wanted, found = {_key(file): file for file in files}, dict[File, Parsed]()

        def look(database: sqlite3.Connection) -> None:
            now_s, long_ago, weight = int(time.time()), [], 0
            for key, used_s, content in _entries(database, list(wanted)):
                file = wanted[key]
                if (parsed := _unpacked(key, content, file[1])) is not None:
                    found[file] = parsed
                    weight += parsed.weight
                    if weight > most_values:
                        break
                    if now_s - used_s > _DAY_S:
                        long_ago.append((now_s, key))
            database.executemany("UPDATE parsed SET used = ? WHERE key = ?", long_ago)

        self._with_database(look)
        return found

    def keep(self, parsed: Mapping[File, Parsed]) -> None:
        """Remember what was parsed just now."""
        now_s = int(time.time())
        packed = ((key := _key(file), now_s, _packed(key, each)) for file, each in parsed.items())

        def write(database: sqlite3.Connection) -> None:
            database.executemany("INSERT OR REPLACE INTO parsed VALUES (?, ?, ?)", (each for each in packed if each[2]))
            self._trim(database)

        self._with_database(write)

    def _trim(self, database: sqlite3.Connection) -> None:
        """Remove the oldest entries until there is room again.

        Adding up what they take reads all of them, so it is left out as long as the whole file takes no more than they may.
        """
        pages, free, size = (database.execute(f"PRAGMA {what}").fetchone()[0] for what in _SIZES)
        if (pages - free) * size <= self.most_bytes:
            return
        (total,) = database.execute("SELECT coalesce(sum(length(content)), 0) FROM parsed").fetchone()
        surplus = total - self.most_bytes
        if surplus <= 0:
            return
        surplus += self.most_bytes // 5
        entries = database.execute("SELECT key, length(content) FROM parsed ORDER BY used, key").fetchall()
        for key, length in entries:
            database.execute("DELETE FROM parsed WHERE key = ?", (key,))
            surplus -= length
            if surplus <= 0:
                break
        database.commit()
        database.execute("VACUUM")

    def _with_database(self, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do *work*; a fault ends it, and the file if that is what is at fault."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.touch(mode=0o600)
            self.path.chmod(0o600)  # one that an earlier version made
            with closing(sqlite3.connect(self.path, timeout=_LOCKED_S)) as database:
                database.execute("PRAGMA synchronous = OFF")
                database.execute(_SCHEMA)
                with database:
                    work(database)
            self._news.of("fault", ())
        except (sqlite3.Error, OSError, TypeError, ValueError) as error:  # a flipped bit may make text of a number
            event(log, self._news.level("fault", str(error)), "cache of parsed files not used", error=error)
            damaged = isinstance(error, TypeError | ValueError) or any(word in str(error) for word in _DAMAGED)
            if damaged:
                with suppress(OSError):
                    self.path.unlink()


def _entries(database: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[tuple[bytes, int, bytes]]:
    for at in range(0, len(keys), _AT_ONCE):
        some = keys[at : at + _AT_ONCE]
        marks = ",".join("?" * len(some))
        yield from database.execute(f"SELECT key, used, content FROM parsed WHERE key IN ({marks})", some)  # noqa: S608 - question marks


@functools.cache
def _parser() -> bytes:
    """Return the digest of the parser: what another one made of a file says nothing."""
    folders = (Path(each.__file__ or "").parent for each in (manifests, other_tools))
    sources = sorted(source for folder in folders for source in folder.glob("*.py"))
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).digest()


def _key(file: File) -> bytes:
    blob_id, path = file
    text = _parser() + blob_id.encode() + b"\0" + path.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=_DIGEST).digest()


def _packed(key: bytes, parsed: Parsed) -> bytes:
    """Return an entry's bytes; none where JSON can't say it all, or where a Secret's values, or decrypted ones, might be in it."""
    if parsed.sealed or any(each.gvk.kind == "Secret" for each in parsed.manifests):
        return b""
    tree = [
        [[each.line, each.manifest] for each in parsed.manifests],
        [asdict(problem) for problem in parsed.problems],
        parsed.weight,
    ]
    try:
        body = orjson.dumps(tree)
    except TypeError:
        return b""
    same = orjson.loads(body) == tree  # a number that isn't one comes back as null
    return hashlib.blake2b(key + body, digest_size=_DIGEST).digest() + body if same else b""


def _unpacked(key: bytes, content: bytes, path: str) -> Parsed | None:
    digest, body = content[:_DIGEST], content[_DIGEST:]
    if digest != hashlib.blake2b(key + body, digest_size=_DIGEST).digest():
        return None
    found, told, weight = orjson.loads(body)
    located = tuple(Located.of(manifest, path, line) for line, manifest in found)
    problems = tuple(Problem(**{**problem, "severity": Severity(problem["severity"])}) for problem in told)
    return Parsed(located, problems, weight)
