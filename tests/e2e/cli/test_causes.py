"""What went wrong is told once, in words that a person can read, with what it would cost to follow them."""

from __future__ import annotations

import json

import yaml

from tests import forked
from tests.e2e.cluster import until_may


def config_map(name: str, namespace: str = "") -> dict:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


def written(folder, *manifests) -> str:
    (folder / "x.yaml").write_text(yaml.safe_dump_all(manifests))
    return str(folder)


def test_one_missing_namespace_is_one_sentence(plugin, tmp_path):
    folder = written(tmp_path, *(config_map(f"m{number}", "nowhere-at-all") for number in range(35)))
    answer = plugin("diff", "-f", folder)
    assert answer.status == 6
    told = [line for line in answer.err.splitlines() if "nowhere-at-all" in line and "not found" in line]
    assert len(told) == 1
    assert told[0].startswith("x.yaml:1: ConfigMap nowhere-at-all/m0 and 34 more (")


def test_a_status_says_where_what_the_server_refused_is_written(daemon, follow, cluster, git_server, plugin):
    bad = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad"}, "spec": {"ports": [{"port": 99999}]}}
    sync = follow(git_server.url)
    sync.until("ApplyFailed", git_server.push({"apps/web.yaml": "# first\n" + yaml.safe_dump(bad)}))
    assert f"apps/web.yaml:2: Service {cluster.namespace}/bad: " in plugin("status", "shop").out


def test_held_says_what_is_held(daemon, follow, git_server, cluster, plugin):
    sync = follow(git_server.url, maxDeletes=0)
    sync.until_synced(git_server.push({"a.json": json.dumps(config_map("a")), "b.json": json.dumps(config_map("b"))}))
    held = sync.until("Held", git_server.push({"a.json": None}))
    assert f"ConfigMap {cluster.namespace}/a" in held["message"]
    assert f"ConfigMap {cluster.namespace}/a" in plugin("status", "shop").out


def test_a_refused_job_is_told_in_a_line_that_can_be_read(plugin, tmp_path):
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}},
        },
    }
    folder = written(tmp_path, job)
    assert plugin("sync", "-f", folder, "--name", "shop").status == 0
    job["spec"]["template"]["spec"]["containers"][0]["image"] = "a:2"
    answer = plugin("diff", "-f", written(tmp_path, job), "--name", "shop")
    assert answer.status == 6
    assert "field is immutable" in answer.err
    assert "…}" in answer.err
    assert all(len(line) < 600 for line in [*answer.err.splitlines(), *answer.out.splitlines()])


def test_a_refused_resize_never_advises_to_lose_the_data_without_a_word(plugin, tmp_path):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    }
    assert plugin("sync", "-f", written(tmp_path, claim), "--name", "shop", "--no-wait").status == 0
    claim["spec"]["resources"]["requests"]["storage"] = "1Gi"
    answer = plugin("diff", "-f", written(tmp_path, claim), "--name", "shop")
    assert answer.status == 6
    assert "can't shrink, and this one has 2Gi in the cluster: write 2Gi into the source" in answer.err
    assert "reconcile.dev/replace" not in answer.err


def test_who_may_not_read_leases_is_not_told_that_no_daemon_lives(plugin, cluster, git_server):
    git_server.push({"a.json": json.dumps(config_map("a"))})
    cluster.kubectl("create", "role", "syncs", "-n", cluster.namespace, "--verb=*", "--resource=syncs.reconcile.dev")
    cluster.kubectl("create", "rolebinding", "syncs", "-n", cluster.namespace, "--role=syncs", "--user=ann")
    until_may(cluster.kubectl, "ann", "create", "syncs.reconcile.dev", cluster.namespace)
    done = plugin("create", "shop", "--url", git_server.url, "--as", "ann")
    assert done.status == 0, done.err
    assert "can't tell whether a daemon is running" in done.err
    assert "no daemon is running" not in done.err


def piped(cluster, text: str, *arguments: str) -> str:
    words = [*arguments, "-f", "-", "-n", cluster.namespace, "--kubeconfig", cluster.kubectl.kubeconfig]
    return forked.run(words, text=text).stderr


def test_what_is_wrong_with_standard_input_names_it_and_no_file(cluster):
    for text in ("replicas: 3\n", "a: {{ .Values.x }}\n", ""):
        said = piped(cluster, text, "diff")
        assert said.startswith("stdin:"), said
        assert ".yaml:" not in said
        assert ".reconcileignore" not in said
