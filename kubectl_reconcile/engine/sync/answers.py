"""Who answers what a plan calls for: external systems, the cluster, and whoever notices that others overwrite the same fields.

Questions of one round are answered at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.plan import Change, Contention, Contentions
from kubectl_reconcile.core.planning.questions import Answers, Questions
from kubectl_reconcile.engine.modules.action_runner import look
from kubectl_reconcile.engine.sync import gather, lookups
from kubectl_reconcile.engine.sync.desired import Desired, with_values
from kubectl_reconcile.engine.sync.revisions.recalled import recalled
from kubectl_reconcile.engine.sync.revisions.strangers import strangers_among
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.variables import Lines
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.running.threads import in_thread


class Sight(Enum):
    """How far it is looked for what is to be created before it is written."""

    ALL = "all"
    """Each name is asked for."""
    MANY = "many"
    """Only what is many of a kind and namespace, by a list, and what the server can't judge when it is written: of all else it will."""
    NONE = "none"
    """Nothing is: the server will judge."""


Overwritten: TypeAlias = Callable[[Sequence[Change], Sequence[Contention]], Awaitable[Contentions | None]]
"""Returns all fields to be left alone, where some of those about to be written have just become such; None where none has. Hears what is settled."""


async def nobody_overwrites(_writes: Sequence[Change], _settled: Sequence[Contention]) -> None:
    """Return nothing: it isn't watched who overwrites what."""


Part: TypeAlias = Coroutine[Any, Any, dict[str, Any]]
"""Answers a part of what was asked: fields of ``Answers``."""


class ClusterAnswers(Struct, frozen=True):
    """Answers as *session* what the cluster and external systems know; *sight* is how far it looks for what is to be created."""

    session: Session
    sight: Sight = Sight.ALL
    overwritten: Overwritten = nobody_overwrites

    async def __call__(self, asked: Questions, inputs: Inputs) -> Answers:  # noqa: ARG002 - others answer from what is known
        """Answer what was asked.

        Raises:
            ApiError: the server doesn't answer.
        """
        return await together(self.begun(asked))

    def begun(self, asked: Questions) -> list[Part]:
        """Return the work that answers what was asked, not yet begun."""
        session, work = self.session, list[Part]()
        if asked.outside:
            work.append(_named("observed", look(session.reach, asked.outside)))
        if asked.names and self.sight is not Sight.NONE:
            work.append(self._there(asked))
        if asked.givers:
            work.append(_named("gone", gather.givers_gone(session, asked.givers)))
        if asked.along:
            work.append(_named("listed", gather.list_along(session, asked.along)))
        if asked.foreign:
            work.append(_named("sets", gather.sets_behind(session.client, asked.foreign.values())))
        if asked.writes or asked.settled:
            work.append(_named("contentions", self.overwritten(asked.writes, asked.settled)))
        return work

    async def _there(self, asked: Questions) -> dict[str, Any]:
        is_all = self.sight is Sight.ALL
        sure = [each for each in asked.names if is_all or each[0] in asked.sure]
        others = [] if is_all else [each for each in asked.names if each[0] not in asked.sure]
        one, two = await asyncio.gather(
            gather.look_up(self.session, sure), gather.look_up(self.session, others, unseen=True)
        )
        return {"found": one.objects.joined(two.objects), "unreadable": {**one.unreadable, **two.unreadable}}


class SyncAnswers(Struct):
    """Answers what a plan of *target* calls for: from the source what that knows, all else from the *cluster*.

    *desired* is what the source asks for by now, and *begun* what is known from the beginning of a plan of that.
    """

    session: Session
    target: Target
    desired: Desired
    begun: Callable[[Desired], Awaitable[Inputs]]
    cluster: ClusterAnswers

    async def __call__(self, asked: Questions, inputs: Inputs) -> Answers:
        """Answer what was asked.

        Raises:
            SourceError: a chart can't be rendered any more.
            ApiError: the server doesn't answer.
        """
        is_of_source = bool(asked.updates or asked.unasked or asked.draws)
        parts = self.cluster.begun(asked) + ([self._of_source(asked, inputs)] if is_of_source else [])
        return await together([*parts, self._told_now(asked.lookups)] if asked.lookups else parts)

    async def _of_source(self, asked: Questions, inputs: Inputs) -> dict[str, Any]:
        """Answer what earlier revisions tell, one after the other: all of it reads the same clone."""
        target, said = self.target, dict[str, Any]()
        if asked.updates:
            said["recalled"] = await recalled(target, inputs.revision, asked.updates)
        if asked.unasked:
            said["strangers"] = await strangers_among(target, inputs.revision, asked.unasked)
        if asked.draws:
            said["desired"] = await self._drawn(inputs.desired)
        return said

    async def _drawn(self, chosen: Iterable[Located]) -> tuple[Located, ...] | None:
        """Return what is *chosen* with values drawn that no other plan has, a password that somebody deleted mustn't come back; None where it has such."""
        desired, target = self.desired, self.target
        if not desired.draw.used:
            desired.draw.used = True
            return None

        def redrawn() -> tuple[Located, ...]:
            fresh = replace(desired, manifests=target.reader.drawn_anew(target.source, desired))
            return with_values(fresh, target.values, Lines(target.source, desired.revision)).manifests

        with suppress(SourceError):
            places = {(each.path, each.line) for each in chosen}
            return tuple(each for each in await in_thread(redrawn) if (each.path, each.line) in places)
        return None

    async def _told_now(self, asked: tuple[str, ...]) -> dict[str, Any]:
        """Return what is known from the beginning where a chart finds something else by now in what it *asked* for."""
        before, release = self.desired, self.desired.release
        if release is None or await lookups.answers_of(self.session, asked) == release.answers.of(asked):
            return {}
        beside = self.session.reader()
        beside.chart, beside.fetching = self.target.reader.chart, self.target.reader.fetching
        beside.decrypt_with(self.target.reader.decryption)
        beside.answers = await lookups.answers_of(self.session, before.looked_up)

        def told() -> Desired:
            found = beside.told_anew(self.target.source, before, self.target.sync, self.target.values.held)
            return with_values(found, self.target.values, Lines(self.target.source, found.revision))

        self.desired = await lookups.answered(self.session, [beside], lambda: in_thread(told))
        return {"begun": await self.begun(self.desired)}


async def together(parts: Sequence[Part]) -> Answers:
    """Return what all *parts* answer, which work at the same time."""
    return Answers(**{name: said for part in await asyncio.gather(*parts) for name, said in part.items()})


async def _named(name: str, answer: Awaitable[Any]) -> dict[str, Any]:
    return {name: await answer}
