"""SPDY frames, as a nodelet reads and writes them."""

import struct
import zlib

import pytest

from kubectl_reconcile.sandbox.pods.served.spdy import _DICTIONARY, Opened, Pinged, Received, SpdyConnection


def syn_stream(deflate, stream, **headers) -> bytes:
    block = struct.pack(">I", len(headers))
    for word in (word.encode() for pair in headers.items() for word in pair):
        block += struct.pack(">I", len(word)) + word
    body = struct.pack(">II", stream, 0) + bytes(2) + deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return b"\x80\x03\x00\x01\x00" + len(body).to_bytes(3) + body


def test_streams_are_opened_one_after_another_however_the_bytes_arrive():
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    ping = b"\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x07"
    sent = [
        syn_stream(deflate, 1, streamtype="error", port="80", requestid="0"),
        syn_stream(deflate, 3, streamtype="data", port="80", requestid="0"),
        SpdyConnection.data(3, b"hello"),
        ping,
        SpdyConnection.data(3, ended=True),
    ]
    connection = SpdyConnection()
    heard = [event for byte in b"".join(sent) for event in connection.receive(bytes([byte]))]
    assert heard == [
        Opened(1, {"streamtype": "error", "port": "80", "requestid": "0"}),
        Opened(3, {"streamtype": "data", "port": "80", "requestid": "0"}),
        Received(3, b"hello"),
        Pinged(ping),
        Received(3, b"", ended=True),
    ]


def test_a_stream_is_accepted_without_headers():
    connection = SpdyConnection()
    inflate = zlib.decompressobj(zdict=_DICTIONARY)
    for stream in (1, 3):
        frame = connection.accept(stream)
        assert frame[:4] == b"\x80\x03\x00\x02"
        assert int.from_bytes(frame[8:12]) == stream
        assert inflate.decompress(frame[12:]) == bytes(4)


def test_another_version_is_refused():
    with pytest.raises(ValueError, match="SPDY of version 2, not 3"):
        list(SpdyConnection().receive(b"\x80\x02\x00\x01\x00\x00\x00\x00"))
