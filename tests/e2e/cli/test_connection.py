"""kubectl's flags and environment on the command line, each against the real server, and the exit statuses."""

import base64
import json
import os
import socket
import stat
import sys
from pathlib import Path

import pytest
import yaml

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests import forked, yaml_text

BIN = Path(sys.executable).parent
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"colour": "red"}}


def run(*arguments, **environ):
    return forked.run(arguments, env={**os.environ, **environ})


@pytest.fixture
def manifest(tmp_path):
    file = tmp_path / "web.yaml"
    file.write_text(yaml.safe_dump(CONFIG))
    return str(file)


@pytest.fixture
def parts(kubeconfig):
    """The cluster and the user of the kubeconfig, to make others of."""
    config = yaml_text.document(Path(kubeconfig).read_text())
    return config["clusters"][0]["cluster"], config["users"][0]["user"]


@pytest.fixture
def write(tmp_path):
    """write("a", clusters={…}, users={…}, contexts={…}, current="…") -> the path of a kubeconfig."""

    def write(name, *, clusters=None, users=None, contexts=None, current=""):
        def entries(singular, given):
            return [{"name": key, singular: value} for key, value in (given or {}).items()]

        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": current, "clusters": entries("cluster", clusters),
            "users": entries("user", users), "contexts": entries("context", contexts),
        }  # fmt: skip
        path = tmp_path / f"{name}.kubeconfig"
        path.touch(0o600)
        path.write_text(yaml.safe_dump(config))
        return str(path)

    return write


def namespaces_of(done):
    return {change["object"]["namespace"] for change in json.loads(done.stdout)["changes"]}


def test_contexts_clusters_users_and_namespaces_come_from_where_kubectl_takes_them(parts, write, manifest, namespace):
    cluster, user = parts
    nowhere = {"server": "https://127.0.0.1:1"}
    clusters, users = {"here": cluster, "nowhere": nowhere}, {"me": user, "nobody": {"token": "wrong"}}
    contexts = {
        "good": {"cluster": "here", "user": "me", "namespace": namespace},
        "away": {"cluster": "nowhere", "user": "me"},
        "refused": {"cluster": "here", "user": "nobody", "namespace": namespace},
        "plain": {"cluster": "here", "user": "me"},
    }
    file = write("all", clusters=clusters, users=users, contexts=contexts, current="good")

    def ask(*words, **environ):
        return run("diff", "-f", manifest, "-o", "json", *words, **environ)

    assert namespaces_of(ask("--kubeconfig", file)) == {namespace}
    assert namespaces_of(ask(KUBECONFIG=file)) == {namespace}
    assert namespaces_of(ask("--kubeconfig", file, KUBECONFIG="/nowhere")) == {namespace}
    assert namespaces_of(ask("--context", "plain", KUBECONFIG=file)) == {"default"}
    assert namespaces_of(ask("-n", "default", KUBECONFIG=file)) == {"default"}
    assert ask("--context", "away", KUBECONFIG=file).returncode == ExitStatus.CLUSTER
    assert namespaces_of(ask("--context", "refused", "--user", "me", KUBECONFIG=file)) == {namespace}
    assert namespaces_of(ask("--context=away", "--cluster=here", "--namespace", namespace, KUBECONFIG=file)) == {
        namespace
    }
    refused = ask("--context", "refused", KUBECONFIG=file)
    assert (
        refused.returncode,
        "Unauthorized" in refused.stderr or "401" in refused.stderr or "credential" in refused.stderr,
    ) == (ExitStatus.CLUSTER, True)
    missing = ask("--context", "nope", KUBECONFIG=file)
    assert (missing.returncode, "it has: away, good, plain, refused" in missing.stderr) == (ExitStatus.USAGE, True)


def test_several_kubeconfigs_are_merged_and_the_first_word_counts(parts, write, manifest, namespace):
    cluster, user = parts
    first = write(
        "first",
        users={"me": user},
        contexts={"shop": {"cluster": "here", "user": "me", "namespace": namespace}},
        current="shop",
    )
    second = write(
        "second",
        clusters={"here": cluster},
        users={"me": {"token": "wrong"}},
        contexts={"shop": {"cluster": "nowhere"}},
        current="other",
    )
    merged = os.pathsep.join([first, "/nowhere/at/all", second])
    assert namespaces_of(run("diff", "-f", manifest, "-o", "json", KUBECONFIG=merged)) == {namespace}


