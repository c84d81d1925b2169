"""Checks that are made by a Job: one is begun when it is due, and what it told becomes the result, compared with the one before.

Conditions: ``Running``; ``Passed`` and ``Regressed`` of the last result; ``Stalled`` where something is in the way of the next run. A run that failed, or that told
nothing of use, passes nothing; the result before it stays, to be compared with.

Pure: a spec, live objects and a time in; children, a status and conditions out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from kubectl_reconcile.module_api import (
    CelTest,
    Condition,
    Context,
    Manifest,
    Outcome,
    Owned,
    annotations_of,
    condition_of,
    kept_status,
    map_at,
    maps_in,
    named,
    seconds_between,
    shortened,
    untouched_in,
)
from kubectl_reconcile.modules.checkup.job import results_name
from kubectl_reconcile.modules.checkup.report import SYNC
from kubectl_reconcile.modules.checkup.runs import (
    OCCASION,
    REQUESTED,
    SYNCED,
    CheckRun,
    due_check,
    job_name,
    job_of,
    last_run,
)
from kubectl_reconcile.modules.checkup.spec import CheckupSpec
from kubectl_reconcile.modules.checkup.verdict import NOT_STALLED, judged

_REST_S, _WORKING_S, _BLOCKED_S = 3600.0, 5.0, 30.0
_MESSAGE_MAX: Final = 400
_UNREAD_MAX: Final = 600
_MOST_COMPARED: Final = 50
_MOST_CHANGED: Final = 2**63
"""How far apart numbers may be and still be compared: a difference beyond that nobody could write down."""
_NEEDED: Final = frozenset({"Pod", "Service"})
_OF_HISTORY: Final = ("p50_ms", "p99_ms")
_COUNTS_OF_HISTORY: Final = ("errors", "requests")
_MOST_COUNTED: Final = 2**53
"""Up to where the API server takes whole numbers for such."""
_NOTED: Final = {SYNCED: "applied", REQUESTED: "requested"}
"""Where the status notes for which occasion of a kind a check was made last."""


class Judge(Protocol):
    """What a result means."""

    def summary(self, result: Mapping[str, Any]) -> str:
        """Return a result in a few words."""

    def is_good(self, result: Mapping[str, Any]) -> bool:
        """Tell whether a result passes where nobody says what does."""

    def is_worse(self, result: Mapping[str, Any]) -> bool:
        """Tell whether a result, which has been compared, is worse than the one before."""


class Measurement(Judge, Protocol):
    """What the pod of a Job does, and what its last words mean."""

    @property
    def deadline_s(self) -> int:
        """How long it may take where nobody says."""

    @property
    def basis(self) -> str:
        """What results must have in common to be compared: a word for the kind of check, a dash, and a digest."""

    def missing(self, owned: Owned) -> str:
        """Return what is in the way of it."""

    def template_of(self, ctx: Context, job: str, owned: Owned) -> dict[str, Any]:
        """Return the template of the pod of the Job of that name."""

    def result_of(self, said: str) -> dict[str, Any]:
        """Return the result; nothing where there is none in what was *said*."""

    def why_none(self, said: str) -> tuple[str, str]:
        """Return why there is none: in one word, and in a sentence."""


def status_of(cr: Manifest, basis: str) -> dict[str, Any]:
    """Return the status so far; nothing where that is of a check of another kind."""
    status = kept_status(cr)
    is_same_kind = _kind(status.get("basis")) == _kind(basis)
    return status if is_same_kind or "basis" not in status else {}


def _kind(basis: object) -> str:
    word = str(basis).partition("-")[0]
    return word if word in {"load", "job", "report"} else "scan"


def measured(cr: Manifest, spec: CheckupSpec, check: Measurement, owned: Owned, ctx: Context) -> Outcome:
    """Begin what is due; tell what happened to what was begun."""
    status, calendar = status_of(cr, spec.basis), spec.calendar
    run = _with_last_seen(cr, last_run(owned, results_name(ctx), ctx.now, told=status.get("job")))
    was_told = run is None or status.get("job") == run.name
    if run and run.ended and run.name != status.get("job"):
        status = _recorded(status, spec, check, run)
    is_at_work = run is not None and not run.ended
    obstacle = "" if spec.suspend else unreadable(owned, spec, _NEEDED) or check.missing(owned)
    status |= {"active": run.name} if run and is_at_work else {}
    if not is_at_work:
        status.pop("active", None)
    due = due_check(cr, spec, status, run, owned, ctx.now)
    if calendar:
        status |= {"lastScheduleTime": due.handled} if due.handled else {}
        status["nextScheduleTime"] = calendar.after(ctx.now)
    for name in outdated(spec):
        status.pop(name, None)
    is_due = bool(due.occasion) and not (spec.suspend or is_at_work or obstacle)
    # What the last run left, or a daemon that was killed before it made the Job, is gone before the next one begins.
    begins = is_due and not (spec.job and _is_of_another(owned.get("ConfigMap", results_name(ctx)), due.occasion))
    kept = (named("batch/v1", "Job", run.name),) if run and not begins else ()
    deadline_s = spec.deadline_seconds or check.deadline_s
    job = job_name(ctx, due.occasion)
    begun = (job_of(ctx, due.occasion, spec.basis, check.template_of(ctx, job, owned), deadline_s),) if begins else ()
    # It goes only once it is known that what it holds was written down.
    occasion = due.occasion if begins else run.occasion if run else ""
    results = (_results(ctx, occasion),) if spec.job and (begins or not was_told) else ()
    return Outcome(
        children=(*kept, *results, *begun),
        untouched=untouched_in(kept),
        status=status,
        conditions=(
            _running(status, run, begun=job if begins else ""),
            Condition("Stalled", "True", "InTheWay", obstacle) if obstacle else NOT_STALLED,
            passes(status, spec.test, check, obstacle),
            has_regressed(status, check),
        ),
        requeue_after_s=wait_s(status, ctx.now, is_soon=is_at_work or is_due, is_blocked=bool(obstacle)),
    )


def _results(ctx: Context, occasion: str) -> Manifest:
    """Return the ConfigMap that the pod of an occasion may leave its result in."""
    metadata = {"name": results_name(ctx), "labels": ctx.labels(), "annotations": {OCCASION: occasion}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _is_of_another(results: Manifest | None, occasion: str) -> bool:
    """Tell whether a ConfigMap may hold what the pod of another occasion left; that of a Job which the API server refused is empty, and serves again."""
    return results is not None and (annotations_of(results).get(OCCASION) != occasion or "data" in results)


def _with_last_seen(cr: Manifest, run: CheckRun | None) -> CheckRun | None:
    """Return a run with what its pod was last seen to wait for, once that is gone: after its deadline a Job takes its pods along."""
    running = condition_of(cr, "Running") or {}
    seen = str(running.get("message") or "") if running.get("status") == "True" else ""
    return run if run is None or run.has_pod or seen in {"", run.working} else replace(run, waits=seen)


def unreadable(owned: Owned, spec: CheckupSpec, needed: frozenset[str]) -> str:
    """Return why kinds can't be read that are *needed*, or Syncs where these say when it is due; nothing where all can."""
    wanted = needed | ({SYNC} if spec.on_sync else set())
    unread = {kind: why for kind, why in owned.unread.items() if kind in wanted}
    told = f"can't be read in this namespace: {', '.join(unread)}: {next(iter(unread.values()), '')}"
    return shortened(told, _UNREAD_MAX) if unread else ""


