"""Daemons whose lines, Leases and fellows fail them. Who wrote what, the API server's audit log tells, not the daemons."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import threading
import time
from datetime import UTC, datetime

import pytest
import yaml

from tests.lines import line_to
from tests.waiting import PATIENCE_S

SYNCS = 6
# Nobody takes over from anybody within the time of a test.
NO_TAKEOVER = """
from kubectl_reconcile.core.daemon import sharding
sharding.VALID_S, sharding.DURATION_S, sharding.ACKNOWLEDGE_S = 1000.0, 1200, 1500.0
"""
# Nor is a connection given up for its silence alone.
NO_END_OF_SILENCE = "from kubectl_reconcile.cluster import transport\ntransport._SILENCE_S = 1000.0\n"
# Comes first of all by its name; and if it were for it to take over, nobody would.
NEWCOMER = "import socket\nsocket.gethostname = lambda: '0'\n" + NO_TAKEOVER


def agreed(daemons):
    """Whether the last share that each settled counts just these."""
    found = [re.findall(r"share settled generation=\d+ members=(\d+)", each.log) for each in daemons]
    return all(each and int(each[-1]) == len(daemons) for each in found)


@pytest.fixture
def line(kubeconfig):
    with contextlib.closing(line_to(kubeconfig)) as line:
        yield line


@pytest.fixture
def shops(git_host, follow, config_map):
    """shops(on=cluster, size=3) -> so many Syncs of so many ConfigMaps each, and how to push to all."""

    class Shops:
        def __init__(self, size, on):
            self.size, self.on, self.repositories, self.syncs, self.shas = size, on, [], [], []
            for _ in range(SYNCS):
                self.add()

        def add(self):
            """One Sync more; whose it becomes is for chance to say."""
            number = len(self.repositories)
            self.repositories.append(git_host.create(f"fire-{time.time_ns()}"))
            self.shas.append(self._push_to(number, 0))
            self.syncs.append(follow(self.repositories[-1].url, f"shop-{number}", on=self.on))

        def push(self, at):
            self.shas = [self._push_to(number, at) for number in range(len(self.repositories))]

        def _push_to(self, number, at):
            files = {f"{n}.yaml": config_map(f"shop-{number}-{n}", at=str(at)) for n in range(self.size)}
            return self.repositories[number].push(files)

        def until_synced(self):
            for sync, sha in zip(self.syncs, self.shas, strict=True):
                sync.until_synced(sha)

    return lambda on, size=2: Shops(size, on)


# --- dead watches ---


def test_a_replica_whose_connections_die_in_silence_is_back_within_seconds_and_loses_no_drift(
    new_daemon, line, cluster, shops, tmp_path, eventually, starting_with
):
    far = line.kubeconfig(cluster.kubectl.kubeconfig, tmp_path / "along-the-line")
    alone = starting_with(NO_TAKEOVER + NO_END_OF_SILENCE)
    first = new_daemon(far, cluster.namespace, XDG_CACHE_HOME=str(tmp_path / "first"), **alone).start()
    kubeconfig = cluster.kubectl.kubeconfig
    second = new_daemon(kubeconfig, cluster.namespace, XDG_CACHE_HOME=str(tmp_path / "second"), **alone).start()
    eventually(lambda: agreed([first, second]), "they know of each other")
    shop = shops(on=cluster)
    shop.until_synced()
    names = [f"shop-{number}-0" for number in range(SYNCS)]
    eventually(line.is_quiet, "an idle connection is there, which the Lease is renewed along next")
    line.silence()
    for name in names:
        cluster.edit("ConfigMap", name, {"data": {"at": "drift"}})
    eventually(
        lambda: all(cluster.get("ConfigMap", name)["data"] == {"at": "0"} for name in names),
        "all drift is put back",
    )  # fmt: skip
    shop.push(1)
    shop.until_synced()
    eventually(lambda: "dead connections closed" in first.log, "the first has found out")
    assert "expelled" not in first.log, "it renews its Lease along a new connection in time"


# --- who comes and goes ---


def group_of(cluster):
    found = cluster.list("Lease", "reconcile.dev/component=daemon-group")
    if not found:
        return "", []
    annotations = found[0]["metadata"]["annotations"]
    return found[0]["spec"].get("holderIdentity", ""), [
        name for name, _ in json.loads(annotations["reconcile.dev/members"])
    ]


def test_a_newcomer_that_sorts_lower_does_not_delay_the_takeover_of_a_leader_that_stands_still(
    new_daemon, cluster, tmp_path, eventually, starting_with
):
    daemons = [
        new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, XDG_CACHE_HOME=str(tmp_path / str(at))).start()
        for at in range(2)
    ]
    eventually(lambda: agreed(daemons), "they know of each other")
    leader, _ = group_of(cluster)
    stopped = next(each for each in daemons if leader.endswith(f"-{each.process.pid}"))
    os.kill(stopped.process.pid, signal.SIGSTOP)
    try:
        newcomer = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, **starting_with(NEWCOMER))
        coming = threading.Timer(9, newcomer.start, kwargs={"ready": False})  # so that it is there when it matters
        coming.start()
        eventually(lambda: leader not in group_of(cluster)[1], "its share is taken over")
        coming.join()
        eventually(lambda: len(group_of(cluster)[1]) == 2, "the newcomer is a member too")
        assert group_of(cluster)[1][0].startswith("0-")
    finally:
        os.kill(stopped.process.pid, signal.SIGCONT)


def test_replicas_that_are_ended_together_leave_no_name_behind_and_the_next_begins_at_once(
    new_daemon, cluster, tmp_path, eventually
):
    for round_ in range(2):
        daemons = [
            new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, XDG_CACHE_HOME=str(tmp_path / f"{round_}-{at}"))
            for at in range(3)
        ]
        for each in daemons:
            each.start(ready=False)
        eventually(lambda daemons=daemons: agreed(daemons), "they know of each other")
        for each in daemons:
            each.process.send_signal(signal.SIGTERM)
        assert [each.process.wait(PATIENCE_S) for each in daemons] == [0, 0, 0]
        assert group_of(cluster)[1] == []
        assert not cluster.names("Lease", "reconcile.dev/component=daemon")


def test_after_the_groups_lease_was_deleted_words_on_the_old_one_do_not_count(
    new_daemon, cluster, tmp_path, eventually
):
    daemons = [
        new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, XDG_CACHE_HOME=str(tmp_path / str(at))).start()
        for at in range(2)
    ]
    eventually(lambda: agreed(daemons), "they know of each other")
    (name,) = cluster.names("Lease", "reconcile.dev/component=daemon-group")
    marks = [len(each.log) for each in daemons]
    cluster.delete("Lease", name)

    def acknowledged():
        (anew,) = cluster.list("Lease", "reconcile.dev/component=daemon-group") or [None]
        said = [one["metadata"]["annotations"] for one in cluster.list("Lease", "reconcile.dev/component=daemon")]
        return anew and all(
            each.get("reconcile.dev/acknowledged-group", "").endswith(f"@{anew['metadata']['uid']}") for each in said
        )

    eventually(acknowledged, "both acknowledge the new one by its uid")
    eventually(
        lambda: all("share settled" in each.log[mark:] for each, mark in zip(daemons, marks, strict=True)),
        "and only then it is settled",
    )


# --- late writes, judged by the audit log ---

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}, {"level": "None"}],
}


class Audit:
    """What the API server says who wrote, in the order in which it was done."""

    def __init__(self, path):
        self._path = path

    def writes(self, resource):
        """(when it was done, who, the object's name, the status) of each write that was meant."""
        found = []
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):  # the last line may be half written
                event = json.loads(line)
                ref = event.get("objectRef") or {}
                if ref.get("resource") == resource and "dryRun=All" not in event["requestURI"]:
                    at = datetime.fromisoformat(event["stageTimestamp"])
                    found.append((at, event["user"]["username"], ref.get("name", ""), event["responseStatus"]["code"]))
        return sorted(found)


