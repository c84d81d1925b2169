"""Variables of Syncs on a real API server: where values come from, who reads them, who sees them, and what follows when they change."""

from __future__ import annotations

import contextlib
import json
import re
import time
from urllib.parse import urlsplit

from tests.lines import Gate

SECRET = "pa55-w0rd-of-the-shop"


def cron_job(name, **env):
    container = {
        "name": "x", "image": "registry.invalid/x:1", "env": [{"name": key, "value": value} for key, value in env.items()],
    }  # fmt: skip
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name, "labels": {"env": "${ENV}"}},
        "spec": {
            "schedule": "0 0 1 1 *", "suspend": True, "failedJobsHistoryLimit": "${KEPT}",
            "jobTemplate": {"spec": {"template": {"spec": pod}}},
        },
    }  # fmt: skip


def held_by(kind, name, data):
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name},
        "stringData" if kind == "Secret" else "data": data,
    }


VARIABLES = [
    {"name": "ENV", "valueFrom": {"configMapKeyRef": {"name": "cluster", "key": "env"}}},
    {"name": "KEPT", "value": "2", "type": "Integer"},
    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "shop", "key": "password"}}},
    {"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": "cluster"}}, "default": "eu"},
]
FILES = {
    "job.json": json.dumps(
        cron_job("${ENV}-report", URL="db://shop:${PASSWORD}@db", PLACE="${REGION} $${REGION} ${HOME}"), indent=1
    ),
    "script.json": json.dumps(held_by("ConfigMap", "script", {"run.sh": "echo ${ENV}"})),
}


def said_of(sync):
    return json.dumps([sync.live, sync.cluster.list("Event")])


def test_values_are_followed_and_those_of_secrets_are_seen_by_nobody(
    daemon, follow, plugin, cluster, git_server, eventually, tmp_path
):
    cluster.apply(held_by("ConfigMap", "cluster", {"env": "dev"}))
    cluster.apply(held_by("Secret", "shop", {"password": SECRET}))
    sha = git_server.push(FILES)
    sync = follow(git_server.url, interval="1h")  # what follows is the watches' doing
    sync.change(source={"substitute": {"variables": VARIABLES}})
    eventually(lambda: "dev-report" in cluster.members("CronJob", "shop"), "the job is there")
    sync.until_synced(sha)
    live = cluster.get("CronJob", "dev-report")
    [container] = live["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert {each["name"]: each["value"] for each in container["env"]} == {
        "URL": f"db://shop:{SECRET}@db", "PLACE": "eu ${REGION} ${HOME}",
    }  # fmt: skip
    assert (live["metadata"]["labels"]["env"], live["spec"]["failedJobsHistoryLimit"]) == ("dev", 2)
    assert cluster.get("ConfigMap", "script")["data"]["run.sh"] == "echo ${ENV}"
    [warning] = sync.status["warnings"]
    assert warning.startswith("job.json:")
    assert "${HOME}: the Sync doesn't declare it" in warning
    assert plugin("diff", "shop").status == 0

    cluster.edit("Secret", "shop", {"stringData": {"password": "another-" + SECRET}})
    eventually(
        lambda: "another-" in json.dumps(cluster.get("CronJob", "dev-report")["spec"]), "the new password is applied"
    )
    sync.change(suspend=True)
    sync.until("Suspended")
    cluster.edit("Secret", "shop", {"stringData": {"password": "third-" + SECRET}})
    shown = plugin("diff", "shop")
    assert shown.status == 1, shown.err
    assert "from ${PASSWORD}" in shown.out
    assert "***" in shown.out
    plan = plugin("diff", "shop", "-o", "json")
    [change] = json.loads(plan.out)["changes"]
    assert change["fields"][0]["variables"] == ["PASSWORD"]
    assert sorted(change["variables"]) == ["ENV", "KEPT", "PASSWORD", "REGION"]
    explained = plugin("explain", "cronjob/dev-report")
    everything = [shown.out, shown.err, plan.out, explained.out, said_of(sync), daemon.log]
    assert not any(SECRET in each for each in everything)

    cluster.edit("Sync", "shop", {"spec": {"suspend": False}})
    cluster.edit("ConfigMap", "cluster", {"data": {"env": "prod"}})
    eventually(lambda: cluster.members("CronJob", "shop") == {"prod-report"}, "the job has its new name")


