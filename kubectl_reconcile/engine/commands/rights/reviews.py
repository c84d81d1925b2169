"""What somebody may do, by the API server's own word: access reviews, which it answers and doesn't keep.

What an account may do in a namespace is asked by a LocalSubjectAccessReview, which the built-in role ``admin`` may make;
cluster-wide by a SubjectAccessReview, which few may. Each question is asked once, few at a time. Where one may not ask, the
answer is *unchecked*: that isn't no.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import Forbidden
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.planning.rights.grant import Account
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.planning.rights.writes import PlacedRight
from kubectl_reconcile.engine.api.access_reviews import may_other

_AT_ONCE = 16


class Reviewed(Struct, frozen=True):
    """What was found: rights that are *missing*, and those that may not be asked for, with the server's reason for that."""

    missing: frozenset[PlacedRight] = frozenset()
    unchecked: frozenset[PlacedRight] = frozenset()
    why: str = ""


class Reviewer(Struct):
    """Asks what *account* may do, on behalf of whoever *client* is. Remembers the answers."""

    client: Client
    account: Account
    _answers: dict[PlacedRight, bool | None] = field(default_factory=dict)
    _why: str = ""
    _mute: set[str] = field(default_factory=set)

    async def review(self, wanted: Iterable[PlacedRight]) -> Reviewed:
        """Return which of the rights *wanted* the account lacks.

        Raises:
            ApiError: the server doesn't answer.
        """
        asked = sorted(set(wanted))
        slots = asyncio.Semaphore(_AT_ONCE)
        await self._first_of_each_place(asked)
        await asyncio.gather(*(self._ask(one, slots) for one in asked if one not in self._answers))
        answers = {one: self._answers[one] for one in asked}
        return Reviewed(_where(answers, answer=False), _where(answers, answer=None), self._why)

    async def _first_of_each_place(self, asked: Collection[PlacedRight]) -> None:
        """Ask one question for each place first: who may not ask there is told so once, and asks no more."""
        slots, firsts = asyncio.Semaphore(_AT_ONCE), {place: (place, right) for place, right in reversed(list(asked))}
        await asyncio.gather(*(self._ask(one, slots) for one in firsts.values() if one not in self._answers))

    async def _ask(self, one: PlacedRight, slots: asyncio.Semaphore) -> None:
        place, right = one
        if place in self._mute:
            self._answers[one] = None
            return
        async with slots:
            try:
                self._answers[one] = await self._allowed(place, right)
            except Forbidden as error:
                self._mute.add(place)
                self._why = self._why or str(error)
                self._answers[one] = None

    @property
    def _who(self) -> Manifest:
        return {"user": self.account.user, "groups": list(self.account.groups)}

    async def _allowed(self, place: str, right: Right) -> bool:
        try:
            return await may_other(self.client, self._who, place, right, local=bool(place) and not right.url)
        except Forbidden:
            if not place or right.url:
                raise
            return await may_other(self.client, self._who, place, right, local=False)


def _where(answers: Mapping[PlacedRight, bool | None], *, answer: bool | None) -> frozenset[PlacedRight]:
    return frozenset(one for one, said in answers.items() if said is answer)
