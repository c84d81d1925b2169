"""``import``: objects of another tool gathered from files or a cluster, digests of charts asked for, and Syncs written to files.

Of Secrets, only names, keys and the URLs of repositories are kept once they are read. Nothing is written to a cluster.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound
from kubectl_reconcile.core.importing.tools import Gathered, Tool, pinned, unpinned
from kubectl_reconcile.core.importing.units import Imported, Unit
from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.objects import GroupKind, Problem, errors_among
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.base import Fetching
from kubectl_reconcile.source.errors import SourceError, SourceFault

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_SIGNS: Final = (b"fluxcd.io/", b"argoproj.io/", b"kustomize.config.k8s.io/", b"ConfigMap", b"Secret")
"""What a file has in it that matters; others aren't parsed."""
_TOOLS: Final = (b"toolkit.fluxcd.io/", b"argoproj.io/v1alpha1")
_REPOSITORIES: Final = "argocd.argoproj.io/secret-type in (repository,repo-creds)"
_AT_ONCE: Final = 8


def from_files(place: Path, gathered: Gathered) -> tuple[Problem, ...]:
    """Gather what is in a file, or in all files below a folder; return what is wrong with files that may have objects of a tool.

    Raises:
        SourceError: a file can't be read.
    """
    problems: list[Problem] = []
    for file in _files(place):
        name = file.relative_to(place).as_posix() if place.is_dir() else ""
        if file.name in _KUSTOMIZATIONS:
            gathered.overlays.add(posixpath.dirname(name) or ".")
        try:
            data = file.read_bytes()
        except OSError as error:
            raise SourceError(SourceFault.UNREADABLE, f"{file} can't be read: {error.strerror}") from None
        if any(sign in data for sign in _SIGNS):
            documents, wrong = yaml_reader.read(data, name or file.name)
            for each in documents:
                if isinstance(each.tree, dict):
                    gathered.add(each.tree, name)
            if any(sign in data for sign in _TOOLS):
                problems += errors_among(wrong)
    return tuple(problems)


def _files(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(each for each in folders if each != ".git")
        for name in sorted(names):
            file = Path(folder, name)
            if (name.endswith(_SUFFIXES) or name in _KUSTOMIZATIONS) and not file.is_symlink():
                yield file


# --- from a cluster -------------------------------------------------------------------------------------------------------


async def from_cluster(session: Session, tool: Tool, namespace: str, gathered: Gathered) -> tuple[str, ...]:
    """Gather the objects of a tool in *namespace*, or in all; return what couldn't be read, in sentences.

    Raises:
        SourceError: the tool isn't there.
        ApiError: the server refuses, or doesn't answer.
    """
    lacks: list[str] = []
    kinds = [GroupKind(each.group, each.kind) for each in tool.tables]
    if not [kind for kind in kinds if await _listed(session, kind, namespace, gathered)]:
        raise SourceError(
            SourceFault.NO_SUCH_PATH,
            f"this cluster has none of the kinds of {tool.known_as}",
            "-f reads them from files",
        )
    for kind in tool.kinds:
        if kind not in kinds:
            try:
                await _listed(session, kind, namespace, gathered)
            except Forbidden as error:
                lacks.append(f"{kind}: {error}")
    if tool is Tool.ARGOCD:
        await _repositories(session, namespace, gathered, lacks)
    else:
        for holder, place, name in {*gathered.wanted_values()}:
            await _holder(session, holder, place, name, gathered, lacks)
    return tuple(lacks)


async def _listed(session: Session, kind: GroupKind, namespace: str, gathered: Gathered) -> bool:
    resource = session.discovery.find_kind(kind)
    if resource is None:
        return False
    items, _ = await session.client.list(resource.collection(namespace))
    for each in items:
        gathered.add({"apiVersion": resource.gvk.api_version, "kind": kind.kind, **each})
    return True


async def _repositories(session: Session, namespace: str, gathered: Gathered, lacks: list[str]) -> None:
    """Gather which repositories Argo CD has credentials of."""
    path = f"/api/v1/namespaces/{namespace}/secrets" if namespace else "/api/v1/secrets"
    try:
        items, _ = await session.client.list(path, labelSelector=_REPOSITORIES)
    except Forbidden as error:
        lacks.append(f"Secrets with credentials of repositories: {error}")
        return
    for each in items:
        gathered.add({"apiVersion": "v1", "kind": "Secret", **each})


async def _holder(session: Session, kind: str, namespace: str, name: str, gathered: Gathered, lacks: list[str]) -> None:
    """Gather a ConfigMap or a Secret whose keys are variables."""
    plural = {"ConfigMap": "configmaps", "Secret": "secrets"}.get(kind)
    if plural is None:
        return
    try:
        live = await session.client.get(f"/api/v1/namespaces/{namespace}/{plural}/{name}")
    except NotFound:
        return
    except ApiError as error:
        lacks.append(f"{kind} {namespace}/{name}: {error}")
        return
    gathered.add({**live, "apiVersion": "v1", "kind": kind})


# --- digests ----------------------------------------------------------------------------------------------------------------


def with_digests(found: Imported, fetching: Fetching) -> Imported:
    """Return what was found with the digests that repositories have for its charts now; one that doesn't answer is a finding. Blocks."""

    def asked(chart: ChartSpec) -> tuple[ChartSpec, str, str]:
        try:
            return chart, fetching.chart(chart).published(), ""
        except SourceError as error:
            return chart, "", str(error)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = [*pool.map(asked, unpinned(found))]
    digests = {chart: digest for chart, digest, _ in answers if digest}
    return pinned(found, digests, {chart: fault for chart, digest, fault in answers if not digest})


# --- files of Syncs -----------------------------------------------------------------------------------------------------------


def files_of(units: Iterable[Unit]) -> dict[str, list[Unit]]:
    """Return the units by the file that their Syncs belong in: that which they came from, else one of their own."""
    found: dict[str, list[Unit]] = {}
    for unit in units:
        if unit.syncs:
            found.setdefault(unit.file or _own_file(unit), []).append(unit)
    return found


def _own_file(unit: Unit) -> str:
    namespace, name = (
        re.sub(r"[^a-z0-9.-]", "-", text.lower()).lstrip(".") or "-"
        for text in (unit.ref.namespace, unit.syncs[0]["metadata"]["name"])
    )
    return f"{namespace}/{name}.yaml"


def write(folder: Path, texts: dict[str, str]) -> None:
    """Write files below *folder*, none of which may be there yet.

    Raises:
        SourceError: one is there, or can't be written.
    """
    there = [name for name in texts if (folder / name).exists()]
    if there:
        raise SourceError(
            SourceFault.UNREADABLE,
            f"{folder / there[0]} is there already",
            "name an empty folder: nothing is overwritten",
        )
    for name, text in texts.items():
        file = folder / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise SourceError(SourceFault.UNREADABLE, f"{file} can't be written: {error.strerror}") from None
