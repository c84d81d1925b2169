"""Git servers that take every connection and never answer: real sockets, as many addresses as are wanted."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator


class Tarpit:
    """So many servers, each at a port of its own. *urls* has one URL each; what they were sent is read and forgotten."""

    def __init__(self, servers: int = 1) -> None:
        self._selector = selectors.DefaultSelector()
        self._listeners = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(servers)]
        self._held: list[socket.socket] = []
        self._over = threading.Event()
        for listener in self._listeners:
            self._selector.register(listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{each.getsockname()[1]}/team/shop.git" for each in self._listeners]

    @property
    def taken(self) -> int:
        """How many connections were taken so far."""
        return len(self._held)

    @property
    def waiting(self) -> int:
        """How many of those who came are there still."""
        return sum(map(_is_there, self._held))

    def _take(self) -> None:
        while not self._over.is_set():
            for key, _ in self._selector.select(timeout=0.2):
                with contextlib.suppress(OSError):
                    self._held.append(key.fileobj.accept()[0])

    def close(self) -> None:
        self._over.set()
        self._thread.join(10)
        for each in (*self._held, *self._listeners):
            each.close()
        self._selector.close()


def _is_there(visitor: socket.socket) -> bool:
    """Tell whether the other side hasn't hung up; what it has sent is read and forgotten."""
    try:
        while visitor.recv(65536, socket.MSG_DONTWAIT):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextlib.contextmanager
def tarpit(servers: int = 1) -> Iterator[Tarpit]:
    """Servers that never answer, for the time of a block."""
    opened = Tarpit(servers)
    try:
        yield opened
    finally:
        opened.close()
