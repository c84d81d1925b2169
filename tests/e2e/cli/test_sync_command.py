"""Preview and sync by hand, through the real kubectl: what is shown is what is done, with and without a daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import until_may
from tests.waiting import patiently

CRDS = Path(__file__).parents[3] / "crds"
RANDOM = {"uid", "resourceVersion", "creationTimestamp", "clusterIP", "clusterIPs", "ipFamilies", "managedFields"}
"""What the server draws anew for each dry run, and our account of it."""


def manifest(kind, name, api_version="v1", **more):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def write(folder, **files):
    """Fill a folder: write(folder, web=manifest, gone=None)."""
    for name, content in files.items():
        path = folder / f"{name}.yaml"
        if content is None:
            path.unlink()
        else:
            path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))


def web():
    container = {"name": "web", "image": "web:1", "ports": [{"containerPort": 8080}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return manifest("Deployment", "web", "apps/v1", spec=spec)


def previewed(plugin, *arguments):
    """The plan that diff prints as JSON: its changes by kind and name."""
    answer = plugin("diff", *arguments, "-o", "json")
    assert answer.status in {0, 1}
    return {(one["object"]["kind"], one["object"]["name"]): one for one in json.loads(answer.out)["changes"]}


# --- the preview is the sync ---


def strays(planned: Any, live: Any, path: str = "") -> Iterator[str]:
    """Where a live object isn't what was planned; it may hold more."""
    if isinstance(planned, dict) and isinstance(live, dict):
        for key, value in planned.items():
            if key not in RANDOM:
                yield from strays(value, live.get(key), f"{path}.{key}")
    elif isinstance(planned, list) and isinstance(live, list) and len(planned) == len(live):
        for index, (one, other) in enumerate(zip(planned, live, strict=True)):
            yield from strays(one, other, f"{path}[{index}]")
    elif planned != live:
        yield f"{path}: {planned!r} was planned, {live!r} is there"


def unplanned(owned: dict[str, Any], planned: Any, path: str = "") -> Iterator[str]:
    """Fields that we own in the cluster (as managedFields say) and that weren't planned."""
    for element, below in owned.items():
        kind, _, text = element.partition(":")
        found: Any = None
        if kind == "f" and isinstance(planned, dict):
            found = planned.get(text)
        elif kind == "k" and isinstance(planned, list):
            found = next(
                (one for one in planned if json.loads(text).items() <= {"protocol": "TCP", **one}.items()), None
            )
        elif kind in {".", "v"}:
            continue
        if found is None:
            yield f"{path}/{element}"
        else:
            yield from unplanned(below, found, f"{path}/{element}")


