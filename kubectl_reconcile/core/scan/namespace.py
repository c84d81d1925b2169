"""What a scan finds among objects that are looked at together: all of a namespace, or of several.

An object that is made by another one of these (the pods of a Deployment's ReplicaSet) isn't looked at by itself: its maker is, where somebody can change it.
Nor is the Job of a check, nor one that is being deleted. A Service is held against the pods that are there and those that workloads make.

Pure: objects in, findings out. The order of the objects doesn't matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_reconcile.core.objects import (
    GroupKind,
    GroupVersionKind,
    Manifest,
    ObjectRef,
    controller_of,
    labels_of,
    map_at,
    maps_in,
)
from kubectl_reconcile.core.scan.findings import CHECKUP, PODS, ScanFinding, endpoints_finding, findings_of
from kubectl_reconcile.core.scan.pod_security import keyed
from kubectl_reconcile.core.scan.rules import ScanRules

SERVICE: Final = GroupKind("", "Service")
SCANNED: Final = (
    ("v1", "Pod"),
    ("v1", "ReplicationController"),
    ("v1", "Service"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("checks.reconcile.dev/v1alpha1", "Checkup"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
)
"""The kinds of a namespace that a scan looks at, by version and kind."""
SCANNED_KINDS: Final = frozenset(GroupVersionKind.parse(*each).group_kind for each in SCANNED)

_Pod = tuple[Mapping[str, str], Mapping[str, Any]]
"""The labels and the spec of a pod, or of one that a workload makes."""


def findings_among(manifests: Iterable[Manifest], rules: ScanRules) -> list[ScanFinding]:
    """Return what a scan by *rules* finds, each finding once: the objects in the order of their references, of each the findings in the order of its fields."""
    there = {ObjectRef.of(each): each for each in manifests if not each["metadata"].get("deletionTimestamp")}
    made = {ref for ref, each in there.items() if (maker := maker_of(ref, each)) in there or _is_check(ref, maker)}
    nearby = _pods(there)
    found: dict[ScanFinding, None] = {}
    for ref in sorted(there.keys() - made):
        if ref.group_kind == SERVICE:
            found |= dict.fromkeys(_of_service(ref, there[ref], nearby))
        else:
            found |= dict.fromkeys(findings_of(there[ref], rules.profile))
    return [each for each in found if not rules.leave_out(each)]


def _is_check(ref: ObjectRef, maker: ObjectRef | None) -> bool:
    """Tell whether an object is the Job of a check, which comes and goes."""
    is_job = ref.group_kind == GroupKind("batch", "Job")
    return is_job and maker is not None and maker.group_kind == CHECKUP


def maker_of(ref: ObjectRef, manifest: Manifest) -> ObjectRef | None:
    """Return the controller of an object."""
    owner = controller_of(manifest) if manifest["metadata"].get("ownerReferences") else None
    if owner is None:
        return None
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    return ObjectRef(group, str(owner.get("kind") or ""), ref.namespace, str(owner.get("name") or ""))


# --- Services -------------------------------------------------------------------------------------


def _pods(there: Mapping[ObjectRef, Manifest]) -> dict[tuple[str, str, str], list[_Pod]]:
    """Return the pods that are there or are made, by namespace and by each of their labels."""
    found: dict[tuple[str, str, str], list[_Pod]] = defaultdict(list)
    for ref, manifest in there.items():
        place = PODS.get(ref.group_kind)
        if place is None:
            continue
        pod = map_at(manifest, *place) if place else manifest
        labels = labels_of({"metadata": map_at(pod, "metadata")})
        for key, value in labels.items():
            found[ref.namespace, key, value].append((labels, map_at(pod, "spec")))
    return found


def _of_service(
    ref: ObjectRef, service: Manifest, nearby: Mapping[tuple[str, str, str], Sequence[_Pod]]
) -> Iterator[ScanFinding]:
    """Yield why nobody answers for a Service; one without a selector has endpoints that somebody else writes."""
    spec = map_at(service, "spec")
    selector = {str(key): str(value) for key, value in map_at(spec, "selector").items()}
    if not selector or spec.get("type") == "ExternalName":
        return
    rarest = min((nearby.get((ref.namespace, key, value), ()) for key, value in selector.items()), key=len)
    selected = [pod for labels, pod in rarest if selector.items() <= labels.items()]
    if not selected:
        yield endpoints_finding(
            ref, ".spec.selector", "must select pods: nothing in the namespace has or makes such ones"
        )
        return
    names = {name for pod in selected for name in _port_names(pod)}
    for port in maps_in(spec.get("ports")):
        target = port.get("targetPort")
        if isinstance(target, str) and not target.isdecimal() and target not in names:
            path = f".spec.ports{keyed(port, 'name' if port.get('name') else 'port')}.targetPort"
            yield endpoints_finding(ref, path, "must be the name of a port of the pods that are selected")


def _port_names(pod: Mapping[str, Any]) -> Iterator[str]:
    for place in ("initContainers", "containers"):
        for container in maps_in(pod.get(place)):
            for port in maps_in(container.get("ports")):
                yield str(port.get("name") or "")
