"""The node that process pods run on, and what sends them there: objects of the API server.

Pods of namespaces with the label :data:`LABEL` get a node selector and a toleration by a MutatingAdmissionPolicy, so manifests stay as
they are; all other pods keep away for the node's taint, and are simulated.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from datetime import UTC, datetime
from typing import Any

from kubectl_reconcile.sandbox.pods.api import Api, RefusedError

NODE = "processes"
"""Name of the node."""
LABEL = "sandbox.reconcile.dev/pods"
"""Label of namespaces whose pods run as processes, with the value :data:`VALUE`; of the node too, and its taint."""
VALUE = "processes"

_POLICY = "process-pods.sandbox.reconcile.dev"
_PROBED = "kube-node-lease"  # never holds a pod, so that a pod can be tried there, dry
_LEASE_S = 10.0
_REPORT_S = 60.0
_ADMISSION_S = 60.0


def policy() -> dict[str, Any]:
    """Return the policy that sends pods of labelled namespaces to the node."""
    selector = f'{{"{LABEL}": "{VALUE}"}}'
    toleration = f'Object.spec.tolerations{{key: "{LABEL}", operator: "Equal", value: "{VALUE}", effect: "NoSchedule"}}'
    node_selector = (
        'has(object.spec.nodeSelector) ? JSONPatch{op: "add", '
        f'path: "/spec/nodeSelector/" + jsonpatch.escapeKey("{LABEL}"), value: "{VALUE}"}} : '
        f'JSONPatch{{op: "add", path: "/spec/nodeSelector", value: {selector}}}'
    )
    tolerations = (
        f'has(object.spec.tolerations) ? JSONPatch{{op: "add", path: "/spec/tolerations/-", value: {toleration}}} : '
        f'JSONPatch{{op: "add", path: "/spec/tolerations", value: [{toleration}]}}'
    )
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": _POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {LABEL: VALUE}},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ],
            },
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{node_selector}, {tolerations}]"}},
            ],
        },
    }


def binding() -> dict[str, Any]:
    """Return what puts the policy into force."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": _POLICY},
        "spec": {"policyName": _POLICY},
    }


def storage_class() -> dict[str, Any]:
    """Return the class of volumes that are folders of this machine, the default one."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "folders", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": PROVISIONER,
        "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
    }


PROVISIONER = "sandbox.reconcile.dev/folders"


def node() -> dict[str, Any]:
    """Return the node, without its status."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": NODE,
            "labels": {
                LABEL: VALUE,
                "kubernetes.io/hostname": NODE,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(
                    platform.machine(), platform.machine()
                ),
            },
        },
        "spec": {"taints": [{"key": LABEL, "value": VALUE, "effect": "NoSchedule"}]},
    }


def node_status(port: int, ready_since: str) -> dict[str, Any]:
    """Return the status of the node whose nodelet listens at *port*."""
    room = {
        "cpu": str(max(os.cpu_count() or 1, 1) * 100),  # requests of cpu are shares; nobody is turned away for them
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 1024}Ki",
        "pods": "500",
        "ephemeral-storage": "1Ti",
    }
    now = _now()
    return {
        "capacity": room,
        "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        "nodeInfo": {
            "architecture": platform.machine(),
            "bootID": "",
            "containerRuntimeVersion": "process://1",
            "kernelVersion": platform.release(),
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.3-nodelet",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": platform.system(),
            "systemUUID": "",
        },
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "NodeletReady",
                "message": "pods run as processes",
                "lastHeartbeatTime": now,
                "lastTransitionTime": ready_since,
            }
        ],
    }


async def register(api: Api, port: int) -> None:
    """Make the node and what belongs to it, and return once pods are sent to it.

    Raises:
        RefusedError: the API server refuses.
        TimeoutError: the policy isn't in force after a minute.
    """
    group = "/apis/admissionregistration.k8s.io/v1"
    await api.apply(f"{group}/mutatingadmissionpolicies/{_POLICY}", policy())
    await api.apply(f"{group}/mutatingadmissionpolicybindings/{_POLICY}", binding())
    await api.apply("/apis/storage.k8s.io/v1/storageclasses/folders", storage_class())
    await api.apply(f"/api/v1/nodes/{NODE}", node())
    await report(api, port, _now())
    async with asyncio.timeout(_ADMISSION_S):
        while not await _is_in_force(api):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.05)


async def report(api: Api, port: int, ready_since: str) -> None:
    """Say that the node is ready.

    Raises:
        RefusedError: the API server refuses.
    """
    await api.patch(f"/api/v1/nodes/{NODE}/status", {"status": node_status(port, ready_since)})


async def _is_in_force(api: Api) -> bool:
    """Tell whether a pod of a labelled namespace would come to the node."""
    try:
        namespace = await api.patch(f"/api/v1/namespaces/{_PROBED}", {"metadata": {"labels": {LABEL: VALUE}}})
        pod = await api.request(
            "POST",
            f"/api/v1/namespaces/{namespace['metadata']['name']}/pods?dryRun=All",
            {
                "metadata": {"name": "probe"},
                "spec": {"automountServiceAccountToken": False, "containers": [{"name": "probe", "image": "system"}]},
            },
        )
    except RefusedError:  # the namespace or its ServiceAccount isn't there yet
        return False
    return bool(pod["spec"].get("nodeSelector", {}).get(LABEL) == VALUE)


async def stay_registered(api: Api, port: int) -> None:
    """Renew the node's lease and status forever."""
    ready_since, reported_s = _now(), time.monotonic()
    while True:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NODE},
            "spec": {"holderIdentity": NODE, "leaseDurationSeconds": 40, "renewTime": _micro_now()},
        }
        try:
            await api.apply(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}", lease)
            if time.monotonic() - reported_s > _REPORT_S:
                await report(api, port, ready_since)
                reported_s = time.monotonic()
        except RefusedError:
            await asyncio.sleep(1.0)
        else:
            await asyncio.sleep(_LEASE_S)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