def test_what_has_no_value_is_a_problem_at_its_line_and_takes_nothing_away(
    daemon, follow, plugin, cluster, git_server, eventually
):
    cluster.apply(held_by("ConfigMap", "cluster", {"env": "dev"}))
    sha = git_server.push(
        {
            "a.json": json.dumps(
                held_by("ConfigMap", "a", {"x": "y"}) | {"metadata": {"name": "a", "labels": {"env": "${ENV}"}}},
                indent=1,
            )
        }
    )
    sync = follow(git_server.url, interval="1h")  # what follows is the watches' doing
    sync.change(source={"substitute": {"variables": VARIABLES[:1]}})
    eventually(lambda: cluster.names("ConfigMap") >= {"a"}, "it is there")
    sync.until_synced(sha)
    cluster.delete("ConfigMap", "cluster")
    ready = sync.until("ProblemsInSource")
    assert "a.json:7: ${ENV} has no value: there is no ConfigMap" in ready["message"]
    assert cluster.names("ConfigMap") >= {"a"}
    shown = plugin("diff", "shop")
    assert (shown.status, "a.json:7: ${ENV} has no value" in shown.err) == (4, True)
    cluster.apply(held_by("ConfigMap", "cluster", {"env": "prod"}))
    eventually(lambda: cluster.get("ConfigMap", "a")["metadata"]["labels"]["env"] == "prod", "its label follows")


def test_a_value_that_changes_between_its_reading_and_its_turn_at_the_git_server_is_followed_at_once(
    new_daemon, follow, cluster, git_server, eventually
):
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, ["--git-max-jobs=2"]).start()
    cluster.apply(held_by("ConfigMap", "cluster", {"env": "dev"}))
    labelled = held_by("ConfigMap", "a", {"x": "y"}) | {"metadata": {"name": "a", "labels": {"env": "${ENV}"}}}
    sha = git_server.push({"a.json": json.dumps(labelled)})
    url = urlsplit(git_server.url)
    with contextlib.closing(Gate(url.hostname, url.port)) as gate:
        sync = follow(git_server.url, interval="1h", suspend=True)
        sync.change(source={"substitute": {"variables": VARIABLES[:1]}}, suspend=False)
        sync.until_synced(sha)
        gate.shut()
        follow(url._replace(netloc=f"{url.hostname}:{gate.port}").geturl(), "other", path="nothing", interval="1h")
        eventually(lambda: gate.waiting, "another Sync has its turn, which takes long")
        cluster.edit("ConfigMap", "cluster", {"data": {"env": "test"}})
        eventually(lambda: daemon.count("reconcile_git_waiting", lane="quick") == 1, "this one waits for its turn")
        cluster.edit("ConfigMap", "cluster", {"data": {"env": "prod"}})
        time.sleep(0.5)  # the watch hears of it
        gate.open()
        eventually(
            lambda: cluster.get("ConfigMap", "a")["metadata"]["labels"]["env"] == "prod", "the newer value is applied"
        )


def test_defaults_in_the_text_count_where_a_sync_says_so(crds, follow, plugin, cluster, git_server):
    job = cron_job("report", PLACE="${PLACE:=home} $${PLACE:=home}")
    job["metadata"]["labels"]["env"], job["spec"]["failedJobsHistoryLimit"] = "${ENV:-dev}", "${KEPT:=4}"
    git_server.push({"job.json": json.dumps(job, indent=1)})
    sync = follow(git_server.url, suspend=True)
    kept = {"name": "KEPT", "type": "Integer", "valueFrom": {"configMapKeyRef": {"name": "nowhere"}}}
    sync.change(source={"substitute": {"expressions": "Defaults", "variables": [kept]}})
    shown = plugin("diff", "shop")
    assert shown.status == 1, shown.err
    for line in ("failedJobsHistoryLimit: 4", "env: dev", 'value: "home ${PLACE:=home}"'):
        assert line in shown.out
    job["spec"]["schedule"] = "${WHEN%%x}"
    git_server.push({"job.json": json.dumps(job, indent=1)})
    refused = plugin("diff", "shop")
    assert re.search(r"job\.json:\d+: \$\{WHEN%%x\} has no value: behind the name there may be a default", refused.err)
