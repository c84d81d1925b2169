"""Schedules as cron writes them: the next slot, in a zone, whatever its clocks do."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.schedules import (
    CronSchedule,
    Every,
    ScheduleError,
    ZoneError,
    later,
    latest_slot,
    schedule_if_any,
    seconds_between,
    slot_suffix,
)
from kubectl_reconcile.core.module.specs import SpecError

AFTER = {
    "the next night": ("30 3 * * *", "UTC", "2026-11-20T12:00:00Z", "2026-11-21T03:30:00Z"),
    "not the slot itself": ("30 3 * * *", "UTC", "2026-11-20T03:30:00Z", "2026-11-21T03:30:00Z"),
    "in winter": ("30 3 * * *", "Europe/Berlin", "2026-01-20T12:00:00Z", "2026-01-21T02:30:00Z"),
    "in summer": ("30 3 * * *", "Europe/Berlin", "2026-07-20T12:00:00Z", "2026-07-21T01:30:00Z"),
    "in the hour that is left out: right after it": (
        "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z",
    ),
    "in the hour that comes twice: the first time": (
        "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z",
    ),
    "in the hour that comes twice: not again": (
        "30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z",
    ),
    "asked within its second time": ("50 2 * * *", "Europe/Berlin", "2026-10-25T01:40:00Z", "2026-10-26T01:50:00Z"),
    "every hour goes on": ("0 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"),
    "weeks": ("0 0 * * SUN", "UTC", "2026-11-20T12:00:00Z", "2026-11-22T00:00:00Z"),
    "a day that comes every four years": ("0 0 29 2 *", "UTC", "2026-11-20T12:00:00Z", "2028-02-29T00:00:00Z"),
}  # fmt: skip


@pytest.mark.parametrize(("expression", "zone", "moment", "expected"), AFTER.values(), ids=AFTER)
def test_the_next_slot(expression, zone, moment, expected):
    assert CronSchedule(expression, zone).after(moment) == expected


REFUSED = {
    "nothing": ("", "UTC", "five fields"),
    "a word": ("@daily", "UTC", "five fields"),
    "seconds": ("0 30 3 * * *", "UTC", "five fields"),
    "a minute too many": ("60 3 * * *", "UTC", "bad minute"),
    "a day that never comes": ("0 0 30 2 *", "UTC", "no such day of the month"),
    "no step": ("*/0 * * * *", "UTC", "bad minute"),
}


@pytest.mark.parametrize(("expression", "zone", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_schedule_is_refused(expression, zone, words):
    with pytest.raises(ScheduleError, match=words):
        CronSchedule(expression, zone)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "Europe", "/etc/localtime"])
def test_what_is_no_zone_is_refused(zone):
    with pytest.raises(ZoneError, match="Europe/Berlin"):
        CronSchedule("0 0 * * *", zone)


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1)).map(  # noqa: DTZ001 - made UTC below
    lambda each: each.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
)
EXPRESSIONS = st.builds(
    lambda minute, hour, day: f"{minute} {hour} {day} * *",
    st.one_of(st.integers(0, 59).map(str), st.sampled_from(["*/7", "5,50", "*"])),
    st.one_of(st.integers(0, 23).map(str), st.sampled_from(["*", "1-3", "*/5"])),
    st.sampled_from(["*", "1", "28-31"]),
)


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, ZONES, MOMENTS)
def test_a_slot_comes_after_the_moment_and_the_next_after_it(expression, zone, moment):
    schedule = CronSchedule(expression, zone)
    first = schedule.after(moment)
    assert seconds_between(moment, first) > 0
    assert seconds_between(first, schedule.after(first)) > 0
    assert schedule.after(later(first, -1)) == first


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 59), st.integers(0, 23), ZONES, MOMENTS)
def test_once_a_day_is_once_a_day_whatever_clocks_do(minute, hour, zone, moment):
    schedule, at = CronSchedule(f"{minute} {hour} * * *", zone), moment
    days = []
    for _ in range(40):
        at = schedule.after(at)
        days.append(datetime.fromisoformat(at).astimezone(ZoneInfo(zone)).date())
    assert days == [days[0] + timedelta(days=number) for number in range(40)]


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS, ZONES, MOMENTS, st.integers(0, 7200))
def test_the_latest_slot_is_the_last_one_until_then(expression, zone, until, seconds):
    schedule, since = CronSchedule(expression, zone), later(until, -seconds)
    found = schedule.latest(since, until)
    if found:
        assert since < found <= until
    assert schedule.after(found or since) > until


NIGHTLY = CronSchedule("30 3 * * *")
LATEST = {
    "none yet": (NIGHTLY, "2026-11-20T12:00:00Z", "2026-11-21T03:29:59Z", ""),
    "one, when it comes": (NIGHTLY, "2026-11-20T12:00:00Z", "2026-11-21T03:30:00Z", "2026-11-21T03:30:00Z"),
    "not the one that was there already": (NIGHTLY, "2026-11-21T03:30:00Z", "2026-11-21T12:00:00Z", ""),
    "within an hour": (NIGHTLY, "2026-01-01T00:00:00Z", "2026-11-21T04:00:00Z", "2026-11-21T03:30:00Z"),
    "within a day": (NIGHTLY, "2026-01-01T00:00:00Z", "2026-11-21T12:00:00Z", "2026-11-21T03:30:00Z"),
    "within a month": (CronSchedule("0 0 1 * *"), "2026-01-01T00:00:00Z", "2026-11-21T00:00:00Z", "2026-11-01T00:00:00Z"),
    "within a year": (CronSchedule("0 0 1 1 *"), "2025-12-31T00:00:00Z", "2026-11-21T00:00:00Z", "2026-01-01T00:00:00Z"),
    "longer ago": (CronSchedule("0 0 29 2 *"), "2023-01-01T00:00:00Z", "2026-11-21T00:00:00Z", "2024-02-29T00:00:00Z"),
}  # fmt: skip


@pytest.mark.parametrize(("slots", "since", "until", "slot"), LATEST.values(), ids=LATEST)
def test_the_latest_slot_is_found_however_long_ago_it_came(slots, since, until, slot):
    assert latest_slot(slots, since, until) == slot


class Counted:
    """Slots that come each minute, and what was asked of them."""

    def __init__(self):
        self.asked = []

    def latest(self, since, until):
        self.asked.append((since, until))
        return until


def test_of_years_of_slots_the_last_hour_is_looked_at_first():
    slots = Counted()
    assert latest_slot(slots, "2020-01-01T00:00:00Z", "2026-11-21T12:00:00Z") == "2026-11-21T12:00:00Z"
    assert slots.asked == [("2026-11-21T11:00:00Z", "2026-11-21T12:00:00Z")]


NO_SCHEDULES = {
    "a word": ("@daily", "UTC", ".spec.schedule", "must be five fields"),
    "no zone": ("0 0 * * *", "Mars/Olympus", ".spec.timeZone", "must be a time zone"),
    "no zone, and no schedule either": ("", "Mars/Olympus", ".spec.timeZone", "must be a time zone"),
}


@pytest.mark.parametrize(("expression", "zone", "field", "words"), NO_SCHEDULES.values(), ids=NO_SCHEDULES)
def test_a_spec_with_no_schedule_is_refused_by_its_field(expression, zone, field, words):
    with pytest.raises(SpecError, match=words) as error:
        schedule_if_any(expression, zone, ".spec")
    assert error.value.field == field


def test_a_spec_may_be_without_a_schedule():
    assert schedule_if_any("", "UTC", ".spec") is None
    assert schedule_if_any("30 3 * * *", "Europe/Berlin", ".spec") == CronSchedule("30 3 * * *", "Europe/Berlin")


# --- slots at an interval -------------------------------------------------------------------------

TEN_MINUTES = Every(600, "2026-11-20T12:00:00Z")

EVERY = {
    "the first one, an interval after the beginning": ("2026-11-20T12:00:00Z", "2026-11-20T12:10:00Z"),
    "a second before it": ("2026-11-20T12:09:59Z", "2026-11-20T12:10:00Z"),
    "not the slot itself": ("2026-11-20T12:10:00Z", "2026-11-20T12:20:00Z"),
    "a day later": ("2026-11-21T12:34:56Z", "2026-11-21T12:40:00Z"),
    "before the beginning: the first one": ("2026-11-20T11:00:00Z", "2026-11-20T12:10:00Z"),
}


@pytest.mark.parametrize(("moment", "slot"), EVERY.values(), ids=EVERY)
def test_the_next_slot_of_an_interval(moment, slot):
    assert TEN_MINUTES.after(moment) == slot


LATEST_EVERY = {
    "the beginning is no slot": ("2026-11-20T11:00:00Z", "2026-11-20T12:09:59Z", ""),
    "nothing comes before the beginning": ("2026-11-20T09:00:00Z", "2026-11-20T11:00:00Z", ""),
    "the first one, when it comes": ("2026-11-20T12:00:00Z", "2026-11-20T12:10:00Z", "2026-11-20T12:10:00Z"),
    "the last of several": ("2026-11-20T12:00:00Z", "2026-11-20T13:05:00Z", "2026-11-20T13:00:00Z"),
    "one that came a second later": ("2026-11-20T12:09:59Z", "2026-11-20T12:15:00Z", "2026-11-20T12:10:00Z"),
    "not the one that was there already": ("2026-11-20T12:10:00Z", "2026-11-20T12:19:59Z", ""),
}


@pytest.mark.parametrize(("since", "until", "slot"), LATEST_EVERY.values(), ids=LATEST_EVERY)
def test_the_latest_slot_of_an_interval(since, until, slot):
    assert TEN_MINUTES.latest(since, until) == slot


def test_a_slot_has_one_suffix_forever_and_a_run_without_a_slot_another():
    assert (slot_suffix("2026-11-21T03:30:00Z"), slot_suffix("")) == ("20261121033000", "once")
