"""What is found in pods that are alike: they are looked at once, however many there are.

Pods are *alike* where all is the same but what no check reads (the node, the container's arguments, the volume with its token that each pod has by a name of its own),
the names of containers, and what no control of the Pod Security Standards reads, which takes little time to look at in each pod (images, variables, limits). What of a pod
a control forbids is reported for those like it with the names of their own containers.

Pure: an object in, findings out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

from kubectl_reconcile.core.objects import Manifest, ObjectRef, annotations_of, map_at
from kubectl_reconcile.core.scan.findings import (
    PODS,
    ScanFinding,
    ScanSeverity,
    below,
    controls_broken,
    findings_of,
    findings_of_containers,
)
from kubectl_reconcile.core.scan.pod_security import APP_ARMOR, Profile, is_plain_volume, named

_UNREAD_OF_POD: Final = frozenset({"hostname", "nodeName"})
_UNREAD_OF_CONTAINER: Final = frozenset({"args", "command", "env", "image", "name", "resources", "volumeMounts"})
"""Fields that no control reads, or only to name the container, and that pods differ in that are alike otherwise."""
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")

_Found: TypeAlias = tuple[str, int, str, str, ScanSeverity]
"""A check, the number of a container or -1, the path below that, the demand and how much it matters."""


class AlikePods:
    """What a scan by *profile* has found in pods, for others that are alike. It knows as much as it was asked, so it is for one scan."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[bytes, tuple[_Found, ...]] = {}

    def findings_of(self, manifest: Manifest) -> tuple[ScanFinding, ...]:
        """Return what `findings.findings_of` yields for a live object, each finding once."""
        ref = ObjectRef.of(manifest)
        place = PODS.get(ref.group_kind)
        if place is None or "spec" not in (pod := map_at(manifest, *place)):
            return tuple(dict.fromkeys(findings_of(manifest, self._profile)))
        paths = [below(place, each) for each in _container_paths(map_at(pod, "spec"))]
        counted = [ref.kind, ref.group, _counted(pod), [paths.index(each) for each in paths]]
        key = hashlib.blake2b(orjson.dumps(counted), digest_size=32).digest()
        if (found := self._known.get(key)) is None:
            broken = dict.fromkeys(controls_broken(manifest, ref, self._profile))
            found = self._known[key] = tuple(_without_names(broken, paths))
        told = [
            ScanFinding(ref, check, (paths[at] if at >= 0 else "") + path, demand, severity)
            for check, at, path, demand, severity in found
        ]
        return (*told, *dict.fromkeys(findings_of_containers(manifest, ref, self._profile)))


def _container_paths(spec: Mapping[str, Any]) -> list[str]:
    """Return how paths name the containers of a pod."""
    return [
        f".spec.{place}{named(each)}"
        for place in _CONTAINERS
        if isinstance(containers := spec.get(place), list)
        for each in containers
        if isinstance(each, dict)
    ]


def _without_names(findings: Iterable[ScanFinding], paths: Sequence[str]) -> Iterator[_Found]:
    """Yield findings with the number of the container that they are in, in place of its name."""
    for each in findings:
        at = next((number for number, path in enumerate(paths) if each.path.startswith(path)), -1)
        rest = each.path.removeprefix(paths[at]) if at >= 0 else each.path
        yield each.check, at, rest, each.demand, each.severity


def _counted(pod: Mapping[str, Any]) -> list[Any]:
    """Return what controls may read of a pod, but for the names of its containers."""
    annotations = {name: value for name, value in annotations_of(pod).items() if name.startswith(APP_ARMOR)}
    return [annotations, _of_spec(pod["spec"])]


def _of_spec(spec: Any) -> Any:
    if not isinstance(spec, dict):
        return spec
    counted = {name: value for name, value in spec.items() if name not in _UNREAD_OF_POD}
    if isinstance(volumes := spec.get("volumes"), list):
        counted["volumes"] = [each for each in volumes if not is_plain_volume(each)]
    for place in _CONTAINERS:
        if isinstance(containers := spec.get(place), list):
            counted[place] = [_of_container(each) for each in containers]
    return counted


def _of_container(container: Any) -> Any:
    if not isinstance(container, dict):
        return container
    return {name: value for name, value in container.items() if name not in _UNREAD_OF_CONTAINER}
