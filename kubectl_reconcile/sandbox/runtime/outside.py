"""The outer end of what connects a runtime to the machine's loopback."""

from __future__ import annotations

import socket

_CONNECT_S = 3.0
_LONGEST = 16


def give_connection(asked: socket.socket) -> None:
    """Answer one request, a port and a line end, by a connection to that port of the machine's loopback, or by none."""
    port = asked.recv(_LONGEST)
    try:
        with socket.create_connection(("127.0.0.1", int(port)), timeout=_CONNECT_S) as connection:
            connection.setblocking(False)
            socket.send_fds(asked, [b"+"], [connection.fileno()])
    except (OSError, ValueError):
        asked.sendall(b"-")
