"""What a source asks for, whatever is in the cluster: what is wrong with it, and each object as one to be created.

That takes no cluster. Where there is none, nothing is known of the kinds that it serves, so none is a problem. Kinds that the source's own
CRDs bring have their schemas; of others neither fields nor defaults are known. What modules make of custom resources isn't shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import CRD, Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.rendering.substitution import NO_VALUES
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION, Decryption
from kubectl_reconcile.core.resources.helm import LookupPolicy
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.sync.credentials import fetched
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader
from kubectl_reconcile.engine.sync.fetching import SyncFetching
from kubectl_reconcile.engine.sync.session import release_of
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.variables import declared
from kubectl_reconcile.source.base import Source
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.source.remote import Credentials
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


async def plan(
    path: Path,
    name: str,
    namespace: str,
    *,
    recursive: bool = True,
    render: Render = Render.AUTO,
    decryption: Decryption | None = None,
) -> Plan:
    """Return what a sync of the files at *path* would do to an empty cluster, under the Sync *name* if one is given. Files are decrypted as *decryption* says, if it says anything.

    Raises:
        SourceError: nothing is there, or it can't be read.
    """
    sync = Sync.of({"metadata": {"name": name, "namespace": namespace}, "spec": {}})
    files = WorktreeSource(path, recursive=recursive, render=render, reaches=True)
    target = Target(
        sync,
        files,
        grouped=bool(name),
        reader=ManifestReader(fetching=_fetching(), decryption=decryption or NO_DECRYPTION),
    )
    return created(await in_thread(target.read), target)


def takes_cluster(sync: Sync) -> bool:
    """Tell whether what a Sync says of its source can't be known without a cluster: ConfigMaps, Secrets, what a chart looks up."""
    source = sync.source
    if source is None:
        return False
    return bool(source.holders or source.decryption.secret or (source.chart and source.chart.secret)) or (
        source.helm.lookup is LookupPolicy.CLUSTER
    )


async def plan_by(
    sync: Sync,
    files: Source,
    given: Mapping[str, Any],
    pin: ChartSpec | None = None,
    decryption: Decryption | None = None,
) -> Plan:
    """Return what a sync of *files* would do to an empty cluster, by what *sync* says of them, which takes no cluster.

    Charts are rendered with the values that are *given* over those of *sync*; *pin* is one of a Helm repository. Files are decrypted as *decryption* says, if it says anything.

    Raises:
        SourceError: nothing is there, or it can't be read.
    """
    spec = sync.source
    reader = ManifestReader(release_of=release_of, fetching=_fetching())
    pin = pin or (spec.chart if spec else None)
    reader.decrypt_with(decryption or NO_DECRYPTION)
    reader.give(given, fetched(pin, cache_dir(), SourcePolicy.of_person(), Credentials()) if pin else None)
    values = declared(spec.substitute, {}, sync.namespace) if spec else NO_VALUES
    target = Target(sync, files, grouped=bool(sync.name), reader=reader, values=values)
    return created(await in_thread(target.read), target)


def _fetching() -> SyncFetching:
    return SyncFetching(cache_dir(), SourcePolicy.of_person(), person=True)


def created(desired: Desired, target: Target, served: Discovery | None = None) -> Plan:
    """Return what *desired* comes to in a cluster that has none of it yet; what is *served* says which kinds are in namespaces."""
    return planner.build(
        Inputs(
            sync=target.sync,
            revision=desired.revision,
            desired=desired.manifests,
            live=Objects(()),
            kinds=_kinds(desired.manifests, served),
            now=now_text(),
            problems=desired.problems,
            grouped=target.grouped,
            whole=desired.whole,
        )
    )


def _kinds(manifests: Iterable[Located], served: Discovery | None) -> dict[GroupVersionKind, Kind]:
    """Return a kind for each that is asked for; those that CRDs of the source bring are told by these."""
    asked = {each.gvk for each in manifests}
    brought = {gvk for each in manifests if each.gvk.group_kind == CRD for gvk in kinds_of_crd(each.manifest)}
    return {gvk: _kind(gvk, served) for gvk in asked - brought}


def _kind(gvk: GroupVersionKind, served: Discovery | None) -> Kind:
    known = served.find(gvk.api_version, gvk.kind) if served else None
    namespaced = known.namespaced if known else gvk.group_kind not in _OF_THE_CLUSTER
    return Kind(gvk, f"{gvk.kind.lower()}s", namespaced, UNKNOWN, custom="." in gvk.group)
