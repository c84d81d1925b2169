"""A shop of caches: its manifests, what the cluster holds of them, and the plan for both."""

from pathlib import Path

from kubectl_reconcile.core.manifests.parse import Located, parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import FIELD_MANAGER, GroupVersionKind
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import applyset_id, member
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.merge import three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import known

CRDS = Path(__file__).parents[3] / "crds"
NOW = "2026-11-20T12:00:00Z"
SHOP = Sync(name="shop", namespace="shop")
SHOP_ID = applyset_id(SHOP.ref)


def kinds_from_crds():
    manifests = (
        each.manifest for file in CRDS.glob("*.yaml") for each in parse(file.read_bytes(), file.name).manifests
    )
    return {gvk: kind for crd in manifests for gvk, kind in kinds_of_crd(crd).items()}


def built_in(api_version, name, plural, *, namespaced=True):
    return Kind(GroupVersionKind.parse(api_version, name), plural, namespaced, UNKNOWN)


BUILT_IN = [
    built_in("v1", "Namespace", "namespaces", namespaced=False),
    built_in("v1", "ConfigMap", "configmaps"),
    built_in("v1", "Service", "services"),
    built_in("apps/v1", "Deployment", "deployments"),
    built_in("batch/v1", "Job", "jobs"),
    built_in(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
    ),
    built_in("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False),
]
KINDS = {kind.gvk: kind for kind in BUILT_IN} | kinds_from_crds()
MEMCACHED = GroupVersionKind("cache.example.com", "v1alpha1", "Memcached")


def cache(name, size=2, **metadata):
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": "shop", **metadata},
        "spec": {"size": size},
    }


def written(manifest, path="caches.yaml", line=1):
    return Located.of(manifest, path, line)


def live(manifest, *, uid=None, path="caches.yaml", set_id=SHOP_ID, manager=FIELD_MANAGER, **metadata):
    """The manifest as the cluster holds it after a sync."""
    marked = member(manifest, set_id=set_id, source=path) if set_id else manifest
    merge = three_way(desired=marked, live=None, schema=KINDS[GroupVersionKind.of(manifest)].schema)
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": manifest["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": merge.owned.to_wire(),
    }
    facts = {"uid": uid or f"uid-{manifest['metadata']['name']}", "resourceVersion": "7", "generation": 1, **metadata}
    return {**merge.merged, "metadata": {**merge.merged["metadata"], **facts, "managedFields": [entry]}}


def plan(desired, cluster=(), **more):
    return build(inputs_of(desired, cluster, **more))


def inputs_of(desired, cluster=(), *, sync=SHOP, modules=None, revision=None, **more):
    manifests = [
        each if isinstance(each, Located) else written(each, line=1 + 10 * at) for at, each in enumerate(desired)
    ]
    files = {each.path: f"blob-of-{each.path}" for each in manifests}
    return known(
        sync=sync,
        revision=revision or Revision("c0ffee" + "0" * 34, NOW, files),
        desired=manifests,
        live=Objects(cluster),
        kinds=KINDS,
        modules=modules or {},
        now=NOW,
        **more,
    )


def config(name, namespace="shop", **annotations):
    noted = {f"reconcile.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": name, "namespace": namespace, **({"annotations": noted} if noted else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def hook(point, name="migrate"):
    annotations = {"reconcile.dev/hook": point}
    metadata = {"name": name, "namespace": "shop", "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {}}}
