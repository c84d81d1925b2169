"""Which objects of a plan aren't well before anything is written, so that whoever reads it knows what a change comes on top of.

Only what is or may be broken counts: an object that is being deleted has its own sentence, and one that is suspended or of whose
health nobody knows isn't ill.

Pure: asks the snapshot, never the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.summary import member_health
from kubectl_reconcile.core.health.verdict import HealthStatus
from kubectl_reconcile.core.planning.plan import Op, Plan, Unhealthy
from kubectl_reconcile.core.planning.snapshot import Snapshot

_ILL = frozenset({HealthStatus.FAILED, HealthStatus.IN_PROGRESS})
_STAYS = frozenset({Op.UPDATE, Op.REPLACE, Op.UNCHANGED})


def with_health(made: Plan, live: Snapshot, rules: HealthRules) -> Plan:
    """Return *made* with those of its objects that aren't well now, as *rules* judge; those that go don't count."""
    return replace(made, unhealthy=tuple(_unhealthy(made, live, rules)))


def _unhealthy(made: Plan, live: Snapshot, rules: HealthRules) -> Iterator[Unhealthy]:
    for change in made.changes:
        stored = live.stored(change.ref) if change.op in _STAYS else None
        if stored is not None and (health := member_health(rules, stored.manifest())).status in _ILL:
            yield Unhealthy(change.ref, health)
