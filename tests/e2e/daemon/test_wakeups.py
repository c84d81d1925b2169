"""What has the daemon look before its time: a Git server's word, a file that changed."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import subprocess

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus

SECRET = "only-we-know"
HOURLY = "1h"


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def post(daemon, path, body=b"{}", headers=()):
    """The status of the answer to a POST."""
    connection = http.client.HTTPConnection(daemon.hooks, timeout=120)
    try:
        connection.request("POST", path, body, dict(headers))
        with connection.getresponse() as answer:
            return answer.status
    except (BrokenPipeError, ConnectionResetError):
        return 413  # it hung up before all was sent
    finally:
        connection.close()


def signed(body, by=SECRET):
    return {"X-Hub-Signature-256": "sha256=" + hmac.new(by.encode(), body, hashlib.sha256).hexdigest()}


def push_of(ref="refs/heads/main"):
    return json.dumps({"ref": ref}).encode()


@pytest.fixture
def hooked(follow, cluster, git_server, config_map):
    """A Sync that is polled once an hour, and told of pushes."""
    cluster.apply(secret("shop-hook", token=SECRET))
    sync = follow(git_server.url, interval=HOURLY, git={"branch": "main", "webhookSecretRef": {"name": "shop-hook"}})
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="red")}))
    return sync


def test_a_signed_word_of_a_push_is_followed_at_once(daemon, hooked, cluster, git_server, config_map):
    sha = git_server.push({"a.yaml": config_map("a", color="blue")})
    path = f"/hooks/{cluster.namespace}/shop"
    assert post(daemon, path, push_of("refs/heads/other"), signed(push_of("refs/heads/other"))) == 202
    assert post(daemon, path, push_of(), signed(push_of())) == 202
    hooked.until_synced(sha)
    sha = git_server.push({"a.yaml": config_map("a", color="green")})
    assert post(daemon, path, push_of(), {"X-Gitlab-Token": SECRET}) == 202
    hooked.until_synced(sha)
    assert daemon.count("reconcile_pushes_total", status="202") == 3


def test_who_is_not_genuine_wakes_nobody_and_learns_nothing(
    daemon, hooked, follow, cluster, git_server, config_map, eventually
):
    git_server.push({"other/b.yaml": config_map("b")})  # nothing that fails, and would be tried again
    follow(git_server.url, "unhooked", path="other", interval=HOURLY)
    before = daemon.count("reconcile_polls_total")
    body = push_of()
    for path in ("shop", "unhooked", "nobody"):
        assert post(daemon, f"/hooks/{cluster.namespace}/{path}", body, signed(body, by="a guess")) == 401
        assert post(daemon, f"/hooks/{cluster.namespace}/{path}", body) == 401
    assert post(daemon, f"/hooks/{cluster.namespace}/shop", b"x" * 6 * 2**20, signed(b"x")) == 413
    eventually(lambda: cluster.get("Sync", "unhooked").get("status"), "the other one was polled when it came")
    assert daemon.count("reconcile_polls_total") <= before + 1
    assert SECRET not in daemon.log


def test_word_that_comes_to_another_replica_is_passed_on(
    new_daemon, follow, cluster, git_server, config_map, eventually
):
    daemons = [new_daemon(cluster.kubectl.kubeconfig, cluster.namespace).start() for _ in range(2)]
    eventually(lambda: all("members=2" in each.log for each in daemons), "they know of each other")
    cluster.apply(secret("shop-hook", token=SECRET))
    sync = follow(git_server.url, interval=HOURLY, git={"webhookSecretRef": {"name": "shop-hook"}})
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="0")}))
    for number, daemon in enumerate(daemons, 1):
        sha = git_server.push({"a.yaml": config_map("a", color=str(number))})
        eventually(
            lambda daemon=daemon: post(daemon, f"/hooks/{cluster.namespace}/shop", push_of(), signed(push_of())) == 202,
            "it is believed",
        )
        sync.until_synced(sha)


def git(folder, *arguments):
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def test_a_repository_of_this_machine_is_followed_as_it_is_committed_to(
    new_daemon, follow, cluster, config_map, tmp_path, eventually, plugin
):
    root = tmp_path / "repositories"
    shop = root / "shop"
    shop.mkdir(parents=True)
    git(shop, "init", "--quiet", "--initial-branch=main")

    def commit(color):
        (shop / "a.yaml").write_text(config_map("a", color=color))
        git(shop, "add", "--all")
        git(shop, "commit", "--quiet", "--message", color)

    commit("red")
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, options=[f"--repositories={root}"]).start()
    follow(f"file://{shop}", "shop", interval=HOURLY).until("Synced")
    commit("blue")
    eventually(lambda: cluster.get("ConfigMap", "a")["data"] == {"color": "blue"}, "the commit is noticed")
    refused = plugin("diff", "shop")  # or else whoever writes Syncs could have anybody's files sent into the cluster
    assert (refused.status, "--local FOLDER" in refused.err) == (ExitStatus.SOURCE, True)
    (shop / "a.yaml").write_text(config_map("a", color="green"))
    assert plugin("diff", "shop", "--local", str(shop), "-o", "name").out == "configmap/a\n"
    assert "it is ready" in plugin("doctor").out
    other = follow(f"file://{tmp_path}", "elsewhere")
    assert "--repositories" in other.until("SourceUnavailable")["message"]
    assert daemon.stop() == 0


@pytest.mark.usefixtures("daemon")
def test_a_repository_of_this_machine_is_refused_unless_allowed(follow, tmp_path):
    assert "--repositories" in follow(f"file://{tmp_path}").until("SourceUnavailable")["message"]


# --- what was missing comes --------------------------------------------------------------------------------------------


NEVER_AGAIN = """
from kubectl_reconcile.core.retry import Backoff
Backoff.pause_s = lambda self, failures, drawn=1.0: 0.5 if failures < 5 else 10_000.0
"""
"""After a fifth failure nothing is tried again for hours, unless something wakes it."""


def fails_seldom(daemon):
    """Tell whether the only Sync, which has always failed, has done so so often that it isn't tried again unless it is woken."""
    return daemon.count("reconcile_passes_total", kind="sync") >= 5


