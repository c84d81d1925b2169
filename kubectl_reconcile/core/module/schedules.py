"""Schedules as cron writes them, in a time zone: when something is due next.

A *slot* is one moment that a schedule names. Slots are told in UTC, whatever the zone. Where clocks are put forward, a slot in the hour that is left
out comes right after it; where they are set back, one in the hour that comes twice comes once, unless the schedule says every hour: as Debian's
cron does it (the rules are cronsim's).

Pure: moments are RFC 3339 text in, RFC 3339 text out; what zones are is data of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from kubectl_reconcile.core.module.specs import SpecError

_FIELDS = 5
_ANY = "0 0 * * *"
_ONCE = "once"


class ScheduleError(ValueError):
    """The schedule or the time zone is invalid; the message says what is wrong, and shows an example."""


class ZoneError(ScheduleError):
    """There is no such time zone."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A schedule of five fields, from minute to day of the week, in a time zone such as ``Europe/Berlin``."""

    expression: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        """Refuse what is no schedule, and one that never runs.

        Raises:
            ZoneError: there is no such zone.
            ScheduleError: it is no schedule.
        """
        try:
            ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError) as error:
            raise ZoneError(f"must be a time zone as in Europe/Berlin, not {self.zone!r}") from error
        if len(self.expression.split()) != _FIELDS:
            raise ScheduleError(
                f"must be five fields (minute, hour, day, month, day of the week) as in '30 3 * * *', not {self.expression!r}"
            )
        try:
            self.after("2026-01-01T00:00:00Z")
        except CronSimError as error:
            # cronsim says "Bad day-of-month" also where a month lacks the day.
            what = "no such day of the month" if "day-of-month" in str(error) else str(error).lower()
            raise ScheduleError(f"must be a schedule as in '30 3 * * *', not {self.expression!r}: {what}") from error
        except StopIteration as error:
            raise ScheduleError(f"never runs: {self.expression!r} names a day that doesn't exist") from error

    def after(self, moment: str) -> str:
        """Return the first slot after *moment*."""
        since = datetime.fromisoformat(moment).astimezone(ZoneInfo(self.zone))
        slots = CronSim(self.expression, since)
        # In the hour that comes twice, cronsim counts from the first time: what it says may lie before.
        return next(_text(slot) for slot in slots if slot.astimezone(UTC) > since.astimezone(UTC))

    def latest(self, since: str, until: str) -> str:
        """Return the last slot after *since* that isn't after *until*; empty if there is none."""
        found, slot, end = "", self.after(since), datetime.fromisoformat(until)
        while datetime.fromisoformat(slot) <= end:
            found, slot = slot, self.after(slot)
        return found


@dataclass(frozen=True, slots=True)
class Every:
    """Slots at a fixed interval, counted from *since*."""

    seconds: int
    since: str

    def after(self, moment: str) -> str:
        """Return the first slot after *moment*."""
        passed = max(0, int(seconds_between(self.since, moment) // self.seconds))
        return later(self.since, (passed + 1) * self.seconds)

    def latest(self, since: str, until: str) -> str:
        """Return the last slot after *since* that isn't after *until*; empty if there is none."""
        count = int(seconds_between(self.since, until) // self.seconds)
        found = later(self.since, count * self.seconds)
        return found if count > 0 and seconds_between(since, found) > 0 else ""


def schedule_of(expression: str, zone: str, where: str) -> CronSchedule:
    """Return the schedule in a spec; *where* is the part of it that has ``schedule`` and ``timeZone``.

    Raises:
        SpecError: the schedule or the time zone is invalid.
    """
    try:
        return CronSchedule(expression, zone)
    except ZoneError as error:
        raise SpecError(f"{where}.timeZone", str(error)) from error
    except ScheduleError as error:
        raise SpecError(f"{where}.schedule", str(error)) from error


def schedule_if_any(expression: str, zone: str, where: str) -> CronSchedule | None:
    """Return the schedule in a spec, None if it has none. An invalid time zone is an error in any case.

    Raises:
        SpecError: the schedule or the time zone is invalid.
    """
    found = schedule_of(expression or _ANY, zone, where)
    return found if expression else None


class Slots(Protocol):
    """Moments that come again and again."""

    def latest(self, since: str, until: str) -> str:
        """Return the last one after *since* that isn't after *until*; empty if there is none."""


def latest_slot(slots: Slots, since: str, until: str) -> str:
    """Return the last slot after *since* that isn't after *until*; empty if there is none.

    Near slots are tried first: of years of slots a minute apart, sixty are counted.
    """
    for window_s in (3_600, 86_400, 32 * 86_400, 400 * 86_400):
        start = max(since, later(until, -window_s))
        if found := slots.latest(start, until):
            return found
        if start == since:
            return ""
    return slots.latest(since, until)


def slot_suffix(slot: str) -> str:
    """Return the suffix of the name of a slot's Job: the slot as fourteen digits."""
    return "".join(each for each in slot if each.isdigit()) if slot else _ONCE


def later(moment: str, seconds: float) -> str:
    """Return the moment this many *seconds* after another, to the second."""
    return _text(datetime.fromisoformat(moment) + timedelta(seconds=seconds))


def seconds_between(earlier: str, later_: str) -> float:
    """Return how many seconds are between two moments; negative if the first is later."""
    return (datetime.fromisoformat(later_) - datetime.fromisoformat(earlier)).total_seconds()


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
