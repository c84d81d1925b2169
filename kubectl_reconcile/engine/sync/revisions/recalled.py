"""What was applied last of objects that change: it tells what Git changed from what drifted, and which fields may go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import Manifest, ObjectRef, map_at, maps_in
from kubectl_reconcile.core.planning.plan import Change
from kubectl_reconcile.core.rendering.substitution import Values, substituted
from kubectl_reconcile.core.resources.history import current_of, is_of_other_settings
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.running.threads import in_thread


async def recalled(target: Target, revision: Revision, updates: Sequence[Change]) -> dict[ObjectRef, Manifest]:
    """Return the manifests of *updates* as they were applied last, as far as that is known; *revision* is what the source is at now."""
    status = map_at(target.parent or {}, "status")
    applied, past = status.get("lastAppliedRevision", ""), target.source.past
    if (revision.is_chart or revision.is_over) and is_of_other_settings(
        current_of(maps_in(status.get("history"))), target.settings
    ):
        return {}  # what it was rendered to then can't be told from a commit
    if target.reader.is_given_values:
        return {}  # nor where it was given values by hand
    if not (applied and past is not None and updates):
        return {}
    read_at = functools.partial(past.read_at, offline=target.locally is not None)
    namespace = target.sync.default_namespace
    if revision.overlay is not None:
        look_up = functools.partial(_rendered_at, target, applied, revision, updates, namespace)
    else:
        look_up = functools.partial(_manifests_at, target, read_at, applied, updates, namespace)
    none: dict[ObjectRef, Manifest] = {}
    return await (target.locally(look_up, none) if target.locally else in_thread(look_up))


def _manifests_at(
    target: Target, read_at: Callable[[str, str], bytes | None], sha: str, updates: Sequence[Change], namespace: str
) -> dict[ObjectRef, Manifest]:
    """Return the manifests of *updates* as they were at *sha*; what can't be read is left out."""
    files = {MemberOptions.of(change.before or {}).source or change.provenance.file for change in updates}
    there = ((path, read_at(sha, path)) for path in files)
    reader = target.reader
    parsed = (contents.manifests(data, path, reader.limits, reader.decryption) for path, data in there if data)
    located = (each for file in parsed for each in file.manifests)
    return _of_updates(_filled_in(located, target.values), updates, namespace)


def _rendered_at(
    target: Target, sha: str, like: Revision, updates: Sequence[Change], namespace: str
) -> dict[ObjectRef, Manifest]:
    """Return the manifests of *updates* as what is like the revision *like* rendered at *sha*; none where that can't be read any more."""
    try:
        found = target.reader.rendered_at(target.source, sha, like)
        return _of_updates(_filled_in(found, target.values), updates, namespace)
    except SourceError:
        return {}


def _filled_in(located: Iterable[Located], values: Values) -> Iterable[Located]:
    """Return earlier manifests with the values of now, so that only what Git changed of them is told as that."""
    return substituted(located, values, lambda _located, _steps: 0).manifests if values.is_declared else located


def _of_updates(located: Iterable[Located], updates: Iterable[Change], namespace: str) -> dict[ObjectRef, Manifest]:
    refs = {change.ref for change in updates}
    return {
        candidate: each.manifest
        for each in located
        for candidate in (each.ref, each.ref._replace(namespace=each.ref.namespace or namespace))
        if candidate in refs
    }
