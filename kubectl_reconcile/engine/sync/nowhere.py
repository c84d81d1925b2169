"""What files ask for where no cluster is configured: what is wrong with them, and each object as one to be created.

Nothing is known of the kinds that a cluster serves, so none is a problem. Kinds that the files' own CRDs bring have their schemas; of others
neither fields nor defaults are known. What modules make of custom resources isn't shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import CRD, Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.running.threads import in_thread

_OF_THE_CLUSTER: Final = frozenset(
    {GroupKind("", kind) for kind in ("Namespace", "Node", "PersistentVolume")}
    | {GroupKind("rbac.authorization.k8s.io", kind) for kind in ("ClusterRole", "ClusterRoleBinding")}
    | {
        GroupKind("admissionregistration.k8s.io", f"{what}{kind}")
        for what in ("Mutating", "Validating")
        for kind in ("AdmissionPolicy", "AdmissionPolicyBinding", "WebhookConfiguration")
    }
    | {
        GroupKind("storage.k8s.io", kind)
        for kind in ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass")
    }
    | {GroupKind("flowcontrol.apiserver.k8s.io", kind) for kind in ("FlowSchema", "PriorityLevelConfiguration")}
    | {
        CRD,
        GroupKind("apiregistration.k8s.io", "APIService"),
        GroupKind("certificates.k8s.io", "CertificateSigningRequest"),
        GroupKind("networking.k8s.io", "IngressClass"),
        GroupKind("node.k8s.io", "RuntimeClass"),
        GroupKind("resource.k8s.io", "DeviceClass"),
        GroupKind("scheduling.k8s.io", "PriorityClass"),
    }
)
"""Kinds of Kubernetes' own whose objects are in no namespace."""


async def plan(path: Path, name: str, namespace: str, *, recursive: bool = True, render: Render = Render.AUTO) -> Plan:
    """Return what a sync of the files at *path* would do to an empty cluster, under the Sync *name* if one is given.

    Raises:
        SourceError: nothing is there, or it can't be read.
    """
    sync = Sync.of({"metadata": {"name": name, "namespace": namespace}, "spec": {}})
    files = WorktreeSource(path, recursive=recursive, render=render, reaches=True)
    desired = await in_thread(lambda: ManifestReader().read(files, sync))
    return planner.build(
        Inputs(
            sync=sync,
            revision=desired.revision,
            desired=desired.manifests,
            live=Objects(()),
            kinds=_kinds(desired.manifests),
            now=now_text(),
            problems=desired.problems,
            grouped=bool(name),
            whole=desired.whole,
        )
    )


def _kinds(manifests: Iterable[Located]) -> dict[GroupVersionKind, Kind]:
    """Return a kind for each that is asked for; those that CRDs of the source bring are told by these."""
    asked = {each.gvk for each in manifests}
    brought = {gvk for each in manifests if each.gvk.group_kind == CRD for gvk in kinds_of_crd(each.manifest)}
    return {
        gvk: Kind(gvk, f"{gvk.kind.lower()}s", gvk.group_kind not in _OF_THE_CLUSTER, UNKNOWN, custom="." in gvk.group)
        for gvk in asked - brought
    }
