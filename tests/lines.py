"""A TCP line to a server that can break in the ways that nobody is told of."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from pathlib import Path

import yaml

from tests import yaml_text

_KEPT_S = 2.0


class Line:
    """Carries connections to *host* and *port*. Some may be dead, others late; all look well from both ends.

    *lost* are the ports of clients of whose silent connections something came that nobody hears.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target, self._listener = (host, port), socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._silenced_s = self._held_s = self._passed_s = 0.0
        self.lost: set[int] = set()
        self._closed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        """Let nothing pass any more along the connections that there are; new ones work."""
        self._silenced_s = time.monotonic()

    def hold(self) -> None:
        """Keep what clients send, on all connections; of what they send more than two seconds later nothing arrives ever."""
        self._held_s = time.monotonic()

    def let_go(self) -> None:
        """Deliver what was kept, and carry all as before."""
        self._held_s = 0.0

    def is_quiet(self, for_s: float = 1.0) -> bool:
        """Tell whether nothing has come from either end for so long: no request is under way."""
        return time.monotonic() - self._passed_s >= for_s

    def close(self) -> None:
        self._closed.set()
        self._listener.close()

    def kubeconfig(self, of: str | Path, to: Path) -> Path:
        """Write a kubeconfig that leads along this line, like the one *of* that leads straight."""
        config = yaml_text.document(Path(of).read_text())
        (entry,) = config["clusters"]
        entry["cluster"] |= {"server": f"https://127.0.0.1:{self.port}", "tls-server-name": self._target[0]}
        to.touch(0o600)
        to.write_text(yaml.safe_dump(config))
        return to

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closed.is_set():
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        born_s, kept, hears = time.monotonic(), b"", [near]
        with contextlib.suppress(OSError), near, socket.create_connection(self._target) as far:
            hears.append(far)
            while not self._closed.is_set() and (hears != [far] or kept or self._held_s):
                if kept and not self._held_s:
                    far.sendall(kept)
                    kept = b""
                    time.sleep(0.5)  # the server is to answer before it learns that nobody listens any more
                for one in select.select(hears, [], [], 0.02)[0]:
                    data, self._passed_s = _received(one), time.monotonic()
                    if not data and (one is far or not kept):
                        return
                    if not data:
                        hears = [far]
                    elif one is near and self._held_s:
                        kept += data if time.monotonic() - self._held_s < _KEPT_S else b""
                    elif born_s > self._silenced_s:
                        with contextlib.suppress(OSError):
                            (far if one is near else near).sendall(data)
                    elif one is near:
                        self.lost.add(near.getpeername()[1])


class Gate:
    """A way to the server at *host* and *port* that lets nobody in while it is shut: who comes then waits. *waiting* counts them."""

    def __init__(self, host: str, port: int) -> None:
        self._target, self._listener = (host, port), socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.waiting = 0
        self._open = threading.Event()
        self._open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._listener.close()
        self._open.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near:
            self.waiting += not self._open.is_set()
            self._open.wait()
            with contextlib.suppress(OSError), socket.create_connection(self._target) as far:
                while True:
                    for one in select.select([near, far], [], [], 60)[0]:
                        if not (data := _received(one)):
                            return
                        (far if one is near else near).sendall(data)


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


def line_to(kubeconfig: str | Path) -> Line:
    """Return a line to the server that a kubeconfig names."""
    (entry,) = yaml_text.document(Path(kubeconfig).read_text())["clusters"]
    host, _, port = entry["cluster"]["server"].removeprefix("https://").rpartition(":")
    return Line(host, int(port))