def test_what_the_preview_shows_is_what_is_written(plugin, cluster, tmp_path, memcached, config_map):
    service = manifest("Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]})
    write(tmp_path, config=config_map("web", color="red"), web=web(), service=service, cache=memcached("cache", size=2))
    planned = previewed(plugin, "-f", str(tmp_path), "--name", "shop")
    assert {key: one["op"] for key, one in planned.items()} == dict.fromkeys(
        [
            ("ConfigMap", "web"), ("Deployment", "web"), ("Service", "web"),
            ("Memcached", "cache"), ("Deployment", "cache"), ("Service", "cache"),
        ],
        "create",
    )  # fmt: skip
    assert not cluster.list("Memcached")
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    for (kind, name), change in planned.items():
        live, after = cluster.get(kind, name), change["after"]
        after["metadata"].pop("ownerReferences", None)  # the owner's uid isn't known before it exists
        after.pop("status", None)
        owned = {}
        for entry in live["metadata"]["managedFields"]:
            if entry["manager"].startswith("kubectl-reconcile") and "subresource" not in entry:
                owned |= entry["fieldsV1"]
        owned["f:metadata"].pop("f:ownerReferences", None)
        assert not list(strays(after, live)), f"{kind} {name}"
        assert not list(unplanned(owned, after)), f"{kind} {name}"
    assert plugin("diff", "-f", str(tmp_path), "--name", "shop").status == 0


def test_a_changed_size_shows_what_the_module_makes_of_it(plugin, cluster, tmp_path, memcached):
    write(tmp_path, cache=memcached("cache", size=1))
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    write(tmp_path, cache=memcached("cache", size=3))
    answer = plugin("diff", "-f", str(tmp_path), "--name", "shop")
    assert answer.status == 1
    assert re.search(r"(?m)^\+ +size: 3$", answer.out)
    assert re.search(r"(?m)^\+ +replicas: 3$", answer.out)
    assert "2 to update" in answer.out
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    assert cluster.get("Deployment", "cache")["spec"]["replicas"] == 3
    write(tmp_path, cache=None, config=manifest("ConfigMap", "web"))
    planned = previewed(plugin, "-f", str(tmp_path), "--name", "shop")
    assert {key for key, one in planned.items() if one["op"] == "delete"} >= {
        ("Memcached", "cache"), ("Deployment", "cache"), ("Service", "cache"),
    }  # fmt: skip


def test_what_waits_for_a_custom_resource_gets_its_turn_without_a_daemon(plugin, cluster, tmp_path, memcached):
    after = manifest("ConfigMap", "after")
    needs = f"Memcached.cache.example.com/{cluster.namespace}/cache"
    after["metadata"]["annotations"] = {"reconcile.dev/depends-on": needs}
    for size in (1, 2):
        after["data"] = {"size": str(size)}
        write(tmp_path, cache=memcached("cache", size=size), after=after)
        done = plugin("sync", "-f", str(tmp_path), "--name", "demo", "--timeout", "140s")
        assert done.status == 0, done.err
        assert len(cluster.get("Memcached", "cache")["status"]["nodes"]) == size
        assert cluster.get("ConfigMap", "after")["data"] == {"size": str(size)}


# --- from a repository ---


def test_a_repository_is_synced_at_a_ref_and_a_path_without_a_sync_of_its_own(plugin, cluster, git_server, config_map):
    git_server.push({"apps/shop/web.yaml": config_map("web", color="red"), "other.yaml": config_map("other")})
    git_server.push({"apps/shop/web.yaml": config_map("web", color="green")}, branch="next")
    place = ("--repo", git_server.url, "--path", "apps/shop", "--name", "shop")
    assert plugin("diff", *place, "--ref", "main").status == 1
    assert plugin("sync", *place, "--ref", "main").status == 0
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "red"}
    assert cluster.members("ConfigMap", "shop") == {"web"}
    assert not (cluster.get("Sync", "shop")["spec"] or {}).get("source")
    assert plugin("sync", *place, "--ref", "next").status == 0
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "green"}
    missing = plugin("diff", *place, "--ref", "nowhere")
    assert missing.status == 4
    assert "nowhere" in missing.err


# --- a named Sync ---


def test_without_a_daemon_a_named_sync_is_done_here_and_its_status_told(
    plugin, follow, cluster, git_server, config_map
):
    sha = git_server.push({"web.yaml": config_map("web", color="red"), "b.yaml": config_map("b")})
    sync = follow(git_server.url)
    assert plugin("diff", "shop").status == 1
    done = plugin("sync", "shop")
    assert done.status == 0
    assert "2 created" in done.out
    assert sync.status["lastAppliedRevision"] == sha
    assert sync.condition()["status"] == "True"
    assert plugin("diff").status == 0
    git_server.push({"b.yaml": None})
    assert plugin("sync", "shop", "-y").status == 0
    assert cluster.members("ConfigMap", "shop") == {"web"}


def test_a_daemon_goes_on_from_a_sync_by_hand(plugin, follow, new_daemon, cluster, git_server, config_map):
    sha = git_server.push({"web.yaml": config_map("web", color="red")})
    sync = follow(git_server.url)
    assert plugin("sync", "shop").status == 0
    version = cluster.version("ConfigMap", "web")
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace).start()
    sync.ask()
    assert sync.status["lastAppliedRevision"] == sha
    assert cluster.version("ConfigMap", "web") == version
    assert daemon.count("reconcile_changes_total") == 0


