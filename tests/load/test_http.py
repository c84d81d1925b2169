"""Load on a real server of this machine: what it is asked, and what it is told of the answers."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def server():
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            asked.append(self.path)
            status = {"/moved": 302, "/broken": 500}.get(self.path, 200)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_):
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{found.server_port}", asked
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


def load(url, *arguments):
    words = [sys.executable, "-m", "kubectl_reconcile.cli.main", "load", url, "-o", "json", *arguments]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_a_server_gets_as_many_requests_as_are_due_and_no_redirection_is_followed():
    with server() as (url, asked):
        told = load(f"{url}/moved", "--rate", "50", "--duration", "1s", "--connections", "3", "--timeout", "2m")
    assert asked == ["/moved"] * 50
    assert (told["requests"], told["errors"], told["statuses"]) == (50, 0, {"302": 50})
    assert 0 < told["p50_ms"] <= told["p99_ms"] <= told["max_ms"]


def test_requests_go_to_the_address_that_is_given_whatever_the_name_leads_to():
    with server() as (url, asked):
        port = url.rpartition(":")[2]
        told = load(
            f"http://web.shop.invalid:{port}/a", "--rate", "10", "--duration", "1s", "--connect-to", "127.0.0.1"
        )
    assert (asked, told["errors"]) == (["/a"] * 10, 0)


def test_errors_are_counted_by_what_they_are():
    with server() as (url, _):
        told = load(f"{url}/broken", "--rate", "10", "--duration", "1s", "--timeout", "2m")
    assert (told["errors"], told["statuses"]) == (10, {"500": 10})
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and doesn't listen
        told = load(f"http://127.0.0.1:{nobody.getsockname()[1]}/", "--rate", "10", "--duration", "1s")
    assert (told["errors"], told["faults"]) == (10, {"ClientConnectorError": 10})
