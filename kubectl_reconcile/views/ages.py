"""How long ago something was, as people read it."""

from __future__ import annotations

import datetime as dt


def current_time() -> str:
    """Return the time in RFC 3339."""
    return dt.datetime.now(dt.UTC).isoformat()


def age_of(then: str, now: str) -> str:
    """Return how long ago *then* was, as in ``4m ago``; empty where that isn't known. Both are RFC 3339."""
    try:
        passed = dt.datetime.fromisoformat(now) - dt.datetime.fromisoformat(then)
    except (ValueError, TypeError):
        return ""
    return f"{short_duration(passed.total_seconds())} ago"


def short_duration(duration_s: float) -> str:
    """Return a duration in one unit, as kubectl's AGE has it: ``45s``, ``4m``, ``3h``, ``12d``."""
    whole_s = max(int(duration_s), 0)
    for unit_s, unit, up_to in ((1, "s", 120), (60, "m", 120), (3600, "h", 48)):
        if whole_s < unit_s * up_to:
            return f"{whole_s // unit_s}{unit}"
    return f"{whole_s // 86400}d"
