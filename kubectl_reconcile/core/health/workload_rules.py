"""The health of what runs pods, and of pods themselves.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.core.health.health import (
    Health,
    HealthStatus,
    count_of,
    current,
    failed,
    has_status,
    in_progress,
    is_observed,
    joined,
    shortage,
    spec_of,
    status_of,
    surplus,
    suspended,
    unobserved,
    wanted_of,
    why,
)
from kubectl_reconcile.core.objects import Manifest, condition_of, mapping_of, maps_in, number_of


def deployment(manifest: Manifest) -> Health:
    """Return the health of a Deployment: its rollout is complete and available."""
    if not is_observed(manifest):
        return unobserved()
    progressing = condition_of(manifest, "Progressing") or {}
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return failed(_with_replica_failure(manifest, why(progressing)))
    wanted = wanted_of(manifest)
    updated = count_of(manifest, "updatedReplicas")
    lack = (
        shortage("created", count_of(manifest, "replicas"), wanted)
        or shortage("updated", updated, wanted)
        or surplus(count_of(manifest, "replicas"), wanted)
        or shortage("available", count_of(manifest, "availableReplicas"), updated)
        or shortage("ready", count_of(manifest, "readyReplicas"), wanted)
    )
    if spec_of(manifest).get("paused") is True:
        return suspended(joined("paused", lack))
    if lack := lack or _unsettled(manifest, progressing):
        return in_progress(_with_replica_failure(manifest, lack))
    return current(f"{wanted} of {wanted} replicas are available")


_NO_DEADLINE_S = 2**31 - 1


def _unsettled(manifest: Manifest, progressing: Manifest) -> str:
    """Return what a Deployment lacks whose counts are right; empty where nothing."""
    if not _is_rolled_out(manifest, progressing):
        return joined("rollout not complete", why(progressing))
    available = condition_of(manifest, "Available")
    return "" if has_status(available, "True") else why(available) or "not available yet"


def _is_rolled_out(manifest: Manifest, progressing: Manifest) -> bool:
    # Without a deadline the controller keeps no Progressing condition. The server fills it in where a manifest has none.
    if (number_of(spec_of(manifest).get("progressDeadlineSeconds")) or _NO_DEADLINE_S) >= _NO_DEADLINE_S:
        return True
    return progressing.get("reason") == "NewReplicaSetAvailable" and has_status(progressing, "True")


def _with_replica_failure(manifest: Manifest, message: str) -> str:
    failure = condition_of(manifest, "ReplicaFailure")
    return f"{message} ({why(failure)})" if has_status(failure, "True") else message


def replica_set(manifest: Manifest) -> Health:
    """Return the health of a ReplicaSet: all replicas are there, labelled and available."""
    if not is_observed(manifest):
        return unobserved()
    wanted = wanted_of(manifest)
    lack = (
        shortage("labelled", count_of(manifest, "fullyLabeledReplicas"), wanted)
        or shortage("available", count_of(manifest, "availableReplicas"), wanted)
        or shortage("ready", count_of(manifest, "readyReplicas"), wanted)
        or surplus(count_of(manifest, "replicas"), wanted)
    )
    failure = condition_of(manifest, "ReplicaFailure")
    if lack or has_status(failure, "True"):
        return in_progress(_with_replica_failure(manifest, lack or "can't create its pods"))
    return current(f"{wanted} of {wanted} replicas are available")


def stateful_set(manifest: Manifest) -> Health:
    """Return the health of a StatefulSet: all replicas are ready, and updated as far as it is asked."""
    strategy = mapping_of(spec_of(manifest).get("updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return current("update strategy OnDelete: pods are updated when you delete them")
    if not is_observed(manifest):
        return unobserved()
    wanted = wanted_of(manifest)
    lack = (
        shortage("created", count_of(manifest, "replicas"), wanted)
        or shortage("ready", count_of(manifest, "readyReplicas"), wanted)
        or surplus(count_of(manifest, "replicas"), wanted)
    )
    partition = number_of(mapping_of(strategy.get("rollingUpdate")).get("partition")) or 0
    if partition:
        lack = lack or shortage("updated", count_of(manifest, "updatedReplicas"), max(wanted - partition, 0))
    else:
        lack = lack or _revision_shortage(manifest, wanted)
    if lack:
        return in_progress(lack)
    staged = f", rolled out down to ordinal {partition}" if partition else ""
    return current(f"{wanted} of {wanted} replicas are ready{staged}")


def _revision_shortage(manifest: Manifest, wanted: int) -> str:
    status = status_of(manifest)
    if status.get("currentRevision") == status.get("updateRevision"):
        current_replicas = number_of(status.get("currentReplicas"))
        return "" if current_replicas is None else shortage("of the current revision", current_replicas, wanted)
    # The controller moves currentRevision after the last pod; until then the counts tell how far it is.
    updated = count_of(manifest, "updatedReplicas")
    return shortage("updated", updated, wanted) or "the update is not complete"


def daemon_set(manifest: Manifest) -> Health:
    """Return the health of a DaemonSet: a pod is available on each node that should have one."""
    if not is_observed(manifest) or "desiredNumberScheduled" not in status_of(manifest):
        return unobserved()
    wanted = count_of(manifest, "desiredNumberScheduled")
    on_delete = mapping_of(spec_of(manifest).get("updateStrategy")).get("type") == "OnDelete"
    lack = (
        shortage("scheduled", count_of(manifest, "currentNumberScheduled"), wanted)
        or ("" if on_delete else shortage("updated", count_of(manifest, "updatedNumberScheduled"), wanted))
        or shortage("available", count_of(manifest, "numberAvailable"), wanted)
        or shortage("ready", count_of(manifest, "numberReady"), wanted)
    )
    if lack:
        return in_progress(lack)
    return current(f"{wanted} of {wanted} replicas are available")


def job(manifest: Manifest) -> Health:
    """Return the health of a Job: it has started, is done, or is suspended."""
    done = job_done(manifest)
    if done.status is not HealthStatus.IN_PROGRESS:
        return done
    return current(done.message) if status_of(manifest).get("startTime") else done


def job_done(manifest: Manifest) -> Health:
    """Return the health of a Job that is to complete."""
    broken, complete = condition_of(manifest, "Failed"), condition_of(manifest, "Complete")
    if has_status(broken, "True"):
        return failed(why(broken))
    counts = ", ".join(f"{count_of(manifest, what)} {what}" for what in ("succeeded", "active", "failed"))
    if has_status(complete, "True"):
        return current(f"complete: {counts}")
    if spec_of(manifest).get("suspend") is True:
        return suspended()
    return in_progress(f"running: {counts}" if status_of(manifest).get("startTime") else "not started yet")


def removes_itself(manifest: Manifest) -> bool:
    """Tell whether the cluster deletes a Job some time after it has ended, so that its absence says nothing.

    https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/
    """
    return manifest.get("kind") == "Job" and spec_of(manifest).get("ttlSecondsAfterFinished") is not None


# --- pods -------------------------------------------------------------------------------------

_FATAL_WAITS = frozenset({
    "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull",
    "ImageInspectError", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable", "RunContainerError",
})  # fmt: skip


def pod(manifest: Manifest) -> Health:
    """Return the health of a pod."""
    phase = status_of(manifest).get("phase")
    if phase == "Succeeded":
        return current("completed")
    broken = next(_broken_containers(manifest), "")
    if phase == "Failed" or broken:
        return failed(broken or _pod_failure(manifest))
    if phase == "Running":
        return _running_pod(manifest)
    if phase is None or phase == "Pending":
        scheduled = condition_of(manifest, "PodScheduled")
        return in_progress(why(scheduled) if has_status(scheduled, "False") else "pending")
    return Health(HealthStatus.UNKNOWN, f"phase {phase}")


def _running_pod(manifest: Manifest) -> Health:
    if has_status(condition_of(manifest, "Ready"), "True"):
        return current("ready")
    waiting = [
        str(each.get("name")) for each in maps_in(status_of(manifest).get("containerStatuses")) if not each.get("ready")
    ]
    return in_progress(f"not ready: {', '.join(sorted(waiting))}" if waiting else "not ready")


def _broken_containers(manifest: Manifest) -> Iterator[str]:
    """Yield a sentence for each container that can't run as it is."""
    for container in _containers(manifest):
        waiting = mapping_of(mapping_of(container.get("state")).get("waiting"))
        if str(waiting.get("reason")) in _FATAL_WAITS:
            yield joined(f"container {container.get('name')}: {waiting['reason']}", waiting.get("message"))


def _pod_failure(manifest: Manifest) -> str:
    status = status_of(manifest)
    if status.get("reason"):
        return joined(str(status["reason"]), status.get("message"))
    for container in _containers(manifest):
        ended = mapping_of(mapping_of(container.get("state")).get("terminated"))
        if ended.get("exitCode"):
            return joined(f"container {container.get('name')}: exit status {ended['exitCode']}", ended.get("reason"))
    return str(status.get("message") or "failed")


def _containers(manifest: Manifest) -> list[Manifest]:
    """Return what the status says of each container, those that initialize first."""
    status = status_of(manifest)
    return maps_in(status.get("initContainerStatuses")) + maps_in(status.get("containerStatuses"))
