"""What is read of a log, as the server has written it: whether it ends in order.

A server that stops in order writes one more record once all sessions have ended, a *shutdown checkpoint*, and nothing after it. One that recovers from a crash
writes such a record as well and goes on: servers whose log is read here never do that by themselves (``restart_after_crash`` is off). The record says where it stands itself, and has a checksum. Its layout (a header of 24 bytes, then a byte 255, the length, and the data, which begins with the position from which a server would
start again) has been the same since PostgreSQL 9.5.

Pure: bytes in, a position out.
"""

from __future__ import annotations

TAIL = 512
"""How many bytes of a log's end are enough."""
_HEADER, _CHECKSUMMED = 24, 20
_KIND_AT, _MANAGER_AT = 16, 17
_XLOG, _SHUTDOWN, _KIND = 0, 0x00, 0xF0
_DATA = 255
_ALIGNED = 8
_CASTAGNOLI = 0x82F63B78


def closed_at(tail: bytes, end: int) -> int | None:
    """Return where the shutdown checkpoint stands with which a log ends in order, None where it doesn't, or that isn't known; *tail* are its last bytes before *end*.

    It isn't known where the end of a page falls into the record. Of a longer tail only the end is looked at: whoever sends it can't make that take long.
    """
    tail = tail[-TAIL:]
    starts = range(end - len(tail) + -(end - len(tail)) % _ALIGNED, end - _HEADER, _ALIGNED)
    found = (start for start in starts if _is_closing(tail[start - end :], start))
    return next(found, None)


def _is_closing(record: bytes, start: int) -> bool:
    """Tell whether bytes are a shutdown checkpoint, and nothing but what fills it up."""
    length, checksum = (int.from_bytes(record[at : at + 4], "little") for at in (0, _CHECKSUMMED))
    kind = (record[_MANAGER_AT], record[_KIND_AT] & _KIND)
    if kind != (_XLOG, _SHUTDOWN) or length + -length % _ALIGNED != len(record):
        return False
    data = record[_HEADER:length]
    says = data[:1] == bytes([_DATA]) and int.from_bytes(data[2:10], "little") == start
    return says and _crc32c(data + record[:_CHECKSUMMED]) == checksum


def _crc32c(content: bytes) -> int:
    found = 0xFFFFFFFF
    for byte in content:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (_CASTAGNOLI if found & 1 else 0)
    return found ^ 0xFFFFFFFF