def outdated(spec: CheckupSpec) -> tuple[str, ...]:
    """Return what isn't said of slots now."""
    if not spec.schedule:
        return "nextScheduleTime", "lastScheduleTime"
    return ("nextScheduleTime",) if spec.suspend else ()


def wait_s(status: Mapping[str, Any], now: str, *, is_soon: bool = False, is_blocked: bool = False) -> float | None:
    """Return when to look again, if nothing happens until then; Jobs and pods are watched."""
    if is_soon or is_blocked:
        return _WORKING_S if is_soon else _BLOCKED_S
    upcoming = status.get("nextScheduleTime")
    return min(max(1.0, seconds_between(now, upcoming)), _REST_S) if upcoming else None


# --- results --------------------------------------------------------------------------------------


def _recorded(status: Mapping[str, Any], spec: CheckupSpec, check: Measurement, run: CheckRun) -> dict[str, Any]:
    """Return the status with what happened to a run."""
    found = {**status, "job": run.name, "lastResultTime": run.ended, "basis": run.basis}
    found |= {name: run.occasion for word, name in _NOTED.items() if run.occasion.startswith(word)}
    found.pop("failure", None)
    result = {} if run.failed else check.result_of(run.said)
    if result:
        before = map_at(status, "result") if status.get("basis") == run.basis else {}
        found["result"] = compared_with(result, before)
    else:
        found["failure"] = _failure(run, check)
        if status.get("basis") != run.basis:
            found.pop("result", None)
    line: dict[str, Any] = {"time": run.ended, **_figures(result)}
    line |= {"failed": found["failure"]["message"]} if "failure" in found else {}
    line["passed"] = passes(found, spec.test, check).status == "True"
    found["history"] = [*map(dict, maps_in(status.get("history"))), line][-spec.keep :]
    return found


