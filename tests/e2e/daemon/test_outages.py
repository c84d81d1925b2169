"""Faults of everything that the daemon stands on: it neither lies nor stops, and what it missed it catches up with.

Nobody restarts the daemon here, and nobody asks it for anything.
"""

from __future__ import annotations

import contextlib
import resource
import secrets
import select
import signal
import socket
import subprocess
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tests import yaml_text
from tests.waiting import steadily

# --- the repository, and what we keep of it ---


def git(repository, *arguments):
    command = ["git", "-C", str(repository.folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.usefixtures("daemon")
def test_a_branch_that_is_pushed_by_force_is_followed_and_one_that_goes_is_missed(
    follow, cluster, git_server, config_map, eventually
):
    first = git_server.push({"a.yaml": config_map("a", color="red")})
    git_server.push({"b.yaml": config_map("b")})
    sync = follow(git_server.url, git={"branch": "main"})
    sync.until_synced(git_server.sha())
    git(git_server, "update-ref", "refs/heads/main", first)
    sync.until_synced(first)
    assert cluster.members("ConfigMap", "shop") == {"a"}
    git(git_server, "update-ref", "-d", "refs/heads/main")
    missing = sync.until("SourceUnavailable")
    assert "main" in missing["message"]
    assert cluster.members("ConfigMap", "shop") == {"a"}
    cluster.edit("ConfigMap", "a", {"data": {"color": "blue"}})
    eventually(lambda: cluster.get("ConfigMap", "a")["data"] == {"color": "red"}, "drift is put back meanwhile")
    git(git_server, "update-ref", "refs/heads/main", first)
    sync.until_synced(first)


def test_a_damaged_clone_and_a_damaged_cache_are_recreated(
    new_daemon, follow, cluster, git_server, config_map, tmp_path
):
    new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, XDG_CACHE_HOME=str(tmp_path)).start()
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"a.yaml": config_map("a")}))
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    damaged = [each for each in files if "objects" in each.parts or each.suffix == ".sqlite" or each.name == "HEAD"]
    assert len(damaged) >= 3
    for each in damaged:
        with contextlib.suppress(FileNotFoundError):  # one may have been there for a moment
            each.chmod(0o600)
            each.write_bytes(b"rubbish")
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="blue"), "b.yaml": config_map("b")}))
    assert cluster.get("ConfigMap", "a")["data"] == {"color": "blue"}


def test_a_disk_that_is_full_is_said_and_room_is_taken_up(
    new_daemon, follow, cluster, git_server, config_map, tmp_path, eventually
):
    cache = str(tmp_path / "cache")
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, XDG_CACHE_HOME=cache).start()
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="red")}))
    most = 2**18  # no file may grow beyond that, which is what a full disk comes to
    unlimited = resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    sha = git_server.push(
        {
            "a.yaml": config_map("a", color="blue"),
            "large.bin": secrets.token_bytes(2**20),
            "large.yaml": f"# {secrets.token_hex(2**20)}\n",
        }
    )
    sync.until("SourceUnavailable")
    cluster.edit("ConfigMap", "a", {"data": {"color": "green"}})
    eventually(lambda: cluster.get("ConfigMap", "a")["data"] == {"color": "red"}, "drift is put back meanwhile")
    resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, unlimited)
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "a")["data"] == {"color": "blue"}


# --- modules ---

WIDGETS = """
import time
from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.outcome import Outcome

@module(api="{group}/v1", kind="Widget", owns=["v1/ConfigMap"], name="widgets")
class Widgets:
    def reconcile(self, cr, owned, facts, ctx):
        how = cr["spec"].get("color")
        if how == "raises":
            raise RuntimeError("no idea")
        while how == "hangs":
            pass
        if how == "nonsense":
            return {{"children": 3}}
        if how == "poison":
            return Outcome([{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": {{1: 2}}}}}}])
        return Outcome([{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": ctx.name()}}}}])
"""


