"""Schedules as cron writes them: the next slot, in a zone, whatever its clocks do."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.schedules import CronSchedule, ScheduleError, ZoneError, later, seconds_between

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