def _failure(run: CheckRun, check: Measurement) -> dict[str, str]:
    if run.failed:
        seen = f"; last seen: {run.waits}" if run.waits and run.waits not in run.failed else ""
        return {"reason": "JobFailed", "message": shortened(f"Job {run.name}: {run.failed}{seen}", 2 * _MESSAGE_MAX)}
    if not run.said:
        return {"reason": "NoResult", "message": f"Job {run.name}: its pod is gone, or left no result"}
    reason, message = check.why_none(run.said)
    return {"reason": reason, "message": f"Job {run.name}: {message}"}


def compared_with(result: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result with by how much its numbers have changed."""
    own = {name: value for name, value in result.items() if name not in {"compared", "change"}}
    change = {
        name: difference
        for name, value in list(own.items())[:_MOST_COMPARED]
        if _is_number(value) and _is_number(before.get(name))
        if abs(difference := round(value - before[name], 3)) < _MOST_CHANGED
    }
    return {**own, "compared": bool(change), **({"change": change} if change else {})}


def _figures(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the history keeps of a result; one of somebody's own may mean something else by these names."""
    counts = {name: result.get(name) for name in _COUNTS_OF_HISTORY}
    return {name: result[name] for name in _OF_HISTORY if _is_number(result.get(name))} | {
        name: value for name, value in counts.items() if _is_count(value)
    }


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST_COUNTED


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- what is told ---------------------------------------------------------------------------------


def _running(status: Mapping[str, Any], run: CheckRun | None, *, begun: str) -> Condition:
    """Return whether a Job is running; *begun* is the one that this pass makes."""
    if run and not run.ended:
        return Condition("Running", "True", "JobAtWork", run.waits or run.working)
    if begun:
        told = f"Job {begun} is about to start; if it doesn't, the API server refuses it, and an event of this Checkup says why"
        return Condition("Running", "False", "Beginning", told)
    upcoming = status.get("nextScheduleTime")
    return Condition("Running", "False", "Idle", f"the next check is due at {upcoming}" if upcoming else "")


def passes(status: Mapping[str, Any], test: CelTest | None, check: Judge, obstacle: str = "") -> Condition:
    """Return whether the last result passes: by *test*, or without one as *check* has it. An *obstacle* is why there is none yet."""
    if failure := map_at(status, "failure"):
        return Condition("Passed", "False", str(failure.get("reason") or "Failed"), str(failure.get("message") or ""))
    result = map_at(status, "result")
    if not result:
        return Condition("Passed", "Unknown", "NoResult", _why_no_result(status, obstacle))
    is_good, fault = judged(result, test) if test else (check.is_good(result), "")
    if fault:
        return Condition("Passed", "False", "CannotBeJudged", fault)
    if is_good:
        return Condition("Passed", "True", "Passed", check.summary(result))
    told = f"not {test.text!r}: {check.summary(result)}" if test else check.summary(result)
    return Condition("Passed", "False", "NotPassed", shortened(told, _MESSAGE_MAX))


def _why_no_result(status: Mapping[str, Any], obstacle: str) -> str:
    if obstacle:
        return f"there is no result yet: {obstacle}"
    upcoming = status.get("nextScheduleTime")
    return f"there is no result yet; the next check is due at {upcoming}" if upcoming else "there is no result yet"


def has_regressed(status: Mapping[str, Any], check: Judge) -> Condition:
    """Return whether the last result is worse than the one before."""
    result, history = map_at(status, "result"), list(maps_in(status.get("history")))
    if "failure" in status or not result.get("compared"):
        return Condition("Regressed", "False", "NothingToCompareWith", "there is no earlier result of the same check")
    told = f"{check.summary(result)}; before, {check.summary(_before(result))}"
    passed = [each.get("passed") for each in history[-2:]]
    if check.is_worse(result) or passed == [True, False]:
        return Condition("Regressed", "True", "Worse", shortened(told, _MESSAGE_MAX))
    return Condition("Regressed", "False", "NotWorse", shortened(told, _MESSAGE_MAX))


def _before(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of the result that this one was compared with."""
    change = map_at(result, "change")
    return {
        name: round(value - change[name], 3)
        for name, value in result.items()
        if _is_number(change.get(name)) and _is_number(value)
    }
