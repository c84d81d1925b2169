"""Completion by kubectl's own mechanism and by the shells' scripts: what is offered, how late answers are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_reconcile.cli.verbs.operate.completion import SHELLS

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent


@pytest.fixture
def shop(plugin, follow, git_server, config_map):
    """A Sync that has applied two commits."""
    shas = []
    for colour in ("red", "green"):
        shas.append(git_server.push({"web.yaml": config_map("web", colour=colour)}, colour))
        follow(git_server.url)
        assert plugin("sync", "shop").status == 0
    return shas


@pytest.fixture
def ask(kubectl, cluster):
    """ask("tree", "sh") -> the candidates that the real kubectl gets from the plugin, and the directive."""
    path = os.pathsep.join([str(ROOT / "plugin"), str(kubectl.folder), str(BIN), os.environ["PATH"]])
    environ = {**os.environ, "PATH": path, "KUBECONFIG": kubectl.kubeconfig, "PYTHON": sys.executable}

    def words(*typed):
        command = ["kubectl", "__complete", "reconcile", *typed]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
        *found, directive = done.stdout.splitlines()
        return [line.partition("\t")[0] for line in found], directive

    return words


def test_verbs_and_flags_through_kubectl(ask):
    assert ask("roll") == (["rollback"], ":4")
    assert ask("tree", "--un") == (["--unhealthy"], ":4")
    assert ask("completion", "z") == (["zsh"], ":4")
    assert ask("get", "-o", "js") == (["json", "jsonpath="], ":4")
    assert ask("get", "-o", "jsonp") == (["jsonpath="], ":6")
    assert ask("gr") == (["grant"], ":4")
    assert ask("grant", "--mi") == (["--missing"], ":4")
    assert ask("grant", "shop", "--allow", "") == (["bind", "escalate", "impersonate", "wildcards"], ":4")


def test_names_of_the_cluster_through_kubectl(ask, shop, namespace, eventually, git_server):
    asked = {
        "Syncs": (["tree", "-n", namespace, "sh"], ["shop"]),
        "Syncs to give rights for": (["grant", "-n", namespace, "sh"], ["shop"]),
        "several Syncs": (["suspend", "-n", namespace, "shop", "sh"], ["shop"]),
        "namespaces": (["get", "-n", namespace[:-1]], None),
        "kinds": (["explain", "configm"], ["configmaps/"]),
        "objects": (["explain", "-n", namespace, "cm/we"], ["cm/web"]),
        "objects below a Sync": (["tree", "-n", namespace, "configmap/we"], ["configmap/web"]),
        "revisions": (["rollback", "-n", namespace, "shop", "--to", shop[0][:5]], [shop[0]]),
        "branches": (["create", "x", "--url", git_server.url, "--branch", "ma"], ["main"]),
    }
    for what, (words, expected) in asked.items():
        found = eventually(lambda words=words: ask(*words)[0], what)
        assert found == expected if expected else namespace in found


def test_objects_of_a_sync_that_is_kept_elsewhere(ask, cluster, namespace, follow, git_server, eventually):
    other = cluster.at(f"{namespace}-shop")
    cluster.kubectl("create", "namespace", other.namespace)
    git_server.push({"README": "nothing"}, "first")
    follow(git_server.url, targetNamespace=other.namespace)
    other.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "loose"}})
    elsewhere = ["--sync", f"{namespace}/shop"]
    asked = {
        "kinds to adopt": (["adopt", "configm"], ["configmaps/"]),
        "objects by their namespace": (["adopt", *elsewhere, "-n", other.namespace, "cm/lo"], ["cm/loose"]),
        "objects by their Sync": (["adopt", *elsewhere, "cm/lo"], ["cm/loose"]),
        "objects by their Sync, by -n": (["adopt", "--sync=shop", "-n", namespace, "cm/lo"], ["cm/loose"]),
        "objects of a preview": (["diff", "-n", namespace, "shop", "cm/lo"], ["cm/loose"]),
        "objects of a sync": (["sync", "-n", namespace, "shop", "cm/lo"], ["cm/loose"]),
        "objects of a preview without a Sync": (["diff", "-n", other.namespace, "cm/lo"], ["cm/loose"]),
        "Syncs of a namespace": (["adopt", "cm/loose", "--sync", f"{namespace}/s"], [f"{namespace}/shop"]),
        "Syncs with their namespaces": (["adopt", "cm/loose", "--sync", namespace], [f"{namespace}/shop"]),
        "Syncs after an equals sign": (["adopt", f"--sync={namespace}/"], [f"--sync={namespace}/shop"]),
        "Syncs of this namespace": (["adopt", "-n", namespace, "--sync", "sh"], ["shop"]),
    }
    for what, (words, expected) in asked.items():
        found = eventually(lambda words=words: ask(*words)[0], what)
        assert found == expected, what
    cluster.kubectl("delete", "namespace", other.namespace, "--wait=false")


def test_what_the_cluster_cannot_answer_is_no_candidates(ask, namespace):
    assert ask("tree", "-n", namespace, "--context", "nowhere", "") == ([], ":4")
    assert ask("explain", "nonsense/") == ([], ":4")
    assert ask("rollback", "--to", "") == ([], ":4")
    assert ask("create", "x", "--url=--upload-pack=x", "--branch", "") == ([], ":4")


def test_an_answer_that_is_late_is_there_the_next_time(shop, kubectl, namespace, tmp_path, eventually):
    slow = tmp_path / "kubectl"
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec "{kubectl.folder}/kubectl" "$@"\n')
    slow.chmod(0o755)
    environ = {
        **os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "KUBECONFIG": kubectl.kubeconfig,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip

    def candidates():
        command = [BIN / "kubectl_complete-reconcile", "tree", "-n", namespace, "s"]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout

    assert candidates() == ":4\n"
    eventually(lambda: candidates() == "shop\n:4\n", "the answer of a slow kubectl is kept")
    [kept] = (tmp_path / "cache" / "kubectl-reconcile" / "completion").glob("[0-9a-f]" * 32)
    assert kept.stat().st_mode & 0o077 == 0


def test_names_that_could_harm_a_terminal_are_not_offered(tmp_path, kubectl, eventually):
    config = tmp_path / "config"
    config.write_text('contexts: [{name: "evil\\e[31m", context: {}}, {name: good, context: {}}]\n')
    environ = {**os.environ, "PATH": f"{kubectl.folder}{os.pathsep}{os.environ['PATH']}", "KUBECONFIG": str(config)}

    def candidates():
        command = [BIN / "kubectl_complete-reconcile", "get", "--context", ""]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout

    assert eventually(lambda: candidates() != ":4\n" and candidates(), "kubectl lists contexts") == "good\n:4\n"


# --- standalone -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_its_script(shell):
    done = subprocess.run([BIN / "kubectl-reconcile", "completion", shell], capture_output=True, text=True, check=True)
    assert "kubectl-reconcile __complete" in done.stdout
    assert done.stdout.startswith("#")


TYPED = {
    "a verb": ("kubectl-reconcile roll", ["rollback"]),
    "an empty word": ("kubectl-reconcile completion ", list(SHELLS)),
    "what stands after an equals sign": ("kubectl-reconcile diff --output=js", ["json", "jsonpath="]),
    "a verb after a flag": ("kubectl-reconcile -n shop susp", ["suspend"]),
    "nothing": ("kubectl-reconcile nonsense ", []),
    "files": ("kubectl-reconcile diff -f here/w", ["here/web.yaml"]),
    "folders": ("kubectl-reconcile diff --cache-dir h", ["here"]),
    "folders that are written to": ("kubectl-reconcile import flux --write h", ["here"]),
}


@pytest.mark.parametrize(("line", "expected"), TYPED.values(), ids=TYPED)
def test_bash_completes_with_its_script(line, expected, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "web.yaml").touch()
    script = (
        'set -u; source <(kubectl-reconcile completion bash); COMP_LINE="$1"; COMP_POINT=${#1}; COMPREPLY=()\n'
        '__kubectl_reconcile_complete; ((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; true'
    )
    environ = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script, "bash", line], capture_output=True, text=True, check=True, env=environ, cwd=tmp_path
    )
    assert (sorted(done.stdout.split()), done.stderr) == (sorted(expected), "")
