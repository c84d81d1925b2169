"""From what is known to a plan: it is built, what it must know first is asked, until there is nothing left to ask.

The one loop of all passes: of the daemon, of commands and of the page, over Syncs and over custom resources. They differ in who answers.
What is to be asked is decided by ``core.planning.questions``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.planning.questions import Answers, Questions, decide, explained, take
from kubectl_reconcile.engine.apply.writer import Signal
from kubectl_reconcile.engine.sync.answers import Sight
from kubectl_reconcile.engine.telemetry.logs import event

log = logging.getLogger(__name__)

MOST_ROUNDS: Final = 100
"""So many rounds of questions lead to no plan: what is asked goes level by level, and nobody nests so deep."""

Build: TypeAlias = Callable[[Inputs], Awaitable[Plan]]
"""Builds a plan; of very many objects beside the event loop."""

Answer: TypeAlias = Callable[[Questions, Inputs], Awaitable[Answers]]
"""Answers questions, as far as it can; those of one round at the same time."""


class EndlessQuestionsError(ApiError):
    """There is no plan, since each answer led to more questions."""


T = TypeVar("T")


class Known(Struct, frozen=True):
    """A plan that depends on nothing unknown, and all that is known."""

    plan: Plan
    inputs: Inputs


async def planned(item: ObjectRef, inputs: Inputs, build: Build, answer: Answer) -> Known:
    """Return the plan of *item* that *build* makes of *inputs* and of all answers that it calls for.

    Raises:
        EndlessQuestionsError: it calls for more and more of them.
        ApiError: something isn't answered.
    """
    rounds, builds, counts = 0, 0, Counter[str]()
    made: Plan | None = None
    while True:
        if made is None:
            made, builds = explained(inputs, await build(inputs)), builds + 1
        asked = decide(inputs, made)
        if isinstance(asked, Plan):
            event(log, logging.DEBUG, "planned", object=item, rounds=rounds, builds=builds, asked=_told(counts))
            return Known(asked, inputs)
        if rounds == MOST_ROUNDS:
            raise EndlessQuestionsError(
                f"{item}: there is no plan after {rounds} rounds of questions; still asked: {_told(asked.counts())}"
            )
        rounds, counts = rounds + 1, counts + Counter(asked.counts())
        inputs, made = take(inputs, made, asked, await answer(asked, inputs))


async def until_seen(
    sight: Sight, write: Callable[[Sight], Awaitable[T]], results_of: Callable[[T], Sequence[Result]], stop: Signal
) -> list[T]:
    """Return how a plan made by *sight* was written, and after it one that has seen all, where the server says that something is there that wasn't looked for."""
    went = [await write(sight)]
    is_taken = any(each.state is ResultState.TAKEN for each in results_of(went[0]))
    return [*went, await write(Sight.ALL)] if is_taken and not stop.is_set() else went


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items())) or "nothing"
