"""A report when it is due: at a slot of the schedule, after a Sync has applied something, or once for each spec.

Pure: a spec, live objects and a time in; a ConfigMap, a status and conditions out.
"""

from __future__ import annotations

from typing import Any

from kubectl_reconcile.module_api import (
    Condition,
    Context,
    Manifest,
    Outcome,
    Owned,
    map_at,
    maps_in,
    named,
    untouched_in,
)
from kubectl_reconcile.modules.checkup.measured import (
    compared_with,
    has_regressed,
    outdated,
    passes,
    status_of,
    unreadable,
    wait_s,
)
from kubectl_reconcile.modules.checkup.report import ReportWish, report_name
from kubectl_reconcile.modules.checkup.runs import due_check
from kubectl_reconcile.modules.checkup.spec import CheckupSpec
from kubectl_reconcile.modules.checkup.verdict import NOT_STALLED

_OF_HISTORY = ("objects", "unhealthy", "changes", "problems")


def reported(cr: Manifest, spec: CheckupSpec, wish: ReportWish, owned: Owned, ctx: Context) -> Outcome:
    """Write the report where one is due; the one before stays until then."""
    status, calendar = status_of(cr, spec.basis), spec.calendar
    obstacle = "" if spec.suspend else unreadable(owned, spec, wish.needed) or wish.missing(owned)
    due = due_check(cr, spec, status, None, owned, ctx.now)
    children: tuple[Manifest, ...] = ()
    if due.occasion and not spec.suspend and not obstacle:
        is_same = status.get("basis") == spec.basis
        made, counts = wish.made(owned, ctx, str(status.get("lastResultTime") or "") if is_same else "")
        children, status = (made,), _recorded(status, spec, wish, counts, ctx.now, is_same=is_same)
        status |= {"configMap": report_name(ctx), **({"lastScheduleTime": due.slot} if due.slot else {})}
        status |= {"applied": due.synced} if due.synced else {}
        status |= {"requested": due.requested} if due.requested else {}
    elif owned.get("ConfigMap", report_name(ctx)) is not None:
        children = (named("v1", "ConfigMap", report_name(ctx)),)
    if calendar:
        status["nextScheduleTime"] = calendar.after(ctx.now)
    for name in outdated(spec):
        status.pop(name, None)
    stalled = Condition("Stalled", "True", "InTheWay", obstacle) if obstacle else NOT_STALLED
    return Outcome(
        children=children,
        untouched=untouched_in(children),
        status=status,
        conditions=(stalled, passes(status, spec.test, wish, obstacle), has_regressed(status, wish)),
        requeue_after_s=wait_s(status, ctx.now, is_blocked=bool(obstacle)),
    )


def _recorded(
    status: dict[str, Any], spec: CheckupSpec, wish: ReportWish, counts: dict[str, Any], now: str, *, is_same: bool
) -> dict[str, Any]:
    """Return the status with the report of now."""
    result = compared_with(counts, map_at(status, "result") if is_same else {})
    found = {**status, "basis": spec.basis, "lastResultTime": now, "result": result}
    line = {"time": now, **{name: counts[name] for name in _OF_HISTORY}}
    line["passed"] = passes(found, spec.test, wish).status == "True"
    before = [dict(each) for each in maps_in(status.get("history"))]
    found["history"] = [*before, line][-spec.keep :]
    return found
