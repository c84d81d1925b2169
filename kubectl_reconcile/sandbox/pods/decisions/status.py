"""The status of a pod, from what is known of its containers. Pure; times are as the API server writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.sandbox.pods.decisions.resolve import Container, Pod

HOST_IP = "10.200.0.1"


@dataclass(frozen=True, slots=True)
class ContainerFact:
    """How one container is."""

    run: Mapping[str, Any] | None = None
    """Its last run as the runtime reports it; None if it was never started."""
    previous: Mapping[str, Any] | None = None
    """The state ``terminated`` of the run before that."""
    ready: bool = False
    started: bool = False
    waiting: tuple[str, str] | None = None
    """Reason and message, where it doesn't run but will."""
    message: str = ""
    """What it left as its last words."""


@dataclass(frozen=True, slots=True)
class PodFact:
    """How one pod is."""

    phase: str
    ip: str = ""
    initialized: bool = False
    containers: Mapping[str, ContainerFact] = field(default_factory=dict)
    reason: str = ""
    message: str = ""


def status(pod: Pod, fact: PodFact, now: str) -> dict[str, Any]:
    """Return the status of *pod*; *now* stands where something has changed since its present one."""
    before: Mapping[str, Any] = pod.get("status", {})
    mains = [_container(each, fact) for each in pod["spec"]["containers"]]
    inits = [_container(each, fact) for each in pod["spec"].get("initContainers", ())]
    sidecars = [
        one
        for one, each in zip(inits, pod["spec"].get("initContainers", ()), strict=True)
        if each.get("restartPolicy") == "Always"
    ]
    over = fact.phase in {"Succeeded", "Failed"}
    unready = [one["name"] for one in [*mains, *sidecars] if not one["ready"]]
    why_not = ("PodCompleted", "") if over else ("ContainersNotReady", f"containers with unready status: {unready}")
    conditions = {
        "PodReadyToStartContainers": (bool(fact.ip) and not over, "", ""),
        "Initialized": (fact.initialized, *(("", "") if fact.initialized else ("ContainersNotInitialized", ""))),
        "ContainersReady": (not unready and not over, *(why_not if unready or over else ("", ""))),
    }
    gates = [each["conditionType"] for each in pod["spec"].get("readinessGates", ())]
    closed = [gate for gate in gates if _condition(before, gate).get("status") != "True"]
    why_closed = ("ReadinessGatesNotReady", f"gates that aren't true: {closed}")
    ready = not unready and not over and not closed
    conditions["Ready"] = (ready, *(("", "") if ready else why_not if unready or over else why_closed))
    whole: dict[str, Any] = {
        "phase": fact.phase,
        "conditions": [*_kept(before, conditions), *_conditions(before, conditions, now)],
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "startTime": before.get("startTime") or now,
        "containerStatuses": mains,
        "qosClass": before.get("qosClass", "BestEffort"),
    }
    if inits:
        whole["initContainerStatuses"] = inits
    if fact.ip:
        whole |= {"podIP": fact.ip, "podIPs": [{"ip": fact.ip}]}
    if fact.reason:
        whole |= {"reason": fact.reason, "message": fact.message}
    return whole


def _container(container: Container, fact: PodFact) -> dict[str, Any]:
    one = fact.containers.get(container["name"], ContainerFact())
    run = one.run
    state, last = _state(one, fact)
    found: dict[str, Any] = {
        "name": container["name"],
        "image": container["image"],
        "imageID": f"process://{container['image']}" if run else "",
        "ready": one.ready,
        "started": one.started,
        "restartCount": run["attempt"] if run else 0,
        "state": state,
        "lastState": {"terminated": last} if last else {},
    }
    if run:
        found["containerID"] = f"process://{container['name']}-{run['attempt']}"
    return found


def _state(one: ContainerFact, fact: PodFact) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    """Return how a container is, and how it ended the time before."""
    run = one.run
    if run is None:
        default = "ContainerCreating" if fact.initialized or fact.phase != "Pending" else "PodInitializing"
        reason, message = one.waiting or (default, "")
        return {"waiting": _without_empty({"reason": reason, "message": message})}, one.previous
    if run["exitCode"] is None:
        return {"running": {"startedAt": run["startedAt"]}}, one.previous
    ended = terminated(run, one.message)
    if one.waiting:
        reason, message = one.waiting
        return {"waiting": _without_empty({"reason": reason, "message": message})}, ended
    return {"terminated": ended}, one.previous


def terminated(run: Mapping[str, Any], message: str = "") -> dict[str, Any]:
    """Return the state of a container whose *run* has ended."""
    reason = "StartError" if run.get("error") else "Error" if run["exitCode"] else "Completed"
    return _without_empty(
        {
            "exitCode": run["exitCode"],
            "reason": reason,
            "message": run.get("error") or message,
            "startedAt": run["startedAt"] or None,
            "finishedAt": run["finishedAt"] or None,
            "containerID": f"process://{run['name']}-{run['attempt']}",
        }
    )


def _conditions(
    before: Mapping[str, Any], wanted: Mapping[str, tuple[bool, str, str]], now: str
) -> Iterable[dict[str, Any]]:
    for kind, (holds, reason, message) in wanted.items():
        word = "True" if holds else "False"
        old = _condition(before, kind)
        since = old.get("lastTransitionTime", now) if old.get("status") == word else now
        yield _without_empty(
            {"type": kind, "status": word, "reason": reason, "message": message, "lastTransitionTime": since}
        )


def _kept(before: Mapping[str, Any], ours: Iterable[str]) -> list[Any]:
    """Return conditions that others have set."""
    return [one for one in before.get("conditions", ()) if one["type"] not in set(ours)]


def _condition(status_: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((one for one in status_.get("conditions", ()) if one["type"] == kind), {})


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, "")}
