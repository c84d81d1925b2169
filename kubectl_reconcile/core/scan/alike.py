"""What is found in pods that are alike: they are looked at once, however many there are.

Pods are *alike* where all is the same but what no check reads: the node, the container's arguments, the volume with its token that each pod has by a name of its own.

Pure: an object in, findings out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from kubectl_reconcile.core.objects import Manifest, ObjectRef, annotations_of, map_at
from kubectl_reconcile.core.scan.findings import PODS, ScanFinding, ScanSeverity, findings_of
from kubectl_reconcile.core.scan.pod_security import APP_ARMOR, Profile, is_plain_volume

_UNREAD_OF_POD: Final = frozenset({"hostname", "nodeName"})
_UNREAD_OF_CONTAINER: Final = frozenset({"args", "command", "volumeMounts"})
"""Fields that no check reads, and that pods differ in that are alike otherwise."""
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


class AlikePods:
    """What a scan by *profile* has found in pods, for others that are alike. It knows as much as it was asked, so it is for one scan."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[bytes, tuple[tuple[str, str, str, ScanSeverity], ...]] = {}

    def findings_of(self, manifest: Manifest) -> tuple[ScanFinding, ...]:
        """Return what `findings.findings_of` yields for a live object, each finding once."""
        ref = ObjectRef.of(manifest)
        place = PODS.get(ref.group_kind)
        if place is None:
            return tuple(dict.fromkeys(findings_of(manifest, self._profile)))
        counted = [ref.kind, ref.group, _counted(map_at(manifest, *place) if place else manifest)]
        key = hashlib.blake2b(orjson.dumps(counted), digest_size=32).digest()
        if (found := self._known.get(key)) is None:
            alone = dict.fromkeys(findings_of(manifest, self._profile))
            found = self._known[key] = tuple((each.check, each.path, each.demand, each.severity) for each in alone)
        return tuple([ScanFinding(ref, *each) for each in found])


def _counted(pod: Mapping[str, Any]) -> list[Any]:
    """Return what checks may read of a pod."""
    annotations = {name: value for name, value in annotations_of(pod).items() if name.startswith(APP_ARMOR)}
    return [annotations, _of_spec(pod["spec"])] if "spec" in pod else []


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
