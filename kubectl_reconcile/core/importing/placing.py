"""The namespaces of objects in files that don't name one, as the tools around them would fill them in.

Vocabulary: a *part* of a repository is the folder that a Kustomization of Flux applies. What kustomize builds has the namespace that its
nearest kustomization names, from its own folder upwards.

Rules: an object keeps its own namespace. Otherwise it has the target namespace of the part that it is in, else that of the nearest kustomization
file within the part, else the default.

Pure: documents in, documents out.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_reconcile.core.importing.flux_fields import KUSTOMIZE
from kubectl_reconcile.core.importing.units import Placed
from kubectl_reconcile.core.objects import ObjectRef, text_at

_BUILT_BY: Final = "kustomize.config.k8s.io"


def placed(documents: Sequence[Placed], default: str) -> Iterator[Placed]:
    """Yield objects with a namespace, *default* where nothing says which, and without what only kustomize reads."""
    refs = [ObjectRef.of(each.manifest) for each in documents]
    built = {
        posixpath.dirname(each.file): text_at(each.manifest, "namespace") for each, ref in zip(documents, refs, strict=True)
        if ref.kind in {"Kustomization", "Component"} and ref.group == _BUILT_BY and text_at(each.manifest, "namespace")
    }  # fmt: skip
    parts = {
        posixpath.normpath(text_at(each.manifest, "spec", "path").lstrip("/")): text_at(
            each.manifest, "spec", "targetNamespace"
        )
        for each, ref in zip(documents, refs, strict=True)
        if ref.group == KUSTOMIZE and text_at(each.manifest, "spec", "path")
    }
    for each, ref in zip(documents, refs, strict=True):
        if ref.group == _BUILT_BY:
            continue
        if ref.namespace:
            yield each
            continue
        metadata = {**each.manifest["metadata"], "namespace": _namespace(each.file, built, parts) or default}
        yield Placed({**each.manifest, "metadata": metadata}, each.file)


def _namespace(file: str, built: dict[str, str], parts: dict[str, str]) -> str:
    for folder in _upwards(posixpath.dirname(file)):
        if parts.get(folder):
            return parts[folder]
        if folder in built and not _part_above(folder, parts):
            return built[folder]
        if folder in parts:
            return ""
    return ""


def _part_above(folder: str, parts: dict[str, str]) -> str:
    """Return the target namespace of the part that has *folder*, which is set after kustomize has built it."""
    return next((parts[above] for above in _upwards(folder) if above in parts), "")


def _upwards(folder: str) -> Iterable[str]:
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield "."
