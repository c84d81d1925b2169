"""Looking at Syncs and steering them: get, tree, events, suspend, resume; and what is said where that can't be done."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import time

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests import forked
from tests.e2e.cluster import until_may
from tests.lines import line_to
from tests.talking import talking
from tests.waiting import eventually


@pytest.fixture
def shop(git_server, follow, daemon, config_map, memcached, eventually):
    """A Sync of two objects that a daemon follows, in step and healthy; shop.sha is the commit."""
    sha = git_server.push(
        {"settings.yaml": config_map("settings", colour="red"), "cache.yaml": memcached("cache", size=2)}
    )
    followed = follow(git_server.url)
    followed.until_synced(sha)
    eventually(lambda: followed.condition()["status"] == "True", "it is Ready, with what the module made")
    return followed


@pytest.fixture
def kept_by_hand(plugin, tmp_path, config_map):
    """kept_by_hand("name") makes a Sync without a source, with one object."""

    def make(name, **data):
        (tmp_path / "web.yaml").write_text(config_map(f"{name}-web", **data))
        done = plugin("sync", "-f", str(tmp_path / "web.yaml"), "--name", name)
        assert done.status == 0, done.err

    return make


# --- get --------------------------------------------------------------------------------------------------------------


def test_get_shows_syncs_in_a_table(plugin, shop):
    head, row = plugin("get").out.splitlines()
    assert head.split() == ["NAME", "READY", "REF", "REVISION", "OBJECTS", "AGE", "STATUS"]
    sha = shop.status["lastAppliedRevision"]
    assert row.split()[:5] == ["shop", "True", "(default)", sha[:7], "2"]
    assert row.endswith("2 objects in sync")


def test_get_in_forms_for_scripts(plugin, kept_by_hand, namespace):
    kept_by_hand("shop")
    kept_by_hand("blog")
    assert plugin("get", "-o", "name").out == "sync.reconcile.dev/blog\nsync.reconcile.dev/shop\n"
    assert [line.split()[0] for line in plugin("get", "--no-headers").out.splitlines()] == ["blog", "shop"]
    assert plugin("get", "shop", "-o", "jsonpath={.metadata.name}").out == "shop\n"
    assert plugin("get", "-o", "jsonpath={.items[*].metadata.name}").out == "blog shop\n"
    assert json.loads(plugin("get", "-o", "json").out)["kind"] == "List"
    assert json.loads(plugin("get", "shop", "-o", "json").out)["metadata"]["namespace"] == namespace
    assert "name: shop\n" in plugin("get", "shop", "-o", "yaml").out


def test_get_selects_by_label_and_counts_out_nobody(plugin, kept_by_hand, cluster):
    kept_by_hand("shop")
    kept_by_hand("blog")
    cluster.edit("Sync", "blog", {"metadata": {"labels": {"team": "web"}}})
    assert plugin("get", "-l", "team=web", "-o", "name").out == "sync.reconcile.dev/blog\n"
    nobody = plugin("get", "-l", "team=none")
    assert (nobody.status, nobody.out, nobody.err) == (0, "", "no Syncs in this namespace\n")


def test_get_watches(plugin, kept_by_hand, cluster, kubeconfig, eventually):
    kept_by_hand("shop")
    command = ["kubectl-reconcile", "get", "shop", "-w", "-n", cluster.namespace, "--kubeconfig", kubeconfig]
    with talking(command, stdout=subprocess.PIPE) as watching:
        assert watching.stdout.readline().startswith("NAME")
        assert watching.stdout.readline().startswith("shop")
        cluster.edit("Sync", "shop", {"spec": {"suspend": True}})
        assert watching.stdout.readline().split()[:2] == ["shop", "Suspended"]
        cluster.delete("Sync", "shop")
        assert any(line.endswith("(deleted)\n") for line in watching.stdout)


def test_get_goes_on_when_its_watch_has_died_in_silence(kept_by_hand, cluster, kubeconfig, tmp_path):
    kept_by_hand("shop")
    with contextlib.closing(line_to(kubeconfig)) as line:
        far = str(line.kubeconfig(kubeconfig, tmp_path / "along-the-line"))
        command = ["kubectl-reconcile", "get", "shop", "-w", "-n", cluster.namespace, "--kubeconfig", far]
        with talking(command, stdout=subprocess.PIPE) as watching:
            assert [watching.stdout.readline().split()[0] for _ in range(2)] == ["NAME", "shop"]
            eventually(line.is_quiet, "the watch has begun, and nothing else is asked")
            line.silence()
            silenced_s = time.monotonic()
            cluster.edit("Sync", "shop", {"spec": {"suspend": True}})
            assert watching.stdout.readline().split()[:2] == ["shop", "Suspended"]
            assert time.monotonic() - silenced_s < 150  # a watch that isn't watched over ends after five minutes


GET_REFUSED = {
    "a template that is none": (["-o", "jsonpath={.items[0}"], "{.items[0} isn't an expression"),
    "an unknown format": (["-o", "xml"], "'xml' is not one of 'wide', 'name', 'json', 'yaml', 'jsonpath='"),
    "a name and everything": (["shop", "-A"], "leave out -A and -l, or the names"),
    "a watch for a script": (["-w", "-o", "json"], "--watch shows rows of a table"),
}


@pytest.mark.parametrize(("words", "message"), GET_REFUSED.values(), ids=GET_REFUSED)
def test_get_refuses(plugin, words, message):
    refused = plugin("get", *words)
    assert (refused.status, message in refused.err) == (ExitStatus.USAGE, True)


# --- tree -------------------------------------------------------------------------------------------------------------


def test_tree_shows_members_and_what_they_own_down_to_the_pods(plugin, shop, cluster, eventually):
    eventually(lambda: len(cluster.list("Pod")) == 2, "the cache has its pods")
    rows = plugin("tree", "shop").out.splitlines()
    names = [row.split("  ")[0] for row in rows]
    assert names[1:3] == ["Sync/shop", "├─ConfigMap/settings"]
    assert names[3] == "└─Memcached/cache"
    assert sum(row.startswith(("      ├─Pod/cache-", "      └─Pod/cache-")) for row in rows) == 2
    assert all(len(row.split()) >= 3 for row in rows)


def test_tree_as_data_names_the_files(plugin, shop):
    found = json.loads(plugin("tree", "-o", "json").out)
    assert (found["kind"], found["name"]) == ("Sync", "shop")
    assert [(child["name"], child["source"]) for child in found["children"]] == [
        ("settings", "settings.yaml"),
        ("cache", "cache.yaml"),
    ]
    below = {each["kind"] for each in found["children"][1]["children"]}
    assert below >= {"Deployment", "Service"}
    assert plugin("tree", "-o", "name").out.splitlines()[:2] == ["sync.reconcile.dev/shop", "configmap/settings"]


def test_tree_of_one_object(plugin, shop):
    head, first, *_ = plugin("tree", "memcached/cache").out.splitlines()
    assert (head.split()[0], first.split()[0]) == ("OBJECT", "Memcached/cache")


def test_tree_shows_only_what_is_unwell(plugin, kept_by_hand, tmp_path, cluster, eventually):
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lost"},
        "spec": {"nodeSelector": {"nowhere": "at-all"}, "containers": [{"name": "a", "image": "a"}]},
    }  # fmt: skip
    (tmp_path / "pod.yaml").write_text(json.dumps(pod))
    kept_by_hand("other")
    plugin("sync", "-f", str(tmp_path), "--name", "shop", "--no-wait")
    rows = plugin("tree", "shop", "--unhealthy").out.splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["Sync/shop", "└─Pod/lost"]
    assert rows[2].split()[1] in {"InProgress", "Failed"}, "Failed, once no node was found for a while"


def test_tree_of_many_pods(plugin, cluster, tmp_path, memcached, eventually):
    (tmp_path / "cache.yaml").write_text(memcached("cache", size=12))
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    eventually(lambda: len(cluster.list("Pod")) == 12, "all pods are there")
    assert plugin("tree", "shop").out.count("Pod/cache-") == 12


def test_tree_without_unicode_is_still_a_tree(cluster, kept_by_hand, kubeconfig):
    kept_by_hand("shop")
    command = ["kubectl-reconcile", "tree", "shop", "-n", cluster.namespace, "--kubeconfig", kubeconfig]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    assert "`-ConfigMap/shop-web" in done.stdout


def test_tree_names_what_may_not_be_seen(sandbox, kubectl, plugin, cluster, kept_by_hand, namespace):
    kept_by_hand("shop")
    rules = ["--verb=get,list", "--resource=syncs.reconcile.dev,configmaps"]
    kubectl("create", "role", "looker", *rules, "-n", namespace)
    kubectl("create", "rolebinding", "looker", "--role=looker", "--user=looker", "-n", namespace)
    until_may(kubectl, "looker", "list", "configmaps", namespace)
    looker = type(plugin)(kubectl.using(sandbox.kubeconfig_for("looker")), namespace)
    seen = looker("tree", "shop")
    assert (seen.status, "ConfigMap/shop-web" in seen.out) == (0, True)
    assert seen.err.startswith("warning: can't list Endpoints, ")
    assert " more kinds, so the tree doesn't show them\n" in seen.err


# --- events -----------------------------------------------------------------------------------------------------------


def test_events_tell_what_the_daemon_did(plugin, shop):
    sha = shop.status["lastAppliedRevision"]
    told = plugin("events", "shop")
    assert f"  Sync/shop  Synced: {sha[:7]}: 2 created, 0 updated, 0 deleted\n" in told.out
    assert plugin("logs", "shop").out.startswith(told.out)
    entries = [json.loads(text) for text in plugin("events", "-o", "json").out.splitlines()]
    assert entries[0]["object"]["name"] == "shop"
    assert plugin("events", "--warnings").err.startswith("no events about namespace ")


def test_events_follow_live(plugin, shop, cluster, kubeconfig):
    command = ["kubectl-reconcile", "logs", "shop", "--follow", "-n", cluster.namespace, "--kubeconfig", kubeconfig]
    with talking(command, stdout=subprocess.PIPE) as following:
        lines = iter(following.stdout.readline, "")
        assert any("Synced" in line for line in lines)
        cluster.edit("ConfigMap", "settings", {"data": {"colour": "green"}})
        assert any("by-hand changed .data.colour; corrected" in line for line in lines)


def test_events_of_one_sync_are_those_of_its_objects_too(plugin, shop, cluster, kept_by_hand):
    kept_by_hand("other")
    event = {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": f"cache.{time.time_ns()}"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning", "reason": "Told", "action": "Tell",
        "note": "evil \x1b[31mred\nsecond line", "reportingController": "reconcile.dev/daemon",
        "reportingInstance": "a", "regarding": {
            "apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "name": "cache",
            "namespace": cluster.namespace, "uid": cluster.get("Memcached", "cache")["metadata"]["uid"],
        },
    }  # fmt: skip
    cluster.api.ask(cluster.path("Event"), method="POST", body=event)
    told = plugin("events", "shop", "--warnings")
    assert r"Memcached/cache  Told: evil \x1b[31mred\nsecond line" in told.out
    assert "Memcached" not in plugin("events", "other").out
    assert "Told" not in plugin("events", "shop", "--since", "1h").out


# --- suspend and resume -----------------------------------------------------------------------------------------------


def test_a_suspended_sync_leaves_drift_alone_until_it_is_resumed(plugin, shop, cluster, eventually, namespace):
    assert plugin("suspend", "shop").out == f"{namespace}/shop: suspended\n"
    shop.until("Suspended")
    assert plugin("suspend", "shop").out == f"{namespace}/shop: is already suspended\n"
    cluster.edit("ConfigMap", "settings", {"data": {"colour": "green"}})
    done = plugin("resume", "shop")
    assert (done.status, done.out) == (0, f"{namespace}/shop: resumed\n")
    eventually(lambda: cluster.get("ConfigMap", "settings")["data"]["colour"] == "red", "drift is put back")
    assert not shop.live["spec"].get("suspend")
    assert shop.live["metadata"]["annotations"]["reconcile.dev/resume-requested-at"].endswith("Z")


def test_several_syncs_and_all_of_them(plugin, kept_by_hand, cluster):
    kept_by_hand("shop")
    kept_by_hand("blog")
    assert plugin("suspend", "shop", "blog").out.count(": suspended\n") == 2
    assert plugin("resume", "--all").out.count(": resumed\n") == 2
    assert not any(one["spec"].get("suspend") for one in cluster.list("Sync"))
    assert plugin("resume", "shop", "--all").status == ExitStatus.USAGE
    assert plugin("suspend").status == ExitStatus.USAGE


def test_steering_a_sync_that_another_keeps_warns(plugin, kept_by_hand, cluster):
    kept_by_hand("shop")
    marks = {
        "labels": {"applyset.kubernetes.io/part-of": "applyset-x-v1"},
        "annotations": {"reconcile.dev/source": "s.yaml"},
    }
    cluster.edit("Sync", "shop", {"metadata": marks})
    told = plugin("suspend", "shop")
    assert told.status == 0
    assert (
        told.err
        == "warning: shop is itself a member of a Sync, from s.yaml, which may undo this; change it there, too\n"
    )


# --- what can't be done -----------------------------------------------------------------------------------------------

NEEDS_A_SYNC = {
    "diff": ["diff", "shp"],
    "sync": ["sync", "shp"],
    "status": ["status", "shp"],
    "get": ["get", "shp"],
    "tree": ["tree", "shp"],
    "events": ["events", "shp"],
    "suspend": ["suspend", "shp"],
    "resume": ["resume", "shp"],
}


@pytest.mark.parametrize("words", NEEDS_A_SYNC.values(), ids=NEEDS_A_SYNC)
def test_an_unknown_sync_may_have_been_meant_otherwise(plugin, kept_by_hand, namespace, words):
    kept_by_hand("shop")
    refused = plugin(*words)
    assert (refused.status, refused.out) == (ExitStatus.USAGE, "")
    assert refused.err == f"error: no Sync shp in namespace {namespace}; did you mean shop?\n"


def test_a_sync_of_another_namespace_is_pointed_at(plugin, kept_by_hand, cluster, kubectl, namespace):
    name = f"shop-{time.time_ns()}"
    kept_by_hand(name)
    refused = type(plugin)(kubectl, "default")("tree", name)
    assert refused.err.splitlines()[1] == f"hint: namespace {namespace} has one: add -n {namespace}"


@pytest.mark.parametrize("words", NEEDS_A_SYNC.values(), ids=NEEDS_A_SYNC)
def test_without_rights_the_rule_that_would_do_is_shown(sandbox, kubectl, plugin, namespace, words):
    stranger = type(plugin)(kubectl.using(sandbox.kubeconfig_for("stranger")), namespace)
    refused = stranger(*words)
    assert refused.status == ExitStatus.CLUSTER
    assert 'User "stranger" cannot ' in refused.err
    assert 'hint: the rule that allows it: {apiGroups: ["' in refused.err
    assert "bound to user stranger" in refused.err
    assert "Traceback" not in refused.err


def test_a_token_that_has_expired_is_told_as_such(kubeconfig):
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1_700_000_000}).encode()).decode().rstrip("=")
    done = forked.run(["get", "--kubeconfig", kubeconfig, "--token", f"e30.{claims}.s3cr3t"])
    assert done.returncode == ExitStatus.CLUSTER
    assert "the token expired at 2023-11-14T22:13:20Z" in done.stderr
    assert "hint: log in again or renew the token" in done.stderr
    assert "s3cr3t" not in done.stderr


def test_a_cluster_without_our_crds_says_how_to_get_them(own_cluster, plugin):
    with contextlib.suppress(KeyError):
        bare, _ = own_cluster(components=("etcd", "kube-apiserver"))
    for crd in bare.list("CustomResourceDefinition"):
        bare.delete("CustomResourceDefinition", crd["metadata"]["name"])
    ours = plugin.on(bare)
    for words in NEEDS_A_SYNC.values():
        refused = ours(*words)
        assert refused.status == ExitStatus.USAGE, words
        assert "doesn't know Syncs yet" in refused.err
        assert "install" in refused.err.splitlines()[1]


def test_requests_are_told_to_those_who_want_to_know(plugin, kept_by_hand, namespace):
    kept_by_hand("shop")
    assert plugin("get").err == ""
    told = plugin("get", "-v", "6").err
    assert f"/namespaces/{namespace}/syncs answered 200 in " in told
    assert "Bearer" not in told


def test_tree_goes_on_below_a_child_sync(plugin, tmp_path, config_map):
    below = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "below"}, "spec": {}}
    for folder, content in {"top": json.dumps(below), "low": config_map("deep")}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "it.yaml").write_text(content)
    for folder, name in (("top", "shop"), ("low", "below")):
        assert plugin("sync", "-f", str(tmp_path / folder), "--name", name).status == 0
    names = [row.split("  ")[0].rstrip() for row in plugin("tree", "shop").out.splitlines()[1:]]
    assert [name.strip() for name in names[:2]] == ["Sync/shop", "└─Sync/below"]
    assert "ConfigMap/deep" in plugin("tree", "shop").out
