"""A cluster that has data, and an EtcdRestore that is to replace them: what is asked, what follows an approval, and what never happens."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.module_testing import asked
from tests.operators.etcd.world import World, joins
from tests.operators.etcd_restore.foreseen import foreseen
from tests.operators.etcd_restore.world import FILE, LINE, RestoreWorld, a_backup, a_restore, condition, seed_of

ENDED = ["delete db-0", "delete db-1", "delete db-2", "put aside", "create again-restore", "create db-3"]


def formed(size=3, **spec):
    """A cluster with data, that names a restore only now."""
    world = RestoreWorld(size, **spec)
    world.cr["spec"].pop("restoreFrom")
    world.restore = None
    World.settle(world)
    world.taken.clear()
    world.restore = a_restore()
    world.cr["spec"]["restoreFrom"] = {"name": "again"}
    return world


def offered(size=3):
    world = formed(size)
    world.revisions = {"db-0": 57}
    world.settle_both()
    return world


def test_the_snapshot_is_checked_before_anybody_is_asked_and_the_loss_is_told():
    world = formed()
    world.revisions = {"db-0": 57, "db-1": 56}
    outcome = world.settle_both()
    assert world.taken == ["create again-check", "delete again-check"]
    (action,) = world.held
    assert (action.verb, action.needs_approval) == ("replace", True)
    assert f"replace all data with nightly/{FILE} of EtcdRestore again" in action.summary
    assert (
        "after revision 42, and that is written until the members stop (the cluster is at 57: 15 revisions by now)"
        in action.summary
    )
    assert (condition(outcome).reason, condition(outcome, "Degraded").status) == ("ApprovalNeeded", "True")
    assert "kubectl reconcile approve etcd/db" in condition(outcome).message
    mine = world.ask(asked)
    assert (condition(mine).reason, condition(mine, "Available").status) == ("RestoreOffered", "True")
    assert condition(mine, "Degraded").status == "False"


def test_once_it_is_approved_all_members_end_and_a_new_one_begins_with_the_backup():
    world = offered()
    world.taken.clear()
    world.approve()
    outcome = world.settle_both()
    assert world.taken == ["replace again", *ENDED, *joins("db-4"), *joins("db-5")]
    assert outcome.status["phase"] == "Succeeded"
    assert all(world.aside(f"db-{at}") for at in range(3))
    assert world.members[0]["id"] == seed_of("db-3").member_id
    assert world.cr["status"]["clusterID"] == seed_of("db-3").cluster_id
    assert not {"replacing", "seed"} & set(world.cr["status"])
    assert condition(world.ask(asked)).status == "True"
    world.taken.clear()
    World.settle(world)
    assert world.taken == world.held == []


def test_the_job_writes_the_very_snapshot_that_was_approved():
    world = offered()
    world.backup = a_backup(
        LINE, {**LINE, "name": "nightly-2", "file": "nightly/20261121T030000Z-r50.db", "revision": 50}
    )
    world.approve()
    outcome = world.settle_both()
    args = world.jobs["again-restore"]["spec"]["template"]["spec"]["initContainers"][0]["args"]
    assert {f"--snapshot={FILE}", f"--sha256={LINE['sha256']}"} <= {*args}
    assert outcome.status["revision"] == 42


def test_another_snapshot_takes_another_approval():
    world = offered()
    world.approve()
    world.both()
    world.both()
    assert "delete db-0" in world.taken
    world.restore["spec"]["backup"]["snapshot"] = "20261119T030000Z-r40.db"
    world.settle_both()
    assert "create again-restore" not in world.taken
    assert [action.verb for action in world.held] == ["replace"]
    assert len(world.pods) == 3  # as it was
    world.approve()
    assert world.settle_both().status["phase"] == "Succeeded"


def test_a_snapshot_that_is_damaged_replaces_nothing():
    world = formed()
    world.jobs_fail = json.dumps({"error": "SnapshotDamaged", "message": "x is damaged (hint: name another one)"})
    outcome = world.settle_both()
    assert condition(outcome, "Degraded").reason == "SnapshotDamaged"
    assert "x is damaged (hint: name another one); nothing has been replaced" in condition(outcome).message
    assert world.taken == ["create again-check"]
    assert world.held == []


def test_a_cluster_whose_majority_is_lost_can_be_replaced_too():
    world = formed()
    for slot in ("db-1", "db-2"):
        world.objects.pop(("Pod", slot))
        world.objects.pop(("PersistentVolumeClaim", f"{slot}-data"))
    world.run()
    world.settle_both()
    assert [action.verb for action in world.held] == ["replace"]
    assert condition(world.ask(asked), "Degraded").reason == "QuorumLost"
    world.approve()
    assert world.settle_both().status["phase"] == "Succeeded"
    assert len(world.voters) == 3


def test_a_job_that_fails_leaves_the_old_data_aside_and_is_tried_again_once_it_is_corrected():
    world = offered()
    world.approve()
    world.jobs_fail = json.dumps({"error": "NoRoom", "message": "no room"})
    world.until("Failed")
    world.settle_both()
    assert not world.pods
    assert condition(world.ask(asked), "Degraded").reason == "RestoreFailed"
    world.jobs_fail = ""
    world.delete_job("again-restore")
    assert world.settle_both().status["phase"] == "Succeeded"


def test_a_restore_that_is_deleted_in_between_is_waited_for():
    world = offered()
    world.approve()
    while "put aside" not in world.taken:
        world.both()
    before, world.restore = world.restore, None
    for _ in range(3):
        outcome = world.step(asked)
    assert condition(outcome, "Degraded").reason == "RestoreNotFound"
    assert not world.pods
    world.restore = {**a_restore(), "metadata": {**before["metadata"], "uid": "u-other"}}
    world.settle_both()
    assert [action.verb for action in world.held] == ["replace"]
    world.approve()
    assert world.settle_both().status["phase"] == "Succeeded"


def test_a_restore_for_another_cluster_is_none_of_ours():
    world = offered()
    world.restore["spec"]["clusterRef"]["name"] = "other"
    World.settle(world)
    assert world.held == []


def happen(world, event):
    match event:
        case "both":
            world.both()
        case "restore":
            world.restore_step()
        case "cluster":
            world.step()
            world.note_cluster()
        case "job":
            world.run_job()
        case "lose" if world.jobs:
            world.delete_job(next(iter(world.jobs)))
        case "pod" if world.pods:
            world.objects.pop(("Pod", next(iter(world.pods))))
            world.run()
        case "fail":
            world.jobs_fail = "bad"
        case "mend":
            world.jobs_fail = ""


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.lists(
        st.sampled_from(["both", "both", "restore", "cluster", "job", "lose", "pod", "fail", "mend"]), max_size=25
    ),
)
def test_whatever_comes_between_the_old_data_stays_and_the_new_is_whole(size, events):
    """The world itself asserts that nobody starts on old data beside the new, that a Job writes only once all have ended, and that nothing is deleted."""
    world = offered(size)
    old = set(world.data)
    world.approve()
    for event in events:
        happen(world, event)
    world.jobs_fail = ""
    for name in [name for name, job in world.jobs.items() if "Failed" in str(job.get("status"))]:
        world.delete_job(name)
    outcome = world.settle_both(200)
    assert outcome.status["phase"] == "Succeeded"
    assert len(world.voters) == size
    claims = {one["metadata"]["uid"] for (kind, _), one in world.objects.items() if kind == "PersistentVolumeClaim"}
    assert old <= claims


@pytest.mark.parametrize("size", [1, 3])
def test_the_way_of_the_cluster_is_shown_once_it_is_approved(size):
    world = offered(size)
    world.taken.clear()
    world.approve()
    shown = foreseen(world, world.cr, world.restore, *world.objects.values())
    world.settle_both()
    assert shown == world.taken
