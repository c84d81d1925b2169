"""Archives are unpacked in bounded memory and time, whatever packed them; what can't be is refused as a whole, in a sentence."""

import io
import struct
import sys
import tarfile
import time

import pytest

from kubectl_reconcile.source.charts.archive import files_of
from kubectl_reconcile.source.charts.zstd import MOST_FRAMES
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import GitLimits

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

FILES = {"a.yaml": b"a: b\n", "apps/large.yaml": b"".join(b"# %d\n" % number for number in range(100_000))}
MEBIBYTE = 2**20


def tarred(files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as made:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    return raw.getvalue()


def skipped(data):
    """A frame that is nothing to whoever unpacks."""
    return struct.pack("<II", 0x184D2A50, len(data)) + data


def in_frames(data, size):
    return b"".join(zstd.compress(data[at : at + size]) + skipped(b"index") for at in range(0, len(data), size))


def with_window(data, log):
    return zstd.compress(data, options={zstd.CompressionParameter.window_log: log})


PACKED = {
    "at once": zstd.compress,
    "as hard as it goes": lambda data: zstd.compress(data, 19),
    "without its length": lambda data: zstd.compress(data, options={zstd.CompressionParameter.content_size_flag: 0}),
    "with a checksum": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),
    "in frames of odd lengths, with others between": lambda data: in_frames(data, 10_007),
    "in one frame of a piece that is read at a time": lambda data: in_frames(data, 64 * 1024),
}


@pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)
def test_what_zstd_has_packed_is_read(pack):
    assert files_of(pack(tarred(FILES)), "it", GitLimits()) == FILES


def chained_headers(count):
    """An entry with so many headers before it that say more of it."""
    header = tarfile.TarInfo("more")
    header.type, record = tarfile.XHDTYPE, b"6 a=b\n"
    header.size = len(record)
    one = header.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")
    return one * count + tarfile.TarInfo("a.yaml").tobuf() + b"\0" * 1024


WHOLE = zstd.compress(tarred(FILES), options={zstd.CompressionParameter.checksum_flag: 1})
REFUSED = {
    "that is cut off": (lambda: WHOLE[:-10], "isn't a tar archive packed by zstd: it is cut off"),
    "that is nothing but a beginning": (lambda: WHOLE[:4] + b"\0" * 50, "isn't a tar archive packed by zstd"),
    "with a checksum of something else": (lambda: WHOLE[:-4] + b"\0" * 4, "doesn't match"),
    "of no archive": (lambda: zstd.compress(b"<html>" * 100), "isn't a tar archive packed by zstd"),
    "that unpacks to too much": (lambda: zstd.compress(tarred({str(number): b"\0" * 9 * MEBIBYTE for number in range(8)})), "unpacks to more than 64 MiB"),
    "with a window larger than that": (lambda: with_window(b"\0" * 200 * MEBIBYTE, 27), "too much memory"),
    "of frames of nothing": (lambda: zstd.compress(b"") + skipped(b"") * (2 * MEBIBYTE), f"more than {MOST_FRAMES:,} frames"),
    "of empty frames": (lambda: zstd.compress(b"") * MEBIBYTE, f"more than {MOST_FRAMES:,} frames"),
    "of headers without end": (lambda: chained_headers(5_000), "too many headers that belong to one entry"),
}  # fmt: skip


@pytest.mark.parametrize(("made", "why"), REFUSED.values(), ids=REFUSED)
def test_an_archive_is_refused(made, why):
    packed = made()
    begun = time.monotonic()
    with pytest.raises(SourceError) as refused:
        files_of(packed, "it", GitLimits())
    assert refused.value.fault is SourceFault.REFUSED
    assert why in str(refused.value)
    assert time.monotonic() - begun < 20
