"""What became of a restore's Job, told by itself and its pods.

A pod ends with one line of JSON, the termination message of the container that was last: what was restored, or what was in the way.

Pure: live objects in, values out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import Manifest, condition_of, is_alive, labels_of

_MESSAGE_MAX = 500
_TOLD = ("file", "revision", "sizeBytes", "sha256")


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
    """Return what became of *job*, whose pods are among *pods*."""
    status = job.get("status")
    status = status if isinstance(status, Mapping) else {}
    began = str(job["metadata"].get("creationTimestamp") or "")
    mine = sorted(
        pods_of(job["metadata"]["name"], pods), key=lambda each: str(each["metadata"].get("creationTimestamp"))
    )
    said = [each for pod in mine for each in _messages(pod)]
    if _holds(job, "Complete"):
        told = next((found for each in said if (found := _told(each))), {})
        return JobStory(RestoreProgress.DONE, began=began, ended=str(status.get("completionTime") or ""), told=told)
    faults = [fault for each in said if (fault := _fault(each))]
    waits = [words for pod in mine if (words := _waits(pod))]
    if _holds(job, "Failed"):
        failed = condition_of(job, "Failed") or {}
        about = f"{failed.get('reason') or 'Failed'}: {failed.get('message') or 'the Job has failed'}"
        if failed.get("reason") == "DeadlineExceeded":
            reason, message = "DeadlineExceeded", "; ".join([about, *waits[-1:], *(each for _, each in faults[-1:])])
        else:
            reason, message = faults[-1] if faults else ("JobFailed", about)
        ended = str(failed.get("lastTransitionTime") or "")
        return JobStory(RestoreProgress.FAILED, reason, _short(message), began, ended)
    again = [f"it is tried again after: {each}" for _, each in faults[-1:]]
    return JobStory(RestoreProgress.RUNNING, message=_short(next(iter([*waits, *again]), "")), began=began)


def pods_of(job: str, pods: Sequence[Manifest]) -> list[Manifest]:
    """Return the pods of the Job of that name."""
    return [pod for pod in pods if labels_of(pod).get("batch.kubernetes.io/job-name") == job]


def is_at_work(pod: Manifest) -> bool:
    """Tell whether a pod may still write."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in {"Succeeded", "Failed"} and (is_alive(pod) or bool(pod["metadata"].get("deletionTimestamp")))


def _holds(job: Manifest, type_: str) -> bool:
    found = condition_of(job, type_)
    return found is not None and found.get("status") == "True"


def _states(pod: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    status = pod.get("status") or {}
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or ():
            yield str(each.get("name") or ""), each.get("state") or {}


def _messages(pod: Manifest) -> Iterator[tuple[str, int, str]]:
    """Yield which container ended, by what exit code, with what words."""
    for name, state in _states(pod):
        if ended := state.get("terminated"):
            yield name, int(ended.get("exitCode") or 0), str(ended.get("message") or "")


def _told(said: tuple[str, int, str]) -> dict[str, Any]:
    found = _json(said[2])
    whole = isinstance(found.get("revision"), int) and isinstance(found.get("sizeBytes"), int) and found.get("file")
    return {name: found[name] for name in _TOLD if name in found} if whole else {}


def _fault(said: tuple[str, int, str]) -> tuple[str, str] | None:
    """Return a word and a sentence for why a container failed, None where it didn't."""
    name, code, message = said
    if code == 0:
        return None
    found = _json(message)
    if found.get("error"):
        return str(found["error"]), f"{found.get('message') or ''}"
    words = message.strip()[-_MESSAGE_MAX:] or f"exit code {code}"
    return "RestoreFailed", f"container {name}: {words}"


def _json(message: str) -> Mapping[str, Any]:
    try:
        found = json.loads(message)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _waits(pod: Manifest) -> str:
    """Return what keeps a pod from running, in the words of its node; nothing where it runs."""
    words: list[str] = []
    for _, state in _states(pod):
        waiting = state.get("waiting") or {}
        words += [str(waiting.get("reason") or ""), str(waiting.get("message") or "")]
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        words += [str(scheduled.get("reason") or ""), str(scheduled.get("message") or "")]
    shown = [word for word in words if word and word not in {"ContainerCreating", "PodInitializing"}]
    return f"its pod waits: {': '.join(shown)}" if shown else ""


def _short(text: str) -> str:
    return text if len(text) <= _MESSAGE_MAX else text[: _MESSAGE_MAX - 1] + "…"
