"""Objects, and patches of them, drawn at random, to hold what a Sync makes of them against kustomize on the same objects."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.render.renderer import Renderer

_NAMES = st.sampled_from(("web", "api", "db"))
_LABELS = st.dictionaries(st.sampled_from(("app", "tier", "on")), st.sampled_from(("a", "b", "yes")), max_size=2)
_IMAGES = st.sampled_from(("web:1", "registry.example.com/api", "db@sha256:" + "a" * 64))
_CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(("main", "side")), "image": _IMAGES},
        optional={"env": st.just([{"name": "A", "value": "1"}, {"name": "B", "value": "null"}])},
    ),
    min_size=1, max_size=2, unique_by=lambda each: each["name"],
)  # fmt: skip


def _workload(kind: str, api: str) -> st.SearchStrategy[dict[str, Any]]:
    spec = st.fixed_dictionaries(
        {
            "replicas": st.integers(0, 5),
            "template": st.fixed_dictionaries(
                {"metadata": st.just({"labels": {"app": "x"}}), "spec": st.fixed_dictionaries({"containers": _CONTAINERS})}
            ),
        }
    )  # fmt: skip
    return _object(api, kind, spec=spec)


def _object(api: str, kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    metadata = st.fixed_dictionaries({"name": _NAMES}, optional={"labels": _LABELS, "namespace": st.just("shop")})
    return st.fixed_dictionaries({"apiVersion": st.just(api), "kind": st.just(kind), "metadata": metadata, **fields})


_TEXTS = st.dictionaries(st.sampled_from(("a", "b", "c.conf")), st.sampled_from(("1", "true", "a: b\n", "${X}")))
_OBJECTS = st.lists(
    st.one_of(
        _workload("Deployment", "apps/v1"),
        _workload("StatefulSet", "apps/v1"),
        _object("v1", "ConfigMap", data=_TEXTS),
        _object("v1", "Service", spec=st.just({"ports": [{"port": 80}, {"port": 81, "name": "b"}], "selector": {"app": "x"}})),
        _object("example.com/v1", "Thing", spec=st.just({"items": [{"name": "a", "size": 1}, {"name": "b"}]})),
    ),
    min_size=1, max_size=4, unique_by=lambda each: (each["kind"], each["metadata"]["name"]),
)  # fmt: skip


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Objects, and what ``spec.source.kustomize`` says."""
    objects = draw(_OBJECTS)
    kustomize = st.fixed_dictionaries(
        {"patches": st.lists(_patches(objects), min_size=1, max_size=3)},
        optional={
            "images": st.just([{"name": "web", "newTag": "2"}, {"name": "db", "newName": "other", "digest": "sha256:" + "b" * 64}]),
            "commonMetadata": st.just({"labels": {"team": "shop", "app": "all"}, "annotations": {"by": "us"}}),
            "namePrefix": st.just("p-"),
            "nameSuffix": st.just("-s"),
        },
    )  # fmt: skip
    return objects, draw(kustomize)


def _patches(objects: list[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    one = st.sampled_from(objects)
    part = st.sampled_from(
        (
            {"metadata": {"labels": {"tier": "z"}, "annotations": {"n": "1"}}},
            {"spec": {"replicas": 7}},
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "9"}]}]}}}},
            {"spec": {"template": {"spec": {"containers": [{"name": "new", "image": "web:0"}]}}}},
            {"spec": {"ports": [{"port": 80, "name": "http"}]}},
            {"spec": {"items": [{"name": "c"}]}},
            {"data": {"a": None, "z": "26"}},
            {"$patch": "delete"},
        )
    )  # fmt: skip
    operations = st.sampled_from(
        (
            [{"op": "add", "path": "/metadata/labels", "value": {"only": "this"}}],
            [{"op": "replace", "path": "/spec/replicas", "value": 2}],
            [{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": ["a", 1]}],
            [{"op": "remove", "path": "/spec/ports/1"}],
            [{"op": "add", "path": "/data", "value": {"x~y": "1"}}, {"op": "test", "path": "/data/x~0y", "value": "1"}],
        )
    )  # fmt: skip
    target = st.sampled_from(
        ({"kind": "Deployment"}, {"name": "web|api"}, {"labelSelector": "app=a"}, {"kind": ".*Set"})
    )
    merged = st.builds(_merged, one, part)
    return st.one_of(
        merged.map(lambda each: {"patch": yaml.safe_dump(each)}),
        st.builds(lambda each, which: {"patch": json.dumps(each), "target": which}, merged, target),
        st.builds(lambda each, which: {"patch": json.dumps(each), "target": which}, operations, target),
    )


def _merged(each: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: each["metadata"][name] for name in ("name", "namespace") if name in each["metadata"]}
    return {
        "apiVersion": each["apiVersion"],
        "kind": each["kind"],
        **part,
        "metadata": {**part.get("metadata", {}), **metadata},
    }


def written(folder: Path, objects: list[dict[str, Any]], kustomize: Mapping[str, Any]) -> None:
    """Write the same objects as manifests, as an overlay and as a chart; and as what kustomize itself is to build."""
    text = "".join(f"---\n{yaml.safe_dump(each)}" for each in objects)
    fields = {name: value for name, value in kustomize.items() if name != "commonMetadata"}
    files = {
        "raw/all.yaml": text,
        "overlay/all.yaml": text,
        "overlay/kustomization.yaml": "resources: [all.yaml]\n",
        "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
        "chart/templates/all.yaml": text,
        "judge/kustomization.yaml": json.dumps({"resources": ["../overlay"], **fields}),
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def ours(renderer: Renderer, folder: Path, kustomize: Mapping[str, Any]) -> Desired:
    """Return what a Sync asks for that follows *folder*, as it is on this machine."""
    source = {"git": {"url": "https://git.example.com/shop.git"}, "kustomize": kustomize}
    sync = Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": {"source": source}})
    return ManifestReader(renderer=renderer).read(WorktreeSource(folder), sync)


def theirs(kubectl: Path, folder: Path, kustomize: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return what kustomize builds, with the metadata that all are to have; None where it refuses."""
    command = [kubectl, "kustomize", folder / "judge"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        return None
    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    for each in found:
        for name, values in (kustomize.get("commonMetadata") or {}).items():
            each["metadata"][name] = {**(each["metadata"].get(name) or {}), **values}
    return found


def difference(
    renderer: Renderer, kubectl: Path, folder: Path, pair: tuple[list[dict[str, Any]], dict[str, Any]]
) -> str:
    """Return how what a Sync makes of objects differs from what kustomize makes of them; empty where it doesn't."""
    objects, kustomize = pair
    written(folder, objects, kustomize)
    wanted = theirs(kubectl, folder, kustomize)
    for layout in ("raw", "overlay", "chart"):
        found = ours(renderer, folder / layout, kustomize)
        errors = [str(each) for each in found.problems if each.is_error]
        manifests = [each.manifest for each in found.manifests]
        if (wanted is None) != bool(errors):
            return (
                f"{layout}: kustomize {'refuses' if wanted is None else 'builds'} it, and here: {errors or manifests}"
            )
        if wanted is not None and _sorted(manifests) != _sorted(wanted):
            return f"{layout}: {json.dumps(manifests)} isn't {json.dumps(wanted)}"
    return ""


def _sorted(objects: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in objects)
