"""Files that grow: a quota that is used up, what makes room once somebody approves, and defragmentation on a schedule."""

import pytest

from kubectl_reconcile.core.module.call import check_purity
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.module_api import later
from kubectl_reconcile_operators.etcd.upkeep import is_worth_it
from tests.operators.etcd.foreseen import foreseen
from tests.operators.etcd.world import condition, formed, joins

QUOTA = {"quotaBackendBytes": 64 << 20}
NIGHTLY = {"schedule": "0 14 * * *"}
SLOT = "2026-11-20T14:00:00Z"
ROOM = ["make-room ", "compact ", "defragment db-1", "defragment db-2", "defragment db-0", "disarm "]


def full(now=4, old=60, *, size=3, **spec):
    """A cluster whose quota of 64 MiB is used up."""
    world = formed(size, etcd=QUOTA, **spec)
    for slot in world.pods:
        world.fill(slot, now, old)
    world.alarms = [("NOSPACE", world.members[1 % size]["id"])]
    return world


def scheduled(size=3, **wanted):
    """A cluster whose files are half free, the first time that its schedule is seen; all slots are at 14:00."""
    world = formed(size, etcd={"defragmentation": {**NIGHTLY, **wanted}})
    for slot in world.pods:
        world.fill(slot, 4, free=4)
    world.settle()
    assert world.taken == []
    return world


# --- room -----------------------------------------------------------------------------------------


def test_a_quota_that_is_used_up_is_told_and_room_is_made_once_somebody_approves():
    world = full()
    outcome = world.settle()
    assert world.taken == []
    (action,) = world.held
    assert (action.verb, action.needs_approval) == ("make-room", True)
    assert "compact the history to revision 42, defragment one member at a time, the leader last" in action.summary
    assert "earlier revisions of keys are lost, their current values are kept" in action.summary
    found = condition(outcome, "Degraded")
    assert (found.status, found.reason) == ("True", "NoSpace")
    assert "db-0: 64.0 MiB of 64.0 MiB, 64.0 MiB of them in use" in found.message
    assert "kubectl reconcile approve etcd/db" in found.message
    alarm = condition(outcome, "Alarm")
    assert (alarm.status, alarm.reason, alarm.message) == ("True", "NoSpace", "NOSPACE of db-1")
    world.approve()
    outcome = world.settle()
    assert world.taken == ROOM
    assert condition(outcome, "Alarm").status == "False"
    assert condition(outcome, "Ready").status == "True"
    assert condition(outcome, "Degraded").status == "False"


@pytest.mark.parametrize("size", [1, 3])
def test_the_way_to_room_is_shown_once_it_is_approved(size):
    world = full(size=size)
    world.settle()
    assert foreseen(world) == []
    world.approve()
    shown = foreseen(world)
    world.settle()
    assert shown == world.taken


def test_a_larger_quota_takes_no_approval_and_loses_nothing():
    world = full()
    world.settle()
    world.cr["spec"]["etcd"] = {"quotaBackendBytes": 128 << 20}
    shown = foreseen(world)
    world.settle()
    rolled = [
        "delete db-1",
        "create db-1",
        "delete db-2",
        "create db-2",
        "move-leader db-1",
        "delete db-0",
        "create db-0",
    ]
    assert world.taken == [*rolled, "disarm "] == shown
    assert world.file("db-0") == (4, 60, 0)


def test_an_alarm_goes_where_somebody_else_has_made_room():
    world = full()
    world.settle()
    for slot in world.pods:
        world.fill(slot, 4)
    world.settle()
    assert world.taken == ["disarm "]


def test_where_nothing_more_is_free_people_are_told_and_the_alarm_stays():
    world = full(now=63, old=1)
    world.settle()
    world.approve()
    outcome = world.settle()
    assert world.taken == ROOM[:2]
    assert "no more space is free" in condition(outcome, "Degraded").message
    assert "raise .spec.etcd.quotaBackendBytes" in condition(outcome, "Degraded").message
    assert condition(outcome, "Alarm").status == "True"
    world.compacted = False  # somebody deletes keys
    for slot in world.pods:
        world.fill(slot, 4, 59)
    world.settle()
    assert world.taken[2:] == ROOM[1:]  # what was approved holds until the alarm is gone


def test_a_member_that_still_cuts_its_history_comes_before_the_leader():
    world = full()
    world.settle()
    world.approve()
    while "compact " not in world.taken:
        world.step()
    world.fill("db-1", 4, 60)
    outcome = world.settle()
    assert world.taken == ["make-room ", "compact ", "defragment db-2"]
    assert "db-1, whose files shrink before the leader's" in condition(outcome, "Recovering").message
    world.fill("db-1", 4, free=60)
    world.settle()
    assert world.taken[3:] == ["defragment db-1", "defragment db-0", "disarm "]


