"""Runs: what happened to each backup, told by its Job and its pods.

A *run* is one backup, called as its Job. It is ``Running``, ``Succeeded`` or ``Failed``; a slot that no run was begun for is ``Missed``. The CR's status keeps the
last ones, so that they are known when their Jobs are gone; while a Job is there, it is the Job that says.

What a pod ends with is one line of JSON, its termination message: what was written, or what was in the way.

Pure: the CR and live objects in, runs out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import (
    Manifest,
    Owned,
    annotations_of,
    condition_of,
    container_states,
    has_condition,
    last_words,
    map_at,
    pods_of_job,
    seconds_between,
    shortened,
    why_waiting,
)
from kubectl_reconcile_operators.backups.retention import BackupNames

_PATIENCE_S = 30.0
_MESSAGE_MAX = 300


@dataclass(frozen=True, slots=True)
class BackupWords:
    """The names that a module uses for the reports of runs. The annotation *slot* of a Job is the slot for which it was started, empty if it has none.

    *told* are the fields in which pods report what they wrote. *numbers* are those of them that are numbers. The field *proof* shows that something was written.
    """

    slot: str
    told: tuple[str, ...]
    numbers: frozenset[str]
    proof: str


class BackupProgress(StrEnum):
    """The progress of a run."""

    RUNNING = "Running"
    """Its Job is running, or about to be."""
    SUCCEEDED = "Succeeded"
    """A backup was written and checked."""
    FAILED = "Failed"
    """Its Job has failed, or was deleted before it was done."""
    MISSED = "Missed"
    """The time to begin it was over before it could begin."""

    @property
    def has_ended(self) -> bool:
        """Whether it is finished."""
        return self is not BackupProgress.RUNNING


@dataclass(frozen=True, slots=True)
class BackupRun:
    """One backup. *told* is what its pod reported: the fields of the status by name."""

    name: str
    slot: str
    progress: BackupProgress
    began: str = ""
    ended: str = ""
    message: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def when(self) -> tuple[str, str, str]:
        """The time by which runs are sorted."""
        return self.slot or self.began, self.began, self.name

    def line(self) -> dict[str, Any]:
        """Return the run as the status has it."""
        whole = {
            "name": self.name, "slot": self.slot, "phase": self.progress.value, "startTime": self.began,
            "completionTime": self.ended, "message": self.message, **self.told,
        }  # fmt: skip
        return {name: value for name, value in whole.items() if value != ""}


def runs_of(
    cr: Manifest, owned: Owned, now: str, words: BackupWords, *, history: str = "history"
) -> tuple[BackupRun, ...]:
    """Return all known runs, the oldest first; the status has them in *history*."""
    known = {each.name: each for each in _remembered(cr, words, history)}
    jobs = {job["metadata"]["name"]: job for job in owned.of("Job") if words.slot in annotations_of(job)}
    pods = tuple(owned.read("Pod"))
    for name, job in jobs.items():
        mine = pods_of_job(job, pods)
        known[name] = _told_by(job, mine, known.get(name), now, words)
    for name, run in known.items():
        if name not in jobs and not run.progress.has_ended:
            known[name] = replace(
                run, progress=BackupProgress.FAILED, ended=now, message="its Job was deleted before it finished"
            )
    return tuple(sorted(known.values(), key=lambda run: run.when))


def last_lines(runs: Iterable[BackupRun], limit: int) -> list[dict[str, Any]]:
    """Return the history: the last *limit* runs, and those that are running, as the status has them."""
    return [run.line() for run in kept(runs, limit)]


def kept(runs: Iterable[BackupRun], limit: int) -> tuple[BackupRun, ...]:
    """Return the last *limit* runs, and those that are running; the last success is always among them."""
    found = tuple(runs)
    last = {run.name for run in found[-limit:]} | {run.name for run in found if not run.progress.has_ended}
    success = last_success(found)
    return tuple(run for run in found if run.name in last or run is success)


def last_success(runs: Iterable[BackupRun]) -> BackupRun | None:
    """Return the last run that succeeded."""
    return next((run for run in reversed(tuple(runs)) if run.progress is BackupProgress.SUCCEEDED), None)


def unnamed(runs: Iterable[BackupRun], names: BackupNames) -> tuple[str, ...]:
    """Return the names of the backups of *runs* that don't say what they are of: they were made before backups did, and are of the same as these runs."""
    files = (str(run.told.get("file") or "").rpartition("/")[2] for run in runs)
    return tuple(file for file in files if (found := names.stored(file)) is not None and not found.of)


