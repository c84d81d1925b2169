"""How fast the merge is where nothing changed, which is nearly always. Needs no cluster: `python benchmarks/merge_speed.py`.

Prints one line per figure with its budget, and exits 1 if one is exceeded.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.merge import Verdict, three_way
from kubectl_reconcile.core.ssa.schema import Schema, schema_of_crd, schemas_of_document
from kubectl_reconcile.core.ssa.typed import fields_of

API_VERSION = "bench.example.com/v1"


def _properties(count: int, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {f"field{index}": spec for index in range(count)}


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "caches.bench.example.com"},
    "spec": {
        "group": "bench.example.com",
        "names": {"kind": "Cache", "plural": "caches"},
        "versions": [
            {
                "name": "v1",
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    **_properties(10, {"type": "string"}),
                                    "size": {"type": "integer", "default": 3},
                                    "options": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "ports": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def custom_resource(name: str = "one") -> dict[str, Any]:
    """Return a CR of 25 leaves."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Cache",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": {"app": "cache", "applyset.kubernetes.io/part-of": "applyset-x-v1"},
            "annotations": {"reconcile.dev/source": f"caches/{name}.yaml"},
        },
        "spec": {
            **{f"field{index}": f"value {index}" for index in range(10)},
            "size": 3,
            "options": {"maxmemory": "64m", "threads": "4", "verbose": "no"},
            "ports": [{"name": "main", "port": 11211}, {"name": "admin", "port": 11212}],
        },
    }


def _container(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": f"registry.example.com/{name}:1.2.3",
        "args": ["--verbose", "--port=8080"],
        "env": [{"name": f"KEY_{index}", "value": f"value {index}"} for index in range(6)],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"name": "admin", "containerPort": 9090}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/etc/app"}],
    }


def deployment(name: str = "web") -> dict[str, Any]:
    """Return a Deployment of some 80 leaves."""
    labels = {"app": name, "app.kubernetes.io/part-of": "shop"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "labels": labels,
            "annotations": {"reconcile.dev/source": "web.yaml"},
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [_container("web"), _container("sidecar")],
                    "volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "web"}}],
                    "terminationGracePeriodSeconds": 30,
                },
            },
        },
    }


def config_map(name: str) -> dict[str, Any]:
    """Return a ConfigMap of ten keys."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
        "data": {f"key{index}": "some text\n" * 4 for index in range(10)},
    }


def as_applied(desired: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return *desired* as it lives after an apply, with what a server adds."""
    entry = {
        "manager": "kubectl-reconcile",
        "operation": "Apply",
        "apiVersion": desired["apiVersion"],
        "time": "2026-11-21T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": (fields_of(desired, schema.root) - STRIPPED).to_wire(),
    }
    status = {
        "manager": "controller",
        "operation": "Update",
        "subresource": "status",
        "apiVersion": desired["apiVersion"],
        "time": "2026-11-21T00:00:01Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": FieldSet.of([("f:status", "f:conditions"), ("f:status", "f:observedGeneration")]).to_wire(),
    }
    metadata = {
        **desired["metadata"],
        "uid": "6e2f3c1a-0c1d-4f53-9a52-5a1d3a7a0c11",
        "resourceVersion": "123456",
        "generation": 2,
        "creationTimestamp": "2026-11-20T00:00:00Z",
        "managedFields": [entry, status],
    }
    return {**desired, "metadata": metadata, "status": {"observedGeneration": 2, "conditions": []}}


def best_us(run: Callable[[], object], *, rounds: int = 7, per_round: int = 300) -> float:
    """Return the processor time of one *run* in microseconds, the best of several rounds."""
    run()
    times = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(per_round):
            run()
        times.append((time.process_time() - began) / per_round * 1e6)
    return min(times)


def built_in_schemas() -> Mapping[Any, Schema]:
    """Return schemas of the two built-in kinds used here, cut to what they use, as the server publishes them."""
    return {schema.gvk.kind: schema for schema in schemas_of_document(DOCUMENT).values()}


def _ref(name: str, **more: Any) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], **more}