def test_what_a_sync_failed_for_wakes_it_when_it_comes(
    new_daemon, own_cluster, crds_of, follow, git_server, config_map, eventually, starting_with
):
    cluster, _ = own_cluster(components=("etcd", "kube-apiserver"))
    crds_of(cluster)
    daemon = new_daemon(cluster.kubectl.kubeconfig, **starting_with(NEVER_AGAIN)).start()
    sha = git_server.push({"a.yaml": config_map("a", color="red")})
    sync = follow(git_server.url, on=cluster, targetNamespace="later")
    failed = sync.until("ApplyFailed", sha)
    assert "later" in failed["message"]
    eventually(lambda: fails_seldom(daemon), "it fails again")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}})
    sync.until_synced(sha)
    assert cluster.at("later").get("ConfigMap", "a")["data"] == {"color": "red"}


RBAC = "rbac.authorization.k8s.io"


def granted(namespace):
    """What lets the account that Syncs have in *namespace* write ConfigMaps there, as it stands in Git."""
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    metadata = {"name": "configuration", "namespace": namespace}
    role = {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]}
    binding = {
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "configuration"},
        "subjects": [{"kind": "ServiceAccount", "name": "kubectl-reconcile", "namespace": namespace}],
    }
    named = {"Role": role, "RoleBinding": binding}
    return [{"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, **body} for kind, body in named.items()]


@pytest.fixture
def boss(cluster):
    """An account of the test's namespace that may do everything, where the others may do nothing."""
    cluster.distrust()
    name = f"boss-of-{cluster.namespace}"
    account = f"--serviceaccount={cluster.namespace}:boss"
    cluster.kubectl("create", "clusterrolebinding", name, "--clusterrole=cluster-admin", account)
    yield "boss"
    cluster.kubectl("delete", "clusterrolebinding", name, "--wait=false")


def test_rights_that_come_by_a_push_wake_the_sync_that_lacked_them(
    new_daemon, boss, cluster, follow, git_server, config_map, eventually, starting_with
):
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, **starting_with(NEVER_AGAIN)).start()
    sha = git_server.push({"shop/a.yaml": config_map("a", color="red"), "rights/README": "none yet"})
    shop = follow(git_server.url, path="shop", interval=HOURLY)
    refused = shop.until("ApplyFailed", sha)
    hint = f"kubectl reconcile grant shop -n {cluster.namespace}"
    account = f"ServiceAccount {cluster.namespace}/kubectl-reconcile"
    assert f"{account} may not patch configmaps in namespace {cluster.namespace} (hint: {hint})" in refused["message"]
    eventually(lambda: fails_seldom(daemon), "it fails again")
    bound = git_server.push({"rights/all.yaml": "\n---\n".join(map(json.dumps, granted(cluster.namespace)))})
    follow(git_server.url, "platform", path="rights", serviceAccountName=boss).until_synced(bound)
    shop.until("Synced")
    assert cluster.get("ConfigMap", "a")["data"] == {"color": "red"}
