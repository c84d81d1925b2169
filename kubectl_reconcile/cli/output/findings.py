"""What a plan does to a security scan, as people read it.

Pure: plans in, lines out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.scan.outlook import PlannedFinding, PlanScan, ScanOutlook, ScanScope
from kubectl_reconcile.views.text import Line, Span, Tone, line

_MOST = 50
"""How many findings people are shown: who has more wants a document."""


def lines(plan: Plan, scan: PlanScan) -> Iterator[Line]:
    """Yield what *plan* adds to a scan and what it fixes: object by object, a line a field."""
    found = scan.outlook(plan.changes)
    yield from _listed(found.new, "new finding", Tone.BAD)
    yield from _listed(found.fixed, "fixed", Tone.GOOD)
    yield line(_counts(found, scan.scope), Tone.BAD if found.new else Tone.GOOD)


def lines_below(plan: Plan, scan: PlanScan) -> Iterator[Line]:
    """Yield the same of the plans that are nested in *plan*, of each with its Sync; nothing of one that changes nothing of that."""
    for each in plan.nested:
        if each.plan is not None and says_something(each.plan, scan):
            yield line(f"Sync {each.sync.namespace}/{each.sync.name}", Tone.TITLE)
            yield from lines(each.plan, scan)


def says_something(plan: Plan, scan: PlanScan) -> bool:
    """Tell whether *plan* adds a finding, or fixes one."""
    found = scan.outlook(plan.changes)
    return bool(found.new or found.fixed)


def _listed(found: tuple[PlannedFinding, ...], word: str, tone: Tone) -> Iterator[Line]:
    for (ref, place), group in groupby(found[:_MOST], key=_object_and_place):
        yield (Span(f"{word}: ", tone), Span(str(ref), Tone.TITLE), Span(f"  {place}" if place else "", Tone.ASIDE))
        for each in group:
            finding = each.finding
            yield (Span(f"  {finding.path}", Tone.PLACE), Span(f" {finding.demand}  "), Span(finding.check, Tone.ASIDE))
    if (more := len(found) - _MOST) > 0:
        yield line(f"  and {more} more (-o json shows all)", tone)


def _object_and_place(each: PlannedFinding) -> tuple[ObjectRef, str]:
    return each.finding.ref, each.place


def _counts(found: ScanOutlook, scope: ScanScope) -> str:
    new = f"{len(found.new)} new finding{'' if len(found.new) == 1 else 's'}"
    return f"scan ({scope}): {new}, {len(found.fixed)} fixed"
