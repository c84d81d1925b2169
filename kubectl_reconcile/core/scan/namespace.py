"""What a scan finds among objects that are looked at together: all of a namespace, or of several.

An object that is made by another one of these (the pods of a Deployment's ReplicaSet) isn't looked at by itself: its maker is, where somebody can change it.
Nor is the Job of a check, nor one that is being deleted. A Service is held against the pods that are there and those that workloads make.

Pure: objects in, findings out. The order of the objects doesn't matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from kubectl_reconcile.core.checkups import CHECKUP
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.scan.findings import ScanFinding, endpoints_finding, findings_of
from kubectl_reconcile.core.scan.notes import PodNote, ScanNote, ServiceNote, note_of
from kubectl_reconcile.core.scan.rules import ScanRules

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

Look: TypeAlias = Callable[[ObjectRef], Iterable[ScanFinding]]
"""What is found in the object of that reference by itself."""


def findings_among(manifests: Iterable[Manifest], rules: ScanRules) -> list[ScanFinding]:
    """Return what a scan by *rules* finds, each finding once: the objects in the order of their references, of each the findings in the order of its fields."""
    there = {ObjectRef.of(each): each for each in manifests}
    return found_in(map(note_of, there.values()), rules, lambda ref: findings_of(there[ref], rules.profile))


def found_in(notes: Iterable[ScanNote], rules: ScanRules, look: Look) -> list[ScanFinding]:
    """Return what a scan finds among the objects of *notes*; *look* is asked for those that are looked at by themselves."""
    there = {each.ref: each for each in notes if not each.goes}
    nearby = _pods(there.values())
    found: dict[ScanFinding, None] = {}
    for ref in sorted(ref for ref, note in there.items() if not is_made(note, there)):
        found |= dict.fromkeys(look(ref))
        if service := there[ref].service:
            found |= dict.fromkeys(_of_service(ref, service, nearby))
    return [each for each in found if not rules.leave_out(each)]


def is_made(note: ScanNote, there: Container[ObjectRef]) -> bool:
    """Tell whether an object is made by another one that is *there*, or is the Job of a check, which comes and goes."""
    if note.maker is None or note.maker == note.ref:  # nothing makes itself, though anything may say so
        return False
    is_job = note.ref.group_kind == GroupKind("batch", "Job")
    return note.maker in there or (is_job and note.maker.group_kind == CHECKUP)


# --- Services -------------------------------------------------------------------------------------

_Nearby: TypeAlias = Mapping[tuple[str, str, str], Sequence[PodNote]]
"""The pods that are there or are made, by namespace and by each of their labels."""


def _pods(notes: Iterable[ScanNote]) -> _Nearby:
    found: dict[tuple[str, str, str], list[PodNote]] = defaultdict(list)
    for note in notes:
        if (pod := note.pod) is not None:
            for key, value in pod.labels.items():
                found[note.ref.namespace, key, value].append(pod)
    return found


def _of_service(ref: ObjectRef, service: ServiceNote, nearby: _Nearby) -> Iterator[ScanFinding]:
    """Yield why nobody answers for a Service."""
    rarest = min((nearby.get((ref.namespace, key, value), ()) for key, value in service.selector.items()), key=len)
    selected = [pod for pod in rarest if service.selector.items() <= pod.labels.items()]
    if not selected:
        yield endpoints_finding(
            ref, ".spec.selector", "must select pods: nothing in the namespace has or creates pods with these labels"
        )
        return
    names = frozenset().union(*(pod.ports for pod in selected))
    for path, target in service.targets:
        if target not in names:
            yield endpoints_finding(ref, path, "must be the name of a port of the pods that are selected")