def test_with_a_daemon_a_named_sync_is_asked_for_and_its_failure_told(daemon, plugin, follow, git_server, config_map):
    sync = follow(git_server.url, interval="1h")
    sync.until_synced(git_server.push({"web.yaml": config_map("web")}))
    invalid = manifest("Service", "broken", spec={"ports": [{"port": 99999}]})
    git_server.push({"broken.yaml": yaml.safe_dump(invalid)})
    failed = plugin("sync", "shop")
    assert failed.status == 6
    assert "asked the daemon" in failed.err
    assert "spec.ports[0].port" in failed.err
    assert plugin("diff", "shop").status == 6
    git_server.push({"broken.yaml": "a: b: c\n"})
    unreadable = plugin("sync", "shop")
    assert unreadable.status == 4
    assert "broken.yaml:1" in unreadable.err
    git_server.push({"broken.yaml": None})
    assert plugin("sync", "shop").status == 0
    assert daemon.alive


def test_files_for_a_sync_that_follows_git_are_written_with_a_warning(plugin, follow, cluster, git_server, tmp_path):
    git_server.push({"web.yaml": yaml.safe_dump(manifest("ConfigMap", "web", data={"color": "red"}))})
    follow(git_server.url)
    assert "reverts" not in plugin("sync", "shop").err
    write(tmp_path, web=manifest("ConfigMap", "web", data={"color": "blue"}))
    by_hand = ("sync", "-f", str(tmp_path), "--name", "shop")
    assert "reverts" not in plugin(*by_hand, "--dry-run").err
    warned = plugin(*by_hand)
    assert warned.status == 0
    assert f"warning: Sync {cluster.namespace}/shop follows {git_server.url}, path .: the daemon" in warned.err
    assert (
        f"commit the change there, or suspend the Sync first: kubectl reconcile suspend shop -n {cluster.namespace}"
        in warned.err
    )
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "blue"}
    assert "reverts" not in plugin(*by_hand).err, "nothing is written"
    assert plugin("suspend", "shop").status == 0
    write(tmp_path, web=manifest("ConfigMap", "web", data={"color": "green"}))
    assert "reverts" not in plugin(*by_hand).err, "it is suspended"


COUNTED = re.compile(r"\d+ (created|updated|deleted|unchanged|failed)")


@pytest.mark.usefixtures("daemon")
def test_a_daemon_s_sync_that_writes_nothing_tells_no_earlier_pass_s_counts(plugin, follow, git_server, config_map):
    sync = follow(git_server.url, interval="1h")
    sync.until_synced(git_server.push({"web.yaml": config_map("web"), "b.yaml": config_map("b")}))
    git_server.push({"b.yaml": None})
    assert "1 deleted" in plugin("sync", "shop").out
    for _ in range(2):
        idle = plugin("sync", "shop")
        assert idle.status == 0
        assert "1 object in sync" in idle.out
        assert not COUNTED.search(idle.out)
    assert re.search(r"(?m)^Objects: +1$", plugin("status", "shop").out)


@pytest.mark.usefixtures("daemon")
def test_a_daemon_that_cannot_read_the_source_tells_no_earlier_pass_s_counts(plugin, follow, git_server, config_map):
    follow(git_server.url, interval="1h").until_synced(git_server.push({"web.yaml": config_map("web")}))
    sha = git_server.push({"web.yaml": config_map("web", color="red"), "b.yaml": "a: b: c\n"})
    first = plugin("sync", "shop")
    assert "1 updated" in first.out
    assert "b.yaml:1" in first.err
    follow(git_server.url, interval="1h", git={"branch": "nowhere"})
    unavailable = plugin("sync", "shop")
    assert unavailable.status == 4
    assert "SourceUnavailable: " in unavailable.out
    assert sha[:7] not in unavailable.out
    assert not COUNTED.search(unavailable.out)
    assert "b.yaml" not in unavailable.err


