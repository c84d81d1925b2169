"""Checkups after each revision that a Sync has applied, on plain values."""

import pytest

from tests.core.report.syncs import sync
from tests.modules.checkup.jobs import CREATED, WEB, Jobs
from tests.modules.checkup.world import World, role

SOON, LATER, LATER_STILL = "2026-11-20T12:01:00Z", "2026-11-20T12:10:00Z", "2026-11-20T12:20:00Z"
LOAD = {"service": "web", "port": 80}


def load(*around, **more):
    return Jobs(WEB, *around, load=LOAD, onSync=True, **more)


def test_load_is_sent_once_for_each_revision_that_was_applied():
    world = load(sync(lastAppliedRevision="aaa"))
    world.begin()
    world.end()
    world.at(SOON)
    world.at(SOON)
    assert len(world.begun) == 1
    world.around = [WEB, sync(lastAppliedRevision="bbb")]
    world.begin(LATER)
    world.end()
    status = world.at(LATER)
    assert (len(set(world.begun)), status["result"]["compared"]) == (2, True)
    world.at(LATER_STILL)
    assert len(world.begun) == 2


def test_before_a_sync_has_applied_anything_nothing_begins():
    world = load(sync())
    world.at(SOON)
    assert (world.begun, world.told("Passed")) == ([], ("Unknown", "NoResult"))


def test_a_revision_that_comes_while_a_job_is_at_work_has_its_own_after_it():
    world = load(sync(lastAppliedRevision="aaa"))
    world.begin()
    world.around = [WEB, sync(lastAppliedRevision="bbb")]
    world.at(SOON)
    assert len(world.begun) == 1
    world.end()
    world.at(LATER)
    assert len(set(world.begun)) == 2


def test_a_daemon_that_was_killed_finds_the_job_of_a_revision_again():
    world = load(sync(lastAppliedRevision="aaa"))
    world.begin()
    del world.cr["status"]
    world.at(SOON)
    world.end()
    world.at(SOON)
    world.jobs.clear()
    world.at(LATER)
    assert len(world.begun) == 1


def test_a_schedule_and_revisions_go_together():
    world = load(sync(lastAppliedRevision="aaa"), schedule="0 * * * *")
    world.begin(SOON)
    world.end()
    world.begin("2026-11-20T13:00:00Z")
    world.end()
    world.at("2026-11-20T13:01:00Z")
    world.at("2026-11-20T13:02:00Z")
    assert len(world.begun) == 2
    assert world.begun[1] == "check-20261120130000"


def test_a_report_is_written_after_each_revision():
    world = Jobs(sync(lastAppliedRevision="aaa"), report={}, onSync=True)
    first = world.at(CREATED)["lastResultTime"]
    assert world.at(SOON)["lastResultTime"] == first
    world.around = [sync(lastAppliedRevision="bbb")]
    assert world.at(LATER)["lastResultTime"] == LATER
    assert world.at(LATER_STILL)["lastResultTime"] == LATER


@pytest.mark.parametrize("schedule", ["", "0 3 * * *"])
def test_a_scan_looks_after_each_revision_and_not_in_between(schedule):
    applied = [sync(lastAppliedRevision="aaa")]
    world = World(*applied, onSync=True, schedule=schedule)
    assert world.look()["result"]["total"] == 0
    world.change(*applied, role("*"))
    assert world.look(SOON)["result"]["total"] == 0
    world.change(sync(lastAppliedRevision="bbb"), role("*"))
    assert world.look(LATER)["result"]["new"] == 1
    world.change(sync(lastAppliedRevision="bbb"))
    assert world.look(LATER_STILL)["lastResultTime"] == LATER


def test_who_may_not_see_syncs_can_t_tell_when_it_is_due_and_says_so():
    unread = {"Sync.reconcile.dev": "syncs is forbidden"}
    jobs, scan = load(), World(onSync=True)
    jobs.unread, scan.unread = unread, unread
    jobs.at(SOON)
    scan.look()
    for world in (jobs, scan):
        assert (world.told("Stalled")[0], world.told("Passed")[0]) == ("True", "Unknown")
        assert "syncs is forbidden" in world.message("Stalled")
    plain = World()
    plain.unread = unread
    plain.look()
    assert plain.told("Passed") == ("True", "Passed"), "who doesn't ask for Syncs doesn't need them"