@pytest.fixture
def widgets(cluster, tmp_path):
    """A kind with a module in a package of its own; its group, and where the package is."""
    group = f"g{secrets.token_hex(4)}.example.com"
    name = f"widgets_{secrets.token_hex(4)}"
    (tmp_path / f"{name}.py").write_text(WIDGETS.format(group=group))
    facts = tmp_path / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[kubectl_reconcile.modules]\nwidgets = {name}\n")
    properties = {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}
    properties["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }  # fmt: skip
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    cluster.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    cluster.kubectl("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=300s")
    yield group, tmp_path
    cluster.delete("CustomResourceDefinition", f"widgets.{group}")


def test_a_module_that_fails_in_any_way_stops_nobody_else(
    new_daemon, cluster, widgets, memcached, follow, git_server, config_map, eventually, monkeypatch
):
    group, package = widgets
    monkeypatch.setenv("PYTHONPATH", str(package), prepend=":")
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace).start()
    collection = f"/apis/{group}/v1/namespaces/{cluster.namespace}/widgets"

    def apply(name, color):
        body = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"color": color}}
        cluster.api.ask(
            f"{collection}/{name}?fieldManager=by-hand&force=true",
            method="PATCH", body=body, type_="application/apply-patch+yaml",
        )  # fmt: skip

    def stalled(name):
        conditions = (cluster.api.ask(f"{collection}/{name}").get("status") or {}).get("conditions") or ()
        return next((one["message"] for one in conditions if one["type"] == "Stalled" and one["status"] == "True"), "")

    for fault in ("raises", "hangs", "nonsense", "poison"):
        apply(fault, fault)
    eventually(lambda: "no idea" in stalled("raises"), "an exception is a condition")
    eventually(lambda: "it was stopped" in stalled("hangs"), "so is a loop without end")
    eventually(lambda: "not an Outcome" in stalled("nonsense"), "and an answer that is none")
    eventually(lambda: stalled("poison"), "and a child that can't be")
    apply("fine", "red")
    eventually(lambda: cluster.get("ConfigMap", "fine-widgets") or cluster.get("ConfigMap", "fine"), "the others go on")
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"a.yaml": config_map("a"), "cache.yaml": memcached("cache", size=1)}))
    eventually(lambda: cluster.get("Deployment", "cache"), "other modules go on")
    assert daemon.answer("/healthz")[0] == 200
    apply("raises", "red")
    eventually(lambda: not stalled("raises"), "a mended one is well again")


# --- the way to the API server, and the server ---


class Line:
    """A TCP line to the API server that can be slow, cut in the middle of an answer, or dead."""

    def __init__(self, host, port):
        self._target, self._listener = (host, port), socket.create_server(("127.0.0.1", 0))
        self.port, self.pause_s, self.cut_after, self.dead = self._listener.getsockname()[1], 0.0, 0, False
        self._open, self._closed = set(), threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while not self._closed.is_set():
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near):
        with contextlib.suppress(OSError), near, socket.create_connection(self._target) as far:
            if self.dead:
                return
            self._open.add(near)
            carried = 0
            while not self._closed.is_set():
                ready, _, _ = select.select([near, far], [], [], 0.2)
                for one in ready:
                    data = one.recv(65536)
                    if not data or (self.dead):
                        return
                    if one is far:
                        time.sleep(self.pause_s)
                        carried += len(data)
                        if self.cut_after and carried > self.cut_after:
                            near.sendall(data[: len(data) // 2])
                            return
                    (far if one is near else near).sendall(data)
        self._open.discard(near)

    def break_all(self):
        """Break every connection that is open now."""
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._closed.set()
        self._listener.close()


@pytest.fixture
def line(kubeconfig, tmp_path):
    """A line to the shared cluster, and a kubeconfig that leads along it."""
    config = yaml_text.document(Path(kubeconfig).read_text())
    (entry,) = config["clusters"]
    host, _, port = entry["cluster"]["server"].removeprefix("https://").rpartition(":")
    with contextlib.closing(Line(host, int(port))) as line:
        entry["cluster"]["server"] = f"https://127.0.0.1:{line.port}"
        entry["cluster"]["tls-server-name"] = host
        line.kubeconfig = tmp_path / "through-the-line.kubeconfig"
        line.kubeconfig.write_text(yaml.safe_dump(config))
        yield line


def test_a_line_that_is_slow_cut_and_dead_in_turns_loses_nothing(
    new_daemon, line, follow, cluster, git_server, config_map, memcached, eventually
):
    daemon = new_daemon(line.kubeconfig, cluster.namespace).start()
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"a.yaml": config_map("a", at="0"), "cache.yaml": memcached("cache", size=1)}))
    eventually(lambda: cluster.get("Deployment", "cache"), "the Deployment is made")

    line.pause_s = 0.05
    sync.until_synced(git_server.push({"a.yaml": config_map("a", at="1")}))
    line.pause_s, line.cut_after = 0.0, 20_000
    line.break_all()
    sha = git_server.push({"a.yaml": config_map("a", at="2"), "b.yaml": config_map("b")})
    cluster.edit("Deployment", "cache", {"spec": {"replicas": 0}})
    line.cut_after, line.dead = 0, True
    line.break_all()
    eventually(lambda: daemon.answer("/readyz")[0] == 503, "it says that it is cut off")
    assert daemon.answer("/healthz")[0] == 200
    line.dead = False
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "a")["data"] == {"at": "2"}
    eventually(lambda: cluster.get("Deployment", "cache")["spec"]["replicas"] == 1, "drift is put back")
    eventually(lambda: daemon.answer("/readyz")[0] == 200, "it is ready again")
    assert "Traceback" not in daemon.log


