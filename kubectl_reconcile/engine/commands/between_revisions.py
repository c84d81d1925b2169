"""What changes between two revisions of a working tree, through all Syncs, by rendering alone: no cluster is asked, and no kubeconfig read.

A Sync of the working tree's own repository is rendered from both revisions, as each says it; of any other, only its fields are compared. Of a Sync that stays as it is
nothing is rendered unless a file differs that it reads. What only a cluster knows (values of ConfigMaps and Secrets, lookups) isn't shown.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.core.objects import API_GROUP, Manifest
from kubectl_reconcile.core.planning import nested
from kubectl_reconcile.core.planning.comparison import compared, nothing_like
from kubectl_reconcile.core.planning.nested import AtHand, Question
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.source import Render, SourceSpec
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync import nowhere
from kubectl_reconcile.source.base import Source
from kubectl_reconcile.source.charts.source import ChartSource
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.folder.working_tree import WorkingTree
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.git.source import GitSource, Ref, RefKind
from kubectl_reconcile.source.remote import Repository
from kubectl_reconcile.source.render.reach import places_read
from kubectl_reconcile.source.running.threads import in_thread

_ABSENT = frozenset({SourceFault.NO_SUCH_PATH})


async def between(place: Path, base: str, name: str, namespace: str, *, render: Render, with_nested: bool) -> Plan:
    """Return what the files at *place*, under the Sync *name* if one is given, ask for otherwise than at the revision *base* of their working tree.

    Raises:
        SourceError: they are in no working tree, there is no such revision, or they can't be read.
    """
    tree = WorkingTree.around(place)
    if tree is None:
        raise SourceError(
            SourceFault.REFUSED, f"{place} is in no working tree of Git", "--base compares with a revision of one"
        )
    sha = await in_thread(tree.commit, base)
    revisions = _Revisions(tree, sha, AtHand(await in_thread(tree.urls)), await in_thread(tree.differing, sha))
    path = tree.path_of(place)
    sync = Sync.of({"metadata": {"name": name, "namespace": namespace}, "spec": {}})
    now = await nowhere.plan_by(sync, revisions.now(path, render), {})
    made = compared(await revisions.made(sync, revisions.then(path, render), now), now, sha)
    return await _walked(made, revisions) if with_nested else made


async def with_nested_rendered(made: Plan, place: Path) -> Plan:
    """Return *made*, what the files at *place* ask for where there is no cluster, with what their Syncs would create, as far as these follow that working tree.

    Raises:
        SourceError: there is no git.
    """
    tree = WorkingTree.around(place)
    if tree is None or not nested.syncs_in(made):
        return made
    return await _walked(made, _Revisions(tree, "", AtHand(await in_thread(tree.urls)), frozenset()))


async def _walked(made: Plan, revisions: _Revisions) -> Plan:
    walk = nested.nested_in(made)
    try:
        asked = next(walk)
        while True:
            asked = walk.send(await revisions.answer(asked))
    except StopIteration as end:
        return replace(made, nested=end.value)


class _Revisions(Struct, frozen=True):
    """A working *tree* as it is *now*, and as it was *then*, at the commit *sha*; *differing* are the files that differ."""

    tree: WorkingTree
    sha: str
    at_hand: AtHand
    differing: frozenset[str]

    def now(self, path: str, render: Render) -> Source:
        """Return what is at a path as it is.

        Raises:
            SourceError: nothing is there.
        """
        return WorktreeSource(self.tree.top, path, render=render)

    def then(self, path: str, render: Render) -> Source:
        """Return what was at a path."""
        repository = Repository.of(str(self.tree.top), allow_local=True)
        return GitSource(repository, Ref(RefKind.ANY, self.sha), path, cache_dir=cache_dir() / "git", render=render)

    async def made(self, sync: Sync, source: Source, beside: Plan) -> Plan:
        """Return the plan of a Sync by its *source*; that of nothing, *beside* the one that it is compared with, where nothing was there."""
        try:
            return await nowhere.plan_by(sync, source, {})
        except SourceError as error:
            if error.fault not in _ABSENT:
                raise
            return nothing_like(beside)

    async def answer(self, asked: Question) -> Plan | str:
        """Return what a Sync does otherwise, or why that isn't known; nothing of one that reads the same."""
        change = asked.change
        try:
            was, will = _read(change.before), _read(change.after if change.op is not Op.DELETE else None)
            if change.op is Op.UNCHANGED and will is not None and not await in_thread(self._may_differ, will):
                return ""
            return await self._compared(was, will, change)
        except (SourceError, SyncSpecError) as error:
            return f"it can't be rendered: {error}"

    async def _compared(self, was: Sync | None, will: Sync | None, change: Change) -> Plan | str:
        if why := next(filter(None, (self._unknown(each) for each in (will, was))), ""):
            return "" if change.op is Op.UNCHANGED else why
        nothing = Plan(change.ref, "", ())
        now = await self._plan(will, nothing, is_now=True) if will else nothing
        return compared(await self._plan(was, now, is_now=False) if was else nothing, now, self.sha)

    def _unknown(self, sync: Sync | None) -> str:
        """Return why it isn't known here what a Sync applies; empty where it is."""
        spec = sync.source if sync else None
        if sync is None or spec is None:
            return ""
        if spec.git is not None and not self.at_hand.is_read_by(spec):
            return "it follows another repository, or another branch or tag, which isn't read here"
        if spec.oci is not None:
            return "it follows an artifact, which isn't read here"
        return "what it applies depends on the cluster" if nowhere.takes_cluster(sync) else ""

    async def _plan(self, sync: Sync, beside: Plan, *, is_now: bool) -> Plan:
        spec = sync.source or SourceSpec()
        if spec.git is None and spec.chart is not None:
            return await nowhere.plan_by(sync, ChartSource(spec.chart), {})
        try:
            source = (self.now if is_now else self.then)(spec.path, spec.render)
        except SourceError as error:
            if error.fault not in _ABSENT:
                raise
            return nothing_like(beside)
        return await self.made(sync, source, beside)

    def _may_differ(self, sync: Sync) -> bool:
        """Tell whether a file differs that a Sync reads, or one may be nested in it whose files do. Blocks."""
        spec = sync.source
        if spec is None or spec.git is None or not self.differing:
            return False
        folder = self.tree.top / spec.path
        beside = (*spec.helm.values_files, *spec.kustomize.components)
        places = places_read(Path(os.path.normpath(folder)))
        if places is None or any(".." in each for each in beside):
            return True
        differing = [self.tree.top / each for each in self.differing]
        if any(each.is_relative_to(place) for each in differing for place in places):
            return True
        return any(_names_syncs(place) for place in places)


def _read(manifest: Manifest | None) -> Sync | None:
    return None if manifest is None else Sync.of(manifest)


def _names_syncs(place: Path) -> bool:
    """Tell whether a file in a folder may hold a Sync."""
    files = [Path(at, name) for at, _, names in os.walk(place) for name in names] if place.is_dir() else [place]
    return any(API_GROUP.encode() in each.read_bytes() for each in files if each.is_file())
