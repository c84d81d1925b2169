"""What is to be done for a pod next, from what is known of its containers.

Pure: facts in, steps out; time is an argument, in seconds of any one clock. Vocabulary: a *run* is one start of a container and what
happened to it; a *sidecar* is an init container that is restarted always.

Restarts wait as elsewhere, twice as long each time, only that a sandbox has no time to lose: at once, then 1 s, 2 s, … 60 s; and at
once again after a run of more than ten seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_reconcile.sandbox.pods.decisions.resolve import Container, Pod, container_of

_FIRST_WAIT_S, _LONGEST_WAIT_S, _GOOD_RUN_S = 1.0, 60.0, 10.0


@dataclass(frozen=True, slots=True)
class RunFact:
    """What is known of the last run of a container."""

    attempt: int
    running: bool
    exit_code: int = 0
    started_s: float = 0.0
    finished_s: float = 0.0
    is_started: bool = True
    """Its startup probe has succeeded, if it has one."""
    is_failing: str = ""
    """Why it is to be restarted though it runs; empty if it isn't."""


class StepKind(StrEnum):
    """What can be done to a container."""

    START = "start"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class PodStep:
    """One thing to do."""

    kind: StepKind
    container: str
    attempt: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PodDecision:
    """What follows from the facts."""

    phase: str
    steps: tuple[PodStep, ...] = ()
    again_s: float | None = None
    """When to look again, by the clock of the facts; None if nothing happens by itself."""
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Containers that wait to be restarted, and until when in words."""
    initialized: bool = False


def wait_s(run: RunFact) -> float:
    """Return how long a container waits before it is started again after *run*."""
    if run.attempt == 0 or run.finished_s - run.started_s > _GOOD_RUN_S:
        return 0.0
    return float(min(_FIRST_WAIT_S * 2 ** min(run.attempt - 1, 30), _LONGEST_WAIT_S))


def decide(pod: Pod, runs: Mapping[str, RunFact], now_s: float) -> PodDecision:
    """Return what is to be done for *pod*, which isn't being deleted."""
    spec = pod["spec"]
    policy, inits, mains = spec.get("restartPolicy", "Always"), spec.get("initContainers", ()), spec["containers"]
    work = _Work(runs, now_s)
    found = [runs.get(each["name"]) for each in mains]
    if all(run is not None and not run.running and not _again(policy, run) for run in found):
        for each in inits:
            work.end(each)
        if any(run.running for run in runs.values()):
            return work.decision("Running", initialized=True)
        return work.decision("Failed" if any(run and run.exit_code for run in found) else "Succeeded", initialized=True)
    begun = any(run is not None for run in found)
    initialized = _initialize(inits, policy, work, begun=begun)
    if not initialized:
        return work.decision("Failed" if initialized is None else "Pending", initialized=False)
    for container in mains:
        work.tend(container, policy)
    return work.decision("Running" if begun else "Pending", initialized=True)


def _initialize(init: Sequence[Container], policy: str, work: _Work, *, begun: bool) -> bool | None:
    """See to the init containers in their order; return whether all are done, None if one failed forever.

    Where the others have *begun*, only sidecars are left to see to.
    """
    for container in init:
        run = work.runs.get(container["name"])
        if container.get("restartPolicy") == "Always":
            work.tend(container, "Always")
            if not begun and (run is None or not (run.running and run.is_started)):
                return False
        elif not begun and (run is None or run.running or run.exit_code):
            if run is not None and not run.running and policy == "Never":
                return None
            work.tend(container, "Always")
            return False
    return True


def _again(policy: str, run: RunFact) -> bool:
    return policy == "Always" or (policy == "OnFailure" and run.exit_code != 0)


class _Work:
    """Collects what is to be done."""

    def __init__(self, runs: Mapping[str, RunFact], now_s: float) -> None:
        self.runs = runs
        self._now_s = now_s
        self._steps: list[PodStep] = []
        self._again: list[float] = []
        self._waiting: dict[str, str] = {}

    def tend(self, container: Container, policy: str) -> None:
        """Start, restart or kill one container."""
        name = container["name"]
        run = self.runs.get(name)
        if run is None:
            self._steps.append(PodStep(StepKind.START, name))
        elif run.running:
            if run.is_failing:
                self._steps.append(PodStep(StepKind.KILL, name, run.attempt, run.is_failing))
        elif _again(policy, run):
            due_s = run.finished_s + wait_s(run)
            if due_s <= self._now_s:
                self._steps.append(PodStep(StepKind.START, name, run.attempt + 1))
            else:
                self._again.append(due_s)
                self._waiting[name] = f"back-off {wait_s(run):g}s restarting failed container={name}"

    def end(self, container: Container) -> None:
        """Kill one container if it runs."""
        run = self.runs.get(container["name"])
        if run is not None and run.running:
            self._steps.append(PodStep(StepKind.KILL, container["name"], run.attempt, "the pod has ended"))

    def decision(self, phase: str, *, initialized: bool) -> PodDecision:
        """Return all of it."""
        return PodDecision(phase, tuple(self._steps), min(self._again, default=None), self._waiting, initialized)


def grace_s(pod: Mapping[str, Any]) -> float:
    """Return how long containers of *pod* have between being asked to end and being killed."""
    given = pod["metadata"].get("deletionGracePeriodSeconds")
    return float(pod["spec"].get("terminationGracePeriodSeconds", 30) if given is None else given)


def restart_grace_s(pod: Pod, name: str) -> float:
    """Return the same for a container that is restarted since a probe failed."""
    container = container_of(pod, name)
    probes = [container.get(kind, {}) for kind in ("livenessProbe", "startupProbe")]
    own = [one["terminationGracePeriodSeconds"] for one in probes if "terminationGracePeriodSeconds" in one]
    return float(own[0] if own else pod["spec"].get("terminationGracePeriodSeconds", 30))