@pytest.fixture
def narrow_cluster(own_cluster, crds_of):
    """A cluster whose server takes three requests at once and refuses the rest with 429, and a kubeconfig to be refused by."""
    limits = ("--enable-priority-and-fairness=false", "--max-requests-inflight=3", "--max-mutating-requests-inflight=2")
    cluster, sandbox = own_cluster(
        flags={"kube-apiserver": limits},
        users={"gardener": ("gardeners",)},  # unlike the administrator, who is never refused
        components=("etcd", "kube-apiserver"),
    )
    crds_of(cluster)
    cluster.kubectl("create", "clusterrolebinding", "gardeners", "--clusterrole=cluster-admin", "--group=gardeners")
    return cluster, sandbox, sandbox.kubeconfig_for("gardener", ("gardeners",))


def test_a_server_that_is_overrun_stands_still_or_is_away_is_waited_for(
    new_daemon, narrow_cluster, follow, git_server, config_map, eventually
):
    """One server for three outages, since starting one costs more than most of them."""
    cluster, sandbox, kubeconfig = narrow_cluster
    daemon = new_daemon(kubeconfig).start()
    sync = follow(git_server.url, on=cluster)
    sync.until_synced(git_server.push({"a.yaml": config_map("a", at="0"), "b.yaml": config_map("b", at="0")}))

    # More at once than it takes.
    many = {f"many/{number}.yaml": config_map(f"many-{number}") for number in range(150)}
    sync.until_synced(git_server.push(many))
    assert 'code="429"' in daemon.answer("/metrics")[1]
    assert "not applied" not in daemon.log

    # Its storage stands still.
    sandbox.signal("etcd", signal.SIGSTOP)
    try:
        sha = git_server.push({"a.yaml": config_map("a", at="1"), "b.yaml": None})
        eventually(lambda: daemon.answer("/readyz")[0] == 503, "it says that its Lease can't be renewed")
        assert daemon.answer("/healthz")[0] == 200
    finally:
        sandbox.signal("etcd", signal.SIGCONT)
    sync.until_synced(sha)

    # It is away for a while, and what came before its return it doesn't remember: positions in it are forgotten.
    sandbox.stop("kube-apiserver", grace_s=1)
    sha = git_server.push({"a.yaml": config_map("a", at="2"), "c.yaml": config_map("c", at="2")})
    steadily(lambda: daemon.answer("/healthz")[0] == 200, "it lives on", for_s=12, pause_s=1)
    eventually(lambda: daemon.answer("/readyz")[0] == 503, "it says so")
    sandbox.start("kube-apiserver")
    sync.until_synced(sha)

    assert {"a", "c"} <= cluster.members("ConfigMap", "shop")
    assert "b" not in cluster.members("ConfigMap", "shop")
    cluster.edit("ConfigMap", "a", {"data": {"at": "9"}})
    eventually(lambda: cluster.get("ConfigMap", "a")["data"] == {"at": "2"}, "drift is put back again")
    eventually(lambda: daemon.answer("/readyz")[0] == 200, "it is ready again")
    assert "Traceback" not in daemon.log


# --- the clock ---

JUMPS = """
import datetime, signal
import time_machine

YEAR = datetime.timedelta(days=365)

def jump(number, _frame):
    there = datetime.datetime.now(datetime.UTC) + (YEAR if number == signal.SIGUSR1 else -3 * YEAR)
    time_machine.travel(there, tick=True).start()

for each in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(each, jump)
"""


def test_a_clock_that_jumps_changes_nothing(new_daemon, follow, cluster, git_server, config_map, eventually, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(JUMPS)
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, PYTHONPATH=str(tmp_path)).start()

    def lease():
        (name,) = cluster.names("Lease", "reconcile.dev/component=daemon")
        return cluster.version("Lease", name)

    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"a.yaml": config_map("a", at="0")}))
    for at, (jump, year) in enumerate([(signal.SIGUSR1, 1), (signal.SIGUSR2, -2)], 1):
        said = len(daemon.log)
        daemon.process.send_signal(jump)
        sync.until_synced(git_server.push({"a.yaml": config_map("a", at=str(at))}))
        assert f"{datetime.now(UTC).year + year}-" in daemon.log[said:], "its clock is another"
        cluster.edit("ConfigMap", "a", {"data": {"at": "9"}})
        eventually(lambda at=at: cluster.get("ConfigMap", "a")["data"] == {"at": str(at)}, "drift is put back")
        renewed = lease()
        eventually(lambda renewed=renewed: lease() != renewed, "its Lease is renewed")
        assert daemon.answer("/readyz")[0] == 200
    assert "Traceback" not in daemon.log
    assert daemon.log.count("share settled") == 1, "it has been a member of its group all the time"