# --- what the status remembers --------------------------------------------------------------------


def _remembered(cr: Manifest, words: BackupWords, history: str) -> Iterator[BackupRun]:
    for line in (cr.get("status") or {}).get(history) or ():
        try:
            yield BackupRun(
                name=str(line["name"]),
                slot=str(line.get("slot") or ""),
                progress=BackupProgress(line["phase"]),
                began=str(line.get("startTime") or ""),
                ended=str(line.get("completionTime") or ""),
                message=str(line.get("message") or ""),
                told={name: line[name] for name in words.told if name in line},
            )
        except (KeyError, ValueError, TypeError, AttributeError):
            continue  # somebody wrote into the status; the Jobs say the rest


# --- what Jobs and pods say -----------------------------------------------------------------------


def _told_by(job: Manifest, pods: list[Manifest], before: BackupRun | None, now: str, words: BackupWords) -> BackupRun:
    status: Mapping[str, Any] = job.get("status") or {}
    messages = [_message(pod) for pod in sorted(pods, key=_began)]
    run = BackupRun(
        name=job["metadata"]["name"],
        slot=annotations_of(job)[words.slot],
        progress=BackupProgress.RUNNING,
        began=str(job["metadata"].get("creationTimestamp") or ""),
        told=before.told if before else {},
    )
    if has_condition(job, "Complete"):
        told = next((found for each in messages if (found := _written(each, words))), run.told)
        ended = str(status.get("completionTime") or now)
        if not told and status.get("completionTime") and seconds_between(ended, now) < _PATIENCE_S:
            return replace(run, message="it is finished, but the result of its pod isn't known yet")
        note = str(told.get("note") or "") if told else "its pod is gone, so its result isn't known"
        return replace(run, progress=BackupProgress.SUCCEEDED, ended=ended, told=told, message=note)
    failed = condition_of(job, "Failed")
    if failed is not None and failed.get("status") == "True":
        said = [each for each in (_fault(message, words) for message in messages) if each]
        about = f"{failed.get('reason') or ''}: {failed.get('message') or ''}"
        earlier = before.message if before and before.progress is BackupProgress.FAILED else ""
        waiting = [each for each in map(why_waiting, pods) if each]
        why = next(iter([*said[-1:], *waiting[-1:]]), "")
        is_late = failed.get("reason") == "DeadlineExceeded"
        told_now = f"{about}; {why}" if is_late and why else why or earlier or about
        ended = str(failed.get("lastTransitionTime") or now)
        return replace(run, progress=BackupProgress.FAILED, ended=ended, message=shortened(told_now, _MESSAGE_MAX))
    why = next((each for each in map(why_waiting, pods) if each), "")
    said = [each for each in (_fault(message, words) for message in messages) if each]
    again = f"the last attempt failed: {said[-1]}" if said else ""
    return replace(run, message=shortened(why or again, _MESSAGE_MAX))


def _began(pod: Manifest) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")


def _message(pod: Manifest) -> str:
    """Return what a pod's last container ended with, or the first one that failed; nothing where neither has."""
    found = ""
    for _, state in container_states(pod):
        if ended := map_at(state, "terminated"):
            found = str(ended.get("message") or "") or f"exit code {ended.get('exitCode')}"
            if ended.get("exitCode"):
                break
        else:
            found = ""
    return found or str((pod.get("status") or {}).get("message") or "")


def _written(message: str, words: BackupWords) -> dict[str, Any]:
    """Return what a pod says that it wrote, nothing where it says something else."""
    found = last_words(message)
    if not isinstance(found.get(words.proof), int) or not found.get("file"):
        return {}
    return {
        name: found[name] if name in words.numbers else shortened(str(found[name]), _MESSAGE_MAX)
        for name in words.told
        if name in found and (name not in words.numbers or isinstance(found[name], int | float))
    }


def _fault(message: str, words: BackupWords) -> str:
    """Return why a pod failed, in its words."""
    found = last_words(message)
    if found.get("error"):
        return f"{found['error']}: {found.get('message') or ''}"
    return "" if _written(message, words) else message.strip()[-_MESSAGE_MAX:]
