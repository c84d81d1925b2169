"""What the server does to a merged object before it stores it.

Vocabulary: *settling* an object is to write it as the server will hold it. A Go type (built-in
kinds, and the metadata of every object) drops nulls and empty containers and respells
quantities, times and bytes. A custom resource keeps what was written, drops nulls that its
schema forbids and takes the schema's defaults. A few fields of built-in kinds are folded into
others: `FOLDED` is all of them.

Never: the defaults that the server's Go code sets on built-in kinds. No schema shows them;
`softly_same` says which differences they may explain, `completed` which of them are known to (`DEFAULTS`), so
that nobody is shown a change that isn't one. A verdict never rests on that table: servers differ by version.

Pure: inputs are never mutated.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.ssa.schema import ListType, MapType, Schema, SchemaField, Type
from kubectl_reconcile.core.ssa.typed import element_of
from kubectl_reconcile.core.ssa.values import is_zero, number, same, stored


def settled(obj: Manifest, schema: Schema) -> dict[str, Any]:
    """Return *obj* as the server will hold it, but for defaults that only its Go code knows."""
    if not schema.known:
        return dict(obj)
    if schema.is_custom:
        out: dict[str, Any] = _defaulted(_without_forbidden_nulls(obj, schema.root), schema.root)
        return out
    fold = FOLDED.get((schema.gvk.group, schema.gvk.kind), dict)
    return fold(_as_go(obj, schema.root))


# --- Go types -----------------------------------------------------------------------------------


def _as_go(value: Any, of: Type) -> Any:
    if isinstance(value, dict):
        if of.map is None:
            return value
        names = value.items()
        return {name: below for name, item in names if (below := _go_field(name, item, of.map)) is not _DROPPED}
    if isinstance(value, list):
        return [_as_go(item, of.list.item) for item in value] if of.list is not None else value
    if of.form is not None and value is not None:
        return stored(value, of.form)
    return number(value) if isinstance(value, float) else value


_DROPPED = object()


def _go_field(name: str, value: Any, of: MapType) -> Any:
    """Return what a field of a Go struct, or an entry of a Go map, is stored as."""
    declared = of.field(name)
    if declared is None:
        return ("" if value is None and _holds_strings(of) else _as_go(value, of.other)) if of.other else value
    if not declared.required and (value is None or (not _is_any(declared.type) and _is_empty(value, declared.type))):
        return _DROPPED
    return _as_go(value, declared.type)


def _is_empty(value: Any, of: Type) -> bool:
    return value == [] or (value == {} and _is_go_map(of))


def _is_any(of: Type) -> bool:
    """Return whether a value of this type is kept as raw JSON (a CRD's defaults), emptiness and all."""
    return bool(of.scalar) and of.list is not None and of.map is not None


def _holds_strings(of: MapType) -> bool:
    return of.other is not None and of.other.scalar == "string"


def _is_go_map(of: Type) -> bool:
    return of.map is not None and not of.map.is_struct


# --- custom resources -------------------------------------------------------------------------------


def _without_forbidden_nulls(value: Any, of: Type | None) -> Any:
    if of is None:
        return value
    if isinstance(value, Mapping):
        out = {}
        for name, below in value.items():
            if of.is_resource and name == "metadata":
                out[name] = below or {}
                continue
            declared, kind = _described(name, of)
            if below is None and kind is not None and not kind.nullable and not (declared and declared.has_default):
                continue
            out[name] = _without_forbidden_nulls(below, kind)
        return out
    if isinstance(value, list):
        item = of.list.item if of.list is not None else None
        return [_without_forbidden_nulls(below, item) for below in value]
    return value


def _described(name: str, of: Type) -> tuple[SchemaField | None, Type | None]:
    """Return the field *name* and its type; no type where the schema says nothing about it."""
    if of.map is None:
        return None, None
    declared = of.map.field(name)
    if declared is not None:
        return declared, declared.type
    return None, None if of.map.is_struct else of.map.other


def _defaulted(value: Any, of: Type | None) -> Any:
    """Return *value* with the schema's defaults for what is absent, or null where null isn't allowed."""
    if of is None:
        return value
    if isinstance(value, Mapping):
        out = dict(value)
        metadata = of.map.type_at("metadata") if of.is_resource and of.map is not None else None
        if metadata is not None and "metadata" in out:
            out["metadata"] = _as_go(out["metadata"], metadata)
        for name, below in value.items():
            declared, kind = _described(name, of)
            if metadata is not None and name == "metadata":
                continue
            if below is None and declared is not None and declared.has_default and not declared.type.nullable:
                out[name] = declared.default
            out[name] = _defaulted(out[name], kind)
        for declared in of.map.fields() if of.map is not None else ():
            if declared.has_default and declared.name not in out:
                out[declared.name] = _defaulted(declared.default, declared.type)
        return out
    if isinstance(value, list):
        return [_defaulted(item, of.list.item if of.list is not None else None) for item in value]
    return number(value) if isinstance(value, float) else value


# --- fields that are folded into others -----------------------------------------------------------------


def _fold_string_data(secret: dict[str, Any]) -> dict[str, Any]:
    """Fold ``stringData`` of a Secret into ``data``, where it wins."""
    text = secret.get("stringData")
    if not isinstance(text, dict):
        return secret
    data = {name: base64.b64encode(str(value or "").encode()).decode() for name, value in text.items()}
    out = {name: value for name, value in secret.items() if name != "stringData"}
    if data or out.get("data"):
        out["data"] = {**(out.get("data") or {}), **data}
    return out


def _fold_service_account(at: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a fold of the deprecated ``serviceAccount`` of the PodSpec *at* into ``serviceAccountName``."""

    def fold(obj: dict[str, Any]) -> dict[str, Any]:
        return _replaced(obj, at, _both_service_accounts)

    return fold


def _both_service_accounts(spec: dict[str, Any]) -> dict[str, Any]:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {**spec, "serviceAccountName": name, "serviceAccount": name} if name else spec


def _replaced(
    tree: dict[str, Any], at: tuple[str, ...], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    if not at:
        return change(tree)
    below = tree.get(at[0])
    return {**tree, at[0]: _replaced(below, at[1:], change)} if isinstance(below, dict) else tree


_IN_TEMPLATE = _fold_service_account(("spec", "template", "spec"))

FOLDED: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("", "Secret"): _fold_string_data,
    ("", "Pod"): _fold_service_account(("spec",)),
    ("", "PodTemplate"): _fold_service_account(("template", "spec")),
    ("", "ReplicationController"): _IN_TEMPLATE,
    ("apps", "Deployment"): _IN_TEMPLATE,
    ("apps", "ReplicaSet"): _IN_TEMPLATE,
    ("apps", "StatefulSet"): _IN_TEMPLATE,
    ("apps", "DaemonSet"): _IN_TEMPLATE,
    ("batch", "Job"): _IN_TEMPLATE,
    ("batch", "CronJob"): _fold_service_account(("spec", "jobTemplate", "spec", "template", "spec")),
}
"""Built-in kinds whose conversion moves a field's value into another field."""


# --- the empty object ------------------------------------------------------------------------------------


def zero_value(of: Type, like: Any) -> Any:
    """Return what an empty Go struct of this type looks like: the fields that it never omits, at zero.

    Those are the required ones, structs held by value, and what *like*, an object of that type, shows as null.
    """
    if of.map is None:
        return {"numeric": 0, "string": "", "boolean": False}.get(of.scalar)
    values = like if isinstance(like, dict) else {}
    return {
        declared.name: zero_value(declared.type, values.get(declared.name))
        for declared in of.map.fields()
        if declared.required or declared.default == {} or (declared.name in values and values[declared.name] is None)
    }


# --- what defaults may explain --------------------------------------------------------------------------


def softly_same(wanted: Any, live: Any, of: Type | None) -> bool:
    """Return whether defaults of the server's Go code may have made *live* out of *wanted*.

    They fill what is absent in a struct and replace its zero values; they never change a value that
    says something, nor the entries of a Go map.
    """
    if isinstance(wanted, dict) and isinstance(live, dict) and wanted:
        if of is None or of.map is None or not of.map.is_struct:
            return same(wanted, live)
        return all(
            softly_same(value, live[name], of.map.type_at(name)) if name in live else is_zero(value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list) and wanted:
        item = of.list.item if of is not None and of.list is not None else None
        return len(wanted) == len(live) and all(
            softly_same(one, other, item) for one, other in zip(wanted, live, strict=True)
        )
    return is_zero(wanted) or same(wanted, live)


# --- defaults that are known ------------------------------------------------------------------------------


def completed(wanted: Any, live: Any, of: Type | None) -> Any:
    """Return *wanted* with what `DEFAULTS` says the server's Go code makes of it, as far as *live* shows just that.

    Filled in are fields that *wanted* lacks, or has at zero, and that *live* has at their default; zero values that
    Go doesn't store and *live* doesn't have are left out. Everything else is as it was.
    """
    if of is None:
        return wanted
    if isinstance(wanted, dict) and isinstance(live, dict) and of.map is not None:
        return _completed_map(wanted, live, of, of.map)
    if isinstance(wanted, list) and isinstance(live, list) and of.list is not None:
        item = of.list.item
        return [
            completed(one, other, item) for one, other in zip(wanted, _partners(wanted, live, of.list), strict=True)
        ]
    return wanted


def _completed_map(wanted: dict[str, Any], live: dict[str, Any], of: Type, fields: MapType) -> dict[str, Any]:
    defaults = DEFAULTS.get(of.definition, {})
    out: dict[str, Any] = {}
    for name, value in wanted.items():
        declared = name in fields.names
        if name not in live:
            dropped = declared and (name in _DROPPED_ZEROS or (of.definition, name) in _DROPPED_ZEROS_OF)
            if not (dropped and is_zero(value) and not isinstance(value, dict | list)):
                out[name] = value
        elif declared and is_zero(value) and name in defaults and _is_default(defaults[name], live[name], wanted):
            out[name] = live[name]
        else:
            out[name] = completed(value, live[name], fields.type_at(name))
    for name, default in defaults.items():
        if name not in out and name in live and _is_default(default, live[name], wanted):
            out[name] = live[name]
    return _labelled_as_pods(out, live) if of.definition in _LABELLED_AS_PODS else out


def _labelled_as_pods(wanted: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """Return an object without labels with those of its pods, where the server has given it those."""
    given, pods = _labels_at(live), _labels_at(live, "spec", "template")
    if not given or given != pods or _labels_at(wanted):
        return wanted
    return {**wanted, "metadata": {**(wanted.get("metadata") or {}), "labels": given}}


def _labels_at(tree: Any, *place: str) -> Any:
    for name in (*place, "metadata", "labels"):
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _is_default(default: Any, value: Any, within: Mapping[str, Any]) -> bool:
    return same(default(within) if callable(default) else default, value)


def _partners(wanted: list[Any], live: list[Any], of: ListType) -> list[Any]:
    """Return for each item of *wanted* the one of *live* that it is compared with; None where there is none."""
    if of.atomic:
        return live if len(live) == len(wanted) else [None] * len(wanted)
    found = {element_of(item, of): item for item in live}
    return [found.get(element_of(item, of)) for item in wanted]


def _pull_policy(container: Mapping[str, Any]) -> str:
    """Return the default of ``imagePullPolicy``: an image that may be another one tomorrow is always pulled."""
    image = str(container.get("image") or "")
    name = image.rpartition("/")[2]
    return "Always" if "@" not in name and name.partition(":")[2] in {"", "latest"} else "IfNotPresent"


def _rbac_group(subject: Mapping[str, Any]) -> str | None:
    return "rbac.authorization.k8s.io" if subject.get("kind") in {"User", "Group"} else None


def _is_external(service: Mapping[str, Any]) -> bool:
    kind = service.get("type") or "ClusterIP"
    return kind in {"LoadBalancer", "NodePort"} or (kind == "ClusterIP" and bool(service.get("externalIPs")))


def _policy_types(policy: Mapping[str, Any]) -> list[str]:
    return ["Ingress", "Egress"] if policy.get("egress") else ["Ingress"]


_LABELLED_AS_PODS = frozenset({"Job", "ReplicationController"})
_MODE: dict[str, Any] = {"defaultMode": 0o644}
_WEBHOOK: dict[str, Any] = {
    "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
    "reinvocationPolicy": "Never", "timeoutSeconds": 10,
}  # fmt: skip
_ROLLING: dict[str, dict[str, Any]] = {
    "Deployment": {"maxSurge": "25%", "maxUnavailable": "25%"},
    "DaemonSet": {"maxSurge": 0, "maxUnavailable": 1},
    "StatefulSet": {"partition": 0},
}
_TOLERATED = [  # by admission, for pods alone
    {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for trouble in ("not-ready", "unreachable")
]
_RETAIN: dict[str, Any] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_CPU: dict[str, Any] = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}


def _rolling(kind: str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": _ROLLING[kind]}


def _strategy(kind: str) -> dict[str, Any]:
    """Return the defaults inside a strategy of *kind*: details only of one that rolls."""
    return {"type": "RollingUpdate", "rollingUpdate": _where("type", {"", "RollingUpdate"}, _ROLLING[kind])}


def _where(name: str, values: Collection[str], default: Any) -> Callable[[Mapping[str, Any]], Any]:
    """Return the *default* of a field that has one only where its neighbour *name* is one of *values* ("" if absent)."""
    return lambda within: default if (within.get(name) or "") in values else None


DEFAULTS: dict[str, dict[str, Any]] = {
    "ClientIPConfig": {"timeoutSeconds": 10800},
    "ConfigMapVolumeSource": _MODE,
    "Container": {
        "imagePullPolicy": _pull_policy, "resources": {}, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "ContainerPort": {"protocol": "TCP"},
    "CronJobSpec": {
        "concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "successfulJobsHistoryLimit": 3, "suspend": False,
    },
    "CustomResourceConversion": {"strategy": "None"},
    "CustomResourceDefinitionNames": {
        "listKind": lambda names: f"{names.get('kind')}List", "singular": lambda names: str(names.get("kind")).lower(),
    },
    "CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    "DaemonSetSpec": {"revisionHistoryLimit": 10, "updateStrategy": _rolling("DaemonSet")},
    "DaemonSetUpdateStrategy": _strategy("DaemonSet"),
    "DeploymentSpec": {
        "progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10, "strategy": _rolling("Deployment"),
    },
    "DeploymentStrategy": _strategy("Deployment"),
    "DownwardAPIVolumeSource": _MODE,
    "GRPCAction": {"service": ""},
    "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "HorizontalPodAutoscalerSpec": {"metrics": [{"type": "Resource", "resource": _CPU}], "minReplicas": 1},
    "HostPathVolumeSource": {"type": ""},
    "IngressClassParametersReference": {"scope": "Cluster"},
    "JobSpec": {
        "backoffLimit": 6, "completionMode": "NonIndexed", "completions": _where("parallelism", {""}, 1), "manualSelector": False, "parallelism": 1,
        "podReplacementPolicy": "TerminatingOrFailed", "suspend": False,
    },
    "MutatingWebhook": _WEBHOOK,
    "NetworkPolicyPort": {"protocol": "TCP"},
    "NetworkPolicySpec": {"policyTypes": _policy_types},
    "ObjectFieldSelector": {"apiVersion": "v1"},
    "PersistentVolumeClaim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}},
    "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "PodSpec": {
        "dnsPolicy": "ClusterFirst", "enableServiceLinks": True, "preemptionPolicy": "PreemptLowerPriority", "priority": 0,
        "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {},
        "terminationGracePeriodSeconds": 30, "tolerations": _TOLERATED,
    },
    "PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "Probe": {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
    "ProjectedVolumeSource": _MODE,
    "ReplicaSetSpec": {"replicas": 1},
    "ReplicationControllerSpec": {"replicas": 1},
    "ResourceFieldSelector": {"divisor": "0"},
    "RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    "RollingUpdateDaemonSet": _ROLLING["DaemonSet"],
    "RollingUpdateDeployment": _ROLLING["Deployment"],
    "RollingUpdateStatefulSetStrategy": _ROLLING["StatefulSet"],
    "RuleWithOperations": {"scope": "*"},
    "Secret": {"type": "Opaque"},
    "SecretVolumeSource": _MODE,
    "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "ServicePort": {"protocol": "TCP", "targetPort": lambda port: port.get("port")},
    "ServiceReference": {"port": 443},
    "ServiceSpec": {
        "allocateLoadBalancerNodePorts": _where("type", {"LoadBalancer"}, default=True),
        "externalTrafficPolicy": lambda spec: "Cluster" if _is_external(spec) else None,
        "internalTrafficPolicy": _where("type", {"", "ClusterIP", "LoadBalancer", "NodePort"}, "Cluster"),
        "sessionAffinity": "None", "type": "ClusterIP",
        "sessionAffinityConfig": _where("sessionAffinity", {"ClientIP"}, {"clientIP": {"timeoutSeconds": 10800}}),
    },
    "StatefulSetPersistentVolumeClaimRetentionPolicy": _RETAIN,
    "StatefulSetSpec": {
        "persistentVolumeClaimRetentionPolicy": _RETAIN, "podManagementPolicy": "OrderedReady", "replicas": 1,
        "revisionHistoryLimit": 10, "updateStrategy": _rolling("StatefulSet"),
    },
    "StatefulSetUpdateStrategy": _strategy("StatefulSet"),
    "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "Subject": {"apiGroup": _rbac_group},
    "ValidatingWebhook": _WEBHOOK,
    "Volume": {"emptyDir": lambda volume: {} if volume.keys() <= {"name"} else None},
}  # fmt: skip
"""What the ``SetDefaults_…`` functions of Kubernetes (``pkg/apis/*/v*/defaults.go``) set, by definition and field."""

_DROPPED_ZEROS = frozenset(
    {
        "clusterIP", "containerName", "externalName", "externalTrafficPolicy", "healthCheckNodePort", "hostIP", "hostIPC",
        "hostNetwork", "hostPID", "hostPort", "initialDelaySeconds", "loadBalancerIP", "medium", "minReadySeconds",
        "nodePort", "paused", "priorityClassName", "publishNotReadyAddresses", "serviceAccount", "serviceAccountName",
        "serviceName", "sessionAffinity", "stdin", "stdinOnce", "subPath", "subPathExpr", "subdomain", "tty", "volumeName",
        "workingDir",
    }
)  # fmt: skip
"""Fields that Go structs hold by value and omit at zero, wherever they are; a pointer would keep ``false``, ``0`` and ``""``."""

_DROPPED_ZEROS_OF = frozenset({("EnvVar", "value"), ("Toleration", "value"), ("VolumeMount", "readOnly")})
