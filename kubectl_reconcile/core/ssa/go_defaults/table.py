"""The table of Go defaults: what ``SetDefaults_…`` functions and strategies of Kubernetes make of what people write.

Keys are definitions of the server's OpenAPI document without their packages (``PodSpec``), or, where one definition
has other defaults by where it stands, the place from the kind on (``Pod.spec``). A default is a value, or a function
from the struct that the field is missing in to one; None stands for no default.

Pure: data, and functions from values to values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final


def _pull_policy(container: Mapping[str, Any]) -> str:
    """Return the default of ``imagePullPolicy``: an image that may be another one tomorrow is always pulled."""
    image = str(container.get("image") or "")
    name = image.rpartition("/")[2]
    return "Always" if "@" not in name and name.partition(":")[2] in {"", "latest"} else "IfNotPresent"


def _volume_pull_policy(source: Mapping[str, Any]) -> str:
    return _pull_policy({"image": source.get("reference")})


def _rbac_group(subject: Mapping[str, Any]) -> str | None:
    return "rbac.authorization.k8s.io" if subject.get("kind") in {"User", "Group"} else None


def _is_external(service: Mapping[str, Any]) -> bool:
    kind = service.get("type") or "ClusterIP"
    return kind in {"LoadBalancer", "NodePort"} or (kind == "ClusterIP" and bool(service.get("externalIPs")))


def _policy_types(policy: Mapping[str, Any]) -> list[str]:
    return ["Ingress", "Egress"] if policy.get("egress") else ["Ingress"]


def _job_limit(job: Mapping[str, Any]) -> int:
    """Return the default of ``backoffLimit``: no limit where each index has its own."""
    return 6 if job.get("backoffLimitPerIndex") is None else 2**31 - 1


def _replaced_when(job: Mapping[str, Any]) -> str:
    return "Failed" if job.get("podFailurePolicy") else "TerminatingOrFailed"


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
_RETAIN: dict[str, Any] = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_CPU: dict[str, Any] = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
_AT_ONCE = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALE_UP: dict[str, Any] = {
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _AT_ONCE], "selectPolicy": "Max",
    "stabilizationWindowSeconds": 0,
}  # fmt: skip
_SCALE_DOWN: dict[str, Any] = {"policies": [_AT_ONCE], "selectPolicy": "Max"}
_MATCH: dict[str, Any] = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
_SCALE_IO: dict[str, Any] = {"fsType": "xfs", "storageMode": "ThinProvisioned"}
_RBD: dict[str, Any] = {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"}
_ISCSI: dict[str, Any] = {"iscsiInterface": "default"}


def _tolerated(spec: Mapping[str, Any]) -> list[Any]:
    """Return the tolerations of a pod with what admission adds: a node in trouble is borne with for five minutes."""
    stated = spec.get("tolerations") or []
    keys = [f"node.kubernetes.io/{trouble}" for trouble in ("not-ready", "unreachable")]
    added = [key for key in keys if not any(_bears(each, key) for each in stated)]
    how = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return [*stated, *({"key": key, **how} for key in added)]


def _bears(toleration: Mapping[str, Any], key: str) -> bool:
    return (toleration.get("key") or key) == key and (toleration.get("effect") or "NoExecute") == "NoExecute"


def _requested(resources: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a pod's container requests: what it is limited to, where it says nothing else."""
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})} or None


def _counted(request: Mapping[str, Any]) -> int | None:
    """Return the default ``count`` of a device request: one, unless it asks for all there are or names its alternatives."""
    return (
        1
        if (request.get("allocationMode") or "ExactCount") == "ExactCount" and "firstAvailable" not in request
        else None
    )


