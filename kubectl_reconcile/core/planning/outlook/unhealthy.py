"""Which objects of a plan aren't well before anything is written, so that whoever reads it knows what a change comes on top of.

Only what is or may be broken counts: an object that is being deleted has its own sentence, and one that is suspended or of whose
health nobody knows isn't ill.

Pure: asks the snapshot, never the cluster.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.health import Health, HealthStatus
from kubectl_reconcile.core.health.silence import Expected, expected_of
from kubectl_reconcile.core.health.summary import member_health
from kubectl_reconcile.core.objects import GroupKind, Problem, Severity
from kubectl_reconcile.core.planning.plan import Change, Op, Plan, Unhealthy
from kubectl_reconcile.core.planning.snapshot import Snapshot

_ILL = frozenset({HealthStatus.FAILED, HealthStatus.IN_PROGRESS})
_MOST_WARNINGS = 5
_STAYS = frozenset({Op.UPDATE, Op.REPLACE, Op.UNCHANGED})


def with_health(made: Plan, live: Snapshot, rules: HealthRules, now: str) -> Plan:
    """Return *made* with those of its objects that aren't well at *now*, as *rules* judge; those that go don't count.

    A rule that can't be answered for one of them is a warning where that one is asked for.
    """
    judged = _judged(made, live, rules, now)
    ill = tuple(Unhealthy(change.ref, health) for change, health in judged if health.status in _ILL)
    faults = [(change, health.fault) for change, health in judged if health.fault]
    return replace(
        made, unhealthy=ill, problems=(*made.problems, *(_warning(*each) for each in faults[:_MOST_WARNINGS]))
    )


def _warning(change: Change, fault: str) -> Problem:
    place = change.provenance
    hint = "see spec.health.rules of the Sync; meanwhile the object is judged without the rule"
    return Problem(place.file, place.line, f"{change.ref}: {fault}", hint, severity=Severity.WARNING)


def _judged(made: Plan, live: Snapshot, rules: HealthRules, now: str) -> list[tuple[Change, Health]]:
    """Return what there is to say of objects, in the order of the plan.

    The silent are looked at last, since what is expected of them others of their kinds tell.
    """
    staying = [(at, change) for at, change in enumerate(made.changes) if change.op in _STAYS]
    found: dict[int, tuple[Change, Health]] = {}
    silent: list[tuple[int, Change]] = []
    spoken: set[GroupKind] = set()

    def judge(at: int, change: Change, expected: Expected) -> None:
        if (stored := live.stored(change.ref)) is None:
            return
        manifest = stored.manifest()
        if manifest.get("status"):
            spoken.add(change.ref.group_kind)
        elif expected is Expected.NOT_KNOWN and _expected(change) is not Expected.NEVER:
            silent.append((at, change))
            return
        health = member_health(rules, manifest, expected=expected, now=now)
        if health.status in _ILL or health.fault:
            found[at] = change, health

    for at, change in staying:
        judge(at, change, Expected.NOT_KNOWN)
    for at, change in silent:
        judge(at, change, _expected(change, spoken))
    return [found[at] for at in sorted(found)]


def _expected(change: Change, spoken: Collection[GroupKind] = ()) -> Expected:
    has_status = change.kind is not None and change.kind.has_status
    return expected_of(change.ref.group_kind, has_status=has_status, spoken=spoken)
