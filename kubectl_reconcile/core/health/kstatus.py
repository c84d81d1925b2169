"""The health of one object, judged from what it says about itself.

Rules follow kstatus, so other tools agree with us. The first that speaks decides:
``deletionTimestamp``; an ``observedGeneration`` that isn't the generation; the condition
``Reconciling``; the condition ``Stalled``; the rule of the kind, where this page has one; the
condition ``Ready``; the operators' trio ``Degraded``, ``Available``, ``Progressing``; else the
object is current, because most kinds have nothing to wait for.

Two rules go beyond kstatus. Pods that crash or whose image can't be had have failed whatever
their phase, and a ``Ready`` that speaks of an older generation says nothing. One rule stays
behind it: a pod that can't be scheduled is in progress, since calling it failed takes a clock.

The *strict* profile asks whether the object has done its work, not whether the server has
taken it: a Job has completed, a load balancer and an Ingress have an address, an autoscaler
gets its metrics.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, condition_of


class HealthStatus(StrEnum):
    """What can be said of an object, in kstatus' words."""

    CURRENT = "Current"
    """The object is what its spec asks for."""
    IN_PROGRESS = "InProgress"
    """The object isn't there yet, and may get there without help."""
    FAILED = "Failed"
    """The object won't get there, or has stopped trying."""
    TERMINATING = "Terminating"
    """The object is being deleted."""
    NOT_FOUND = "NotFound"
    """There is no object."""
    UNKNOWN = "Unknown"
    """The object contradicts what is known of its kind."""


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict and its reason in words: which count is short, which pod, why. Prints as one line."""

    status: HealthStatus
    message: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else str(self.status)


def health(manifest: Manifest | None, *, strict: bool = False) -> Health:
    """Return the health of a live object; None is an object that doesn't exist.

    *strict* asks for the work done rather than accepted: see the page's head for what differs.
    """
    if manifest is None:
        return Health(HealthStatus.NOT_FOUND, "does not exist")
    general = _general(manifest)
    if general is not None:
        return general
    kind = GroupVersionKind.of(manifest).group_kind
    rule = (_STRICT_RULES.get(kind) if strict else None) or _RULES.get(kind, _by_conditions)
    return rule(manifest)


# --- rules for every kind ---------------------------------------------------------------------


def _general(manifest: Manifest) -> Health | None:
    metadata = manifest.get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        return Health(HealthStatus.TERMINATING, _finalizers_text(metadata))
    observed, generation = _status(manifest).get("observedGeneration"), metadata.get("generation")
    if observed is not None and generation is not None and observed != generation:
        return _in_progress(f"generation {generation} not observed yet (last: {observed})")
    reconciling = condition_of(manifest, "Reconciling")
    if _is(reconciling, "True"):
        return _in_progress(_why(reconciling))
    stalled = condition_of(manifest, "Stalled")
    return _failed(_why(stalled)) if _is(stalled, "True") else None


def _finalizers_text(metadata: Manifest) -> str:
    finalizers = metadata.get("finalizers") or ()
    return f"waits for finalizers {', '.join(finalizers)}" if finalizers else "being deleted"


def _by_conditions(manifest: Manifest) -> Health:
    ready = condition_of(manifest, "Ready")
    if ready is not None:
        return _by_ready(manifest, ready)
    degraded = condition_of(manifest, "Degraded")
    if _is(degraded, "True"):
        return _failed(_why(degraded))
    available = condition_of(manifest, "Available")
    if _is(available, "False"):
        return _in_progress(_why(available))
    progressing = condition_of(manifest, "Progressing")
    # Kinds modelled after Deployment keep Progressing=True with this reason once they are done.
    if _is(progressing, "True") and (progressing or {}).get("reason") != "NewReplicaSetAvailable":
        return _in_progress(_why(progressing))
    return Health(HealthStatus.CURRENT, _why(available) if available is not None else "")


def _by_ready(manifest: Manifest, ready: Manifest) -> Health:
    generation = (manifest.get("metadata") or {}).get("generation")
    about = ready.get("observedGeneration")
    if about is not None and generation is not None and about < generation:
        return _in_progress(f"Ready speaks of generation {about}, the object is at {generation}")
    return Health(HealthStatus.CURRENT, _why(ready)) if _is(ready, "True") else _in_progress(_why(ready))


# --- workloads --------------------------------------------------------------------------------


def _deployment(manifest: Manifest) -> Health:
    if _status(manifest).get("observedGeneration") is None:
        return _unobserved()
    progressing = condition_of(manifest, "Progressing") or {}
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return _failed(_with_replica_failure(manifest, _why(progressing)))
    wanted = _wanted(manifest)
    updated = _count(manifest, "updatedReplicas")
    shortage = (
        _short("created", _count(manifest, "replicas"), wanted)
        or _short("updated", updated, wanted)
        or _surplus(_count(manifest, "replicas"), wanted)
        or _short("available", _count(manifest, "availableReplicas"), updated)
        or _short("ready", _count(manifest, "readyReplicas"), wanted)
    )
    if shortage:
        return _in_progress(_with_replica_failure(manifest, shortage))
    if not _deployment_settled(manifest, progressing):
        return _in_progress(f"rollout not complete: {_why(progressing)}" if progressing else "rollout not complete")
    if not _is(condition_of(manifest, "Available"), "True"):
        return _in_progress(_why(condition_of(manifest, "Available")) or "not available yet")
    return Health(HealthStatus.CURRENT, f"{wanted} of {wanted} replicas are available")


_NO_DEADLINE_S = 2**31 - 1


def _deployment_settled(manifest: Manifest, progressing: Manifest) -> bool:
    # Without a deadline the controller keeps no Progressing condition; a paused one never completes by design.
    if (
        _spec(manifest).get("progressDeadlineSeconds") == _NO_DEADLINE_S
        or progressing.get("reason") == "DeploymentPaused"
    ):
        return True
    return progressing.get("reason") == "NewReplicaSetAvailable" and _is(progressing, "True")


def _with_replica_failure(manifest: Manifest, message: str) -> str:
    failure = condition_of(manifest, "ReplicaFailure")
    return f"{message} ({_why(failure)})" if _is(failure, "True") else message


def _replica_set(manifest: Manifest) -> Health:
    if _status(manifest).get("observedGeneration") is None:
        return _unobserved()
    wanted = _wanted(manifest)
    shortage = (
        _short("labelled", _count(manifest, "fullyLabeledReplicas"), wanted)
        or _short("available", _count(manifest, "availableReplicas"), wanted)
        or _short("ready", _count(manifest, "readyReplicas"), wanted)
        or _surplus(_count(manifest, "replicas"), wanted)
    )
    failure = condition_of(manifest, "ReplicaFailure")
    if shortage or _is(failure, "True"):
        return _in_progress(_with_replica_failure(manifest, shortage or "can't make its pods"))
    return Health(HealthStatus.CURRENT, f"{wanted} of {wanted} replicas are available")


def _stateful_set(manifest: Manifest) -> Health:
    strategy = _spec(manifest).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return Health(HealthStatus.CURRENT, "update strategy OnDelete: pods change when they are deleted")
    if _status(manifest).get("observedGeneration") is None:
        return _unobserved()
    wanted = _wanted(manifest)
    shortage = (
        _short("created", _count(manifest, "replicas"), wanted)
        or _short("ready", _count(manifest, "readyReplicas"), wanted)
        or _surplus(_count(manifest, "replicas"), wanted)
    )
    partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    if partition:
        shortage = shortage or _short("updated", _count(manifest, "updatedReplicas"), max(wanted - partition, 0))
    else:
        shortage = shortage or _revision_shortage(_status(manifest), wanted)
    if shortage:
        return _in_progress(shortage)
    staged = f", rolled out down to ordinal {partition}" if partition else ""
    return Health(HealthStatus.CURRENT, f"{wanted} of {wanted} replicas are ready{staged}")


def _revision_shortage(status: Manifest, wanted: int) -> str:
    if status.get("currentRevision") == status.get("updateRevision"):
        return ""
    # The controller moves currentRevision after the last pod; until then the counts tell how far it is.
    updated = status.get("updatedReplicas") or 0
    return _short("updated", updated, wanted) or "the update is not complete"


def _daemon_set(manifest: Manifest) -> Health:
    if _status(manifest).get("observedGeneration") is None or "desiredNumberScheduled" not in _status(manifest):
        return _unobserved()
    wanted = _count(manifest, "desiredNumberScheduled")
    on_delete = (_spec(manifest).get("updateStrategy") or {}).get("type") == "OnDelete"
    shortage = (
        _short("scheduled", _count(manifest, "currentNumberScheduled"), wanted)
        or ("" if on_delete else _short("updated", _count(manifest, "updatedNumberScheduled"), wanted))
        or _short("available", _count(manifest, "numberAvailable"), wanted)
        or _short("ready", _count(manifest, "numberReady"), wanted)
    )
    if shortage:
        return _in_progress(shortage)
    return Health(HealthStatus.CURRENT, f"{wanted} of {wanted} replicas are available")


def _job(manifest: Manifest) -> Health:
    done = _job_done(manifest)
    if done.status is not HealthStatus.IN_PROGRESS:
        return done
    accepted = _spec(manifest).get("suspend") or _status(manifest).get("startTime")
    return Health(HealthStatus.CURRENT, done.message) if accepted else done


def _job_done(manifest: Manifest) -> Health:
    failed, complete = condition_of(manifest, "Failed"), condition_of(manifest, "Complete")
    if _is(failed, "True"):
        return _failed(_why(failed))
    counts = ", ".join(f"{_count(manifest, what)} {what}" for what in ("succeeded", "active", "failed"))
    if _is(complete, "True"):
        return Health(HealthStatus.CURRENT, f"complete: {counts}")
    if _spec(manifest).get("suspend"):
        return _in_progress("suspended")
    return _in_progress(f"running: {counts}" if _status(manifest).get("startTime") else "not started yet")


# --- pods -------------------------------------------------------------------------------------

_FATAL_WAITS = frozenset({
    "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull",
    "ImageInspectError", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "RunContainerError",
})  # fmt: skip


def _pod(manifest: Manifest) -> Health:
    phase = _status(manifest).get("phase")
    if phase == "Succeeded":
        return Health(HealthStatus.CURRENT, "completed")
    broken = next(_broken_containers(manifest), "")
    if phase == "Failed" or broken:
        return _failed(broken or _pod_failure(manifest))
    if phase == "Running":
        return _running_pod(manifest)
    if phase in {None, "Pending"}:
        scheduled = condition_of(manifest, "PodScheduled")
        return _in_progress(_why(scheduled) if _is(scheduled, "False") else "pending")
    return Health(HealthStatus.UNKNOWN, f"phase {phase}")


def _running_pod(manifest: Manifest) -> Health:
    if _is(condition_of(manifest, "Ready"), "True"):
        return Health(HealthStatus.CURRENT, "ready")
    waiting = [c["name"] for c in _status(manifest).get("containerStatuses") or () if not c.get("ready")]
    return _in_progress(f"not ready: {', '.join(sorted(waiting))}" if waiting else "not ready")


def _broken_containers(manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each container that can't run as it is."""
    status = _status(manifest)
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _FATAL_WAITS:
            yield _joined(f"container {container['name']}: {waiting['reason']}", waiting.get("message"))


