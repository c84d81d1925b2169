"""doctor on a real cluster: all well, a cluster out of reach, missing CRDs, rights, daemon and Git."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests import forked
from tests.e2e.cluster import until_may
from tests.waiting import patiently

BIN = Path(sys.executable).parent


@pytest.fixture
def findings(plugin):
    """findings() -> the findings by subject, and the exit status; findings(other_plugin) asks as somebody else."""

    def ask(asked=plugin, *words):
        done = asked("doctor", "-o", "json", *words)
        assert done.err == ""
        found = {}
        for text in done.out.splitlines():
            finding = json.loads(text)
            found.setdefault(finding["subject"], finding)
        return found, done.status

    return ask


def test_all_is_well(plugin, findings, follow, git_server, daemon, config_map, namespace, cluster):
    sha = git_server.push({"web.yaml": config_map("web")})
    sync = follow(git_server.url)
    sync.until_synced(sha)
    patiently(lambda: sync.condition("Ready")["status"] == "True", "it is ready")
    cluster.kubectl("create", "serviceaccount", "kubectl-reconcile", "-n", namespace)
    found, status = findings()
    assert {subject: one["grade"] for subject, one in found.items()} == dict.fromkeys(
        (
            "program",
            "plugin",
            "modules",
            "cluster",
            "clock",
            "crds",
            "rights",
            "accounts",
            "daemon",
            f"{namespace}/shop",
        ),
        "ok",
    )
    assert status == ExitStatus.OK
    assert found[f"{namespace}/shop"]["text"] == f"Git answers, at {sha[:7]}; it is ready"
    told = plugin("doctor").out.splitlines()
    assert told[0].startswith("ok    program    kubectl-reconcile ")
    assert told[-1] == "10 ok"


def test_a_repository_that_is_gone_fails_and_the_others_are_still_asked(
    findings, follow, git_server, daemon, namespace, config_map
):
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url, name="good")
    follow("http://127.0.0.1:1/gone.git", name="lost")
    follow(git_server.url, name="astray", git={"branch": "nobody"})
    found, status = findings()
    assert status == ExitStatus.FAILED
    assert found[f"{namespace}/good"]["grade"] == "ok"
    assert found[f"{namespace}/lost"]["grade"] == "fail"
    assert found[f"{namespace}/lost"]["advice"] == "check the URL and the network; the daemon tries again"
    assert 'it has no branch "nobody"' in found[f"{namespace}/astray"]["text"]


def test_syncs_without_a_daemon_wait_in_vain(findings, follow, git_server, config_map, plugin):
    found, status = findings()
    assert (found["daemon"]["grade"], status) == ("warn", ExitStatus.OK)
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url)
    found, status = findings()
    assert (found["daemon"]["grade"], status) == ("fail", ExitStatus.FAILED)
    assert found["daemon"]["text"] == "none is running, and a Sync waits for one"
    assert "kubectl reconcile install" in found["daemon"]["advice"]


def test_rights_that_you_lack_are_named_with_the_rules(findings, sandbox, kubectl, plugin, namespace, cluster, follow):
    kubectl("create", "role", "looker", "--verb=get,list", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "looker", "--role=looker", "--user=looker", "-n", namespace)
    until_may(kubectl, "looker", "list", "syncs.reconcile.dev", namespace)
    looker = type(plugin)(kubectl.using(sandbox.kubeconfig_for("looker")), namespace)
    found, status = findings(looker)
    assert (found["rights"]["grade"], status) == ("warn", ExitStatus.OK)
    assert f"you may not patch syncs in namespace {namespace}, so you can't sync, suspend" in found["rights"]["text"]
    assert '{apiGroups: ["reconcile.dev"], resources: ["syncs"], verbs: ["patch"]}' in found["rights"]["advice"]
    assert "list syncs" not in found["rights"]["text"]
    assert "secrets" not in found["rights"]["text"]
    chart = {
        "repository": "https://charts.example.com",
        "name": "web",
        "version": "1.2.3",
        "secretRef": {"name": "charts"},
    }
    follow("https://git.example.com/shop.git", suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"source": {"chart": chart}}})
    found, _ = findings(looker)
    assert f"you may not get secrets in namespace {namespace}" in found["rights"]["text"]


def test_a_cluster_out_of_reach_ends_the_examination(tmp_path):
    done = forked.run(["doctor", "--server", "https://127.0.0.1:1", "--token", "s3cr3t"])
    assert done.returncode == ExitStatus.CLUSTER
    assert "fail  cluster    no answer from the API server https://127.0.0.1:1: connection refused" in done.stdout
    assert done.stdout.endswith("3 ok, 1 fail\n")
    assert (done.stderr, "s3cr3t" in done.stdout) == ("", False)


def test_no_way_to_a_cluster_is_a_finding_too(tmp_path):
    environ = {**os.environ, "KUBECONFIG": str(tmp_path / "nowhere")}
    done = forked.run(["doctor"], env=environ)
    assert (done.returncode, "fail  cluster" in done.stdout, "Traceback" in done.stderr) == (
        ExitStatus.CLUSTER,
        True,
        False,
    )


def test_a_machine_without_git_or_kubectl(kubeconfig, tmp_path):
    environ = {**os.environ, "PATH": str(tmp_path), "KUBECONFIG": kubeconfig}
    done = subprocess.run(
        [sys.executable, BIN / "kubectl-reconcile", "doctor"], capture_output=True, text=True, check=False, env=environ
    )
    assert "git is not installed here" in done.stdout
    assert "kubectl and kubectl-reconcile not on PATH" in done.stdout
    assert done.returncode == ExitStatus.FAILED


def test_crds_that_are_missing_or_another_version(own_cluster, crds_of, plugin, findings):
    cluster, _ = own_cluster(components=("etcd", "kube-apiserver"))
    crds_of(cluster)
    ours = plugin.on(cluster)
    assert findings(ours)[0]["crds"]["grade"] == "ok"
    name = "syncs.reconcile.dev"
    cluster.edit("CustomResourceDefinition", name, {"spec": {"names": {"shortNames": ["sy"]}}})
    assert findings(ours)[0]["crds"]["grade"] == "ok"
    crd = cluster.get("CustomResourceDefinition", name)
    versions = crd["spec"]["versions"]
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("atomic")
    cluster.edit("CustomResourceDefinition", name, {"spec": {"versions": versions}})
    found, status = findings(ours)
    assert (found["crds"]["text"], status) == (f"not those of this version: {name}", ExitStatus.OK)
    cluster.delete("CustomResourceDefinition", name)
    patiently(lambda: cluster.get("CustomResourceDefinition", name) is None, "it is gone")
    found, status = findings(ours)
    assert (found["crds"]["grade"], status) == ("fail", ExitStatus.FAILED)
    assert found["crds"]["advice"] == "kubectl reconcile install creates them"
    assert "daemon" not in found


def test_the_rights_of_the_accounts_of_syncs_are_asked_for(own_cluster, crds_of, plugin, tmp_path, config_map):
    cluster, _ = own_cluster(components=("etcd", "kube-apiserver"))
    cluster.distrust()
    crds_of(cluster)
    ours = plugin.on(cluster)
    (tmp_path / "web.yaml").write_text(config_map("web"))
    assert ours("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    by_hand = ours("doctor", "-o", "json")  # what the daemon leaves alone, it needs no rights for
    assert "may not" not in by_hand.out
    source = {"git": {"url": "file:///nowhere/at/all"}}
    cluster.edit("Sync", "shop", {"spec": {"source": source}})
    done = ours("doctor", "-o", "json")
    texts = [json.loads(text) for text in done.out.splitlines()]
    [finding] = [one for one in texts if "may not" in one["text"]]
    account = "ServiceAccount default/kubectl-reconcile"
    verbs = "get, list, watch, create, update, patch, delete"
    assert finding["text"] == (
        f"Sync default/shop: there is no {account}; {account} may not {verbs} configmaps in namespace default"
    )
    assert (finding["grade"], finding["advice"]) == ("fail", "kubectl reconcile grant shop -n default --apply")
    assert done.status == ExitStatus.FAILED


def test_an_account_that_the_daemon_may_not_act_as_is_found_with_the_grant(
    own_cluster, crds_of, plugin, git_server, config_map, follow
):
    cluster, _ = own_cluster()
    ours = plugin.on(cluster.at("reconcile-system"))
    assert ours("install").status == 0
    there = plugin.on(cluster)
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url, on=cluster, trusted=False, serviceAccountName="deployer")
    cluster.kubectl("create", "serviceaccount", "deployer", "-n", "default")

    def accounts():
        texts = map(json.loads, there("doctor", "-o", "json").out.splitlines())
        return [(one["grade"], one["text"], one.get("advice", "")) for one in texts if one["subject"] == "accounts"]

    text = "Sync default/shop: the daemon may not act as ServiceAccount default/deployer"
    assert accounts() == [("fail", text, "kubectl reconcile grant shop -n default --apply")]
    assert there("grant", "shop", "--apply", "--yes").status == 0
    well = [("ok", "that of 1 Sync may do all that the members need", "")]
    patiently(lambda: accounts() == well, "what was granted is in force")