def test_an_approval_is_of_one_alarm():
    world = full()
    world.settle()
    world.approve()
    world.settle()
    world.now = later(world.now, 60)
    world.compacted, world.alarms = False, [("NOSPACE", world.members[0]["id"])]
    world.fill("db-0", 4, 60)
    world.settle()
    assert world.taken == ROOM
    assert [action.verb for action in world.held] == ["make-room"]


def test_members_still_come_back_and_join_while_there_is_no_room():
    world = full()
    world.settle()
    world.objects.pop(("Pod", "db-1"))
    world.run()
    world.cr["spec"]["size"] = 4
    world.settle()
    assert world.taken == ["create db-1", *joins("db-3")]


def test_an_alarm_of_other_data_stops_what_would_be_rolled_out_and_is_told():
    world = formed()
    world.alarms = [("CORRUPT", world.members[0]["id"])]
    world.cr["spec"]["pod"]["env"] = [{"name": "X", "value": "1"}]
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Alarm").reason == "Corrupt"
    assert "alarms (CORRUPT of db-0)" in condition(outcome, "Degraded").message


def test_an_alarm_is_remembered_while_nobody_answers():
    world = full()
    world.settle()
    world.broken |= set(world.pods)
    world.run()
    outcome = world.step()
    assert condition(outcome, "Alarm").message == "NOSPACE of db-1"


# --- the schedule ---------------------------------------------------------------------------------


def test_a_slot_of_the_schedule_has_members_defragmented_the_leader_last():
    world = scheduled()
    assert world.cr["status"]["defragmentation"] == {"lastScheduleTime": world.now, "nextScheduleTime": SLOT}
    world.now = later(SLOT, 5)
    shown = foreseen(world)
    outcome = world.step()
    assert condition(outcome, "Ready").status == "True"
    world.settle()
    assert world.taken == ROOM[2:-1] == shown
    told = {"lastScheduleTime": SLOT, "nextScheduleTime": "2026-11-21T14:00:00Z"}
    assert world.cr["status"]["defragmentation"] == told


def test_only_files_that_have_much_to_give_are_rewritten():
    world = scheduled()
    world.fill("db-1", 8, free=1)
    world.now = SLOT
    world.settle()
    assert world.taken == ["defragment db-2", "defragment db-0"]


def test_a_member_is_defragmented_once_a_slot_whatever_becomes_of_its_file():
    world = scheduled(1)
    world.now = SLOT
    for _ in range(4):
        world.step()
        world.fill("db-0", 4, free=4)
    assert world.taken == ["defragment db-0"]
    world.now = later(SLOT, 86_400)
    world.settle()
    assert world.taken == ["defragment db-0"] * 2


def test_a_change_under_way_goes_first_and_the_slot_waits_for_it():
    world = scheduled()
    world.now = SLOT
    world.cr["spec"]["size"] = 4
    world.settle()
    assert world.taken == [*joins("db-3"), *ROOM[2:-1]]


def test_a_slot_that_nobody_was_there_for_is_left_out():
    world = scheduled(startingDeadlineSeconds=600)
    world.now = later(SLOT, 601)
    world.settle()
    assert world.taken == []
    world.now = later(SLOT, 86_400)
    world.settle()
    assert world.taken == ROOM[2:-1]


def test_zones_count():
    world = scheduled(timeZone="Europe/Berlin")
    assert world.cr["status"]["defragmentation"]["nextScheduleTime"] == "2026-11-20T13:00:00Z"


WRONG = {
    "no cron": ({"schedule": "nightly"}, ".spec.etcd.defragmentation.schedule"),
    "no zone": ({"schedule": "0 3 * * *", "timeZone": "Mars/Base"}, ".spec.etcd.defragmentation.timeZone"),
}


@pytest.mark.parametrize(("wanted", "field"), WRONG.values(), ids=WRONG)
def test_a_schedule_that_is_none_is_refused_by_the_name_of_its_field(wanted, field):
    world = formed()
    world.cr["spec"]["etcd"] = {"defragmentation": wanted}
    with pytest.raises(SpecError, match=field):
        world.step()


FILES = {
    "half of it is free": (8 << 20, 4 << 20, True),
    "less than a fifth": (8 << 20, 7 << 20, False),
    "a fifth that is nothing": (1 << 20, 1 << 18, False),
    "nothing is known": (0, 0, False),
}


@pytest.mark.parametrize(("size", "used", "worth"), FILES.values(), ids=FILES)
def test_what_a_file_gives(size, used, worth):
    assert is_worth_it(size, used, 20) is worth


def test_it_is_pure():
    for world in (full(), scheduled()):
        world.now = SLOT
        world.ask(check_purity)
