"""Faults that befall an EtcdCluster on real members: who comes back as who they were, who is replaced, and what waits for people."""

import json
import subprocess
import time

import pytest

from kubectl_reconcile.sandbox.runtime.client import RuntimeClient
from tests.chaos.etcd.live import LiveCluster
from tests.chaos.live import MemberError, soon
from tests.operators.real.commands import approved
from tests.operators.real.etcd.cluster import NEW
from tests.operators.real.etcd.keys import put, stored, write

pytestmark = pytest.mark.scenario(minutes=5)


@pytest.fixture(scope="module")
def cluster(db) -> LiveCluster:
    return LiveCluster(db.real.sandbox, db.real.namespace)


@pytest.fixture
def live(db, cluster) -> LiveCluster:
    """Three members at rest, or four where the test before was about that."""
    if not cluster.cr:
        db.apply(version=NEW)
    cluster.settled()
    return cluster


def is_gone(live, member):
    """Tell whether a majority says that there is no such member."""
    return member not in {each["id"] for each in live.members().values()}


def is_true(live, type_):
    return live.condition(type_)["status"] == "True"


def only_changed(slot, before, after):
    """Whether one member is another one, on another volume, and all others are who they were."""
    others = before.members.keys() - {slot}
    is_same = all(
        (before.members[each], before.volumes[each]) == (after.members[each], after.volumes[each]) for each in others
    )
    is_other = before.members[slot] != after.members[slot] and before.volumes[slot] != after.volumes[slot]
    return is_same and is_other and before.cluster == after.cluster and len(before.members) == len(after.members)


def test_members_that_crash_all_at_once_or_hang_come_back_as_who_they_were(live):
    before = live.rest()
    put(live, "db-0", "first", "1")
    live.crash(*before.members)
    assert live.settled() == before

    leader = live.leader()
    other = next(slot for slot in before.members if slot != leader)
    nobody_or_who_hangs = {0, int(before.members[leader], 16)}
    live.sandbox.pods.pause(live.namespace, leader)
    try:
        soon(lambda: leader_of(live, other) not in nobody_or_who_hangs, "another leads")
        soon(lambda: f"{leader} doesn't serve" in live.condition("Ready")["message"], "the status says who hangs")
        soon(lambda: is_true(live, "Available"), "the others serve")
        put(live, other, "second", "2")
    finally:
        live.sandbox.pods.heal(live.namespace, leader)
    assert live.settled() == before
    assert (stored(live, leader, "first"), stored(live, leader, "second")) == (["1"], ["2"])


def leader_of(live, slot):
    """Who leads, as a member says; 0 while nobody does."""
    return int(live.tell(slot, "/v3/maintenance/status").get("leader") or 0)


def test_a_volume_that_comes_back_empty_while_the_others_hang_costs_nobody_anything(live):
    before = live.rest()
    put(live, "db-1", "precious", "42")
    with live.hanging("db-1", "db-2"):
        live.crash("db-0", also=live.wipe)
        soon(lambda: "db-0: its data is gone" in live.condition("Degraded")["message"], "the status says what is lost")
        assert not live.answers("db-0")
        assert not is_true(live, "Ready")
        assert (sorted(live.pods()), sorted(live.claims())) == (sorted(before.members), sorted(before.members))
    assert only_changed("db-0", before, after := live.settled())
    assert [stored(live, slot, "precious") for slot in after.members] == [["42"]] * 3


def test_what_people_take_away_is_replaced_and_what_they_add_waits_for_people(db, live):
    before = live.rest()
    put(live, "db-0", "taken", "1")
    live.delete_claim("db-1")
    soon(lambda: is_gone(live, before.members["db-1"]), "the member leaves before its volume does")
    after = live.settled()
    assert only_changed("db-1", before, after)

    live.remove_member("db-2")
    rest = live.settled()
    (new,) = rest.members.keys() - after.members.keys()
    assert after.members.keys() - rest.members.keys() == {"db-2"}
    assert stored(live, new, "taken") == ["1"]
    assert db.aside()["db-2"] == after.members["db-2"]

    live.add_stranger("elsewhere.example.com")
    soon(lambda: live.condition("Ready")["reason"] == "Stranger", "the stranger is noticed")
    assert "elsewhere.example.com" in soon(live.members, "a majority says who is a member")
    approved(db.real, "etcdcluster/db")
    assert live.settled() == rest


def test_a_member_whose_log_is_damaged_is_replaced_by_one_that_learns_from_the_others(live):
    before = live.rest()
    put(live, "db-0", "damaged", "1")
    live.crash("db-1", also=live.spoil_log)
    soon(lambda: is_gone(live, before.members["db-1"]), "its etcd refuses its data")
    assert only_changed("db-1", before, live.settled())
    assert stored(live, "db-1", "damaged") == ["1"]


