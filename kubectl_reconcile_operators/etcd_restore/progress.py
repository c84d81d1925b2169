"""What happened to a restore's Job, told by itself and its pods.

A pod ends with one line of JSON, the termination message of the container that was last: what was restored, or what was in the way.

Pure: live objects in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import (
    Manifest,
    condition_of,
    container_states,
    has_condition,
    is_alive,
    last_words,
    pods_of_job,
    shortened,
    text_at,
    why_waiting,
)

_MESSAGE_MAX = 500
_REASON = re.compile(r"[A-Z][A-Za-z]{1,63}")
"""What our agent calls a fault; etcd's image may say anything."""
_TOLD: Mapping[str, type] = {"file": str, "revision": int, "sizeBytes": int, "sha256": str}


class RestoreProgress(StrEnum):
    """How far a Job is."""

    RUNNING = "Running"
    DONE = "Done"
    """The data is in place."""
    FAILED = "Failed"
    """Nothing that a member would read has been written."""


@dataclass(frozen=True, slots=True)
class JobStory:
    """What a Job has to tell. *told* is what was restored, as far as its pod is still there to say so."""

    progress: RestoreProgress
    reason: str = ""
    message: str = ""
    began: str = ""
    ended: str = ""
    told: Mapping[str, Any] = field(default_factory=dict)


def story_of(job: Manifest, pods: Sequence[Manifest]) -> JobStory:
    """Return what happened to *job*, whose pods are among *pods*."""
    began = str(job["metadata"].get("creationTimestamp") or "")
    mine = sorted(pods_of_job(job, pods), key=lambda each: str(each["metadata"].get("creationTimestamp")))
    said = [each for pod in mine for each in _messages(pod)]
    if has_condition(job, "Complete"):
        told = next((found for each in said if (found := _told(each))), {})
        return JobStory(RestoreProgress.DONE, began=began, ended=text_at(job, "status", "completionTime"), told=told)
    faults = [fault for each in said if (fault := _fault(each))]
    waits = [words for pod in mine if (words := why_waiting(pod))]
    if has_condition(job, "Failed"):
        failed = condition_of(job, "Failed") or {}
        about = f"{failed.get('reason') or 'Failed'}: {failed.get('message') or 'the Job has failed'}"
        if failed.get("reason") == "DeadlineExceeded":
            reason, message = "DeadlineExceeded", "; ".join([about, *waits[-1:], *(each for _, each in faults[-1:])])
        else:
            reason, message = faults[-1] if faults else ("JobFailed", about)
        ended = str(failed.get("lastTransitionTime") or "")
        return JobStory(RestoreProgress.FAILED, reason, shortened(message, _MESSAGE_MAX), began, ended)
    again = [f"the last attempt failed: {each}" for _, each in faults[-1:]]
    return JobStory(
        RestoreProgress.RUNNING, message=shortened(next(iter([*waits, *again]), ""), _MESSAGE_MAX), began=began
    )


def is_at_work(pod: Manifest) -> bool:
    """Tell whether a pod may still write."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in {"Succeeded", "Failed"} and (is_alive(pod) or bool(pod["metadata"].get("deletionTimestamp")))


def _messages(pod: Manifest) -> Iterator[tuple[str, int, str]]:
    """Yield which container ended, by what exit code, with what words."""
    for name, state in container_states(pod):
        if ended := state.get("terminated"):
            yield name, int(ended.get("exitCode") or 0), str(ended.get("message") or "")


def _told(said: tuple[str, int, str]) -> dict[str, Any]:
    found = last_words(said[2])
    is_whole = all(isinstance(found.get(name), type_) for name, type_ in _TOLD.items()) and found["file"]
    return {name: found[name] for name in _TOLD} if is_whole else {}


def _fault(said: tuple[str, int, str]) -> tuple[str, str] | None:
    """Return a word and a sentence for why a container failed, None where it didn't."""
    name, code, message = said
    if code == 0:
        return None
    found = last_words(message)
    if _REASON.fullmatch(reason := str(found.get("error") or "")):
        return reason, f"{found.get('message') or ''}"
    words = message.strip()[-_MESSAGE_MAX:] or f"exit code {code}"
    return "RestoreFailed", f"container {name}: {words}"
