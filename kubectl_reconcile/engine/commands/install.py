"""Brings us into a cluster, and out of it again: our CRDs, and what runs the daemon.

Applied server-side and waited for, so that whatever comes next can rely on it. What is there
already and as it should be isn't written again.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import kubectl_reconcile
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError, NotFound
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.manifests.parse import Located, parse
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Change, Gate, Op, Plan
from kubectl_reconcile.core.planning.rights.entrusted import EntrustedFields, entrusted_fields
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.apply.writer import Hooks, Writer
from kubectl_reconcile.engine.sync.session import Session


class InstallError(Exception):
    """Some of our CRDs could not be installed; the message says which and why."""


def data_folder(name: str) -> Path:
    """Return a folder of manifests that comes with us: inside the package, or beside it in a checkout."""
    package = Path(kubectl_reconcile.__file__).parent
    return next(place for place in (package / name, package.parent / name) if place.is_dir())


def crds() -> list[Located]:
    """Return the CRDs that come with us."""
    files = sorted(data_folder("crds").glob("*.yaml"))
    return [located for file in files for located in _read(file)]


@functools.cache
def _read(file: Path) -> tuple[Located, ...]:
    return tuple(parse(file.read_bytes(), f"crds/{file.name}").manifests)


def entrusted(kinds: Iterable[GroupKind]) -> EntrustedFields:
    """Return the entrusted fields of those of *kinds* whose CRDs come with us. Only their files are parsed."""
    groups = {kind.group for kind in kinds if kind.group}
    files = [file for file in data_folder("crds").glob("*.yaml") if file.name.partition(".")[2][:-5] in groups]
    return entrusted_fields(located.manifest for file in files for located in _read(file))


def is_installed(session: Session) -> bool:
    """Tell whether the cluster serves Syncs."""
    return session.discovery.find(SYNC.api_version, SYNC.kind) is not None


async def ensure_crds(session: Session) -> list[Result]:
    """Apply our CRDs, wait until they are served, and learn of them.

    Raises:
        InstallError: one was refused; the others are in place.
        ApiError: the server refuses, or doesn't answer.
    """
    results = await apply_all(session, [located.manifest for located in crds()])
    await _served(session, (result.change.ref.name for result in results))
    return results


async def apply_all(
    session: Session, manifests: Iterable[Manifest], on_result: Callable[[Result], None] = lambda _: None
) -> list[Result]:
    """Apply *manifests* in this order, one wave each kind, and return how each ended.

    Raises:
        InstallError: one was refused; those that don't depend on it are in place.
        ApiError: the server refuses, or doesn't answer.
    """
    changes = await _changes(session, list(manifests))
    results = await Writer(session.client, Hooks(result=on_result)).run(Plan(sync=None, revision="", changes=changes))
    if failures := [result for result in results if result.state is not ResultState.SUCCEEDED]:
        raise InstallError("; ".join(f"{result.change.ref}: {result.error}" for result in failures))
    return results


async def live(session: Session, manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return those of *manifests* that are there, as they are.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    named = [(ObjectRef.of(each), _resource(session, each)) for each in manifests]
    found = [await _live(session, resource.path(ref.namespace, ref.name)) for ref, resource in named]
    return [each for each in found if each is not None]


async def remove_all(session: Session, manifests: Iterable[Manifest]) -> list[ObjectRef]:
    """Delete *manifests*, the last first, and return those that were there.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    removed = []
    for manifest in reversed(list(manifests)):
        ref, resource = ObjectRef.of(manifest), _resource(session, manifest)
        try:
            await session.client.delete(resource.path(ref.namespace, ref.name))
        except NotFound:
            continue
        removed.append(ref)
    return removed


async def _changes(session: Session, manifests: Sequence[Manifest]) -> tuple[Change, ...]:
    waves: dict[GroupVersionKind, int] = {}
    changes = []
    for manifest in manifests:
        gvk, ref, resource = GroupVersionKind.of(manifest), ObjectRef.of(manifest), _resource(session, manifest)
        before = await _live(session, resource.path(ref.namespace, ref.name))
        op = Op.CREATE if before is None else Op.UPDATE
        kind = Kind(gvk, resource.plural, namespaced=resource.namespaced, schema=UNKNOWN)
        wave = waves.setdefault(gvk, len(waves))
        changes.append(Change(ref, op, kind, before=before, after=manifest, intent=manifest, gate=Gate(wave)))
    return tuple(changes)


def _resource(session: Session, manifest: Manifest) -> Resource:
    found = session.discovery.find(manifest["apiVersion"], manifest["kind"])
    if found is None:
        raise InstallError(f"the cluster doesn't serve {GroupVersionKind.of(manifest)}, which we need")
    return found


async def _live(session: Session, path: str) -> Manifest | None:
    try:
        return await session.client.get(path)
    except NotFound:
        return None


async def _served(session: Session, names: Iterable[str], *, within_s: float = 10.0) -> None:
    """Wait until discovery lists the CRDs: Established comes a moment before."""
    wanted = set(names)
    for _ in range(int(within_s / 0.1)):
        await session.refresh()
        served = {f"{each.plural}.{each.gvk.group}" for each in session.discovery.resources}
        if wanted <= served:
            return
        await asyncio.sleep(0.1)
    raise ApiError(f"the server accepted {', '.join(sorted(wanted - served))} but doesn't serve them")
