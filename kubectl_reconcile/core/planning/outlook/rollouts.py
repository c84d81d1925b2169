"""What a change does to pods that run: how many a workload rolls, and how many of them may be missing meanwhile.

A workload replaces its pods when its pod template changes, and by that alone:
https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#updating-a-deployment and the pages of StatefulSets
and DaemonSets. Percentages are of the replicas; what may be unavailable is rounded down and what may be surplus up, and where both
come to nothing one pod may be unavailable (ResolveFenceposts in the Deployment controller).

Pure: changes in, sentences out. What an object says may be anything; what can't be read counts as not said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kubectl_reconcile.core.health.health import spec_of, status_of
from kubectl_reconcile.core.objects import FieldPath, GroupKind, Manifest, mapping_of, number_of
from kubectl_reconcile.core.planning.plan import Change, Op

_TEMPLATE = FieldPath.fields("spec", "template")


def rollout_of(change: Change) -> str:
    """Return what happens to the pods of the workload that *change* changes; empty where they stay, or there are none."""
    describe = _DESCRIBED.get(change.ref.group_kind)
    if describe is None or change.before is None or change.after is None:
        return ""
    if change.op is Op.REPLACE:
        pods = _pods(_running(change.before))
        return f"stops {pods} before new ones start" if pods else ""
    if change.op is not Op.UPDATE or not any(each.path[:2] == _TEMPLATE for each in change.fields):
        return ""
    return describe(change.before, change.after)


def _deployment(before: Manifest, after: Manifest) -> str:
    wanted, strategy = _replicas(after), mapping_of(spec_of(after).get("strategy"))
    if not wanted:
        return ""
    if spec_of(after).get("paused"):
        return f"is paused: its {_pods(wanted)} are replaced once it is resumed"
    if strategy.get("type") == "Recreate":
        return f"stops {_pods(_running(before) or wanted)} before new ones start"
    rolling = mapping_of(strategy.get("rollingUpdate"))
    surplus = _share(rolling.get("maxSurge", "25%"), wanted, up=True)
    missing = _share(rolling.get("maxUnavailable", "25%"), wanted)
    return _rolls(wanted, missing if missing or surplus else 1)


def _stateful_set(_before: Manifest, after: Manifest) -> str:
    strategy = mapping_of(spec_of(after).get("updateStrategy"))
    rolling = mapping_of(strategy.get("rollingUpdate"))
    wanted = max(_replicas(after) - _count(rolling.get("partition")), 0)
    if not wanted:
        return ""
    if strategy.get("type") == "OnDelete":
        return f"changes {_pods(wanted)} as they are deleted by hand"
    return _rolls(wanted, max(_share(rolling.get("maxUnavailable", 1), _replicas(after), up=True), 1))


def _daemon_set(before: Manifest, after: Manifest) -> str:
    wanted = _count(status_of(before).get("desiredNumberScheduled"))
    strategy = mapping_of(spec_of(after).get("updateStrategy"))
    if not wanted:
        return ""
    if strategy.get("type") == "OnDelete":
        return f"changes {_pods(wanted)} as they are deleted by hand"
    rolling = mapping_of(strategy.get("rollingUpdate"))
    surplus = _share(rolling.get("maxSurge", 0), wanted, up=True)
    missing = _share(rolling.get("maxUnavailable", 1), wanted, up=True)
    return _rolls(wanted, 0 if surplus else max(missing, 1))


_DESCRIBED: Mapping[GroupKind, Callable[[Manifest, Manifest], str]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
}

_IntOrPercent: TypeAlias = Any
"""A number, or text like ``25%``."""


def _share(value: _IntOrPercent, whole: int, *, up: bool = False) -> int:
    """Return how many of *whole* pods a number or a percentage stands for."""
    if isinstance(value, str) and value.endswith("%"):
        percent = _count(value[:-1])
        return -(-whole * percent // 100) if up else whole * percent // 100
    return _count(value)


def _replicas(manifest: Manifest) -> int:
    return _count(spec_of(manifest).get("replicas", 1))


def _running(manifest: Manifest) -> int:
    status = status_of(manifest)
    return _count(status.get("replicas")) or _count(status.get("currentNumberScheduled"))


def _count(value: Any) -> int:
    return max(number_of(value) or 0, 0)


def _rolls(pods: int, missing: int) -> str:
    meanwhile = f"at most {min(missing, pods)} unavailable" if missing else "none unavailable meanwhile"
    return f"rolls {_pods(pods)}; {meanwhile}"


def _pods(count: int) -> str:
    return "" if not count else "1 pod" if count == 1 else f"{count} pods"
