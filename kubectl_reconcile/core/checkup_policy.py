"""What must be known of Checkups outside their module: how healthy one is, and who may write one that runs pods: only who may create pods in that namespace anyway.

The daemon doesn't know who wrote a Checkup, and makes its Job by its own rights. The API server does know, so it is the one that refuses, by a policy that is installed with the daemon.
A Checkup that exists may be changed by anybody in everything but its job, so that it can be suspended.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_reconcile.core.objects import GroupKind, Manifest, map_at

CHECKUP: Final = GroupKind("checks.reconcile.dev", "Checkup")
"""The kind. The Jobs of a Checkup come and go: a scan looks at what makes them instead."""
CHECKUP_HEALTH: Final[Sequence[Mapping[str, Any]]] = (
    {"Failed": {"Degraded": "True"}},
    {"Failed": {"Passed": "False"}},
    {"Current": {"Passed": "True"}},
    {"InProgress": {"Passed": "Unknown"}},
    {"InProgress": {}},
)
"""The health of a Checkup: its verdict."""
_NAME: Final = "reconcile-checkup-rights"
_API: Final = "admissionregistration.k8s.io/v1"


def runs_pods(manifest: Manifest) -> bool:
    """Tell whether an object is a Checkup by whose own words a pod runs."""
    is_checkup = (
        GroupKind(str(manifest.get("apiVersion") or "").rpartition("/")[0], str(manifest.get("kind"))) == CHECKUP
    )
    return is_checkup and "job" in map_at(manifest, "spec")


def checkup_policy(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what has the API server refuse Checkups with a job from whoever may not create pods in their namespace."""
    changed = "oldObject == null || !has(oldObject.spec.job) || object.spec.job != oldObject.spec.job"
    rule = {
        "apiGroups": [CHECKUP.group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["checkups"],
        "scope": "*",
    }
    asked = "authorizer.group('').resource('pods').namespace(object.metadata.namespace).check('create').allowed()"
    # The API server keeps this part as a whole, with all its defaults: without them it would be written again each time.
    defaults = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {**defaults, "resourceRules": [rule]},
        "matchConditions": [{"name": "asks-for-another-pod", "expression": f"has(object.spec.job) && ({changed})"}],
        "validations": [
            {
                "expression": asked,
                "message": "spec.job runs a pod, and you may not create pods in this namespace",
                "reason": "Forbidden",
            }
        ],
    }
    binding = {"policyName": _NAME, "validationActions": ["Deny"]}
    return [
        _object("ValidatingAdmissionPolicy", labels, spec),
        _object("ValidatingAdmissionPolicyBinding", labels, binding),
    ]


def _object(kind: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": _NAME, "labels": dict(labels)}, "spec": dict(spec)}
