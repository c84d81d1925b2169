"""A majority that is gone for good: what is told, what is offered, and what follows once somebody approves."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.call import check_purity
from kubectl_reconcile.module_api import later
from tests.operators.etcd.foreseen import foreseen
from tests.operators.etcd.world import condition, formed, joins, slot_of

ALONE_AND_BACK = ["delete db-0", "create db-0", "delete db-0", "create db-0"]


def lose(world, *slots):
    """Take pods and volumes away."""
    for slot in slots:
        world.objects.pop(("Pod", slot), None)
        world.objects.pop(("PersistentVolumeClaim", f"{slot}-data"), None)
    world.run()
    return world


def stop(world, *slots):
    """Let pods not run any more, whose volumes are there."""
    world.broken |= set(slots)
    world.run()
    return world


def waited(world, seconds=301):
    world.settle()
    world.now = later(world.now, seconds)
    return world.settle()


def refuses(world, slot):
    """Let the etcd of a slot refuse its data."""
    stop(world, slot)
    ended = {"exitCode": 1, "message": '{"level":"fatal","msg":"walpb: crc mismatch"}'}
    state = {
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    world.pods[slot]["status"]["containerStatuses"] = [state]


def test_volumes_that_are_gone_are_named_and_who_is_left_may_go_on():
    world = lose(formed(), "db-1", "db-2")
    outcome = world.settle()
    assert world.taken == []
    (action,) = world.held
    assert (action.verb, action.parameters["slot"], action.needs_approval) == ("recover", "db-0", True)
    assert "db-0 (revision 42) continue alone" in action.summary
    assert "acknowledged writes that didn't reach it are lost" in action.summary
    found = condition(outcome, "Degraded")
    assert (found.status, found.reason) == ("True", "QuorumLost")
    assert "db-1, db-2 of 3 members don't serve" in found.message
    assert (
        "db-0: answers, with revision 42 and term 3; db-1: its volume is gone; db-2: its volume is gone"
        in found.message
    )
    assert "kubectl reconcile approve etcd/db" in found.message
    assert condition(outcome, "Available").status == "False"
    world.approve()
    outcome = world.settle()
    assert world.taken == ["recover db-0", *ALONE_AND_BACK, *joins("db-1"), *joins("db-2")]
    assert world.members[0]["id"] == "m0"
    assert condition(outcome, "Ready").status == "True"
    assert "recovery" not in world.cr["status"]


def test_nothing_that_waits_for_approval_is_foreseen():
    world = lose(formed(), "db-1", "db-2")
    world.settle()
    assert foreseen(world) == []


def test_volumes_of_others_are_put_aside_and_stay():
    world = stop(formed(), "db-1", "db-2")
    waited(world)
    world.approve()
    world.settle()
    assert world.taken == [
        "recover db-0", "delete db-1", "delete db-2", "put aside", *ALONE_AND_BACK, *joins("db-3"), *joins("db-4"),
    ]  # fmt: skip
    assert [bool(world.aside(slot)) for slot in ("db-0", "db-1", "db-2", "db-3")] == [False, True, True, False]
    world.taken.clear()
    world.objects.pop(("PersistentVolumeClaim", "db-1-data"))  # by hand, once nobody needs it any more
    world.cr["spec"]["size"] = 5
    world.settle()
    assert world.taken == [*joins("db-1"), *joins("db-5")]


def test_a_majority_that_may_come_back_is_waited_for_at_first():
    world = stop(formed(), "db-1", "db-2")
    outcome = waited(world, 290)
    assert world.held == []
    assert "db-1: its volume exists; it doesn't answer" in condition(outcome, "Degraded").message
    waited(world, 20)
    assert [action.parameters["slot"] for action in world.held] == ["db-0"]
    world.broken.clear()
    world.run()
    outcome = world.settle()
    assert world.taken == world.held == []
    assert condition(outcome, "Ready").status == "True"


def test_a_majority_that_comes_back_after_the_approval_stays():
    world = stop(formed(), "db-1", "db-2")
    waited(world)
    world.approve()
    world.step()
    assert world.taken == ["recover db-0"]
    world.broken.clear()
    world.run()
    world.settle()
    assert world.taken == ["recover db-0"]
    assert len(world.voters) == 3


def test_an_approval_is_of_one_loss_alone():
    world = stop(formed(), "db-1", "db-2")
    waited(world)
    world.approve()
    before = [action.key for action in world.held]
    world.broken.clear()
    world.run()
    world.settle()
    stop(world, "db-1", "db-2")
    waited(world)
    assert world.taken == []
    assert [action.key for action in world.held] != before
    assert [action.parameters["slot"] for action in world.held] == ["db-0"]


def test_a_volume_that_is_being_deleted_loses_no_pod_to_go_on_alone():
    world = stop(formed(), "db-1", "db-2")
    waited(world)
    world.approve()
    world.step()
    world.objects["PersistentVolumeClaim", "db-0-data"]["metadata"]["deletionTimestamp"] = world.now
    world.settle()
    assert world.taken == ["recover db-0"]
    assert [action.parameters["slot"] for action in world.held] == ["db-1"]


def test_who_knows_most_goes_on():
    world = formed(5)
    world.revisions = {"db-1": 41, "db-3": 43}
    lose(world, "db-0", "db-2", "db-4")
    world.settle()
    assert [action.parameters["slot"] for action in world.held] == ["db-3"]


def test_members_that_were_restarted_answer_nobody_and_one_can_go_on_nevertheless():
    world = lose(formed(), "db-1", "db-2")
    world.objects.pop(("Pod", "db-0"))
    outcome = world.settle()
    assert world.taken == ["create db-0"]
    assert world.facts()["members"] == []
    assert "db-0: its volume exists; it doesn't answer" in condition(outcome, "Degraded").message
    world.approve()
    world.settle()
    assert world.taken[1:] == ["recover db-0", *ALONE_AND_BACK, *joins("db-1"), *joins("db-2")]


def test_data_that_can_not_go_on_is_followed_by_the_next_one():
    world = stop(formed(), "db-1", "db-2")
    second = world.members[1]["id"]
    waited(world)
    world.approve()
    while world.taken[-1:] != ["create db-0"]:
        world.step()
    refuses(world, "db-0")
    outcome = world.ask(check_purity)
    (action,) = outcome.actions
    assert (action.verb, action.parameters["slot"]) == ("recover", "db-1")
    world.broken = {"db-0"}
    world.taken.clear()
    world.approve()
    world.settle()
    assert world.taken[:5] == ["recover db-1", "delete db-0", "put aside", "create db-1", "delete db-1"]
    assert world.members[0]["id"] == second
    assert world.aside("db-0")
    assert not world.aside("db-1")


def test_a_pod_that_is_to_go_on_alone_may_be_corrected():
    world = stop(formed(), "db-1", "db-2")
    waited(world)
    world.approve()
    world.step()
    world.cr["spec"]["repository"] = "wrong.example.com/etcd"
    while world.taken[-1:] != ["create db-0"]:
        world.step()
    stop(world, "db-0")
    world.members = []
    assert condition(world.ask(), "Recovering").reason == "UnderWay"
    world.taken.clear()
    world.cr["spec"]["repository"] = "quay.io/coreos/etcd"
    world.settle()
    assert world.taken[:4] == ALONE_AND_BACK


def test_the_version_that_ran_is_the_one_that_goes_on():
    world = lose(formed(version="3.6.16"), "db-1", "db-2")
    world.cr["spec"]["version"] = "3.5.35"
    world.settle()
    world.approve()
    outcome = world.settle()
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods.values()} == {"quay.io/coreos/etcd:v3.6.16"}
    assert condition(outcome, "Degraded").reason == "VersionRefused"


@pytest.mark.parametrize("size", [1, 3])
def test_what_was_kept_in_memory_is_never_offered(size):
    world = formed(size, in_memory=True)
    for name in list(world.pods)[:2]:
        world.objects.pop(("Pod", name))
    world.run()
    waited(world)
    assert world.held == []


def test_volumes_that_were_put_aside_are_no_members_for_a_cluster_recreated():
    world = stop(formed(), "db-1", "db-2")
    waited(world)
    world.approve()
    world.settle()
    for key in [key for key in world.objects if key[0] == "Pod"]:
        world.objects.pop(key)
    world.objects.pop(("PersistentVolumeClaim", "db-0-data"))
    world.objects.pop(("PersistentVolumeClaim", "db-3-data"))
    world.objects.pop(("PersistentVolumeClaim", "db-4-data"))
    world.cr.pop("status")
    world.cr["metadata"].pop("annotations")
    world.bootstraps, world.members = 0, []
    world.taken.clear()
    world.settle()
    assert world.taken == ["create db-0", *joins("db-3"), *joins("db-4")]


# --- laws -----------------------------------------------------------------------------------------


@st.composite
def losses(draw):
    """A size, whose volumes are gone, whose pods stop, and whether those that are left were restarted: no majority serves."""
    size = draw(st.integers(2, 5))
    down = draw(st.sets(st.integers(0, size - 1), min_size=(size + 1) // 2, max_size=size - 1))
    gone = draw(st.sets(st.sampled_from(sorted(down))))
    return size, {f"db-{at}" for at in gone}, {f"db-{at}" for at in down - gone}, draw(st.booleans())


def fallen(size, gone, stopped, restarted):
    """A cluster whose majority is gone, with an offer."""
    world = formed(size)
    lose(world, *gone)
    if restarted:
        for slot in set(world.pods) - stopped:
            world.objects.pop(("Pod", slot))
    stop(world, *stopped)
    waited(world)
    world.taken.clear()
    return world


@settings(max_examples=40)
@given(losses(), st.lists(st.integers(0, 12), max_size=3))
def test_whoever_goes_on_and_whatever_is_deleted_meanwhile_its_data_is_there_and_the_cluster_is_whole_again(
    loss, events
):
    world = fallen(*loss)
    (action,) = world.held
    chosen = action.parameters["slot"]
    world.approve()
    for passes in events:
        for _ in range(passes):
            world.step()
        if world.objects.pop(("Pod", chosen), None):
            world.broken.discard(chosen)  # it comes back where it can run
        world.run()
    outcome = world.settle(200)
    if world.held:  # what it was approved on has changed before it began
        assert world.decided == ""
        world.approve()
        outcome = world.settle(200)
    if not world.decided:  # a majority has come back before it began
        assert world.has_majority
        assert "put aside" not in world.taken
        return
    assert condition(outcome, "Ready").status == "True", condition(outcome, "Ready").message
    assert world.decided in {each["id"] for each in world.voters}
    assert len(world.voters) == len(world.members) == loss[0]
    assert not any(world.aside(slot_of(each)) for each in world.voters)


@settings(max_examples=25)
@given(losses(), st.integers(0, 8))
def test_the_way_back_is_taken_as_it_was_shown(loss, later_):
    world = fallen(*loss)
    world.approve()
    for _ in range(later_):
        world.step()
    world.taken.clear()
    before = copy.deepcopy(world.cr)
    shown = foreseen(world)
    assert world.cr == before
    world.settle(200)
    assert shown == world.taken