def _rolling(kind: str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": _ROLLING[kind]}


def _strategy(kind: str) -> dict[str, Any]:
    """Return the defaults inside a strategy of *kind*: details only of one that rolls."""
    return {"type": "RollingUpdate", "rollingUpdate": _where("type", {"", "RollingUpdate"}, _ROLLING[kind])}


def _where(name: str, values: Collection[str], default: Any) -> Callable[[Mapping[str, Any]], Any]:
    """Return the *default* of a field that has one only where its neighbour *name* is one of *values* ("" if absent)."""
    return lambda within: default if (within.get(name) or "") in values else None


_DEVICES: dict[str, Any] = {"allocationMode": "ExactCount", "count": _counted}

DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": False},
    "CSIDriverSpec": {
        "attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType", "podInfoOnMount": False, "requiresRepublish": False,
        "seLinuxMount": False, "storageCapacity": False, "volumeLifecycleModes": ["Persistent"],
    },
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
    "DeviceSubRequest": _DEVICES,
    "DownwardAPIVolumeSource": _MODE,
    "Endpoint": {"conditions": {}},
    "EndpointPort": {"name": "", "protocol": "TCP"},
    "ExactDeviceRequest": _DEVICES,
    "ExemptPriorityLevelConfiguration": {"lendablePercent": 0, "nominalConcurrencyShares": 0},
    "FlowSchemaSpec": {"matchingPrecedence": 1000},
    "GRPCAction": {"service": ""},
    "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "HorizontalPodAutoscaler.spec.behavior.scaleDown": _SCALE_DOWN,
    "HorizontalPodAutoscaler.spec.behavior.scaleUp": _SCALE_UP,
    "HorizontalPodAutoscalerBehavior": {"scaleDown": _SCALE_DOWN, "scaleUp": _SCALE_UP},
    "HorizontalPodAutoscalerSpec": {"metrics": [{"type": "Resource", "resource": _CPU}], "minReplicas": 1},
    "HostPathVolumeSource": {"type": ""},
    "ISCSIPersistentVolumeSource": _ISCSI,
    "ISCSIVolumeSource": _ISCSI,
    "ImageVolumeSource": {"pullPolicy": _volume_pull_policy},
    "IngressClassParametersReference": {"scope": "Cluster"},
    "JobSpec": {
        "backoffLimit": _job_limit, "completionMode": "NonIndexed", "completions": _where("parallelism", {""}, 1),
        "manualSelector": False, "parallelism": 1, "podReplacementPolicy": _replaced_when, "suspend": False,
    },
    "LimitedPriorityLevelConfiguration": {"lendablePercent": 0, "nominalConcurrencyShares": 30},
    "MatchResources": _MATCH,
    "MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "MutatingWebhook": _WEBHOOK,
    "NamedRuleWithOperations": {"scope": "*"},
    "NetworkPolicyPort": {"protocol": "TCP"},
    "NetworkPolicySpec": {"policyTypes": _policy_types},
    "ObjectFieldSelector": {"apiVersion": "v1"},
    "PersistentVolumeClaim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}},
    "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "Pod.spec": {"enableServiceLinks": True, "preemptionPolicy": "PreemptLowerPriority", "priority": 0},
    "PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "PodSpec": {
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "Probe": {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
    "ProjectedVolumeSource": _MODE,
    "QueuingConfiguration": {"handSize": 8, "queueLengthLimit": 50, "queues": 64},
    "RBDPersistentVolumeSource": _RBD,
    "RBDVolumeSource": _RBD,
    "ReplicaSetSpec": {"replicas": 1},
    "ReplicationControllerSpec": {"replicas": 1},
    "ResourceFieldSelector": {"divisor": "0"},
    "RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    "RollingUpdateDaemonSet": _ROLLING["DaemonSet"],
    "RollingUpdateDeployment": _ROLLING["Deployment"],
    "RollingUpdateStatefulSetStrategy": _ROLLING["StatefulSet"],
    "RuleWithOperations": {"scope": "*"},
    "Secret": {"type": "Opaque"},
    "ScaleIOPersistentVolumeSource": _SCALE_IO,
    "ScaleIOVolumeSource": _SCALE_IO,
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
    "ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "ValidatingWebhook": _WEBHOOK,
    "Volume": {"emptyDir": lambda volume: {} if volume.keys() <= {"name"} else None},
}  # fmt: skip
"""What the ``SetDefaults_…`` functions of Kubernetes (``pkg/apis/*/v*/defaults.go``) set, by definition and field."""

GROWN: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    "Pod.spec.tolerations": _tolerated,
    "Pod.spec.containers.resources.requests": _requested,
    "Pod.spec.initContainers.resources.requests": _requested,
}
"""What the server makes of fields that may say something already, by place, from the struct that they stand in."""

WRITTEN_BY_SERVER: Final = {
    "DaemonSet": (("metadata", "annotations", "deprecated.daemonset.template.generation"),),
    "Namespace": (("metadata", "labels", "kubernetes.io/metadata.name"), ("spec", "finalizers")),
}
"""Fields that stay as they are live whatever is asked for, by kind: the server counts templates, names and holds namespaces."""

LABELLED_AS_PODS: Final = frozenset({"Job", "ReplicationController"})
"""Kinds that have the labels of their pods where they are given none."""

DROPPED_ZEROS: Final = frozenset(
    {
        "clusterIP", "containerName", "externalName", "externalTrafficPolicy", "healthCheckNodePort", "hostIP", "hostIPC",
        "hostNetwork", "hostPID", "hostPort", "initialDelaySeconds", "loadBalancerIP", "medium", "minReadySeconds",
        "nodePort", "paused", "priorityClassName", "publishNotReadyAddresses", "serviceAccount", "serviceAccountName",
        "serviceName", "sessionAffinity", "stdin", "stdinOnce", "subPath", "subPathExpr", "subdomain", "tty", "volumeName",
        "workingDir",
    }
)  # fmt: skip
"""Fields that Go structs hold by value and omit at zero, wherever they are; a pointer would keep ``false``, ``0`` and ``""``."""

DROPPED_ZEROS_OF: Final = frozenset(
    {("EnvVar", "value"), ("PriorityClass", "globalDefault"), ("Toleration", "value"), ("VolumeMount", "readOnly")}
)

HELD_BY_VALUE: Final = frozenset(
    {
        *(("Probe", name) for name in ("failureThreshold", "periodSeconds", "successThreshold", "timeoutSeconds")),
        *(("QueuingConfiguration", name) for name in ("handSize", "queueLengthLimit", "queues")),
        ("DeviceSubRequest", "count"), ("ExactDeviceRequest", "count"), ("FlowSchemaSpec", "matchingPrecedence"),
        ("ServicePort", "targetPort"),
    }
)  # fmt: skip
"""Numbers with a default that Go structs hold by value, so that a stated zero becomes the default; all others are pointers: no replicas is none."""
