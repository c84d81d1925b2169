"""Services that Git asks for, with what is said on them: manifests, what the cluster holds of them, and the plan for both."""

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import FIELD_MANAGER, GroupVersionKind
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import applyset_id, member
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.merge import three_way
from tests.core.planning.changes import known
from tests.core.ssa.built_in_schemas import SCHEMAS

NOW = "2026-11-20T12:00:00Z"
SHOP, OTHER = Sync(name="shop", namespace="shop"), Sync(name="other", namespace="shop")
SHOP_ID, OTHER_ID = applyset_id(SHOP.ref), applyset_id(OTHER.ref)
SERVICE = SCHEMAS[GroupVersionKind("", "v1", "Service")]
SCOPES = {
    ("v1", "Service"): True,
    ("batch/v1", "Job"): True,
    ("v1", "Namespace"): False,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): False,
}
KINDS = {
    (gvk := GroupVersionKind.parse(api, kind)): Kind(gvk, f"{kind.lower()}s", namespaced=namespaced, schema=SERVICE)
    for (api, kind), namespaced in SCOPES.items()
}


def service(name="web", kind="v1/Service", namespace="shop", **annotations):
    """An object with annotations of ours: ``service(depends_on=…)``."""
    api, _, kind = kind.rpartition("/")
    noted = {f"reconcile.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        **({"annotations": noted} if noted else {}),
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def live(manifest, *, set_id=SHOP_ID, manager=FIELD_MANAGER, source="a.yaml", version="7"):
    marked = member(manifest, set_id=set_id, source=source) if set_id else manifest
    merge = three_way(desired=marked, live=None, schema=SERVICE)
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": manifest["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": merge.owned.to_wire(),
    }
    facts = {"uid": f"uid-{manifest['metadata']['name']}", "resourceVersion": version, "managedFields": [entry]}
    return {**merge.merged, "metadata": {**merge.merged["metadata"], **facts}}


def plan(desired, cluster=(), *, sync=SHOP, **more):
    """The plan for manifests, the first at ``a.yaml:1``, the second at ``b.yaml:2``."""
    found = [
        each if isinstance(each, Located) else Located.of(each, f"{'abcdef'[at]}.yaml", at + 1)
        for at, each in enumerate(desired)
    ]
    files = {each.path: f"blob-{each.path}" for each in found}
    more = {"revision": Revision("c0ffee", NOW, files), "kinds": KINDS, "now": NOW, **more}
    return build(known(sync=sync, desired=found, live=Objects(cluster), **more))


def only(made, name="web"):
    (change,) = [change for change in made.changes if change.ref.name == name]
    return change
