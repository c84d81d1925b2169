"""One EtcdCluster on real members: begun, scaled, hurt, upgraded, left without a majority and found again, while a client writes through the client Service."""

import itertools
import json
import re

import pytest

from tests.operators.real.commands import approved, previewed
from tests.operators.real.etcd.cluster import NEW, OLD, acked

pytestmark = pytest.mark.scenario(minutes=3)
WRITER = """
import base64, http.client, itertools, json, time, urllib.request as u
def text(of): return base64.b64encode(of.encode()).decode()
for number in itertools.count():
    body = json.dumps({"key": text(f"n/{number:08}"), "value": text(str(number))}).encode()
    try:
        u.urlopen(u.Request("http://db-client:2379/v3/kv/put", data=body), timeout=3).read()
        print("acked", number, time.monotonic(), flush=True)
    except (OSError, http.client.HTTPException) as error:
        print("failed", number, error, flush=True)
    time.sleep(0.02)
"""


def test_a_change_is_shown_to_its_end_and_by_what_the_daemon_saw_to_whoever_reaches_no_pod(db, tmp_path):
    real, user = db.real, f"reader-of-{db.real.namespace}"
    db.apply(size=1)
    db.settled(1)
    kinds = ("pods", "services", "persistentvolumeclaims", "poddisruptionbudgets", "etcdclusters", "syncs")
    rules = [{"apiGroups": ["*"], "resources": [kind], "verbs": ["*"]} for kind in kinds]
    role, api = {"kind": "Role", "name": "reader"}, {"apiVersion": "rbac.authorization.k8s.io/v1"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    real.apply(
        {**api, "kind": "Role", "metadata": {"name": "reader"}, "rules": rules},
        {**api, "kind": "RoleBinding", "metadata": {"name": "reader"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", **role},
         "subjects": [subject]},
    )  # fmt: skip
    may = ("auth", "can-i", "list", "etcdclusters.etcd.database.coreos.com", "-n", real.namespace, f"--as={user}")
    real.eventually(lambda: "yes" in real.kubectl(*may), "the role is in force")
    file = tmp_path / "db.yaml"
    file.write_text(json.dumps(db.manifest(size=2)))

    def diff(*options):
        return previewed(real, "-f", file, *options)

    for who in ((), (f"--as={user}",)):
        said = diff("--until-stable", *who)
        places = [said.index(step) for step in ("add db-1 as a learner", "PersistentVolumeClaim", "promote db-1")]
        assert places == sorted(places), said
    plain = json.loads(diff("-o", "json"))
    assert plain["problems"] == []
    told = json.loads(diff("-o", "json", f"--as={user}"))
    (problem,) = told["problems"]
    assert problem["severity"] == "warning"
    assert "its pods, as the daemon observed them" in problem["message"]
    assert f"get and create on pods/portforward in namespace {real.namespace}" in problem["message"]
    assert told["observed"][0]["asOf"]

    def is_same():
        looks = [json.loads(diff("-o", "json", *who))["observed"][0]["facts"] for who in ((), (f"--as={user}",))]
        return looks[0] == looks[1]

    real.eventually(is_same, "the daemon saw what there is to see")


@pytest.mark.smoke
def test_no_acknowledged_write_is_lost_whatever_befalls_it(db):
    real = db.real
    db.apply()
    db.settled(3)
    real.run("python", "-uc", WRITER, name="writer", image="python", pod={"terminationGracePeriodSeconds": 0})
    real.eventually(lambda: len(acked(real)) > 20, "the client writes")

    db.apply(size=5)
    db.settled(5)
    assert sorted(db.members()) == [f"db-{at}" for at in range(5)]
    db.apply(size=3)
    db.settled(3)
    left = db.members()
    assert len(left) == 3

    victim = db.leader()
    restarts = real.container(victim)["restartCount"]
    real.sandbox.pods.signal(real.namespace, victim, "KILL")
    real.eventually(lambda: real.container(victim)["restartCount"] > restarts, "the leader is restarted")
    db.settled(3)
    victim = db.leader()
    uid = real.pod(victim)["metadata"]["uid"]
    real.delete(victim)
    real.eventually(lambda: real.pod(victim).get("metadata", {}).get("uid", uid) != uid, "its pod comes back")
    db.settled(3)
    assert db.members() == left

    db.apply(version=NEW)
    db.settled(3)
    assert {real.container(name)["image"] for name in left} == {f"quay.io/coreos/etcd:v{NEW}"}
    assert db.members() == left
    assert db.cr["status"]["currentVersion"] == NEW

    db.apply(version=OLD)
    real.eventually(lambda: db.condition("Degraded")["reason"] == "VersionRefused", "the way back is refused")
    assert NEW in db.condition("Degraded")["message"]
    db.apply(version=NEW)

    before = len(acked(real))
    real.eventually(lambda: len(acked(real)) > before + 20, "the client still writes")
    written = acked(real)
    found = db.etcdctl(next(iter(left)), "get", "n/", "--prefix", "--keys-only", "--limit=1000000").split()
    lost = {f"n/{number:08}" for number, _ in written} - set(found)
    assert not lost
    gaps = sorted(later - sooner for (_, sooner), (_, later) in itertools.pairwise(written))
    assert gaps[-1] < 120, f"{len(written)} writes, and a gap of {gaps[-1]:.1f} s"
    real.delete("writer", "--wait=false")


def test_a_cluster_without_majority_waits_and_one_that_was_deleted_is_found_again_on_its_volumes(db):
    real = db.real
    db.apply(version=NEW)
    db.settled(3)
    before = db.members()
    slots = sorted(before)
    db.etcdctl(slots[0], "put", "first", "1")

    for name in slots[1:]:
        real.sandbox.pods.pause(real.namespace, name)
    real.eventually(lambda: db.condition("Degraded")["reason"] == "QuorumLost", "no majority serves")
    assert db.condition("Available")["status"] == "False"
    assert "of 3 members don't serve" in db.condition("Degraded")["message"]
    assert db.pods() == slots
    for name in slots[1:]:
        real.sandbox.pods.heal(real.namespace, name)
    db.settled(3)
    assert db.members() == before
    claims = sorted(db.claims())
    assert {*slots} <= {*claims}
    assert db.end() == slots
    left = db.claims()
    assert sorted(left) == claims
    assert not any(one["metadata"].get("ownerReferences") for one in left.values())
    db.apply(version=NEW)
    db.settled(3)
    assert db.members() == before
    assert db.value(slots[1], "first") == "1"


def test_what_is_left_of_a_majority_that_is_gone_goes_on_once_somebody_approves(db):
    real = db.real
    db.apply(version=NEW, size=4)
    db.settled(4)
    before = db.members()
    (one, other, *lost) = sorted(before)
    db.etcdctl(one, "put", "second", "2")

    db.daemon.kill()  # or it may replace one of them while the other three serve
    real.kubectl("delete", "pvc", "-n", real.namespace, "--wait=false", *(f"{name}-data" for name in lost))
    real.kubectl("delete", "pod", "-n", real.namespace, *lost)
    db.daemon.start()
    offered = ("continue alone", f"{', '.join(lost)} of 4 members don't serve", f"{lost[1]}: its volume is gone")

    def told():
        found = db.condition("Degraded")["message"]
        return found if all(each in found for each in offered) else None

    assert re.search(r"answers, with revision \d+ and term", real.eventually(told, "one is offered"))
    assert not real.pod(lost[0])

    known = db.aside()
    assert "approved recover-" in approved(db.real, "etcdcluster/db")
    real.eventually(lambda: len(db.aside()) > len(known), "the other volume is put aside")
    (name,) = db.aside().keys() - known.keys()
    db.settled(4)
    left = next(each for each in (one, other) if each != name)
    found = db.members(left)
    assert found[left] == before[left]
    assert len(found) == 4
    assert name not in found
    assert not {*found.values()} & {before[each] for each in before if each != left}
    newest = next(each for each in found if each != left)
    assert db.value(newest, "second") == "2"
    assert db.aside().keys() - known.keys() == {name}
    assert db.aside()[name] == format(before[name], "x")