def _pod_failure(manifest: Manifest) -> str:
    status = _status(manifest)
    if status.get("reason"):
        return _joined(str(status["reason"]), status.get("message"))
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            return _joined(f"container {container['name']}: exit status {ended['exitCode']}", ended.get("reason"))
    return status.get("message") or "failed"


# --- the other kinds --------------------------------------------------------------------------


def _cron_job(manifest: Manifest) -> Health:
    return Health(HealthStatus.CURRENT, "suspended" if _spec(manifest).get("suspend") else "scheduled")


def _claim(manifest: Manifest) -> Health:
    phase = _status(manifest).get("phase")
    if phase == "Bound":
        return Health(HealthStatus.CURRENT, "bound")
    return _failed("its volume is lost") if phase == "Lost" else _in_progress("not bound to a volume yet")


def _service(manifest: Manifest) -> Health:
    waits = _spec(manifest).get("type") == "LoadBalancer" and not _spec(manifest).get("clusterIP")
    return _in_progress("no cluster IP yet") if waits else Health(HealthStatus.CURRENT)


def _service_reachable(manifest: Manifest) -> Health:
    return _has_address(manifest) if _spec(manifest).get("type") == "LoadBalancer" else Health(HealthStatus.CURRENT)


def _has_address(manifest: Manifest) -> Health:
    found: Sequence[Mapping[str, str]] = (_status(manifest).get("loadBalancer") or {}).get("ingress") or ()
    if not found:
        return _in_progress("no load balancer address yet")
    return Health(HealthStatus.CURRENT, ", ".join(a.get("ip") or a.get("hostname") or "" for a in found))


