"""What tests of rendering share: archives of charts, and a port that must hear nothing."""

from __future__ import annotations

import gzip
import io
import socket
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """Return *files* as the archive of a chart, as "helm package" makes it."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


@contextmanager
def silence() -> Iterator[tuple[int, list[object]]]:
    """A port of this machine that must hear nothing; yields it, and the connections that came anyway."""
    heard: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        done = threading.Event()

        def listen() -> None:
            while not done.is_set():
                try:
                    connection, address = server.accept()
                except TimeoutError:
                    continue
                heard.append(address)
                connection.close()

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            time.sleep(0.1)
            done.set()
            listener.join()
