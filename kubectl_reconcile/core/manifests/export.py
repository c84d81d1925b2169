"""A live object as somebody would have written it: the manifest by which it may be kept in Git.

What goes: everything that the server or a controller put there. The status and the server's own metadata; the marks of
tools; fields that nobody who writes manifests owns, which are defaults and what controllers
keep; and values that the schema gives as the field's default. Where ``kubectl apply`` kept a copy of what was applied, only
the fields of that copy stay, with the values that they have now.

Pure: values in, values out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.core.annotations import PREFIX
from kubectl_reconcile.core.objects import Manifest, annotations_of, controller_of, labels_of, mapping_of, metadata_of
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.ssa.csa_upgrade import LAST_APPLIED_NAME
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.lookup import extract
from kubectl_reconcile.core.ssa.managed_fields import owners_of
from kubectl_reconcile.core.ssa.schema import Schema, Type
from kubectl_reconcile.core.ssa.typed import ABSENT, fields_of
from kubectl_reconcile.core.ssa.values import same

CONTROLLERS = frozenset(
    {
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-apiserver",
        "cloud-controller-manager",
        "k3s",
        "GoogleGKE",
    }
)
"""Field managers that keep objects running, and never mean what a manifest says."""

_TOOL_PREFIXES = (
    "kubectl.kubernetes.io/", "deployment.kubernetes.io/", "applyset.kubernetes.io/", PREFIX,
    "meta.helm.sh/", "control-plane.alpha.kubernetes.io/", "pv.kubernetes.io/", "volume.kubernetes.io/",
)  # fmt: skip
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}
_POD = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
_TEMPLATE = {"template": {"spec": _POD}}
_KNOWN: Mapping[str, Mapping[str, Any]] = {
    "Deployment": {
        "spec": {
            **_TEMPLATE,
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        }
    },
    "StatefulSet": {
        "spec": {
            **_TEMPLATE,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        }
    },
    "DaemonSet": {
        "spec": {
            **_TEMPLATE,
            "revisionHistoryLimit": 10,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        }
    },
    "Service": {
        "spec": {
            "internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "type": "ClusterIP",
            "ipFamilyPolicy": "SingleStack",
        }
    },
}  # fmt: skip
"""Defaults that the API server fills in by its program, and no schema tells; from the reference of the API."""

_KEPT_OF_METADATA = ("name", "namespace", "labels", "annotations", "finalizers")


def why_not(live: Manifest) -> str:
    """Return why an object can't be brought under a Sync by a manifest; empty where it can."""
    owner = controller_of(live)
    if live.get("kind") == "Secret":
        return "the values of a Secret don't belong in Git"
    if owner is not None:
        return f"{owner.get('kind')} {owner.get('name')} controls it; adopt that"
    if set_id := labels_of(live).get(PART_OF):
        return f"it already belongs to another ApplySet, {set_id}"
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        return "it is being deleted"
    return ""


def as_manifest(live: Manifest, schema: Schema, namespace: str) -> dict[str, Any]:
    """Return *live* without the server's noise, as a manifest for a Sync whose objects are in *namespace*."""
    asked = _fields_meant(live, schema.root)
    found = live if asked is None else extract(dict(live), asked, schema.root)
    tree = (
        {} if found is ABSENT else {name: value for name, value in found.items() if name not in {"status", "metadata"}}
    )
    tree = _without_known(_without_defaults(tree, schema.root), _KNOWN.get(live["kind"], {}))
    metadata = _metadata(live, namespace)
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, **_without_identity(tree)}


def _without_identity(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in {"apiVersion", "kind"}}


def _fields_meant(live: Manifest, of: Type) -> FieldSet | None:
    """Return the fields that somebody asked for, None where nothing tells."""
    copied = annotations_of(live).get(LAST_APPLIED_NAME)
    if copied:
        try:
            return fields_of(json.loads(copied), of)
        except ValueError:
            pass  # somebody wrote something else there: the owners still tell
    try:
        owners = [owner for owner in owners_of(live) if not owner.subresource and owner.manager not in CONTROLLERS]
    except ValueError:
        return None  # entries that the server couldn't read either
    if not owners:
        return None
    meant = FieldSet()
    for owner in owners:
        meant = meant.union(owner.fields)
    return meant


def _metadata(live: Manifest, namespace: str) -> dict[str, Any]:
    metadata = metadata_of(live)
    found = {name: metadata[name] for name in _KEPT_OF_METADATA if metadata.get(name)}
    if found.get("namespace") == namespace:
        del found["namespace"]
    for name in ("labels", "annotations"):
        noted = mapping_of(found.pop(name, None))
        kept = {key: value for key, value in noted.items() if not key.startswith(_TOOL_PREFIXES)}
        if kept:
            found[name] = kept
    return found


def _without_defaults(value: Any, of: Type | None) -> Any:
    """Return *value* without fields that say no more than the schema's default would."""
    if isinstance(value, dict) and of is not None and of.map is not None and not of.map.atomic:
        out = {}
        for name, below in value.items():
            field = of.map.field(name)
            if field is not None and field.has_default and same(below, field.default):
                continue
            out[name] = _without_defaults(below, of.map.type_at(name))
        return out
    if isinstance(value, list) and of is not None and of.list is not None and not of.list.atomic:
        return [_without_defaults(item, of.list.item) for item in value]
    return value


def _without_known(value: Any, known: Any) -> Any:
    """Return *value* without the fields that are as *known* has them; a list's one entry is for each of its items."""
    if isinstance(value, list) and isinstance(known, list):
        return [_without_known(item, known[0]) for item in value]
    if not (isinstance(value, dict) and isinstance(known, Mapping)):
        return value
    return {
        name: _without_known(below, known.get(name))
        for name, below in value.items()
        if name not in known or not same(below, known[name])
    }
