"""The health of one object, judged from what it says about itself.

Rules follow kstatus, so other tools agree with us; ``docs/health.md`` says where they don't, and why. The first that speaks
decides: ``deletionTimestamp``; that the object is paused; an ``observedGeneration`` that isn't the generation; the condition
``Reconciling``; the condition ``Stalled``; the rule of the kind, built in or from the data in ``kinds``; the general rule.

An object that says nothing is current where nobody knows better, as most kinds have nothing to say. Who knows whether the kind
has a status, and what time it is, tells so: then ``silence`` has the word.

The *strict* profile asks whether the object has done its work, not whether the server has
taken it: a Job has completed, a load balancer and an Ingress have an address, an autoscaler
gets its metrics.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec.structs import replace

from kubectl_reconcile.core.health import general_rule, kind_rules, workload_rules
from kubectl_reconcile.core.health.health import (
    Health,
    HealthStatus,
    failed,
    has_status,
    in_progress,
    status_of,
    why,
)
from kubectl_reconcile.core.health.kind_table import KindRule, rule_of
from kubectl_reconcile.core.health.silence import Expected, age_of, silent
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, condition_of, metadata_of, number_of

__all__ = ["Expected", "Health", "HealthStatus", "health"]


def health(
    manifest: Manifest | None,
    *,
    strict: bool = False,
    expected: Expected = Expected.NOT_KNOWN,
    now: str = "",
    rule: KindRule | None = None,
) -> Health:
    """Return the health of a live object; None is an object that doesn't exist.

    *strict* asks for the work done rather than accepted: see the page's head for what differs. *expected* tells what is
    known of an object without a status, and *now* (RFC 3339) how old it is; without them time plays no part.
    *rule* is that of the object's kind where a module declares one.
    """
    if manifest is None:
        return Health(HealthStatus.NOT_FOUND, "does not exist")
    metadata = metadata_of(manifest)
    if metadata.get("deletionTimestamp"):
        return Health(HealthStatus.TERMINATING, _finalizers_text(metadata))
    kind = GroupVersionKind.of(manifest).group_kind
    built_in = (_STRICT_RULES.get(kind) if strict else None) or _RULES.get(kind)
    if built_in is not None:
        return _general(manifest) or _unschedulable(manifest, kind, now) or built_in(manifest)
    rule = rule or rule_of(kind)
    if rule is not None:
        return (
            rule.early(manifest) or _general(manifest) or rule.judge(manifest) or general_rule.by_conditions(manifest)
        )
    return general_rule.paused(manifest) or _general(manifest) or _by_general_rule(manifest, expected, now)


# --- rules for every kind ---------------------------------------------------------------------


def _general(manifest: Manifest) -> Health | None:
    said = status_of(manifest).get("observedGeneration")
    observed, generation = number_of(said), number_of(metadata_of(manifest).get("generation"))
    # Argo Rollouts writes it as text; a text that is a higher number is a digest, as Rollouts before 0.10 wrote it.
    digest = isinstance(said, str) and observed is not None and generation is not None and observed > generation
    if observed is not None and generation is not None and observed != generation and not digest:
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


def _by_general_rule(manifest: Manifest, expected: Expected, now: str) -> Health:
    if status_of(manifest) or expected in {Expected.NOT_KNOWN, Expected.NEVER}:
        return general_rule.by_conditions(manifest)
    return silent(manifest, expected, now)


def _unschedulable(manifest: Manifest, kind: GroupKind, now: str) -> Health | None:
    """Return what a pod is that finds no node: failed after a while. None where it has one, or where its age isn't known."""
    if kind != _POD or status_of(manifest).get("phase") != "Pending":
        return None
    scheduled = condition_of(manifest, "PodScheduled")
    if not has_status(scheduled, "False") or (scheduled or {}).get("reason") != "Unschedulable":
        return None
    age_s = age_of(manifest, now)
    if age_s is None:
        return None
    if age_s > _TO_SCHEDULE_S:
        return failed(why(scheduled))
    return replace(workload_rules.pod(manifest), lasts_s=_TO_SCHEDULE_S - age_s)


_POD: Final = GroupKind("", "Pod")
_TO_SCHEDULE_S: Final = 15.0


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