def test_flags_alone_lead_to_the_server(parts, manifest, namespace, tmp_path):
    cluster, user = parts
    authority = tmp_path / "ca.crt"
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    where = ("diff", "-f", manifest, "-n", namespace, "-o", "name", "--token", user["token"])
    there = (*where, "-s", cluster["server"], "--certificate-authority", authority)
    assert run(*there).stdout == "configmap/web\n"
    assert run(*where, "--server", cluster["server"], "--insecure-skip-tls-verify").stdout == "configmap/web\n"
    assert run(*where, "--server", cluster["server"]).returncode == ExitStatus.CLUSTER
    misnamed = run(*there, "--tls-server-name", "other.example.com")
    assert misnamed.returncode == ExitStatus.CLUSTER
    assert run(*there, "--tls-server-name", "kubernetes.default.svc").stdout == "configmap/web\n"
    halved = run(*there, "--client-certificate", authority)
    assert (halved.returncode, "needs its key" in halved.stderr) == (ExitStatus.USAGE, True)
    assert run(*there, "--client-key", authority).returncode == ExitStatus.USAGE


def test_somebody_else_may_be_impersonated(kubeconfig, manifest, namespace, kubectl, eventually):
    where = ("diff", "-f", manifest, "--kubeconfig", kubeconfig, "-n", namespace, "-o", "name")
    refused = run(*where, "--as", "jane", "--as-group", "system:authenticated", "--as-uid", "42")
    assert (refused.returncode, "jane" in refused.stderr) == (ExitStatus.FAILED, True)
    kubectl("create", "rolebinding", "jane", "--clusterrole=admin", "--user=jane", "-n", namespace)
    eventually(lambda: run(*where, "--as", "jane").stdout == "configmap/web\n", "the rights are known to the server")
    grouped = run(*where, "--as", "jim", "--as-group", "system:masters", "--as-group", "system:authenticated")
    assert grouped.stdout == "configmap/web\n"
    before = run("--as", "jane", *where)
    assert before.stdout == "configmap/web\n"


def test_a_credential_plugin_is_asked(parts, write, manifest, namespace, tmp_path):
    cluster, user = parts
    plugin = tmp_path / "login"
    status = {"token": user["token"]}
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    plugin.write_text(f"#!/bin/sh\ntest \"$FLAVOUR\" = sweet && echo '{json.dumps(answer)}'\n")
    plugin.chmod(stat.S_IRWXU)
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "interactiveMode": "Never",
        "env": [{"name": "FLAVOUR", "value": "sweet"}],
    }  # fmt: skip
    contexts = {"shop": {"cluster": "here", "user": "me", "namespace": namespace}}
    file = write("exec", clusters={"here": cluster}, users={"me": {"exec": entry}}, contexts=contexts, current="shop")
    done = run("diff", "-f", manifest, "-o", "name", KUBECONFIG=file)
    assert (done.stdout, done.stderr) == ("configmap/web\n", "")
    plugin.unlink()
    missing = run("diff", "-f", manifest, KUBECONFIG=file)
    assert (missing.returncode, "login isn't installed" in missing.stderr) == (ExitStatus.USAGE, True)


def test_a_silent_server_is_given_up_in_time(manifest):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        done = run("diff", "-f", manifest, "--server", address, "--token", "x", "--request-timeout", "300ms")
    assert (done.returncode, address in done.stderr) == (ExitStatus.CLUSTER, True)


def test_folders_below_are_read_unless_told_otherwise(kubeconfig, namespace, tmp_path):
    for place in ("top.yaml", "below/deep.yaml"):
        file = tmp_path / "manifests" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(yaml.safe_dump({**CONFIG, "metadata": {"name": file.stem}}))
    where = ("diff", "-f", tmp_path / "manifests", "--kubeconfig", kubeconfig, "-n", namespace, "-o", "name")
    everything = "configmap/deep\nconfigmap/top\n"
    assert [run(*where, *flags).stdout for flags in ((), ("-R",), ("--no-recursive",))] == [
        everything,
        everything,
        "configmap/top\n",
    ]


def test_every_exit_status_as_documented(kubeconfig, namespace, tmp_path, crds):
    where = ("--kubeconfig", kubeconfig, "-n", namespace)
    folder = tmp_path / "shop"
    folder.mkdir()
    shop = ("-f", folder, "--name", "shop", *where)
    (folder / "web.yaml").write_text(yaml.safe_dump(CONFIG))
    assert run("diff", *shop).returncode == ExitStatus.DIFFERENT == 1
    assert run("sync", *shop).returncode == run("diff", *shop).returncode == ExitStatus.OK == 0
    assert run("sync", "-f", folder).returncode == ExitStatus.USAGE == 2
    assert run("diff", "-f", folder, "-s", "https://127.0.0.1:1").returncode == ExitStatus.CLUSTER == 3
    assert run("diff", "--repo", "file:///nowhere/at/all", *where).returncode == ExitStatus.SOURCE == 4
    (folder / "web.yaml").write_text("# nothing is left\n")
    assert run("sync", *shop).returncode == ExitStatus.HELD == 5
    (folder / "web.yaml").write_text(yaml.safe_dump({**CONFIG, "data": {"not a key": "x"}}))
    assert run("sync", *shop).returncode == run("diff", *shop).returncode == ExitStatus.FAILED == 6
