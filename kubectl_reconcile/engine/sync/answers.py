"""Who answers what a plan calls for: external systems, the cluster, and whoever notices that others overwrite the same fields.

Questions of one round are answered at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.plan import Change, Contention, Contentions
from kubectl_reconcile.core.planning.questions import Answers, Questions
from kubectl_reconcile.engine.modules.action_runner import look
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.session import Session


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


Part: TypeAlias = Coroutine[Any, Any, dict[str, Any]]
"""Answers a part of what was asked: fields of ``Answers``."""


async def together(parts: Sequence[Part]) -> Answers:
    """Return what all *parts* answer, which work at the same time."""
    return Answers(**{name: said for part in await asyncio.gather(*parts) for name, said in part.items()})


async def _named(name: str, answer: Awaitable[Any]) -> dict[str, Any]:
    return {name: await answer}