def test_a_follower_that_is_slow_all_through_a_scaling_and_a_pod_that_is_stuck_cost_nobody_anything(db, live):
    before, leader = live.rest(), live.leader()
    slow, stuck = (slot for slot in before.members if slot != leader)
    live.change(size=4)
    for number in range(12):  # it runs a third of the time
        live.sandbox.pods.pause(live.namespace, slow)
        try:
            put(live, leader, f"slow-{number}", "1")
            time.sleep(0.4)
        finally:
            live.sandbox.pods.heal(live.namespace, slow)
        time.sleep(0.2)
    after = live.settled()
    assert {slot: after.members[slot] for slot in before.members} == before.members
    assert [stored(live, slow, f"slow-{number}") for number in range(12)] == [["1"]] * 12

    hold(db.real, stuck, ["example.com/hold"])
    live.delete_pod(stuck, at_once=True)
    live.change(size=3)
    soon(lambda: f"pod {stuck} is terminating" in live.condition("Ready")["message"], "it is waited for")
    put(live, leader, "meanwhile", "1")
    soon(lambda: is_true(live, "Available"), "the others serve")
    assert live.rest() == after
    hold(db.real, stuck, None)
    left = live.settled()
    assert {slot: after.members[slot] for slot in left.members} == left.members
    assert len(left.members) == 3
    assert all(stored(live, slot, "meanwhile") == ["1"] for slot in left.members)


def hold(real, pod, finalizers):
    patch = json.dumps({"metadata": {"finalizers": finalizers}})
    real.kubectl("patch", "pod", pod, "-n", real.namespace, "--type=merge", "-p", patch)


def in_runtime(live, script, *arguments):
    """Run a script where the pods' volumes are mounted from, with the rights that the runtime has there."""
    _, runtime = RuntimeClient(live.sandbox.folder / "pods").processes()
    inside = ["nsenter", f"--target={runtime.pid}", "--user", "--preserve-credentials", "--mount"]
    subprocess.run([*inside, "sh", "-euc", script, "sh", *map(str, arguments)], check=True, timeout=300)


SHRUNK = """
mkdir -p "$1.small"
mount -t tmpfs -o size=1m small "$1.small"
cp -a --sparse=always "$1/." "$1.small/"
dd if=/dev/zero of="$1.small/filler" bs=4k status=none 2>/dev/null || true
mount --bind "$1.small" "$1"
"""


def test_a_member_whose_disk_is_full_is_named_and_comes_back_as_who_it_was_once_there_is_room(live):
    before = live.rest()
    other, full = sorted(before.members)[:2]
    disk = live.data(full).parents[1]
    live.sandbox.pods.pause(live.namespace, full)
    in_runtime(live, SHRUNK, disk)
    live.crash(full)

    def says_so():
        write(live, other, "while-full", "1")
        return "no space left on device" in live.condition("Ready")["message"]

    soon(says_so, "the status says what is wrong")
    soon(lambda: live.containers()[full]["attempt"] >= 4, "it has been tried some times")
    soon(lambda: is_true(live, "Available"), "the others serve")
    assert live.rest() == before
    in_runtime(live, 'mount -o remount,size=400m "$1.small"', disk)
    assert live.settled() == before
    assert stored(live, full, "while-full") == ["1"]


def is_full(live, slot):
    """Write one key once more, and tell whether the quota is used up."""
    try:
        write(live, slot, "large", "x" * (1 << 20))
    except MemberError as error:
        return "database space exceeded" in str(error)
    return False


def sizes(live):
    return {slot: int(live.tell(slot, "/v3/maintenance/status")["dbSize"]) for slot in live.members()}


def is_compacted(live, slot, revision):
    """Forget what was before a revision, and tell whether that is done."""
    try:
        live.tell(slot, "/v3/kv/compaction", {"revision": revision, "physical": True})
    except MemberError as error:
        return "has been compacted" in str(error)
    return True


def actions(live):
    return json.loads(live.cr["metadata"]["annotations"]["reconcile.dev/actions"])


def test_a_quota_that_is_used_up_has_room_again_once_somebody_approves_and_files_shrink_on_a_schedule(db, live):
    quota = {"quotaBackendBytes": 16 << 20}
    db.apply(version=NEW, etcd=quota)
    before = live.settled()
    one, other = sorted(before.members)[:2]
    put(live, one, "before", "1")
    soon(lambda: is_full(live, one), "the quota is used up")
    soon(lambda: "make room: compact" in live.condition("Degraded")["message"], "room is offered")
    soon(lambda: live.condition("Alarm")["reason"] == "NoSpace", "the alarm is told")
    known = {each["key"] for each in actions(live)}

    approved(db.real, "etcdcluster/db")
    assert live.settled() == before
    soon(lambda: live.condition("Alarm")["status"] == "False", "the alarm is over")
    soon(lambda: max(sizes(live).values()) < 4 << 20, "all files are small")
    taken = [each for each in actions(live) if each["key"] not in known]
    assert [each["verb"] for each in taken] == ["make-room", "compact", *["defragment"] * 3, "disarm"]
    assert {each["progress"] for each in taken} == {"done"}
    assert stored(live, other, "before") == ["1"]

    for _ in range(6):
        put(live, one, "large", "x" * (1 << 20))
    revision = soon(lambda: live.tell(one, "/v3/maintenance/status")["header"]["revision"], f"{one} answers")
    soon(lambda: is_compacted(live, one, revision), "what was before is forgotten")
    soon(lambda: min(sizes(live).values()) > 6 << 20, "all files have grown")
    db.apply(version=NEW, etcd={**quota, "defragmentation": {"schedule": "* * * * *"}})
    soon(lambda: max(sizes(live).values()) < 4 << 20, "all files are rewritten", timeout_s=600.0)
    assert live.settled() == before
    soon(lambda: live.cr["status"].get("defragmentation", {}).get("nextScheduleTime"), "the next time is told")
