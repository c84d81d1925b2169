"""When a backup begins: which slot is due, which one is missed, and when to look again."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.schedules import CronSchedule, Every, later, seconds_between
from kubectl_reconcile_operators.backups.runs import BackupProgress, BackupRun
from kubectl_reconcile_operators.backups.slots import (
    BackupPlan,
    Due,
    due,
    look_again_s,
    why_missed,
    with_missed,
)

CREATED = "2026-11-20T12:00:00Z"
FIRST, SECOND, THIRD = (f"2026-11-2{day}T03:30:00Z" for day in (1, 2, 3))
CRON = CronSchedule("30 3 * * *")
TEN_MINUTES = Every(600, CREATED)


def plan(slots=CRON, since=CREATED, deadline_s=3600, **more):
    return BackupPlan(slots, since, deadline_s, **more)


def run(slot="", progress=BackupProgress.SUCCEEDED, name="a", **more):
    return BackupRun(name, slot, progress, **more)


def at_work(slot=""):
    return run(slot, BackupProgress.RUNNING)


# --- what is due ----------------------------------------------------------------------------------

DUE = {
    "nothing before the first slot": (plan(), (), CREATED, Due(False, "", FIRST, "", 55_800)),
    "the slot, once it comes": (plan(), (), FIRST, Due(True, FIRST, SECOND, "", 86_400)),
    "the slot, as long as its deadline hasn't passed": (
        plan(), (), "2026-11-21T04:29:59Z", Due(True, FIRST, SECOND, "", 82_801),
    ),
    "no slot at its deadline: it is missed": (plan(), (), "2026-11-21T04:30:00Z", Due(False, "", SECOND, FIRST, 82_800)),
    "only the last one of many that were slept through": (
        plan(), (), "2026-11-23T12:00:00Z", Due(False, "", "2026-11-24T03:30:00Z", THIRD, 55_800),
    ),
    "the last one of many, if it is in time": (
        plan(), (), "2026-11-23T03:31:00Z", Due(True, THIRD, "2026-11-24T03:30:00Z", "", 86_340),
    ),
    "no slot from before the plan": (plan(since=FIRST), (), "2026-11-21T03:31:00Z", Due(False, "", SECOND, "", 86_340)),
    "no slot that has its run": (plan(), (run(FIRST),), "2026-11-21T03:31:00Z", Due(False, "", SECOND, "", 86_340)),
    "no slot before one that has its run": (
        plan(), (run(), run(SECOND), run(FIRST)), "2026-11-22T03:31:00Z", Due(False, "", THIRD, "", 86_340),
    ),
    "no miss of a slot that has its run": (plan(), (run(FIRST),), "2026-11-21T05:00:00Z", Due(False, "", SECOND, "", 81_000)),
    "the slot after one that has its run": (plan(), (run(FIRST),), SECOND, Due(True, SECOND, THIRD, "", 86_400)),
    "a slot waits while another run is at work": (plan(), (at_work(FIRST),), SECOND, Due(False, SECOND, THIRD, "", 86_400)),
    "the first one at once": (plan(at_once=True), (), CREATED, Due(True, "", FIRST, "", 55_800)),
    "the first one in the place of a slot that came": (plan(at_once=True), (), FIRST, Due(True, FIRST, SECOND, "", 86_400)),
    "nothing at once if there was a run": (plan(at_once=True), (run(),), CREATED, Due(False, "", FIRST, "", 55_800)),
    "once, and never again": (plan(None, at_once=True), (), CREATED, Due(begin=True)),
    "once was yesterday": (plan(None, at_once=True), (run(),), CREATED, Due()),
    "no slots and nothing at once": (plan(None), (), CREATED, Due()),
    "nothing while it is suspended": (plan(at_once=True, is_suspended=True), (), FIRST, Due()),
}  # fmt: skip


@pytest.mark.parametrize(("wanted", "runs", "now", "expected"), DUE.values(), ids=DUE)
def test_what_is_due(wanted, runs, now, expected):
    assert due(wanted, runs, now, is_blocked=False) == expected


BLOCKED = {
    "a slot": (plan(), FIRST, Due(False, FIRST, SECOND, "", 86_400)),
    "the first one": (plan(at_once=True), CREATED, Due(False, "", FIRST, "", 55_800)),
    "the only one": (plan(None, at_once=True), CREATED, Due()),
}


@pytest.mark.parametrize(("wanted", "now", "expected"), BLOCKED.values(), ids=BLOCKED)
def test_nothing_begins_while_something_is_in_the_way(wanted, now, expected):
    assert due(wanted, (), now, is_blocked=True) == expected


TIMES = st.integers(0, 40 * 86_400)
SLOTS = st.sampled_from(
    [
        CronSchedule("30 3 * * *", "Europe/Berlin"),
        CronSchedule("*/5 * * * *"),
        CronSchedule("0 0 1 * *", "America/New_York"),
        Every(3600, CREATED),
    ]
)


@settings(max_examples=200, deadline=None)
@given(SLOTS, st.integers(30, 7200), TIMES, TIMES)
def test_what_begins_is_a_new_slot_that_isnt_over_and_isnt_to_come(slots, deadline_s, seen_s, now_s):
    wanted = plan(slots, deadline_s=deadline_s)
    first = due(wanted, (), later(CREATED, seen_s), is_blocked=False)
    runs = (run(first.slot),) if first.begin else ()
    now = later(CREATED, max(seen_s, now_s))
    found = due(wanted, runs, now, is_blocked=False)
    assert seconds_between(now, found.next_slot) > 0
    for slot in filter(None, (found.slot, found.missed)):
        assert CREATED < slot <= now
        assert not runs or slot > runs[0].slot
    if found.begin:
        assert seconds_between(found.slot, now) <= deadline_s
    if found.missed:
        assert seconds_between(found.missed, now) >= deadline_s
    again = due(wanted, (*runs, run(found.slot or found.missed)), now, is_blocked=False)
    assert not again.begin
    assert not again.missed


# --- what is said of it ---------------------------------------------------------------------------


def test_a_missed_slot_is_a_run_in_its_place():
    begun, third = run("", began=CREATED), run(THIRD, name="c")
    missed = BackupRun("b", SECOND, BackupProgress.MISSED, message="no daemon")
    assert with_missed([begun, third], SECOND, "b", "no daemon") == (begun, missed, third)


def test_a_slot_is_missed_for_a_run_that_took_too_long_or_for_want_of_a_job():
    wanted = plan(deadline_s=90.0)
    assert why_missed(wanted, (run(), at_work()), SECOND) == (
        "an earlier backup was still running 90 s after 2026-11-22T03:30:00Z"
    )
    assert why_missed(wanted, (run(),), SECOND) == (
        "no Job was started within 90 s: no daemon was running, or another Job has its name"
    )


LOOKS = {
    "soon while a run is at work": (plan(), (run(), at_work()), Due(), False, 5),
    "soon once one begins": (plan(), (), Due(begin=True), False, 5),
    "later while something is in the way": (plan(), (), Due(), True, 15),
    "later while a slot waits": (plan(), (), Due(slot=FIRST), False, 15),
    "when the next slot comes": (plan(), (run(),), Due(wait_s=90), False, 90),
    "not in the same second": (plan(), (), Due(wait_s=0.2), False, 1),
    "once an hour at least": (plan(), (), Due(wait_s=3601), False, 3600),
    "never, if nothing is to come": (plan(None), (run(),), Due(), False, None),
    "never, while it is suspended": (plan(is_suspended=True), (run(),), Due(), False, None),
}


@pytest.mark.parametrize(("wanted", "runs", "what", "is_blocked", "seconds"), LOOKS.values(), ids=LOOKS)
def test_when_to_look_again(wanted, runs, what, is_blocked, seconds):
    assert look_again_s(wanted, runs, what, is_blocked=is_blocked) == seconds
