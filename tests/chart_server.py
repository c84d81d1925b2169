"""A Helm repository of this machine: a plain web server, with what each path answers."""

from __future__ import annotations

import ssl
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def index(*entries, name="web"):
    """Return an index with these versions of a chart: version, digest, URL."""
    lines = [
        f"  - {{name: {name}, version: {version}, digest: '{digest}', urls: ['{url}']}}"
        for version, digest, url in entries
    ]
    return "\n".join(
        ["apiVersion: v1", "entries:", "  other:", "  - {version: 9.9.9}", f"  {name}:", *lines, "generated: x", ""]
    ).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers with what the test says of a path: bytes, a function of this, or a URL to go to."""

    pages: dict
    asked: list
    password = ""

    def do_GET(self):
        self.asked.append((self.path, self.headers.get("Authorization")))
        if self.password and self.headers.get("Authorization") != self.password:
            self.send_error(401)
            return
        page = self.pages.get(self.path)
        if page is None:
            self.send_error(404)
        elif callable(page):
            page(self)
        elif isinstance(page, str):
            self.send_response(302)
            self.send_header("Location", page)
            self.end_headers()
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def serving(pages, password="", certificate=None):
    """Serve *pages* by their paths, to who has *password*; yield the URL, and what was asked with which header of authorization."""
    handler = type("Pages", (Handler,), {"pages": pages, "asked": [], "password": password})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}", handler.asked
        finally:
            server.shutdown()
            thread.join()


def forever(handler):
    """Answer without end."""
    handler.send_response(200)
    handler.end_headers()
    piece = b"#" * 65536
    try:
        while True:
            handler.wfile.write(piece)
    except OSError:
        pass


def dripping(handler):
    """Answer byte by byte, for minutes."""
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(10_000):
            handler.wfile.write(b"#")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass
