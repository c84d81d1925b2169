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

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kubectl_reconcile.core.health import kind_rules, workload_rules
from kubectl_reconcile.core.health.verdict import (
    Health,
    HealthStatus,
    current,
    failed,
    has_status,
    in_progress,
    status_of,
    why,
)
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, condition_of, metadata_of, number_of

__all__ = ["Health", "HealthStatus", "health"]


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
    metadata = metadata_of(manifest)
    if metadata.get("deletionTimestamp"):
        return Health(HealthStatus.TERMINATING, _finalizers_text(metadata))
    observed = number_of(status_of(manifest).get("observedGeneration"))  # Argo Rollouts writes it as text
    generation = number_of(metadata.get("generation"))
    if observed is not None and generation is not None and observed != generation:
        return in_progress(f"generation {generation} not observed yet (last: {observed})")
    reconciling = condition_of(manifest, "Reconciling")
    if has_status(reconciling, "True"):
        return in_progress(why(reconciling))
    stalled = condition_of(manifest, "Stalled")
    return failed(why(stalled)) if has_status(stalled, "True") else None


def _finalizers_text(metadata: Manifest) -> str:
    finalizers = metadata.get("finalizers")
    names = [str(each) for each in finalizers] if isinstance(finalizers, list) else []
    return f"waits for finalizers {', '.join(names)}" if names else "being deleted"


def _by_conditions(manifest: Manifest) -> Health:
    ready = condition_of(manifest, "Ready")
    if ready is not None:
        return _by_ready(manifest, ready)
    degraded = condition_of(manifest, "Degraded")
    if has_status(degraded, "True"):
        return failed(why(degraded))
    available = condition_of(manifest, "Available")
    if has_status(available, "False"):
        return in_progress(why(available))
    progressing = condition_of(manifest, "Progressing")
    # Kinds modelled after Deployment keep Progressing=True with this reason once they are done.
    if has_status(progressing, "True") and (progressing or {}).get("reason") != "NewReplicaSetAvailable":
        return in_progress(why(progressing))
    return current(why(available) if available is not None else "")


def _by_ready(manifest: Manifest, ready: Manifest) -> Health:
    generation, about = number_of(metadata_of(manifest).get("generation")), number_of(ready.get("observedGeneration"))
    if about is not None and generation is not None and about < generation:
        return in_progress(f"Ready speaks of generation {about}, the object is at {generation}")
    return current(why(ready)) if has_status(ready, "True") else in_progress(why(ready))


_Rule: TypeAlias = Callable[[Manifest], Health]

_RULES: Mapping[GroupKind, _Rule] = {
    GroupKind("", "Namespace"): kind_rules.namespace,
    GroupKind("", "PersistentVolumeClaim"): kind_rules.claim,
    GroupKind("", "Pod"): workload_rules.pod,
    GroupKind("", "Service"): kind_rules.service,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): kind_rules.custom_resource_definition,
    GroupKind("apiregistration.k8s.io", "APIService"): kind_rules.api_service,
    GroupKind("apps", "DaemonSet"): workload_rules.daemon_set,
    GroupKind("apps", "Deployment"): workload_rules.deployment,
    GroupKind("apps", "ReplicaSet"): workload_rules.replica_set,
    GroupKind("apps", "StatefulSet"): workload_rules.stateful_set,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): kind_rules.autoscaler,
    GroupKind("batch", "CronJob"): kind_rules.cron_job,
    GroupKind("batch", "Job"): workload_rules.job,
    GroupKind("policy", "PodDisruptionBudget"): kind_rules.disruption_budget,
}

_STRICT_RULES: Mapping[GroupKind, _Rule] = {
    GroupKind("", "Service"): kind_rules.service_reachable,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): kind_rules.autoscaler_active,
    GroupKind("batch", "Job"): workload_rules.job_done,
    GroupKind("networking.k8s.io", "Ingress"): kind_rules.has_address,
}
