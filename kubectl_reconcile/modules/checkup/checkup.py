"""Checkup: a CR ``Checkup`` is a security scan of its namespace, on a schedule or whenever something changes, load on one of its Services, a Job of somebody's own, or a report.

For a scan nothing is made and nothing is written but the status; for the rest see ``measured`` and ``reported``. A result stays until another one differs, or until its next slot; what it means is told each time.

Conditions: ``Passed`` (what ``spec.passes`` asks for; without it, that nothing was found), ``Regressed`` (there are findings that the result before hadn't),
and ``Stalled`` where objects can't be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import (
    CHECKUP_HEALTH,
    REPORTED,
    SCANNED,
    Condition,
    Context,
    CronSchedule,
    Facts,
    Manifest,
    Outcome,
    Owned,
    Reads,
    ScanMemory,
    latest_slot,
    module,
)
from kubectl_reconcile.modules.checkup.measured import measured, status_of, unreadable, wait_s
from kubectl_reconcile.modules.checkup.record import by_fingerprint, is_same, recorded
from kubectl_reconcile.modules.checkup.reported import reported
from kubectl_reconcile.modules.checkup.runs import created_of, requested_of, synced_in
from kubectl_reconcile.modules.checkup.spec import CheckupSpec, checkup_spec
from kubectl_reconcile.modules.checkup.verdict import NOT_STALLED, passed, regressed

_KINDS = tuple(kind for _, kind in SCANNED)
_NEEDED = frozenset(f"{kind}.{api.rpartition('/')[0]}".rstrip(".") for api, kind in SCANNED)
_MEMORY = ScanMemory()
"""By which a scan is the faster, and says nothing else than without it."""
_READ = tuple(dict.fromkeys((*SCANNED, *REPORTED)))


@module(
    api="checks.reconcile.dev/v1alpha1",
    kind="Checkup",
    owns=["batch/v1/Job", "v1/ConfigMap"],
    reads=[Reads(api, kind, whole_namespace=True) for api, kind in _READ],
    health=CHECKUP_HEALTH,
)
def checkup(cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
    """Look at all workloads, Services, Roles and RoleBindings of the namespace, send requests to a Service, run a Job of your own, or write a report, and say what changed.

    A scan looks again whenever something changes, some seconds later; with a schedule, at its slots alone. The status has the findings, the most severe
    first, which of them are new and which are fixed, and a history. Load is sent by a Job, a Job of your own is run, and a report is written at the slots of a schedule, or once for each spec.
    """
    spec = checkup_spec(cr, ctx.ceilings)
    if check := spec.load or spec.job:
        return measured(cr, spec, check, owned, ctx)
    if spec.report:
        return reported(cr, spec, spec.report, owned, ctx)
    test, calendar, basis = spec.test, spec.calendar, spec.basis
    before = status_of(cr, basis)
    obstacle = "" if spec.suspend else unreadable(owned, spec, _NEEDED)
    if obstacle:
        return Outcome(
            status=before, conditions=_stalled(obstacle), requeue_after_s=wait_s(before, ctx.now, is_blocked=True)
        )
    slot = _slot(cr, before, calendar, ctx.now)
    status = before if spec.suspend else _status(cr, spec, before, owned, slot, ctx)
    if spec.suspend:
        status.pop("nextScheduleTime", None)
    elif calendar:
        status["nextScheduleTime"] = calendar.after(ctx.now)
    return Outcome(
        status=status,
        conditions=(passed(status, test), regressed(status), NOT_STALLED),
        requeue_after_s=wait_s(status, ctx.now),
    )


def _status(
    cr: Manifest, spec: CheckupSpec, before: Mapping[str, Any], owned: Owned, slot: str, ctx: Context
) -> dict[str, Any]:
    """Return the status with the result that counts now: the one before, unless it is time for another one."""
    basis, occasions = spec.basis, {"applied": synced_in(owned, spec), "requested": requested_of(cr)}
    noted = {name: occasion for name, occasion in occasions.items() if occasion}
    is_due = bool(slot) or before.get("basis") != basis or any(before.get(name) != noted[name] for name in noted)
    if (spec.schedule or spec.on_sync) and not is_due:
        return dict(before)
    findings = by_fingerprint(_MEMORY.findings_among(ctx.namespace, owned.around(_KINDS), spec.rules))
    if not is_due and is_same(before, basis, findings):
        return {name: value for name, value in before.items() if name not in _OF_SCHEDULE or spec.schedule}
    found = recorded(before, basis, findings, now=ctx.now, keep=spec.keep)
    found["history"][-1]["passed"] = passed(found, spec.test).status == "True"
    found |= noted
    if last := slot or (before.get("lastScheduleTime") if spec.schedule else ""):
        found["lastScheduleTime"] = last
    return found


_OF_SCHEDULE = frozenset({"lastScheduleTime", "nextScheduleTime"})


def _slot(cr: Manifest, before: Mapping[str, Any], calendar: CronSchedule | None, now: str) -> str:
    """Return the slot that is due; of those that were missed, the last one counts."""
    if calendar is None:
        return ""
    seen = max(created_of(cr, now), str(before.get("lastScheduleTime") or ""), str(before.get("lastResultTime") or ""))
    return latest_slot(calendar, seen, now)


def _stalled(obstacle: str) -> tuple[Condition, ...]:
    hint = "to give the module these rights, run kubectl reconcile grant for the Sync that has this Checkup"
    return (
        Condition("Stalled", "True", "NotReadable", f"{obstacle} (hint: {hint})"),
        Condition("Passed", "Unknown", "NotReadable", "the namespace can't be read completely, so there is no result"),
    )
