"""The plans of Syncs that a plan creates, changes or removes, each made as its own account under its new spec.

For previews alone: a daemon plans each Sync when it is that one's turn. Writes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.planning import nested
from kubectl_reconcile.core.planning.nested import AtHand, MadeAbove, Question
from kubectl_reconcile.core.planning.plan import Change, Plan
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.source import SourceSpec
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.apply import dry_run
from kubectl_reconcile.engine.commands import preview
from kubectl_reconcile.engine.commands.rights import preview as rights
from kubectl_reconcile.engine.sync import gather, reconcile, targets
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.base import Source
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.folder.working_tree import WorkingTree
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.running.threads import in_thread


class LookedAt(Struct, frozen=True):
    """What a plan was made of: the repository *at_hand*, at a *revision*, or as a working tree has it in the folder *top*."""

    at_hand: AtHand = AtHand()
    revision: str = ""
    top: Path | None = None

    @classmethod
    async def of(cls, target: Target, revision: str, *, local: str = "", repository: str = "") -> Self:
        """Return what the plan of *target* at a *revision* was made of.

        *local* is the working tree of the Sync's repository, where that is looked at; *repository* the URL of one that was named without a Sync.

        Raises:
            SourceError: there is no git.
        """
        spec = target.sync.source.git if target.sync.source else None
        folder = target.source.folder
        if repository:
            return cls(AtHand(frozenset({repository})), revision)
        if spec is not None and (local or folder is None):
            return cls(AtHand(frozenset({spec.url}), spec), revision, Path(local) if local else None)
        tree = WorkingTree.around(folder.location) if folder is not None else None
        if tree is None:
            return cls()
        return cls(AtHand(await in_thread(tree.urls)), revision, tree.top)


async def with_nested(
    session: Session, made: Plan, looked_at: LookedAt, *, offline: bool = False, public: bool = False
) -> Plan:
    """Return *made* with the plans of the Syncs that it creates, changes or removes, down to five levels; unless *offline*, as the server judges them.

    What becomes *public* tells nothing that the author of what is looked at could not read.

    Raises:
        ApiError: the server doesn't answer.
    """
    planner, walk = _Planner(session, looked_at, offline=offline, public=public), nested.nested_in(made)
    try:
        asked = next(walk)
        while True:
            asked = walk.send(await planner.answer(asked))
    except StopIteration as end:
        return replace(made, nested=end.value)


class _Planner:
    """Plans Syncs as they will be."""

    def __init__(self, session: Session, looked_at: LookedAt, *, offline: bool, public: bool) -> None:
        self._session, self._looked_at, self._offline, self._public = session, looked_at, offline, public

    async def answer(self, asked: Question) -> Plan | str:
        """Return the plan of a Sync, or why there is none."""
        sync = Sync.of(asked.change.after or {})
        if self._public and (read := nested.newly_read(_before(asked.change), sync)):
            return f"it can't be shown before it is merged, since it reads {' and '.join(read)}"
        try:
            made = await self._plan(asked.change, sync, asked.made_above)
        except (ApiError, SourceError) as error:
            return f"it can't be planned: {error}"
        is_elsewhere = sync.source is not None and nested.is_elsewhere(sync.source, self._looked_at.at_hand)
        return nested.names_only(made) if self._public and is_elsewhere else made

    async def _plan(self, change: Change, sync: Sync, above: MadeAbove) -> Plan:
        session = self._session.also_knowing(above.kinds)
        source = await self._source(sync)
        target = await targets.target_of(session, sync, source, change.before or change.after)
        made = nested.without_others_values(await reconcile.plan(session, target), sync.ref)
        tried, aside = nested.parted(made, above)
        judged = tried if self._offline else await _judged(session, sync, tried, above)
        return await preview.explained(target, nested.together(judged, aside))

    async def _source(self, sync: Sync) -> Source:
        spec, at = sync.source or SourceSpec(), self._looked_at
        if not at.at_hand.is_read_by(spec):
            return await targets.source_of(self._session, sync, spec)
        if at.top is not None:
            return WorktreeSource(at.top, spec.path, limits=self._session.sources.limits, render=spec.render)
        return await targets.source_at(self._session, sync, spec, at.revision)


def _before(change: Change) -> Sync | None:
    try:
        return Sync.of(change.before) if change.before else None
    except SyncSpecError:
        return None


async def _judged(session: Session, sync: Sync, made: Plan, above: MadeAbove) -> Plan:
    """Return *made* as the server judges it, with the rights that its account lacks, where these are known before others are given."""
    along = gather.lister(session)
    judged = await dry_run.confirm(session.client, made, sync, along=along, for_others=True)
    if judged.is_clean:
        return judged
    if not above.changes_rights and sync.namespace not in above.namespaces:
        return await rights.checked(session, sync, judged)
    message = "not checked: what its account may do then, since that changes along with it"
    warning = Problem(f"Sync {sync.namespace}/{sync.name}", 0, message, "", Severity.WARNING, in_source=False)
    return replace(judged, problems=(*judged.problems, warning))