def _disruption_budget(manifest: Manifest) -> Health:
    if _status(manifest).get("observedGeneration") is None:
        return _unobserved()
    shortage = _short("healthy", _count(manifest, "currentHealthy"), _count(manifest, "desiredHealthy"), "pods")
    return _in_progress(shortage) if shortage else Health(HealthStatus.CURRENT, "budget met")


def _custom_resource_definition(manifest: Manifest) -> Health:
    names, established = condition_of(manifest, "NamesAccepted"), condition_of(manifest, "Established")
    if _is(names, "False"):
        return _failed(_why(names))
    if _is(established, "True"):
        return Health(HealthStatus.CURRENT, "established")
    return _in_progress(_why(established) or "not established yet")


def _autoscaler(manifest: Manifest) -> Health:
    for found in (condition_of(manifest, "AbleToScale"), condition_of(manifest, "ScalingActive")):
        reason = str((found or {}).get("reason") or "")
        if _is(found, "False") and (reason.startswith("Invalid") or reason in {"FailedGetScale", "FailedUpdateScale"}):
            return _failed(_why(found))
    return Health(HealthStatus.CURRENT, _why(condition_of(manifest, "ScalingActive")))


def _autoscaler_active(manifest: Manifest) -> Health:
    able, active = _autoscaler(manifest), condition_of(manifest, "ScalingActive") or {}
    # Replicas set to 0 switch an autoscaler off on purpose.
    if able.status is HealthStatus.FAILED or _is(active, "True") or active.get("reason") == "ScalingDisabled":
        return able
    return _in_progress(_why(active) or "not active yet")