@pytest.fixture
def audited(own_cluster, crds_of, tmp_path):
    """A cluster of the test's own with an audit log, and two users whom that tells apart."""
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text(yaml.safe_dump(POLICY))
    cluster, sandbox = own_cluster(
        flags={"kube-apiserver": (f"--audit-policy-file={policy}", f"--audit-log-path={log}")},
        users={"first": ("system:masters",), "second": ("system:masters",)},
        components=("etcd", "kube-apiserver"),
    )
    crds_of(cluster)
    return cluster, sandbox, Audit(log)


def test_writes_that_arrive_after_the_successors_are_refused_and_are_no_failure_of_anybody(
    audited, new_daemon, shops, tmp_path, eventually
):
    cluster, sandbox, audit = audited
    own = sandbox.kubeconfig_for("first")
    with contextlib.closing(line_to(own)) as line:
        far = line.kubeconfig(own, tmp_path / "along-the-line")
        first = new_daemon(far, cluster.namespace, XDG_CACHE_HOME=str(tmp_path / "first")).start()
        second = new_daemon(
            sandbox.kubeconfig_for("second"), cluster.namespace, XDG_CACHE_HOME=str(tmp_path / "second")
        ).start()
        eventually(lambda: agreed([first, second]), "they know of each other")
        shop = shops(on=cluster, size=60)
        shop.until_synced()

        def wrote(who):
            """Writes that came whole: of one whose rest is in the line for too long the server reads no more."""
            return [each for each in audit.writes("configmaps") if each[1] == who and each[3] != 504]

        while len(wrote("first")) < 2 * 60:  # so that it has enough to do for being held in the middle of it
            shop.add()
            shop.until_synced()
        for version in range(1, 20, 2):  # again, where all was written before the line was held
            begun, said = datetime.now(UTC), len(first.log)
            shop.push(version)
            eventually(
                lambda said=said: 'INFO applied object="ConfigMap' in first.log[said:],
                "the first writes",
                pause_s=0.005,
            )
            line.hold()
            shop.push(version + 1)
            shop.until_synced()  # the second has taken over
            late = len(wrote("first"))
            line.let_go()
            with contextlib.suppress(AssertionError):
                eventually(lambda late=late: len(wrote("first")) > late, "what was kept arrives", timeout_s=15)
                break
            eventually(lambda: agreed([first, second]), "they know of each other again")
            shop.until_synced()
        time.sleep(2)  # what else was kept arrives, and is put right
        shop.until_synced()

    by_second, cut_off, judged = {}, set(), 0
    for at, who, name, status in audit.writes("configmaps"):
        if at < begun:
            continue
        if who == "second" and status < 300:
            assert name not in cut_off, f"{name} had to be put back, so the first has written it after all"
            by_second[name] = at
        elif who == "first" and name in by_second and status == 504:
            cut_off.add(name)
        elif who == "first" and name in by_second:
            judged += 1
            assert status == 409, f"{name} was written by the first after the second had written it: {status}"
    assert judged, "no write came late"
    assert {each["data"]["at"] for each in cluster.list("ConfigMap", "applyset.kubernetes.io/part-of")} == {
        str(version + 1)
    }
    assert "not applied" not in first.log
    assert "not applied" not in second.log
    assert not [each for each in cluster.list("Event") if each["reason"] == "ApplyFailed"]
