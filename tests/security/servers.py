"""Servers that do what nobody should: real sockets, real git where git is asked.

A *hook* is a module's, an HTTP server of whoever wrote the module; it answers what the test wants, and remembers what it was shown.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository

_ADVERTISED = "application/x-git-upload-pack-advertisement"


class Quiet(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_: object) -> None:
        """Say nothing of who hung up."""


@contextlib.contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve for the time of a block; yields the address. Whoever hangs up on it ends only his own request."""
    with _Server(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(10)


# --- Git servers ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def redirecting(to: str) -> Iterator[str]:
    """A Git server that sends everybody to another one."""

    class Redirecting(Quiet):
        def do_GET(self) -> None:
            self.answer(302, Location=to + self.path)

    with serving(Redirecting) as url:
        yield f"{url}/shop.git"


@contextlib.contextmanager
def listing(line: bytes, lines: int) -> Iterator[str]:
    """A Git server that lists so many refs, all of them whatever it is asked for."""
    packet = b"%04x%b\n" % (len(line) + 5, line)
    first = b"%b HEAD\0\n" % (b"1" * 40)

    class Listing(Quiet):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", _ADVERTISED)
            self.end_headers()
            self.wfile.write(b"001e# service=git-upload-pack\n0000%04x%b" % (len(first) + 4, first))
            left = lines
            while left > 0:
                self.wfile.write(packet * min(left, 1000))
                left -= 1000
            self.wfile.write(b"0000")

    with serving(Listing) as url:
        yield f"{url}/shop.git"


@contextlib.contextmanager
def talking(folder: Path, script: str) -> Iterator[ServedRepository]:
    """A real Git server that runs a shell script instead of packing what is fetched."""
    folder.mkdir()
    (folder / "hook").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "hook").chmod(0o755)
    with GitServer(folder / "git", config={"uploadpack.packObjectsHook": str(folder / "hook")}) as server:
        yield server.create("shop")


# --- the hook of a module ----------------------------------------------------------------------------------------------


class Hook:
    """What a module's hook answers from now on, and what it was asked. *url* is where."""

    def __init__(self) -> None:
        self.url = ""
        self.children: list[dict] = []
        self.questions: list[str] = []

    def answer(self, question: str) -> bytes:
        self.questions.append(question)
        return json.dumps({"status": {"asked": len(self.questions)}, "children": self.children}).encode()


@contextlib.contextmanager
def hook_of_a_module() -> Iterator[Hook]:
    """The hook, for the time of a block."""
    hook = Hook()

    class Hooked(Quiet):
        def do_POST(self) -> None:
            question = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.answer(200, hook.answer(question), Content_Type="application/json")

    with serving(Hooked) as url:
        hook.url = url
        yield hook
