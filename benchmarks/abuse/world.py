"""The cluster of the run: four teams as the documentation sets them up, and the daemon with the rights of ``install`` and nothing more."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.abuse.container import Container, container
from benchmarks.process import PROGRAM, Daemon
from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.sandbox.build import build
from kubectl_reconcile.sandbox.components import Component, Options
from kubectl_reconcile.sandbox.controlplane import Sandbox
from tests import yaml_text
from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.kubectl import Kubectl
from tests.security.tenants import DAEMON, GROUP, USERS, account, manifest

HOME: Final = "reconcile-system"
ABUSER: Final = "team-a"
QUIET: Final = ("team-b", "team-c", "team-d")
PEOPLE: Final = {ABUSER: ("mallory", "mallet"), **{team: (f"person-of-{team}",) for team in QUIET}}
"""Who is in which team."""
_COMPONENTS: Final = (Component.ETCD, Component.API_SERVER, Component.CONTROLLERS)
_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")


@dataclass
class World:
    """The cluster as its administrator sees it, the *daemon* in its *container*, and how often that *ended* by itself."""

    cluster: Cluster
    sandbox: Sandbox
    daemon: Daemon
    container: Container
    root: Path
    tokens: Mapping[str, str] = field(repr=False)
    ended: int = 0

    def start(self) -> None:
        """Start the daemon, in its container."""
        self.daemon.start()
        self.container.put(self.daemon.facts.pid)

    def look_after(self) -> None:
        """Start the daemon again where it has ended by itself, as a cluster does."""
        if self.daemon.process is not None and self.daemon.process.poll() is not None:
            self.ended += 1
            self.start()

    def cpu_s(self) -> dict[str, float]:
        """Return the processor time of the daemon, of what it has started and waited for, and of the control plane."""
        found = {"daemon": self.daemon.cpu_s}
        with contextlib.suppress(psutil.Error):
            spent = self.daemon.facts.cpu_times()
            found["its children"] = spent.children_user + spent.children_system
        for each in self.sandbox.status().components:
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(each.pid or 0).cpu_times()
                found[each.component.value] = times.user + times.system
        return found

    @property
    def page(self) -> str:
        """Where the daemon serves its page."""
        found: str = re.findall(r" started .*\bui=([\w.:]+)", self.daemon.text())[-1]
        return found


@contextlib.contextmanager
def world() -> Iterator[World]:
    """Yield a cluster for the time of a block, in which the daemon isn't started yet."""
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="abuse-")))
        sandbox = Sandbox("bench-abuse", root=root / "sandbox")
        stack.callback(sandbox.down)
        people = {name: ("system:authenticated", team) for team, names in PEOPLE.items() for name in names}
        sandbox.up(Options(users={DAEMON: USERS[DAEMON], **people}, components=_COMPONENTS))
        kubectl = Kubectl(str(sandbox.kubeconfig), build(lambda _: None).folder)
        cluster = Cluster(stack.enter_context(contextlib.closing(Api(kubectl))), kubectl, HOME)
        environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
        subprocess.run([str(PROGRAM), "install", "--ui"], check=True, env=environ, stdout=subprocess.DEVNULL)
        kubectl("delete", "deployment/kubectl-reconcile", "-n", HOME)  # it runs as a program here
        for team in PEOPLE:
            _set_up(kubectl, team)
        home = root / "cache"
        (home / "kubectl-reconcile").mkdir(parents=True)
        (home / "kubectl-reconcile" / "render").symlink_to(cache_dir() / "render")
        options = ("--lease-namespace=" + HOME, "--git-max-memory=640", "--module-accounts", "--ui=127.0.0.1:0")
        daemon = Daemon(sandbox.kubeconfig_for(DAEMON), root / "daemon.log", home, options)
        held = stack.enter_context(container(f"kubectl-reconcile-{os.getpid()}"))
        stack.callback(daemon.stop)
        tokens = {name: _token(sandbox.kubeconfig_for(name)) for name in people}
        yield World(cluster, sandbox, daemon, held, root, tokens)


def _set_up(kubectl: Kubectl, team: str) -> None:
    """Set up a team as ``docs/many-teams.md`` does."""
    kubectl("create", "namespace", team)
    kubectl("create", "serviceaccount", "kubectl-reconcile", "-n", team)
    group = {"kind": "Group", "apiGroup": GROUP, "name": team}
    syncs = {"apiGroups": ["reconcile.dev"], "resources": ["syncs"], "verbs": _VERBS}

    def bound(name: str, kind: str, subject: Mapping[str, str]) -> dict[str, Any]:
        ref = {"apiGroup": GROUP, "kind": kind, "name": name}
        return manifest(f"{GROUP}/v1", "RoleBinding", name, team, roleRef=ref, subjects=[subject])

    kubectl.apply(
        [
            manifest(f"{GROUP}/v1", "Role", "syncs", team, rules=[syncs]),
            bound("edit", "ClusterRole", account(team)),
            bound("syncs", "Role", group),
            bound("view", "ClusterRole", group),
        ]
    )


def _token(kubeconfig: Path) -> str:
    users = yaml_text.document(kubeconfig.read_text())["users"]
    return str(users[0]["user"]["token"])


def config_map(name: str, **data: str) -> str:
    """Return the file of one ConfigMap."""
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
