"""Kinds whose module is a hook of Metacontroller's: their CRDs and controllers."""

from __future__ import annotations

KINDS = {"CatSet": "catsets", "PerPod": "perpods", "BlueGreen": "bluegreens", "Slow": "slows"}
API = "hooks.example.com/v1"


def crd(kind):
    plural = KINDS[kind]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"group": "hooks.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{plural}.hooks.example.com"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def controller(kind, url, *children, finalize=False, timeout="5s"):
    hook = {"webhook": {"url": url, "timeout": timeout}}
    spec = {
        "parentResource": {"apiVersion": API, "resource": KINDS[kind]},
        "childResources": [
            {"apiVersion": "v1", "resource": resource, "updateStrategy": {"method": method}}
            for resource, method in children
        ],
        "hooks": {"sync": hook, **({"finalize": hook} if finalize else {})},
    }
    metadata = {"name": kind.lower()}
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": metadata,
        "spec": spec,
    }
