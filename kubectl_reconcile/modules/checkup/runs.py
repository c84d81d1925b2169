"""Checks that a Job makes: which one is due, and what happened to those that were begun.

A run is begun for one *occasion*: a slot of the schedule, that the spec is another one, that a Sync has applied another revision, or that somebody has requested it. An occasion has one name forever,
that of its Job, so nobody begins it twice, whoever is killed between two steps. One Job is running at a time; slots that come meanwhile, or that nobody was there for, aren't made up for.

Pure: live objects and a time in, runs out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kubectl_reconcile.module_api import (
    Context,
    CronSchedule,
    Manifest,
    Owned,
    annotations_of,
    condition_of,
    container_states,
    has_condition,
    last_words,
    later,
    latest_slot,
    map_at,
    pods_of_job,
    seconds_between,
    shortened,
    slot_suffix,
    text_at,
    why_waiting,
)
from kubectl_reconcile.modules.checkup.report import SYNC
from kubectl_reconcile.modules.checkup.spec import CheckupSpec

OCCASION: Final = "checks.reconcile.dev/occasion"
BASIS: Final = "checks.reconcile.dev/basis"
SPEC_CHANGED: Final = "spec"
"""What the occasion is called that the spec is another one; its basis follows."""
SYNCED: Final = "sync"
"""What the occasion is called that Syncs have applied other revisions; a digest of these follows."""
REQUESTED: Final = "request"
"""What the occasion is called that somebody wants a check now; a digest of what they wrote follows."""
REQUESTED_AT: Final = "checks.reconcile.dev/requested-at"
"""The annotation of a Checkup by which somebody wants a check now: each new value is one check."""
LATEST_START_S: Final = 300.0
"""How late a slot may begin; one that is older was missed."""
_PATIENCE_S: Final = 30.0
"""How long a pod's last words are waited for once its Job is done."""
_MESSAGE_MAX: Final = 400


@dataclass(frozen=True, slots=True)
class CheckRun:
    """One Job: for which *occasion*, of which *basis*, and where it has *ended*, what its pod *said*, or why it *failed*.

    *waits* is what it waits for; where it *has_pod* no more, that isn't known any longer.
    """

    name: str
    occasion: str
    basis: str
    ended: str = ""
    said: str = ""
    failed: str = ""
    waits: str = ""
    has_pod: bool = False

    @property
    def working(self) -> str:
        """What is reported about it while it is running and waits for nothing."""
        return f"Job {self.name} is running"

    @property
    def slot(self) -> str:
        """The slot that it was begun for, if it was one."""
        return self.occasion if self.occasion[:1].isdecimal() else ""


def job_name(ctx: Context, occasion: str) -> str:
    """Return the name of the Job of an occasion: the same forever."""
    if occasion[:1].isdecimal():
        return ctx.name(slot_suffix(occasion))
    return ctx.name(hashlib.sha256(occasion.encode()).hexdigest()[:10])


def job_of(ctx: Context, occasion: str, basis: str, template: Mapping[str, Any], deadline_s: int) -> Manifest:
    """Return the Job of an occasion. It is tried once: a check that is made again has another result."""
    metadata = map_at(template, "metadata")
    labels = {**map_at(metadata, "labels"), **ctx.labels()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(ctx, occasion),
            "labels": ctx.labels(),
            "annotations": {OCCASION: occasion, BASIS: basis},
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": deadline_s,
            "template": {"metadata": {**metadata, "labels": labels}, "spec": dict(map_at(template, "spec"))},
        },
    }


def last_run(owned: Owned, results: str, now: str, *, told: object) -> CheckRun | None:
    """Return the run that was begun last, if its Job is there; what it left in the ConfigMap called *results* comes before what its pod said.

    Of the Job called *told* the result was written down: what its pod said isn't waited for any more.
    """
    jobs = [each for each in owned.of("Job") if OCCASION in annotations_of(each)]
    if not jobs:
        return None
    job = max(jobs, key=lambda each: (str(each["metadata"].get("creationTimestamp") or "~"), each["metadata"]["name"]))
    name = job["metadata"]["name"]
    left = map_at(owned.get("ConfigMap", results) or {}, "data").get(name)
    patience_s = 0.0 if name == told else _PATIENCE_S
    return _run(job, left if isinstance(left, str) else "", pods_of_job(job, owned.read("Pod")), now, patience_s)


