"""What a pod's own status says about the past, for a nodelet that wasn't there. Pure but for the clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kubectl_reconcile.sandbox.pods.decisions.resolve import Pod, containers

Run = Mapping[str, Any]
"""What the runtime reports about the last run of a container."""


def runs_of_status(pod: Pod) -> dict[str, Run]:
    """Return the runs that *pod*'s status reports; those that ran then have ended as if killed. The runtime knows better if it knows."""
    found: dict[str, Run] = {}
    names = {one["name"] for one in containers(pod)}
    reported = pod.get("status", {})
    for each in [*reported.get("initContainerStatuses", ()), *reported.get("containerStatuses", ())]:
        state = each.get("state", {})
        ended = state.get("terminated") or (
            each.get("lastState", {}).get("terminated") if each.get("containerID") else None
        )
        if "running" in state:
            ended = {"exitCode": 137, "startedAt": state["running"].get("startedAt"), "finishedAt": now()}
        if ended and each["name"] in names:  # a status may be anybody's word
            started_at, finished_at = ended.get("startedAt") or "", ended.get("finishedAt") or ""
            found[each["name"]] = {
                "name": each["name"],
                "attempt": each["restartCount"],
                "startedAt": started_at,
                "finishedAt": finished_at,
                "startedS": seconds(started_at),
                "finishedS": seconds(finished_at),
                "exitCode": ended["exitCode"],
                "error": "",
                "paused": False,
            }
    return found


def later_of(one: Pod, other: Pod) -> Pod:
    """Return which of two versions of a pod is the later one: an answer to a write may come after the watch has told what followed it.

    Resource versions of one kind can be compared (KEP-5504).
    """
    return max(one, other, key=lambda pod: int(pod["metadata"]["resourceVersion"]))


def seconds(text: str) -> float:
    """Return a time as the API server writes it in seconds since 1970; 0 for none, and for one that no calendar here has (year 0)."""
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        return 0.0


def deadline_s(pod: Pod) -> float | None:
    """Return when *pod* has been active for too long, None if it may be forever."""
    limit, start = pod["spec"].get("activeDeadlineSeconds"), pod.get("status", {}).get("startTime")
    return seconds(start) + limit if limit and start else None


def now() -> str:
    """Return the present time as the API server writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