def _list_map(item: str, *keys: str) -> dict[str, Any]:
    return {
        "type": "array",
        "items": _ref(item, default={}),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


_STRING = {"type": "string"}
_NUMBER = {"type": "integer", "format": "int32"}
_TABLE = {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TEXTS = {"type": "array", "items": _STRING, "x-kubernetes-list-type": "atomic"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _kind(group: str, version: str, kind: str, **properties: Any) -> dict[str, Any]:
    gvk = {"group": group, "version": version, "kind": kind}
    root = _object(apiVersion=_STRING, kind=_STRING, metadata=_ref(_META, default={}), **properties)
    return {**root, "x-kubernetes-group-version-kind": [gvk]}


_QUANTITIES = {"type": "object", "additionalProperties": {"$ref": f"#/components/schemas/{_QUANTITY}"}}
DOCUMENT: dict[str, Any] = {
    "components": {
        "schemas": {
            "io.k8s.api.apps.v1.Deployment": _kind("apps", "v1", "Deployment", spec=_ref("Spec"), status=_object()),
            "io.k8s.api.core.v1.ConfigMap": _kind("", "v1", "ConfigMap", data=_TABLE),
            "Spec": _object(replicas=_NUMBER, selector=_ref("Selector"), template=_ref("Template", default={})),
            "Selector": {**_object(matchLabels=_TABLE), "x-kubernetes-map-type": "atomic"},
            "Template": _object(metadata=_ref(_META, default={}), spec=_ref("PodSpec")),
            "PodSpec": _object(
                containers=_list_map("Container", "name"),
                volumes=_list_map("Volume", "name"),
                terminationGracePeriodSeconds=_NUMBER,
            ),
            "Container": _object(
                name=_STRING,
                image=_STRING,
                args=_TEXTS,
                env=_list_map("EnvVar", "name"),
                ports=_list_map("Port", "containerPort", "protocol"),
                resources=_object(limits=_QUANTITIES, requests=_QUANTITIES),
                readinessProbe=_object(
                    httpGet=_object(path=_STRING, port={"x-kubernetes-int-or-string": True}), periodSeconds=_NUMBER
                ),
                volumeMounts=_list_map("Mount", "mountPath"),
            ),
            "EnvVar": _object(name=_STRING, value=_STRING),
            "Port": _object(name=_STRING, containerPort=_NUMBER, protocol={**_STRING, "default": "TCP"}),
            "Mount": _object(name=_STRING, mountPath=_STRING),
            "Volume": _object(name=_STRING, emptyDir=_object(), configMap=_object(name=_STRING)),
            _QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
            _META: _object(name=_STRING, namespace=_STRING, labels=_TABLE, annotations=_TABLE),
        }
    }
}


def unchanged_us(desired: Mapping[str, Any], schema: Schema) -> float:
    """Return what a verdict on an unchanged object costs, in microseconds."""
    live = orjson.loads(orjson.dumps(as_applied(desired, schema)))
    desired = orjson.loads(orjson.dumps(desired))
    if three_way(desired=desired, live=live, schema=schema).verdict is not Verdict.SAME:
        raise SystemExit(f"{desired['kind']} isn't unchanged")
    return best_us(lambda: three_way(desired=desired, live=live, schema=schema))


def sync_of_10k_s(custom: Schema, built_in: Mapping[Any, Schema]) -> tuple[float, float]:
    """Return the seconds to parse 10,000 live objects and judge them unchanged, and the MB to hold them as bytes."""
    desired = [
        *(custom_resource(f"cache-{index}") for index in range(6000)),
        *(config_map(f"config-{index}") for index in range(3000)),
        *(deployment(f"web-{index}") for index in range(1000)),
    ]
    schemas = {"Cache": custom, **built_in}
    lives = [orjson.dumps(as_applied(manifest, schemas[manifest["kind"]])) for manifest in desired]
    pages = [b'{"items":[' + b",".join(lives[start : start + 1000]) + b"]}" for start in range(0, len(lives), 1000)]
    held = sum(map(sys.getsizeof, lives)) / 1e6
    gc.collect()
    gc.freeze()
    began = time.process_time()
    number = 0
    for page in pages:
        for live in orjson.loads(page)["items"]:
            manifest = desired[number]
            if three_way(desired=manifest, live=live, schema=schemas[manifest["kind"]]).verdict is not Verdict.SAME:
                raise SystemExit(f"{manifest['metadata']['name']} isn't unchanged")
            number += 1
    return time.process_time() - began, held


def main() -> int:
    """Measure, print, and say by the exit status whether all budgets were kept."""
    custom, built_in = schema_of_crd(CRD, "v1"), built_in_schemas()
    cr, web = custom_resource(), deployment()
    leaves = {
        "CR": len(fields_of(cr, custom.root).leaves()),
        "Deployment": len(fields_of(web, built_in["Deployment"].root).leaves()),
    }
    seconds, held = sync_of_10k_s(custom, built_in)
    figures = [
        (f"unchanged CR of {leaves['CR']} leaves", unchanged_us(cr, custom), 40, "µs"),
        (
            f"unchanged Deployment of {leaves['Deployment']} leaves",
            unchanged_us(web, built_in["Deployment"]),
            250,
            "µs",
        ),
        ("10,000 mixed objects unchanged, parsing included", seconds, 1.5, "s"),
        ("10,000 live objects held as bytes", held, 60, "MB"),
    ]
    for what, value, budget, unit in figures:
        print(f"{what:<52}{value:>9.2f} {unit:<3} (at most {budget:g})")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return int(any(value > budget for _, value, budget, _ in figures))


if __name__ == "__main__":
    sys.exit(main())
