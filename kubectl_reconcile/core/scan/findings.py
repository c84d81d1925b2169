"""What a scan finds in one object: pods that may do too much, rights that are too wide, passwords in the open, images and limits that are left to chance.

A finding names a check, the field and what must be so there; it never quotes a value but that of an image, a rule or a capability. Workloads are looked at by the pods
that they would make, so each field is found once and where somebody can change it.

Pure: an object in, findings out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kubectl_reconcile.core.checkups import CHECKUP
from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, map_at, maps_in, text_at
from kubectl_reconcile.core.scan.pod_security import (
    CONTROLS,
    Profile,
    keyed,
    named,
    texts_in,
    weighed_violations,
)


class ScanSeverity(StrEnum):
    """How much a finding matters."""

    HIGH = "high"
    """Whoever gets into the program gets further: to the node, to more rights, to a password."""
    MEDIUM = "medium"
    """A precaution is missing, or nobody is served."""
    LOW = "low"
    """Something is left to chance."""


_SEVERITIES: Final[Mapping[str, ScanSeverity]] = {
    "endpoints": ScanSeverity.MEDIUM,
    "image-digest": ScanSeverity.LOW,
    "image-version": ScanSeverity.MEDIUM,
    "limits": ScanSeverity.LOW,
    "probes": ScanSeverity.LOW,
    "rights-escalation": ScanSeverity.HIGH,
    "rights-wildcard": ScanSeverity.HIGH,
    "secret-in-environment": ScanSeverity.HIGH,
}
POD_SECURITY: Final = "pod-security/"
"""What the names of checks begin with that are controls of the Pod Security Standards."""
CHECKS: Final = frozenset(
    {*_SEVERITIES, *(f"{POD_SECURITY}{control}" for each in CONTROLS.values() for control in each)}
)
"""All that a scan looks for, by name."""


@dataclass(frozen=True, slots=True)
class ScanFinding:
    """What is wrong with one field of one object, by which *check*.

    Two findings are the same if check, object and path are the same; their messages may differ.
    """

    ref: ObjectRef
    check: str
    path: str
    demand: str = field(compare=False)
    severity: ScanSeverity = field(compare=False, default=ScanSeverity.MEDIUM)


_TEMPLATE: Final = ("spec", "template")
PODS: Final[Mapping[GroupKind, tuple[str, ...]]] = {
    GroupKind("", "Pod"): (),
    GroupKind("", "ReplicationController"): _TEMPLATE,
    GroupKind("apps", "DaemonSet"): _TEMPLATE,
    GroupKind("apps", "Deployment"): _TEMPLATE,
    GroupKind("apps", "ReplicaSet"): _TEMPLATE,
    GroupKind("apps", "StatefulSet"): _TEMPLATE,
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
    GroupKind("batch", "Job"): _TEMPLATE,
    CHECKUP: ("spec", "job", "template"),
}
"""Where objects say which pods they make."""
_RUN_ON: Final = frozenset({"DaemonSet", "Deployment", "ReplicationController", "ReplicaSet", "StatefulSet"})
"""Kinds whose pods are to run on, so that somebody should ask whether they serve."""
_RBAC: Final = "rbac.authorization.k8s.io"
_ESCALATING: Final = ("bind", "escalate", "impersonate")
_SECRET_NAME = re.compile(r"(?i)(password|passwd|passphrase|secret|token|api_?key|private_?key|credentials?)")
_NO_SECRET = re.compile(r"(?i)(_|^)(file|path|dir|name|url|uri|ref|ttl|expiry|enabled)$")


def findings_of(manifest: Manifest, profile: Profile) -> Iterator[ScanFinding]:
    """Yield what a scan by *profile* finds in *manifest*; nothing for kinds that it has no checks for."""
    ref = ObjectRef.of(manifest)
    if (place := PODS.get(ref.group_kind)) is not None:
        if "spec" not in map_at(manifest, *place):
            return  # a Checkup that makes no pods of its own
        yield from controls_broken(manifest, ref, profile)
        yield from findings_of_containers(manifest, ref, profile)
    elif ref.group == _RBAC:
        for check, path, demand in _of_rights(manifest, ref.kind):
            yield ScanFinding(ref, check, path, demand, _SEVERITIES[check])


def controls_broken(manifest: Manifest, ref: ObjectRef, profile: Profile) -> Iterator[ScanFinding]:
    """Yield what of the pods of an object the Pod Security Standards forbid; images and variables don't count there."""
    place = PODS[ref.group_kind]
    for each, is_baseline in weighed_violations(map_at(manifest, *place), profile):
        severity = ScanSeverity.HIGH if is_baseline else ScanSeverity.MEDIUM
        yield ScanFinding(ref, f"{POD_SECURITY}{each.control}", below(place, each.path), each.demand, severity)


