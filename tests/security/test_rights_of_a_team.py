"""A team confined by the commands of the documentation: its Syncs write in its namespace, and nowhere else."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from kubectl_reconcile.engine.modules.registry import installed_modules
from tests import yaml_text

SECURITY = Path(__file__).parents[2] / "docs" / "security.md"
INSTALL = SECURITY.parents[1] / "deploy" / "install.yaml"
DAEMON = "kubectl-reconcile-daemon"
MODULES = "kubectl-reconcile-module-"
RBAC = "rbac.authorization.k8s.io"


def commands():
    """The commands by which the documentation confines team-a."""
    text = SECURITY.read_text().partition("## Rights of a Sync")[2]
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[:1]
    return block.splitlines()


@pytest.fixture
def team(kubectl, namespace):
    """A namespace and a group of that name, confined; deleted afterwards."""
    name = f"{namespace}-team"
    for command in commands():
        program, *words = shlex.split(command.replace("team-a", name))
        assert program == "kubectl"
        kubectl(*words)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def test_they_are_five():
    assert len(commands()) == 5


ROW = re.compile(r"^\| (.+?) \| (everywhere|its own namespace) \| .+ \|$", re.MULTILINE)
RIGHT = re.compile(r"([a-z, ]+?) `([a-z/]+)`(?: named `([a-z-]+…?)`)?")


def told():
    """The daemon's rights as the documentation tells them: resource, verbs, where, name."""
    text = SECURITY.read_text().partition("### The daemon's own rights, line by line")[2].partition("\n## ")[0]
    rows = [(part, where) for what, where in ROW.findall(text) for part in what.split("; ")]
    found = [(RIGHT.fullmatch(part), where) for part, where in rows]
    return {(one[2], frozenset(one[1].split(", ")), where, (one[3] or "").rstrip("…")) for one, where in found if one}


def given():
    """The same as ``deploy/install.yaml`` gives them, but for the custom resources of modules, which have a line of their own."""
    manifests = [each for each in yaml_text.documents(INSTALL.read_text()) if each["metadata"]["name"] == DAEMON]
    for role in (each for each in manifests if each["kind"] in {"ClusterRole", "Role"}):
        where = "its own namespace" if role["kind"] == "Role" else "everywhere"
        for rule in role["rules"]:
            names = rule.get("resourceNames", [""])
            name = names[0] if len(names) == 1 else MODULES
            assert all(each.startswith(name) for each in names)
            if not set(rule["apiGroups"]) & {gvk.group for gvk in installed_modules()}:
                yield from ((each, frozenset(rule["verbs"]), where, name) for each in rule["resources"])


def test_the_daemons_rights_are_told_line_by_line():
    assert set(given()) == told()
    assert len(told()) == 8


def a(kind, name, namespace="", api="v1", **content):
    place = {"namespace": namespace} if namespace else {}
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name, **place}, **content})


def test_a_confined_team_gets_no_more_than_its_namespace(
    team, cluster, plugin, git_server, new_daemon, namespace, eventually
):
    cluster.distrust()
    boss = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    us = [{"kind": "ServiceAccount", "name": "kubectl-reconcile", "namespace": team}]
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    sha = git_server.push(
        {
            "web.json": a("ConfigMap", "web"),
            "stolen.json": a("ConfigMap", "stolen", namespace),
            "boss.json": a("ClusterRoleBinding", f"boss-{team}", api=f"{RBAC}/v1", roleRef=boss, subjects=us),
            "role.json": a("Role", "all", api=f"{RBAC}/v1", rules=rules),
        }
    )
    at_home = cluster.at(team)
    new_daemon(cluster.kubectl.kubeconfig, team).start()
    ann = ["--as", "ann", "--as-group", team]
    made = plugin.on(at_home)("create", "shop", "--url", git_server.url, "--interval", "1s", "--no-grant", *ann)
    assert made.status == 0, made.err

    def ready():
        status = at_home.get("Sync", "shop").get("status") or {}
        found = [one for one in status.get("conditions") or () if one["type"] == "Ready"]
        return found[0] if found and status.get("lastAttemptedRevision") == sha else None

    eventually(lambda: at_home.get("ConfigMap", "web"), "what the team may write is written")
    said = f"ServiceAccount {team}/kubectl-reconcile lacks rights on 3 objects: "
    eventually(lambda: ready()["status"] == "False" and said in ready()["message"], "the Sync says how it went")
    assert cluster.get("ConfigMap", "stolen") is None
    bindings = cluster.kubectl("get", "clusterrolebindings", "-o", "name")
    assert f"boss-{team}" not in bindings
    assert cluster.kubectl("get", "roles", "-n", team, "-o", "name").split() == [f"role.{RBAC}/syncs"]

    elsewhere = plugin("create", "shop", "--url", git_server.url, "--no-grant", *ann)
    assert (elsewhere.status, cluster.get("Sync", "shop")) == (3, None)  # nor makes it Syncs elsewhere
