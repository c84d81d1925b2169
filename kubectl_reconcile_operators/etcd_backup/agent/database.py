"""What a snapshot holds: the revision, read from the database itself, as etcd does when it starts.

A snapshot is a file of bbolt, etcd's key-value store, followed by the SHA-256 of it. bbolt: pages of a fixed size; two *meta* pages of which
the one of the later transaction counts; trees of *branch* and *leaf* pages, one for each bucket. etcd keeps what was written in bucket ``key``, by
revision, and how far it was compacted in bucket ``meta``. The format is that of ``bbolt/internal/common`` (version 2).

Pure: bytes in, numbers out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kubectl_reconcile_operators.backups.agent.kinds import DamagedError

_MAGIC, _VERSION = 0xED0CDAED, 2
_BRANCH, _LEAF, _META = 0x01, 0x02, 0x04
_HEADER = struct.Struct("<QHHI")
_META_FIELDS = struct.Struct("<IIIIQQQQQQ")
_BRANCH_ELEMENT = struct.Struct("<IIQ")
_LEAF_ELEMENT = struct.Struct("<IIII")
_BUCKET_HEADER = struct.Struct("<QQ")
_DEEPEST = 64
DIGEST_SIZE = 32
_SECTOR = 512


class Bytes(Protocol):
    """A file as bytes, mapped into memory or read."""

    def __len__(self) -> int:
        """Return its size."""

    def __getitem__(self, part: slice) -> bytes:
        """Return a part of it."""


@dataclass(frozen=True, slots=True)
class _Meta:
    page_size: int
    root: int
    transaction: int


def check_size(size: int) -> None:
    """Refuse a size that no snapshot has: whole sectors, and a digest.

    Raises:
        DamagedError: it is of another size.
    """
    if size <= DIGEST_SIZE or size % _SECTOR != DIGEST_SIZE:
        raise DamagedError(
            f"{size} bytes aren't a complete snapshot, which ends with {DIGEST_SIZE} bytes of digest after complete sectors"
        )


def revision_of(data: Bytes) -> int:
    """Return the revision that a snapshot holds; a store that nobody has written to is at 1.

    Raises:
        DamagedError: it isn't an etcd database.
    """
    try:
        return _revision(data)
    except (struct.error, IndexError) as error:
        raise DamagedError(f"it isn't a bbolt database: {error}") from error


def _revision(data: Bytes) -> int:
    meta = _meta(data)
    buckets = dict(_items(data, meta, meta.root))
    if b"key" not in buckets or b"meta" not in buckets:
        raise DamagedError("it isn't an etcd database: it lacks the buckets key and meta")
    compacted = (
        _main(value)
        for name, value in _bucket(data, meta, buckets[b"meta"])
        if name in {b"finishedCompactRev", b"scheduledCompactRev"}
    )
    return max([1, _last_key(data, meta, buckets[b"key"]), *compacted])


def _meta(data: Bytes) -> _Meta:
    found = []
    for at in _meta_places(data):
        _, flags, _, _ = _HEADER.unpack(data[at : at + _HEADER.size])
        fields = data[at + _HEADER.size : at + _HEADER.size + _META_FIELDS.size]
        magic, version, page_size, _, root, _, _, _, transaction, checksum = _META_FIELDS.unpack(fields)
        if flags & _META and (magic, version) == (_MAGIC, _VERSION) and checksum == _fnv(fields[:-8]):
            found.append(_Meta(page_size, root, transaction))
    if not found:
        raise DamagedError("it isn't a bbolt database: neither of its first two pages is a valid one")
    return max(found, key=lambda each: each.transaction)


def _meta_places(data: Bytes) -> Iterator[int]:
    """Yield where the two meta pages may be: the second one is a page after the first, and page sizes differ by machine."""
    yield 0
    for size in (1 << power for power in range(9, 17)):
        if size + _HEADER.size + _META_FIELDS.size <= len(data):
            yield size


def _fnv(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash."""
    found = 0xCBF29CE484222325
    for each in data:
        found = (found ^ each) * 0x100000001B3 % (1 << 64)
    return found


def _bucket(data: Bytes, meta: _Meta, value: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield what a bucket holds; a small one is within its own value."""
    root, _ = _BUCKET_HEADER.unpack(value[: _BUCKET_HEADER.size])
    if root:
        yield from _items(data, meta, root)
    else:
        yield from _leaves(value[_BUCKET_HEADER.size :])


def _page(data: Bytes, meta: _Meta, number: int) -> bytes:
    at = number * meta.page_size
    _, _, _, overflow = _HEADER.unpack(data[at : at + _HEADER.size])
    return data[at : at + (overflow + 1) * meta.page_size]


def _items(data: Bytes, meta: _Meta, number: int, depth: int = 0) -> Iterator[tuple[bytes, bytes]]:
    page = _page(data, meta, number)
    _, flags, _, _ = _HEADER.unpack(page[: _HEADER.size])
    if depth > _DEEPEST:
        raise DamagedError("its pages form a cycle")
    if flags & _BRANCH:
        for child in _children(page):
            yield from _items(data, meta, child, depth + 1)
    elif flags & _LEAF:
        yield from _leaves(page)
    else:
        raise DamagedError(f"page {number} is neither branch nor leaf")


def _last_key(data: Bytes, meta: _Meta, value: bytes) -> int:
    """Return the revision of the last key of a bucket, 0 where it has none: the way down is the last child of each page."""
    number, _ = _BUCKET_HEADER.unpack(value[: _BUCKET_HEADER.size])
    page = _page(data, meta, number) if number else value[_BUCKET_HEADER.size :]
    for _ in range(_DEEPEST):
        _, flags, _, _ = _HEADER.unpack(page[: _HEADER.size])
        if not flags & _BRANCH:
            return max((_main(key) for key, _ in _leaves(page)), default=0)
        page = _page(data, meta, _children(page)[-1])
    raise DamagedError("its pages form a cycle")


def _children(page: bytes) -> list[int]:
    count = _HEADER.unpack(page[: _HEADER.size])[2]
    places = (_HEADER.size + at * _BRANCH_ELEMENT.size for at in range(count))
    return [_BRANCH_ELEMENT.unpack(page[at : at + _BRANCH_ELEMENT.size])[2] for at in places]


def _leaves(page: bytes) -> Iterator[tuple[bytes, bytes]]:
    count = _HEADER.unpack(page[: _HEADER.size])[2]
    for number in range(count):
        at = _HEADER.size + number * _LEAF_ELEMENT.size
        _, position, key_size, value_size = _LEAF_ELEMENT.unpack(page[at : at + _LEAF_ELEMENT.size])
        key = page[at + position : at + position + key_size]
        yield key, page[at + position + key_size : at + position + key_size + value_size]


def _main(revision: bytes) -> int:
    """Return the main part of a revision as etcd writes it: eight bytes, the most significant first."""
    return int.from_bytes(revision[:8], "big")
