"""Live objects as somebody would have written them."""

import json

import pytest

from kubectl_reconcile.core.manifests.export import as_manifest, why_not
from kubectl_reconcile.core.ssa.schema import UNKNOWN

NOISE = {
    "uid": "u1",
    "resourceVersion": "7",
    "generation": 3,
    "creationTimestamp": "2026-11-20T12:00:00Z",
    "selfLink": "/x",
}


def entry(manager, fields, operation="Update", **rest):
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **rest,
    }


def config(data, managed=(), **metadata):
    named = {"name": "web", "namespace": "shop", **NOISE, **metadata}
    if managed:
        named["managedFields"] = list(managed)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": data, "status": {"phase": "x"}}


DATA = {"f:data": {".": {}, "f:a": {}}}

WRITTEN = {
    "the server's noise goes": (config({"a": "1"}), {"metadata": {"name": "web"}, "data": {"a": "1"}}),
    "a namespace that isn't the Sync's stays": (
        config({}) | {"metadata": {"name": "web", "namespace": "other"}, "data": {"a": "1"}},
        {"metadata": {"name": "web", "namespace": "other"}, "data": {"a": "1"}},
    ),
    "marks of tools go, others stay": (
        config({"a": "1"}, labels={"app": "web", "applyset.kubernetes.io/x": "y"}, annotations={"deployment.kubernetes.io/revision": "1"}),
        {"metadata": {"name": "web", "labels": {"app": "web"}}, "data": {"a": "1"}},
    ),
    "what a controller owns goes": (
        config({"a": "1", "b": "2"}, [entry("kubectl-create", DATA), entry("kube-controller-manager", {"f:data": {"f:b": {}}})]),
        {"metadata": {"name": "web"}, "data": {"a": "1"}},
    ),
    "what nobody owns goes": (
        config({"a": "1", "b": "2"}, [entry("helm", DATA, "Apply")]),
        {"metadata": {"name": "web"}, "data": {"a": "1"}},
    ),
    "of what was applied on the client's side, the fields as they are now": (
        config({"a": "now", "b": "2"}, annotations={
            "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "then"}})
        }),
        {"metadata": {"name": "web"}, "data": {"a": "now"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("live", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_as_manifest(live, expected):
    found = as_manifest(live, UNKNOWN, "shop")
    assert found == {"apiVersion": "v1", "kind": "ConfigMap", **expected}
    assert list(found)[:3] == ["apiVersion", "kind", "metadata"]


REFUSED = {
    "a Secret": ({"kind": "Secret", "metadata": {}}, "don't belong in Git"),
    "what a controller keeps": ({"kind": "Pod", "metadata": {"ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]}}, "ReplicaSet web-1 controls it"),
    "a member of another set": ({"kind": "Pod", "metadata": {"labels": {"applyset.kubernetes.io/part-of": "applyset-x"}}}, "already belongs to another ApplySet"),
    "what is on its way out": ({"kind": "Pod", "metadata": {"deletionTimestamp": "2026-11-20T12:00:00Z"}}, "being deleted"),
}  # fmt: skip


@pytest.mark.parametrize(("live", "message"), REFUSED.values(), ids=REFUSED)
def test_what_can_t_be_adopted_says_why(live, message):
    assert message in why_not(live)
