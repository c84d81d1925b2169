"""A web server in front of a Git server, as there is one in front of most."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Front:
    """A web server in front of a Git server: keeps connections, and does to an answer what *meddle* says: (path, headers, body) -> body.

    Remembers each request with the connection that it came on. An *older* one speaks no version 2.
    """

    behind: str
    older: bool = False
    meddle: Callable[[str, dict[str, str], bytes], bytes] = lambda _path, _headers, body: body
    requests: list[tuple[str, int]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    url: str = ""
    hang_up: bool = False

    @property
    def questions(self) -> int:
        """How often it was asked where refs are by anybody but git."""
        return sum(
            what.startswith("POST") and not agent.startswith("git/2")
            for (what, _), agent in zip(self.requests, self.agents, strict=False)  # one may just come
        )

    @property
    def connections(self) -> int:
        return len({connection for _, connection in self.requests})


@contextlib.contextmanager
def front(behind: str, host: str = "127.0.0.1", **options) -> Iterator[Front]:
    """One, for the time of a block."""
    made = Front(behind, **options)
    target = http.client.urlsplit(behind)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def log_message(self, *_) -> None:
            pass

        def do_GET(self) -> None:
            made.requests.append((f"{self.command} {self.path}", self.client_address[1]))
            made.shown.append(self.headers.get("Authorization", ""))
            made.agents.append(self.headers.get("User-Agent", ""))
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            kept = ("Content-Type", "Git-Protocol", "Authorization")
            sent = {name: value for name, value in self.headers.items() if name in kept}
            if made.older:
                sent.pop("Git-Protocol", None)
            with contextlib.closing(http.client.HTTPConnection(target.hostname, target.port, timeout=120)) as talk:
                talk.request(self.command, self.path, body or None, sent)
                answer = talk.getresponse()
                headers = {"Content-Type": answer.getheader("Content-Type", "")}
                said = made.meddle(self.path, headers, answer.read())
            self.send_response(int(headers.pop("Status", answer.status)))
            for name, value in {"Content-Length": str(len(said)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)
            self.close_connection = made.hang_up

        def do_POST(self) -> None:
            self.do_GET()

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        daemon_threads = True

        def handle_error(self, *_) -> None:
            pass

    with Server((host, 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        serving.start()
        name = f"[{host}]" if ":" in host else host
        made.url = f"http://{name}:{server.server_port}{target.path}"
        yield made
        server.shutdown()
        serving.join(120)