def _api_service(manifest: Manifest) -> Health:
    available = condition_of(manifest, "Available")
    if _is(available, "True"):
        return Health(HealthStatus.CURRENT, "available")
    return _in_progress(_why(available) or "not available yet")


def _namespace(manifest: Manifest) -> Health:
    phase = _status(manifest).get("phase")
    if phase == "Terminating":
        return Health(HealthStatus.TERMINATING, "being deleted")
    return Health(HealthStatus.CURRENT, "active") if phase == "Active" else _in_progress("not active yet")


_Rule: TypeAlias = Callable[[Manifest], Health]

_RULES: Mapping[GroupKind, _Rule] = {
    GroupKind("", "Namespace"): _namespace,
    GroupKind("", "PersistentVolumeClaim"): _claim,
    GroupKind("", "Pod"): _pod,
    GroupKind("", "Service"): _service,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _custom_resource_definition,
    GroupKind("apiregistration.k8s.io", "APIService"): _api_service,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "ReplicaSet"): _replica_set,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    GroupKind("batch", "CronJob"): _cron_job,
    GroupKind("batch", "Job"): _job,
    GroupKind("policy", "PodDisruptionBudget"): _disruption_budget,
}

_STRICT_RULES: Mapping[GroupKind, _Rule] = {
    GroupKind("", "Service"): _service_reachable,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): _autoscaler_active,
    GroupKind("batch", "Job"): _job_done,
    GroupKind("networking.k8s.io", "Ingress"): _has_address,
}


# --- reading and wording ----------------------------------------------------------------------


def _spec(manifest: Manifest) -> Mapping[str, Any]:
    found: Mapping[str, Any] = manifest.get("spec") or {}
    return found


def _status(manifest: Manifest) -> Mapping[str, Any]:
    found: Mapping[str, Any] = manifest.get("status") or {}
    return found


def _count(manifest: Manifest, name: str) -> int:
    # Controllers leave out the counts that are zero.
    return int(_status(manifest).get(name) or 0)


def _wanted(manifest: Manifest) -> int:
    replicas = _spec(manifest).get("replicas")
    return 1 if replicas is None else int(replicas)


def _short(what: str, found: int, wanted: int, noun: str = "replicas") -> str:
    return f"{found} of {wanted} {noun} are {what}" if found < wanted else ""


def _surplus(found: int, wanted: int) -> str:
    return f"{found} replicas are there, {wanted} wanted" if found > wanted else ""


def _is(condition: Manifest | None, status: str) -> bool:
    return condition is not None and condition.get("status") == status


def _why(condition: Manifest | None) -> str:
    found = condition or {}
    return str(found.get("message") or found.get("reason") or "")


def _joined(what: str, detail: str | None) -> str:
    return f"{what}: {detail}" if detail else what


def _in_progress(message: str) -> Health:
    return Health(HealthStatus.IN_PROGRESS, message)


def _failed(message: str) -> Health:
    return Health(HealthStatus.FAILED, message)


def _unobserved() -> Health:
    return _in_progress("its controller has not seen it yet")
