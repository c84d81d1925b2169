"""A CR, its module and its children, and the plan for them."""

from __future__ import annotations

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.inputs import Keeps
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.planner import build_children
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.merge import three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import known

NOW = "2026-11-20T12:00:00Z"
CACHE = GroupVersionKind("example.com", "v1", "Cache")
REF = ObjectRef("example.com", "Cache", "shop", "web")
THINGS = {
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}},
                    }
                },
            }
        ],
    }
}
KINDS = {
    **kinds_of_crd(THINGS),
    CACHE: Kind(CACHE, "caches", namespaced=True, schema=UNKNOWN, custom=True, has_status=True),
    **{
        (gvk := GroupVersionKind.parse(api, kind)): Kind(gvk, f"{kind.lower()}s", namespaced=True, schema=UNKNOWN)
        for api, kind in (("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Pod"), ("v1", "PersistentVolumeClaim"))
    },
}


def cache(*, status=None, deleted=False, finalizers=(), **annotations):
    metadata = {"name": "web", "namespace": "shop", "uid": "u-1", "generation": 2, "resourceVersion": "5"}
    metadata |= {"annotations": annotations, "finalizers": list(finalizers)}
    metadata |= {"deletionTimestamp": NOW} if deleted else {}
    return {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": metadata, "spec": {}, "status": status or {}}


def child(name, kind="Thing", **content):
    api = "example.com/v1" if kind == "Thing" else "v1"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **content}


def live(manifest, *, owner="u-1", labelled=True, manager="kubectl-reconcile-cache"):
    """A child as it stands in the cluster after a pass."""
    metadata = {**manifest["metadata"], "namespace": "shop"}
    if labelled:
        metadata["labels"] = {"reconcile.dev/module": "cache"}
    if owner:
        controller = {"apiVersion": "example.com/v1", "kind": "Cache", "name": "web", "uid": owner}
        metadata["ownerReferences"] = [{**controller, "controller": True, "blockOwnerDeletion": True}]
    body = {**manifest, "metadata": metadata}
    owned = three_way(
        desired=body, live=None, schema=KINDS[GroupVersionKind.of(body)].schema, manager=manager
    ).owned.to_wire()
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": body["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }
    found = {**metadata, "uid": f"uid-{metadata['name']}", "resourceVersion": "7", "managedFields": [entry]}
    return {**body, "metadata": found}


def a_module(reconcile, **more):
    methods = {"reconcile": lambda _, *given: reconcile(*given)}
    methods |= {name: (lambda _, *given, do=do: do(*given)) for name, do in more.items()}
    owns = ["v1/Service", "example.com/v1/Thing", "v1/Pod", "v1/PersistentVolumeClaim"]
    keeps = [Keeps("v1", "PersistentVolumeClaim")]
    return module(api="example.com/v1", kind="Cache", owns=owns, name="cache", keeps=keeps)(type("Cache", (), methods))


def plan(one, cr, *cluster, observed=None):
    inputs = known(
        sync=Sync(name="", namespace="shop"),
        revision=Revision("", "", {}),
        desired=(),
        live=Objects(cluster),
        kinds=KINDS,
        modules={CACHE: one},
        now=NOW,
        grouped=False,
        observed={} if observed is None else {REF: observed},
    )
    return build_children(inputs, cr)


def wants(*children, **more):
    return a_module(lambda *_: Outcome(children, **more))


def conditions(made):
    return {
        one["type"]: (one["status"], one["reason"]) for one in made.outcomes.statuses[0].after["status"]["conditions"]
    }
