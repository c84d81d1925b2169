"""The server's schemas: OpenAPI v3 documents, kept on disk by content hash.

Vocabulary: a *document* describes one group-version (``apis/apps/v1``); the *index* lists all of them, each with the
hash of its content. A document is *slimmed* before it is kept: descriptions and request details are most of it, and
nobody here reads them.

Rules: only the documents that hold a wanted kind are fetched, once per content. A file of the disk cache is only
believed if its checksum fits, and only for the server it came from: another one can't plant schemas by claiming a hash.
A document that has changed since the index was read has moved: the index is read again.
A disk that is full or read-only costs speed, never correctness. A kind that no document describes has schema
``UNKNOWN``, so that its verdicts are left to the server.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound, ServerError
from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.ssa.schema import UNKNOWN, Schema, schemas_of_document

_INDEX = "/openapi/v3"
_MOST_FILES = 256
_MOST_BYTES = 128 * 2**20
_FILE_FORMAT = "1"
_MOVED = frozenset({301, 302, 307, 308})
_MOST_READS = 5
"""How often the index is read again for documents that change while they are fetched, as they do while CRDs come in."""
_VALUES = frozenset({"default", "enum", "example"})


class Schemas:
    """The schemas of one server. *folder* is where documents are kept between runs; None keeps them in memory only."""

    def __init__(self, client: Client, folder: Path | None) -> None:
        self._client = client
        self._folder = folder
        self._index: Mapping[str, str] | None = None
        self._documents: dict[str, Mapping[GroupVersionKind, Schema]] = {}
        self._lock = asyncio.Lock()

    def invalidate(self) -> None:
        """Ask the server again next time which documents it has. Those that haven't changed aren't fetched again."""
        self._index = None

    async def of(self, kinds: Iterable[GroupVersionKind]) -> dict[GroupVersionKind, Schema]:
        """Return the schema of each of *kinds*, ``UNKNOWN`` where the server describes none.

        Raises:
            ApiError: the server doesn't answer. A document that it can't deliver is no error.
        """
        wanted = dict.fromkeys(kinds)
        if not wanted:
            return {}
        async with self._lock:
            urls = await self._fetched(wanted)
        return {gvk: self._documents.get(urls.get(gvk, ""), {}).get(gvk, UNKNOWN) for gvk in wanted}

    async def _fetched(self, wanted: Iterable[GroupVersionKind]) -> dict[GroupVersionKind, str]:
        """Fetch the documents of *wanted* and return where each kind's is, by an index as new as they are."""
        urls: dict[GroupVersionKind, str] = {}
        for _ in range(_MOST_READS):
            index = await self._known_index()
            urls = {gvk: index[key] for gvk in wanted if (key := _key_of(gvk)) in index}
            missing = [url for url in dict.fromkeys(urls.values()) if url not in self._documents]
            for url, found in zip(missing, await asyncio.gather(*map(self._document, missing)), strict=True):
                if found is not None:
                    self._documents[url] = schemas_of_document(found)
            if self._index is not None:
                break
        return urls

    async def _known_index(self) -> Mapping[str, str]:
        if self._index is None:
            try:
                answer = await self._client.get(_INDEX)
            except (NotFound, Forbidden):
                return {}
            self._index = {
                name: entry["serverRelativeURL"]
                for name, entry in (answer.get("paths") or {}).items()
                if str(entry.get("serverRelativeURL") or "").startswith("/")
            }
            current = set(self._index.values())
            self._documents = {url: found for url, found in self._documents.items() if url in current}
        return self._index

    async def _document(self, url: str) -> Mapping[str, Any] | None:
        """Return the slimmed document at *url* (which holds the content's hash), from disk if it is there."""
        file = self._file(url)
        kept = _read(file) if file else None
        if kept is not None:
            return kept
        try:
            document = await self._client.get(url)
        except (NotFound, Forbidden, ServerError):
            return None
        except ApiError as error:
            if error.status not in _MOVED:
                raise
            self._index = None  # another content by now, and so another URL: a CRD came or went
            return None
        slimmed = {"paths": _slim_paths(document), "components": _slim(document.get("components") or {})}
        if file:
            _write(file, slimmed)
        return slimmed

    def _file(self, url: str) -> Path | None:
        if self._folder is None or "hash=" not in url:
            return None
        digest = hashlib.sha256(f"{_FILE_FORMAT}\n{self._client.server}\n{url}".encode()).hexdigest()
        return self._folder / "openapi" / f"{digest[:40]}.json"


def _key_of(gvk: GroupVersionKind) -> str:
    return f"apis/{gvk.group}/{gvk.version}" if gvk.group else f"api/{gvk.version}"


def _slim(tree: Any) -> Any:
    """Drop the descriptions of a schema; a property that is called ``description`` is a mapping, and stays."""
    if isinstance(tree, dict):
        return {
            key: value if key in _VALUES else _slim(value)
            for key, value in tree.items()
            if key != "description" or not isinstance(value, str)
        }
    return [_slim(item) for item in tree] if isinstance(tree, list) else tree


def _slim_paths(document: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of each operation only what Kubernetes adds to it: the kind and the action."""
    return {
        path: {
            verb: kept
            for verb, operation in operations.items()
            if isinstance(operation, dict)
            and (kept := {key: value for key, value in operation.items() if key.startswith("x-kubernetes-")})
        }
        for path, operations in (document.get("paths") or {}).items()
        if isinstance(operations, dict)
    }


# --- the folder -------------------------------------------------------------------------------------------------------


def _read(file: Path) -> dict[str, Any] | None:
    """Return what *file* holds, None where it is absent or not as it was written."""
    try:
        digest, _, body = file.read_bytes().partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            return None
        found = orjson.loads(body)
        os.utime(file)  # the least recently used goes first
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write(file: Path, document: Mapping[str, Any]) -> None:
    """Write *file* in one step, so that no reader sees half of it; give up quietly where the disk refuses."""
    body = orjson.dumps(document)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as target:
                target.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            Path(name).replace(file)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
        _prune(file.parent)


def _prune(folder: Path) -> None:
    """Keep the folder bounded: the least recently used files go."""
    files = sorted(((path.stat(), path) for path in folder.iterdir()), key=lambda entry: -entry[0].st_mtime)
    total = 0
    for count, (stat, path) in enumerate(files, start=1):
        total += stat.st_size
        if count > _MOST_FILES or total > _MOST_BYTES:
            path.unlink(missing_ok=True)
