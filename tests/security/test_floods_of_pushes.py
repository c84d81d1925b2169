"""Strangers at the port where Git servers tell of pushes: floods, dawdlers, replays. Memory stays, and genuine words are heard."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

SECRET = "only-we-know"
MEBIBYTE = 2**20


@pytest.fixture
def daemon(new_daemon, cluster, starting_with):
    """A daemon that follows the test's namespace, and remembers for longer than a test what it heard."""
    remembers = "from kubectl_reconcile.engine.daemon import push_receiver\npush_receiver._REMEMBERED_S = 10_000.0\n"
    return new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, **starting_with(remembers)).start()


@pytest.fixture
def hooked(daemon, follow, cluster, git_server, config_map):
    """A Sync that is polled once an hour, and told of pushes."""
    cluster.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "stringData": {"token": SECRET}})
    sync = follow(git_server.url, interval="1h", git={"branch": "main", "webhookSecretRef": {"name": "hook"}})
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="red")}))
    return sync


def signed(body, by=SECRET, **headers):
    return {"X-Hub-Signature-256": "sha256=" + hmac.new(by.encode(), body, hashlib.sha256).hexdigest(), **headers}


def post(address, path, body, headers):
    """Status and text of the answer; 0 where the connection was given up."""
    connection = http.client.HTTPConnection(address, timeout=120)
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


@contextlib.contextmanager
def watched_memory(daemon):
    """Yield a list that gets the most that the daemon held meanwhile beyond what it held before, in MiB."""
    process, over, grown = psutil.Process(daemon.process.pid), threading.Event(), [0.0]
    before = process.memory_info().rss

    def look():
        while not over.wait(0.01):
            grown[0] = max(grown[0], (process.memory_info().rss - before) / MEBIBYTE)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    yield grown
    over.set()
    looking.join(30)


def test_a_flood_of_large_bodies(daemon, hooked, cluster, git_server, config_map):
    body = b"x" * (5 * MEBIBYTE - 1)
    here, nowhere = (f"/hooks/{cluster.namespace}/{name}" for name in ("shop", "nobody"))
    kinds = [(here, {}), (here, signed(b"another")), (nowhere, signed(b"another")), (here, {"X-Gitlab-Token": "guess"})]
    with watched_memory(daemon) as grown, ThreadPoolExecutor(40) as pool:
        posts = [pool.submit(post, daemon.hooks, path, body, dict(headers)) for path, headers in kinds * 30]
        answers = {each.result()[0] for each in posts}
        assert daemon.answer("/healthz")[0] == 200
    assert answers <= {401, 408, 0}, "refused; too slow, where this test had no time to send on"
    assert grown[0] < 48, "120 posts of 5 MiB, and the daemon held some of each for a moment"
    sha = git_server.push({"a.yaml": config_map("a", color="blue")})
    word = json.dumps({"ref": "refs/heads/main"}).encode()
    assert post(daemon.hooks, here, word, signed(word)) == (202, "looking")
    hooked.until_synced(sha)


def held_at(daemon, port):
    """How many connections the daemon holds at a port of its own."""
    connections = psutil.Process(daemon.process.pid).net_connections("tcp")
    return sum(1 for each in connections if each.status == "ESTABLISHED" and each.laddr.port == port)


DAWDLERS = {
    "headers that don't end": b"POST /hooks/a/b HTTP/1.1\r\nHost: x\r\n",
    "nothing at all": b"",
    "a body that doesn't come": (
        b"POST /hooks/%s/shop HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: sha256=00\r\nContent-Length: 1000\r\n\r\nx"
    ),
}


@pytest.mark.parametrize("beginning", DAWDLERS.values(), ids=DAWDLERS)
def test_dawdlers_on_hundreds_of_connections(beginning, daemon, hooked, cluster, git_server, config_map, eventually):
    host, _, port = daemon.hooks.rpartition(":")
    sent = beginning.replace(b"%s", cluster.namespace.encode())
    with contextlib.ExitStack() as stack:
        open_ones = []
        for _ in range(300):
            one = stack.enter_context(socket.create_connection((host, int(port)), timeout=300))
            with contextlib.suppress(OSError):
                one.sendall(sent)
            open_ones.append(one)
        eventually(lambda: held_at(daemon, int(port)) <= 64, "the oldest connections are given up")
        sha = git_server.push({"a.yaml": config_map("a", color="blue")})
        word = json.dumps({"ref": "refs/heads/main"}).encode()
        assert post(daemon.hooks, f"/hooks/{cluster.namespace}/shop", word, signed(word)) == (202, "looking")
        hooked.until_synced(sha)
        began_s = time.monotonic()
        for one in open_ones:
            with contextlib.suppress(ConnectionResetError):
                while one.recv(65536):
                    pass
        assert time.monotonic() - began_s < 250, "nobody keeps a connection"


def test_endless_headers(daemon, hooked):
    host, _, port = daemon.hooks.rpartition(":")
    endless = b"POST / HTTP/1.1\r\n" + b"X: " + b"y" * 64 * MEBIBYTE
    with watched_memory(daemon) as grown, socket.create_connection((host, int(port)), timeout=300) as one:
        with contextlib.suppress(OSError):
            one.sendall(endless)
        with contextlib.suppress(OSError):
            assert (one.recv(65536) or b"HTTP/1.1 431 ").split()[1] in {b"431", b"408"}, "too large, or too slow"
    assert grown[0] < 16
    assert daemon.answer("/healthz")[0] == 200


def test_a_replay_wakes_nobody(daemon, hooked, cluster, git_server, config_map):
    path = f"/hooks/{cluster.namespace}/shop"
    word = json.dumps({"ref": "refs/heads/main", "after": "0" * 40}).encode()
    sha = git_server.push({"a.yaml": config_map("a", color="blue")})
    assert post(daemon.hooks, path, word, signed(word, **{"X-GitHub-Delivery": "one"})) == (202, "looking")
    hooked.until_synced(sha)
    polls = daemon.count("reconcile_polls_total")
    for number in range(50):
        headers = signed(word, **{"X-GitHub-Delivery": "one" if number % 2 else f"made up {number}"})
        assert post(daemon.hooks, path, word, headers) == (202, "heard before")
    assert daemon.count("reconcile_polls_total") == polls
    newer = json.dumps({"ref": "refs/heads/main", "after": "1" * 40}).encode()
    sha = git_server.push({"a.yaml": config_map("a", color="green")})
    assert post(daemon.hooks, path, newer, signed(newer, **{"X-GitHub-Delivery": "two"})) == (202, "looking")
    hooked.until_synced(sha)


def test_metrics_and_hooks_are_on_ports_of_their_own(daemon, cluster):
    host, _, port = daemon.hooks.rpartition(":")
    with contextlib.closing(http.client.HTTPConnection(host, int(port), timeout=120)) as connection:
        connection.request("GET", "/metrics")
        with connection.getresponse() as answer:
            assert answer.status == 404
    assert post(daemon.address, f"/hooks/{cluster.namespace}/shop", b"{}", {})[0] == 404
