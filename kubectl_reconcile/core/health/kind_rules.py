"""The health of built-in kinds that run nothing themselves.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from kubectl_reconcile.core.health.health import (
    Health,
    HealthStatus,
    count_of,
    current,
    failed,
    has_status,
    in_progress,
    is_observed,
    shortage,
    spec_of,
    status_of,
    suspended,
    unobserved,
    why,
)
from kubectl_reconcile.core.objects import Manifest, condition_of, mapping_of, maps_in


def cron_job(manifest: Manifest) -> Health:
    """Return the health of a CronJob, which has nothing to wait for."""
    return suspended() if spec_of(manifest).get("suspend") is True else current("scheduled")


def claim(manifest: Manifest) -> Health:
    """Return the health of a PersistentVolumeClaim: it is bound."""
    phase = status_of(manifest).get("phase")
    if phase == "Bound":
        return current("bound")
    return failed("its volume is lost") if phase == "Lost" else in_progress("not bound to a volume yet")


def service(manifest: Manifest) -> Health:
    """Return the health of a Service: it has a cluster IP."""
    waits = spec_of(manifest).get("type") == "LoadBalancer" and not spec_of(manifest).get("clusterIP")
    return in_progress("no cluster IP yet") if waits else current()


def service_reachable(manifest: Manifest) -> Health:
    """Return the health of a Service: a load balancer has an address."""
    return has_address(manifest) if spec_of(manifest).get("type") == "LoadBalancer" else current()


def has_address(manifest: Manifest) -> Health:
    """Return the health of what waits for the address of a load balancer."""
    found = maps_in(mapping_of(status_of(manifest).get("loadBalancer")).get("ingress"))
    if not found:
        return in_progress("no load balancer address yet")
    return current(", ".join(str(each.get("ip") or each.get("hostname") or "") for each in found))


def disruption_budget(manifest: Manifest) -> Health:
    """Return the health of a PodDisruptionBudget: enough pods are healthy."""
    if not is_observed(manifest):
        return unobserved()
    disruption = condition_of(manifest, "DisruptionAllowed")
    if has_status(disruption, "False") and (disruption or {}).get("reason") == "SyncFailed":
        return failed(why(disruption))
    lack = shortage("healthy", count_of(manifest, "currentHealthy"), count_of(manifest, "desiredHealthy"), "pods")
    return in_progress(lack) if lack else current("budget met")


def custom_resource_definition(manifest: Manifest) -> Health:
    """Return the health of a CRD: it is established."""
    names, established = condition_of(manifest, "NamesAccepted"), condition_of(manifest, "Established")
    for found in (names, established):
        if has_status(found, "False") and (found is names or (found or {}).get("reason") != "Installing"):
            return failed(why(found))
    if has_status(established, "True"):
        return current("established")
    return in_progress(why(established) or "not established yet")


def autoscaler(manifest: Manifest) -> Health:
    """Return the health of a HorizontalPodAutoscaler: its target can be scaled."""
    for found in (condition_of(manifest, "AbleToScale"), condition_of(manifest, "ScalingActive")):
        reason = str((found or {}).get("reason") or "")
        if has_status(found, "False") and (
            reason.startswith("Invalid") or reason in {"FailedGetScale", "FailedUpdateScale"}
        ):
            return failed(why(found))
    return current(why(condition_of(manifest, "ScalingActive")))


def autoscaler_active(manifest: Manifest) -> Health:
    """Return the health of a HorizontalPodAutoscaler that is to have its metrics."""
    able, active = autoscaler(manifest), condition_of(manifest, "ScalingActive") or {}
    # Replicas set to 0 switch an autoscaler off on purpose.
    if able.status is HealthStatus.FAILED or has_status(active, "True") or active.get("reason") == "ScalingDisabled":
        return able
    return in_progress(why(active) or "not active yet")


def api_service(manifest: Manifest) -> Health:
    """Return the health of an aggregated API: it is available."""
    available = condition_of(manifest, "Available")
    if has_status(available, "True"):
        return current("available")
    return in_progress(why(available) or "not available yet")


def namespace(manifest: Manifest) -> Health:
    """Return the health of a namespace."""
    phase = status_of(manifest).get("phase")
    if phase == "Terminating":
        return Health(HealthStatus.TERMINATING, "being deleted")
    return current("active") if phase == "Active" else in_progress("not active yet")
