"""What of an object counts in a scan of others: whether it goes, who has made it, which pods it makes, and which ones a Service asks for.

Pure: an object in, a note out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, controller_of, labels_of, map_at, maps_in
from kubectl_reconcile.core.scan.findings import PODS
from kubectl_reconcile.core.scan.pod_security import keyed

SERVICE: Final = GroupKind("", "Service")


class PodNote(Struct, frozen=True):
    """A pod, or such as a workload makes: its *labels*, and the names of its *ports*."""

    labels: Mapping[str, str]
    ports: frozenset[str]


class ServiceNote(Struct, frozen=True):
    """The pods that a Service selects, and the names of ports that they must have, each with the field that says so."""

    selector: Mapping[str, str]
    targets: tuple[tuple[str, str], ...]


class ScanNote(Struct, frozen=True):
    """What counts of the object *ref*. One that *goes* is being deleted; *service* is None also for a Service that has no selector: its endpoints somebody else writes."""

    ref: ObjectRef
    goes: bool = False
    maker: ObjectRef | None = None
    pod: PodNote | None = None
    service: ServiceNote | None = None


def note_of(manifest: Manifest) -> ScanNote:
    """Return what counts of *manifest*."""
    ref = ObjectRef.of(manifest)
    place = PODS.get(ref.group_kind)
    return ScanNote(
        ref=ref,
        goes=bool(manifest["metadata"].get("deletionTimestamp")),
        maker=maker_of(ref, manifest),
        pod=_pod(map_at(manifest, *place)) if place is not None else None,
        service=_service(map_at(manifest, "spec")) if ref.group_kind == SERVICE else None,
    )


def maker_of(ref: ObjectRef, manifest: Manifest) -> ObjectRef | None:
    """Return the controller of an object."""
    owner = controller_of(manifest) if manifest["metadata"].get("ownerReferences") else None
    if owner is None:
        return None
    group = str(owner.get("apiVersion") or "").rpartition("/")[0]
    return ObjectRef(group, str(owner.get("kind") or ""), ref.namespace, str(owner.get("name") or ""))


def _pod(pod: Mapping[str, Any]) -> PodNote:
    labels = labels_of({"metadata": map_at(pod, "metadata")})
    return PodNote(labels, frozenset(_port_names(map_at(pod, "spec"))))


def _port_names(spec: Mapping[str, Any]) -> Iterator[str]:
    for place in ("initContainers", "containers"):
        for container in maps_in(spec.get(place)):
            for port in maps_in(container.get("ports")):
                yield str(port.get("name") or "")


def _service(spec: Mapping[str, Any]) -> ServiceNote | None:
    selector = {str(key): str(value) for key, value in map_at(spec, "selector").items()}
    if not selector or spec.get("type") == "ExternalName":
        return None
    return ServiceNote(selector, tuple(_targets(spec)))


def _targets(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for port in maps_in(spec.get("ports")):
        target = port.get("targetPort")
        if isinstance(target, str) and not target.isdecimal():
            yield f".spec.ports{keyed(port, 'name' if port.get('name') else 'port')}.targetPort", target
