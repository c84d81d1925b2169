"""A new Sync: written down, its repository looked at, then made. What can't be read isn't followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kubectl_reconcile.core.annotations import URLS
from kubectl_reconcile.core.objects import Manifest, Problem
from kubectl_reconcile.core.resources.credential_scope import Address, CredentialScope, NoAddressError
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.oci import docker_config
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.engine.api.sync_requests import SYNCS
from kubectl_reconcile.engine.sync import credentials
from kubectl_reconcile.engine.sync import reconcile as passes
from kubectl_reconcile.engine.sync.fetching import equip
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import require_verified, verification_of
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.targets import source_of


class SourcePreview(Struct, frozen=True):
    """What a Sync would find in its repository, rendered where it *is_rendered*; *signed* says by whom it is signed, where that is asked for."""

    revision: str
    files: int
    objects: int
    problems: tuple[Problem, ...]
    signed: str = ""
    is_rendered: bool = False


def manifest_of(name: str, namespace: str, source: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a Sync. Of *source*, what is in it and *spec*, what is None or empty is left to the defaults."""
    parts = {field: _given(each) if isinstance(each, Mapping) else each for field, each in source.items()}
    return {
        "apiVersion": SYNC.api_version,
        "kind": SYNC.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": _given(parts), **_given(spec)},
    }


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "")}


async def look(session: Session, manifest: Manifest) -> SourcePreview:
    """Read what the Sync of *manifest* would follow, with the credentials that it names.

    Raises:
        SyncSpecError: it can't be meant as it is written.
        SourceError: the repository, the ref or the path can't be read.
        UnverifiedError: it isn't signed as the Sync asks.
        ApiError: the server refuses, or doesn't answer.
    """
    sync = Sync.of(manifest)
    if sync.source is None:
        raise SyncSpecError("spec.source", "is required")
    source = await source_of(session, sync, sync.source)
    target = Target(sync, source, reader=session.reader())
    await equip(session, sync, target.reader)
    found = await passes.read(session, target)
    sha = found.revision.sha
    await require_verified(target, sha)
    signed = verification.condition().message if (verification := verification_of(target)) else ""
    files, is_rendered = len(found.revision.files), found.revision.overlay is not None
    return SourcePreview(sha, files, len(found.manifests), found.problems, signed, is_rendered)


async def name_url(session: Session, manifest: Manifest) -> str:
    """Have the Secret of the Sync of *manifest* say that it is for that repository, unless it says already what it is for.

    Whoever makes the Sync named both. Plain http is for the Secret's owner alone to name. Returns the URL, or "" where nothing is
    written.

    Raises:
        SyncSpecError: the Sync can't be meant as it is written.
        SourceError: there is no such Secret.
        ApiError: the server refuses, or doesn't answer.
    """
    sync = Sync.of(manifest)
    if sync.source is None or not sync.source.secret:
        return ""
    secret = await credentials.secret_of(session, sync.namespace, sync.source.secret)
    if credentials.scope_of(secret) != CredentialScope() or docker_config.KEY in (secret.get("data") or {}):
        return ""
    try:
        address = Address.of(sync.source.address)
    except NoAddressError:
        return ""
    if address.scheme == "http":
        return ""
    metadata = {"resourceVersion": secret["metadata"]["resourceVersion"], "annotations": {URLS: str(address)}}
    path = credentials.secret_path(sync.namespace, sync.source.secret)
    await session.client.patch(path, {"metadata": metadata}, manager="kubectl-reconcile-cli")
    return str(address)


async def create(session: Session, manifest: Manifest, *, dry_run: bool) -> Manifest:
    """Create the Sync, or have the server try it, and return it as it became.

    Raises:
        AlreadyExists: there is one of that name.
        ApiError: the server refuses, or doesn't answer.
    """
    path = f"{SYNCS}/namespaces/{manifest['metadata']['namespace']}/syncs"
    return await session.client.create(path, manifest, manager="kubectl-reconcile-cli", dry_run=dry_run)
