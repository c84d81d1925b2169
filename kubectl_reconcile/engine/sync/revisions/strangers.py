"""Looks at what earlier revisions asked for, to tell members that went from what only says that it is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import EntryKind, Tree
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.endings.strangers import applied_revisions, strangers
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source import contents
from kubectl_reconcile.source.base import Source
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.running.threads import in_thread


async def strangers_among(
    target: Target, revision: Revision, unasked: Mapping[ObjectRef, Manifest]
) -> frozenset[ObjectRef]:
    """Return which of the *unasked* no revision has asked for that the target's Sync applied; *revision* is what it asks for now.

    None is, where the source has no earlier revisions, or what they asked for depends on more than their files.
    """
    source, revisions = target.source, applied_revisions(target.parent)
    if source.followed is None or revision.is_chart or revision.is_over or not revisions:
        return frozenset()
    work = partial(_found, target, source, revision, revisions, unasked)
    nobody: frozenset[ObjectRef] = frozenset()
    return await (target.locally(work, nobody) if target.locally else in_thread(work))


def _found(
    target: Target, source: Source, like: Revision, revisions: Iterable[str], unasked: Mapping[ObjectRef, Manifest]
) -> frozenset[ObjectRef]:
    with ExitStack() as stack:
        held = (
            _held_in_files(source, target.reader, stack)
            if like.overlay is None
            else partial(_rendered, target, source, like, {})
        )
        return strangers(unasked, revisions, held, target.sync.default_namespace)


def _held_in_files(
    source: Source, reader: ManifestReader, stack: ExitStack
) -> Callable[[str, str], Iterable[Located] | None]:
    """Return what tells what a file held in a revision, by what the clone has of it."""
    trees: dict[str, Tree | None] = {}
    known: dict[tuple[str, str], tuple[Located, ...]] = {}

    def tree_of(sha: str) -> Tree | None:
        if sha not in trees:
            try:
                trees[sha] = stack.enter_context(source.tree(sha))
            except SourceError:
                trees[sha] = None
        return trees[sha]

    def held(sha: str, path: str) -> Iterable[Located] | None:
        tree = tree_of(sha)
        if tree is None:
            return None
        try:
            entry = tree.look(path)
            if not path or entry.kind is not EntryKind.FILE:
                return ()
            if (path, entry.blob_id) not in known:
                if (data := tree.read(path)) is None:
                    return None
                known[path, entry.blob_id] = contents.manifests(data, path, reader.limits, reader.decryption).manifests
        except SourceError:
            return None
        return known[path, entry.blob_id]

    return held


def _rendered(
    target: Target,
    source: Source,
    like: Revision,
    known: dict[str, tuple[Located, ...] | None],
    sha: str,
    _path: str,
) -> Iterable[Located] | None:
    """Return all that a revision rendered to, None where it can't be rendered any more: the file that an object comes from says little there."""
    if sha not in known:
        try:
            known[sha] = target.reader.rendered_at(source, sha, like)
        except SourceError:
            known[sha] = None
    return known[sha]