def _run(job: Manifest, left: str, pods: Iterable[Manifest], now: str, patience_s: float) -> CheckRun:
    pods = tuple(pods)
    notes = annotations_of(job)
    name, occasion, basis = job["metadata"]["name"], notes.get(OCCASION, ""), notes.get(BASIS, "")
    said = left or next((words for each in pods if (words := _said(each))), "")
    if has_condition(job, "Complete"):
        ended = str(map_at(job, "status").get("completionTime") or now)
        if not said and seconds_between(ended, now) < patience_s:
            return CheckRun(name, occasion, basis, waits="it is finished, but the result of its pod isn't known yet")
        return CheckRun(name, occasion, basis, ended, said)
    failed = condition_of(job, "Failed")
    if failed is not None and failed.get("status") == "True":
        why = ": ".join(str(failed.get(part)) for part in ("reason", "message") if failed.get(part))
        waited = next((each for each in map(why_waiting, pods) if each), "")
        words = _fault(said) or waited
        told_now = shortened(f"{why}{'; ' if why and words else ''}{words}" or "it failed", _MESSAGE_MAX)
        return CheckRun(
            name, occasion, basis, str(failed.get("lastTransitionTime") or now), failed=told_now, has_pod=bool(pods)
        )
    has_any = bool(pods) or has_condition(job, "FailureTarget")  # then its pods are taken away
    no_pod = "" if has_any else f"it waits for its pod (hint: kubectl describe job {name} says why there is none)"
    waits = next((each for each in map(why_waiting, pods) if each), no_pod)
    return CheckRun(name, occasion, basis, waits=shortened(waits, _MESSAGE_MAX), has_pod=bool(pods))


def _said(pod: Manifest) -> str:
    """Return the last message of a container that has ended."""
    messages = (map_at(state, "terminated").get("message") for _, state in container_states(pod))
    return next((each for each in reversed([*messages]) if isinstance(each, str) and each), "")


def _fault(said: str) -> str:
    words = last_words(said)
    if words.get("error"):
        return f"{words['error']}: {words.get('message') or ''}"
    return said.strip()[-_MESSAGE_MAX:]


def _handled_slot(
    status: Mapping[str, Any], run: CheckRun | None, calendar: CronSchedule, created: str, now: str
) -> str:
    """Return the last slot that needs no beginning any more: it was begun, or came while another run was at work."""
    begun = max(str(status.get("lastScheduleTime") or ""), run.slot if run else "")
    busy_until = (run.ended or now) if run else ""
    skipped = latest_slot(calendar, max(begun, created), busy_until) if busy_until else ""
    return max(begun, skipped)


@dataclass(frozen=True, slots=True)
class DueCheck:
    """What a check is to be made for now, its *occasion*, nothing where it isn't; what else is to be known of it.

    *slot* is the slot of the schedule that is due; *handled* is the last one that needs no beginning. *synced* is what `synced_in` says, *requested*
    what `requested_of` says.
    """

    occasion: str = ""
    slot: str = ""
    handled: str = ""
    synced: str = ""
    requested: str = ""


def due_check(
    cr: Manifest, spec: CheckupSpec, status: Mapping[str, Any], run: CheckRun | None, owned: Owned, now: str
) -> DueCheck:
    """Return what a check is to be made for at *now*. A slot that has waited for too long was missed."""
    calendar, slot, handled = spec.calendar, "", ""
    if calendar:
        created = created_of(cr, now)
        handled = _handled_slot(status, run, calendar, created, now)
        slot = latest_slot(calendar, max(handled, created, later(now, -LATEST_START_S)), now)
    due = DueCheck(slot=slot, handled=handled, synced=synced_in(owned, spec), requested=requested_of(cr))
    return replace(due, occasion=_occasion(spec, due, status, run))


def created_of(cr: Manifest, now: str) -> str:
    """Return since when there is a Checkup."""
    return str(cr["metadata"].get("creationTimestamp") or now)


def synced_in(owned: Owned, spec: CheckupSpec) -> str:
    """Return the occasion that Syncs of the namespace have applied what they have by now; nothing where that doesn't count, or none has applied anything."""
    if not spec.on_sync:
        return ""
    found = {each["metadata"]["name"]: text_at(each, "status", "lastAppliedRevision") for each in owned.read(SYNC)}
    revisions = sorted((name, revision) for name, revision in found.items() if revision)
    digest = hashlib.sha256(json.dumps(revisions).encode()).hexdigest()[:16]
    return f"{SYNCED} {digest}" if revisions else ""


def requested_of(cr: Manifest) -> str:
    """Return the occasion that somebody wants a check now; nothing where nobody ever has."""
    token = annotations_of(cr).get(REQUESTED_AT)
    return f"{REQUESTED} {hashlib.sha256(token.encode()).hexdigest()[:16]}" if token else ""


def _occasion(spec: CheckupSpec, due: DueCheck, status: Mapping[str, Any], run: CheckRun | None) -> str:
    """Return what a check is to be made for. Without a schedule, and where Syncs don't count, a spec is one occasion."""
    if due.slot:
        return due.slot
    made = {*(str(status.get(name) or "") for name in ("applied", "requested")), run.occasion if run else ""}
    if wanted := next((each for each in (due.synced, due.requested) if each and each not in made), ""):
        return wanted
    is_other = not (spec.schedule or spec.on_sync) and status.get("basis") != spec.basis
    return f"{SPEC_CHANGED} {spec.basis}" if is_other else ""
