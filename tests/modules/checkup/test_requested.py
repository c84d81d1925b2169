"""Checkups that somebody wants made now, on plain values: each new value of the annotation is one check."""

import pytest

from tests.core.report.syncs import sync
from tests.modules.checkup.jobs import CREATED, WEB, Jobs
from tests.modules.checkup.world import World, role

SOON, LATER, LATER_STILL = "2026-11-20T12:01:00Z", "2026-11-20T12:10:00Z", "2026-11-20T12:20:00Z"
NIGHTLY = "30 2 * * *"
LOAD = {"service": "web", "port": 80}


def request(world, token):
    world.cr["metadata"]["annotations"] = {"checks.reconcile.dev/requested-at": token}


def load(**more):
    return Jobs(WEB, load=LOAD, **more)


def test_a_request_begins_one_job_and_the_schedule_goes_on():
    world = load(schedule=NIGHTLY)
    world.at(SOON)
    assert world.begun == []
    request(world, "now")
    world.begin(SOON)
    world.end()
    status = world.at(LATER)
    assert (status["result"]["requests"], status["nextScheduleTime"]) == (300, "2026-11-21T02:30:00Z")
    world.at(LATER_STILL)
    assert len(world.begun) == 1
    request(world, "again")
    world.begin(LATER_STILL)
    world.end()
    assert (len(set(world.begun)), world.at(LATER_STILL)["result"]["compared"]) == (2, True)
    world.begin("2026-11-21T02:30:00Z")
    assert world.begun[2:] == ["check-20261121023000"]


def test_a_request_while_a_job_is_at_work_has_its_own_after_it():
    world = load()
    world.begin()
    request(world, "now")
    world.at(SOON)
    assert len(world.begun) == 1
    world.end()
    world.at(LATER)
    assert len(set(world.begun)) == 2


def test_a_request_that_is_there_from_the_beginning_is_the_first_check_of_the_spec():
    world = load()
    request(world, "now")
    world.begin()
    world.end()
    world.at(SOON)
    world.at(LATER)
    assert len(world.begun) == 1


def test_a_request_and_a_revision_are_two_checks():
    world = Jobs(WEB, sync(lastAppliedRevision="aaa"), load=LOAD, onSync=True)
    request(world, "now")
    for count in (1, 2):
        world.begin(SOON)
        world.end()
        assert len(set(world.begun)) == count
    world.at(LATER)
    world.at(LATER_STILL)
    assert len(world.begun) == 2


def test_what_is_suspended_is_not_made_on_request():
    world = load(schedule=NIGHTLY, suspend=True)
    request(world, "now")
    world.at(SOON)
    assert world.begun == []
    world.change(suspend=False)
    world.begin(LATER)
    assert len(world.begun) == 1


def test_a_daemon_that_was_killed_finds_the_job_of_a_request_again():
    world = load(schedule=NIGHTLY)
    request(world, "now")
    world.begin(SOON)
    del world.cr["status"]
    world.at(SOON)
    world.end()
    world.at(LATER)
    world.at(LATER_STILL)
    assert (len(world.begun), world.told("Passed")[0]) == (1, "True")


def test_a_report_is_written_on_request():
    world = Jobs(report={}, schedule=NIGHTLY)
    assert "result" not in world.at(CREATED)
    assert world.message("Passed") == "there is no result yet; the next check is due at 2026-11-21T02:30:00Z"
    request(world, "now")
    assert world.at(SOON)["lastResultTime"] == SOON
    assert world.at(LATER)["lastResultTime"] == SOON
    request(world, "again")
    assert world.at(LATER_STILL)["lastResultTime"] == LATER_STILL


@pytest.mark.parametrize("spec", [{"schedule": NIGHTLY}, {"onSync": True}])
def test_a_scan_looks_on_request(spec):
    world = World(**spec)
    world.look()
    world.change(role("*"))
    assert world.look(SOON)["result"]["total"] == 0
    request(world, "now")
    assert world.look(LATER)["result"]["new"] == 1
    world.change()
    assert world.look(LATER_STILL)["lastResultTime"] == LATER