@pytest.mark.usefixtures("daemon")
def test_status_shows_syncs_as_the_daemon_left_them(plugin, follow, cluster, git_server, config_map):
    sha = git_server.push({"web.yaml": config_map("web")})
    sync = follow(git_server.url)
    sync.until_synced(sha)
    patiently(lambda: sync.condition("Ready")["status"] == "True", "it is ready")
    table = plugin("status")
    assert table.status == 0
    assert re.search(rf"(?m)^shop +True +{sha[:7]} +1 ", table.out)
    one = plugin("status", "shop")
    assert git_server.url in one.out
    assert "1 object in sync" in one.out
    assert json.loads(plugin("status", "shop", "-o", "json").out)["status"]["lastAppliedRevision"] == sha
    assert cluster.kubectl("get", "sync", "shop", "-n", cluster.namespace).splitlines()[1].split()[:2] == [
        "shop",
        "True",
    ]


# --- as whom ---


def test_without_a_daemon_the_members_of_a_named_sync_are_written_as_its_account(
    plugin, cluster, follow, git_server, config_map, namespace
):
    cluster.distrust()
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url)
    refused = plugin("sync", "shop")
    assert refused.status != 0
    account = f"ServiceAccount {namespace}/kubectl-reconcile"
    assert f"{account} may not patch configmaps in namespace {namespace}" in refused.err
    assert f"kubectl reconcile grant shop -n {namespace}" in refused.err
    assert cluster.get("ConfigMap", "web") is None  # though whoever asked may write it
    cluster.trust()
    assert plugin("sync", "shop").status == 0
    assert cluster.get("ConfigMap", "web")


@pytest.fixture
def editor(plugin, kubectl, namespace):
    """The plugin, used by somebody with a token of their own, who may edit ConfigMaps and Syncs, and nothing else."""
    name = f"editor-of-{namespace}"
    kubectl("create", "serviceaccount", name, "-n", "default")
    kubectl(
        "create",
        "role",
        "syncs",
        "--verb=*",
        "--resource=syncs.reconcile.dev,syncs.reconcile.dev/status",
        "-n",
        namespace,
    )
    account = f"--serviceaccount=default:{name}"
    kubectl("create", "rolebinding", "syncs", "--role=syncs", account, "-n", namespace)
    kubectl(
        "create", "role", "maps", "--verb=*", "--resource=configmaps", "-n", namespace
    )  # edit could act as accounts
    kubectl("create", "rolebinding", "maps", "--role=maps", account, "-n", namespace)
    until_may(kubectl, f"system:serviceaccount:default:{name}", "patch", "syncs.reconcile.dev", namespace)
    until_may(kubectl, f"system:serviceaccount:default:{name}", "patch", "configmaps", namespace)
    token = kubectl("create", "token", name, "-n", "default").strip()
    yield lambda *words: plugin(*words, "--token", token)
    kubectl("delete", "serviceaccount", name, "-n", "default", "--wait=false")


def test_who_may_not_see_whether_a_daemon_lives_writes_nothing(editor, cluster, follow, git_server, config_map):
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url)
    refused = editor("sync", "shop")
    assert refused.status != 0
    assert "can't tell whether a daemon is running: you may not read its Leases" in refused.err
    assert cluster.get("ConfigMap", "web") is None


def test_who_may_not_act_as_the_account_is_refused_and_nothing_is_written(
    editor, cluster, follow, git_server, config_map, kubectl, namespace, monkeypatch
):
    monkeypatch.setenv("KUBECTL_RECONCILE_NAMESPACE", namespace)  # whose Leases may be read
    kubectl("create", "role", "leases", "--verb=get,list", "--resource=leases.coordination.k8s.io", "-n", namespace)
    kubectl(
        "create",
        "rolebinding",
        "leases",
        "--role=leases",
        f"--serviceaccount=default:editor-of-{namespace}",
        "-n",
        namespace,
    )
    until_may(
        kubectl, f"system:serviceaccount:default:editor-of-{namespace}", "list", "leases.coordination.k8s.io", namespace
    )
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url)
    refused = editor("sync", "shop")
    assert refused.status != 0
    assert "cannot impersonate" in refused.err
    assert cluster.get("ConfigMap", "web") is None