def findings_of_containers(manifest: Manifest, ref: ObjectRef, profile: Profile) -> Iterator[ScanFinding]:
    """Yield what is found in the containers of the pods of an object besides."""
    place = PODS[ref.group_kind]
    for check, path, demand in _of_containers(map_at(manifest, *place, "spec"), ref.kind, profile):
        yield ScanFinding(ref, check, below(place, path), demand, _SEVERITIES[check])


def endpoints_finding(ref: ObjectRef, path: str, demand: str) -> ScanFinding:
    """Return the finding of a Service that nobody answers for."""
    return ScanFinding(ref, "endpoints", path, demand, _SEVERITIES["endpoints"])


def below(place: tuple[str, ...], path: str) -> str:
    """Return how a path of a pod is written in the object that has the pod at *place*."""
    return "".join(f".{name}" for name in place) + path


_Found = Iterator[tuple[str, str, str]]
"""Check, path and demand."""


def _of_containers(spec: Mapping[str, Any], kind: str, profile: Profile) -> _Found:
    for place in ("initContainers", "containers"):
        for container in maps_in(spec.get(place)):
            path = f".spec.{place}{named(container)}"
            for check in _OF_CONTAINER:
                yield from check(container, path, profile)
            if place == "containers" and kind in _RUN_ON and not map_at(container, "readinessProbe"):
                yield (
                    "probes",
                    f"{path}.readinessProbe",
                    "must be set: otherwise the pod counts as ready as soon as it has started",
                )


def _image(container: Mapping[str, Any], path: str, profile: Profile) -> _Found:
    image = container.get("image")
    if not isinstance(image, str) or "@sha256:" in image:
        return
    tag = image.rpartition("/")[2].partition(":")[2]
    if tag in {"", "latest"}:
        yield "image-version", f"{path}.image", f"must name a version: {image} may be another image tomorrow"
    elif profile is Profile.RESTRICTED:
        yield "image-digest", f"{path}.image", f"must end with @sha256:…: the tag of {image} can be moved"


def _limits(container: Mapping[str, Any], path: str, _profile: Profile) -> _Found:
    resources = map_at(container, "resources")
    if not map_at(resources, "limits").get("memory"):
        yield (
            "limits",
            f"{path}.resources.limits.memory",
            "must be set: otherwise one container can take all of its node's memory",
        )
    if not any(map_at(resources, part).get("cpu") for part in ("requests", "limits")):
        yield (
            "limits",
            f"{path}.resources.requests.cpu",
            "must be set: otherwise it gets the least CPU when CPU is scarce",
        )


def _environment(container: Mapping[str, Any], path: str, _profile: Profile) -> _Found:
    for variable in maps_in(container.get("env")):
        name, value = variable.get("name"), variable.get("value")
        is_meant = isinstance(name, str) and _SECRET_NAME.search(name) and not _NO_SECRET.search(name)
        if is_meant and isinstance(value, str) and value and "$(" not in value:
            yield "secret-in-environment", f"{path}.env{named(variable)}.value", "must come from a Secret (valueFrom)"


_OF_CONTAINER: Final[tuple[Callable[[Mapping[str, Any], str, Profile], _Found], ...]] = (
    _environment,
    _image,
    _limits,
)


def _of_rights(manifest: Manifest, kind: str) -> _Found:
    for rule in maps_in(manifest.get("rules")):
        path = f".rules{keyed(rule, 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs')}"
        for part in ("apiGroups", "resources", "verbs"):
            if "*" in texts_in(rule.get(part)):
                yield "rights-wildcard", f"{path}.{part}", "must list names instead of *"
        if escalating := [each for each in _ESCALATING if each in texts_in(rule.get("verbs"))]:
            yield (
                "rights-escalation",
                f"{path}.verbs",
                f"must not have {', '.join(escalating)}: anyone who has it can get more rights",
            )
    if kind.endswith("Binding") and text_at(manifest, "roleRef", "name") == "cluster-admin":
        yield "rights-escalation", ".roleRef.name", "must not be cluster-admin, which has all rights"
