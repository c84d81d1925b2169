"""The people who have signed in: each a token of the cluster, and what is answered by its rights.

Vocabulary: a *person* is a token that the API server has accepted, with the name that it gave. A *key* is a random word that a browser
has in place of the token.

Rules:
- The API server alone says whose a token is (SelfSubjectReview), and what they may do. What a request says of itself besides is ignored.
- Tokens are held in memory, and nowhere else. They are in no log, no answer, and no cookie.
- So many people are known at once, and so many sessions of one. Where there are too many, one of those goes who have most, whoever was
  away for longest; ServiceAccounts of a namespace count together, since whoever may make one may make hundreds. Nobody is known for longer than half a day, nor once the API server has refused their token.
- A token that was refused isn't asked about again for a while. From where many such came, tokens are looked at slowly, and a few at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import Unauthorized
from kubectl_reconcile.engine.api.access_reviews import name_of
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.web.asking import Asker, tenant_of
from kubectl_reconcile.web.errors import Refused
from kubectl_reconcile.web.rate_limit import RateLimit

MOST = 200
MOST_OF_ONE = 10
LONGEST_S = 12 * 3600.0
_REFUSED_S = 30.0
_REMEMBERED = 1000
_WRONG_AT_ONCE, _WRONG_PER_S = 10.0, 0.2
_REVIEWS_AT_ONCE = 8
_SLOW_AT_ONCE, _SLOW_S, _LATE_AT_MOST = 4, 0.5, 100
"""How many tokens from where wrong ones come are looked at, after which delay, and how many wait for that."""
_ANONYMOUS = "system:anonymous"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{1,12288}=*", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Person:
    """Somebody whom the API server knows."""

    asker: Asker
    keys: dict[str, None] = field(default_factory=dict, repr=False)
    """Those of their browsers, the oldest first."""


class People:
    """Those who have signed in. *nobody* is a client without an identity; *answered* makes what somebody is answered with."""

    def __init__(self, nobody: Client, answered: Callable[[Client, str], Asker]) -> None:
        self._nobody, self._answered = nobody, answered
        self._known: OrderedDict[bytes, Person] = OrderedDict()
        self._keys: dict[str, bytes] = {}
        self._refused: OrderedDict[bytes, float] = OrderedDict()
        self._wrong: OrderedDict[str, RateLimit] = OrderedDict()
        self._reviewing, self._slowly = asyncio.Semaphore(_REVIEWS_AT_ONCE), asyncio.Semaphore(_SLOW_AT_ONCE)
        self._late = 0
        self._paces: OrderedDict[str, RateLimit] = OrderedDict()

    async def of_token(self, token: str, address: str) -> Person | None:
        """Return whose *token* is, shown by somebody at *address*; None where the API server doesn't know it.

        Raises:
            Refused: many wrong ones came from there, and many wait already.
            ApiError: the server refuses to say, or doesn't answer.
        """
        if not _TOKEN.fullmatch(token):
            return None
        digest, now_s = hashlib.sha256(token.encode()).digest(), time.monotonic()
        if (found := self._fresh(digest)) is not None:
            return found
        if now_s - self._refused.get(digest, -_REFUSED_S) < _REFUSED_S:
            return None
        client = self._nobody.bearing(token)
        name = await self._named(client, address)
        if name in {"", _ANONYMOUS}:
            self._refuse(digest, now_s, address)
            return None
        return self._fresh(digest) or self._welcome(digest, Person(self._answered(client, name)))

    def of_key(self, key: str) -> Person | None:
        """Return whose browser has *key*; None where nobody's has."""
        digest = self._keys.get(key)
        return self._fresh(digest) if digest is not None else None

    def new_key(self, person: Person) -> str:
        """Return a key for another browser of a *person* who is known."""
        key = secrets.token_urlsafe(32)
        self._keys[key] = next(digest for digest, known in self._known.items() if known is person)
        person.keys[key] = None
        while len(person.keys) > MOST_OF_ONE:
            oldest = next(iter(person.keys))
            del person.keys[oldest]
            self._keys.pop(oldest, None)
        return key

    def leave(self, key: str) -> None:
        """Forget the person whose browser has *key*, and all keys of theirs."""
        digest = self._keys.get(key)
        if digest is not None:
            self._forget(digest)

    async def _named(self, client: Client, address: str) -> str:
        """Return whose the token of *client* is, nobody's for one that isn't accepted; slowly where many wrong ones came from *address*."""
        async with self._reviewing:
            if not self._limit_of(address).is_spent(time.monotonic()):
                return await _name_of(client)
        if self._late >= _LATE_AT_MOST:
            raise Refused(429, "too many tokens that aren't accepted", "wait for a minute")
        self._late += 1
        try:
            async with self._slowly:
                await asyncio.sleep(_SLOW_S)
                return await _name_of(client)
        finally:
            self._late -= 1

    def _fresh(self, digest: bytes) -> Person | None:
        found = self._known.get(digest)
        if found is None:
            return None
        if found.asker.gone:
            self._forget(digest)
            return None
        self._known.move_to_end(digest)
        return found

    def _welcome(self, digest: bytes, person: Person) -> Person:
        person.asker.ends_s = time.monotonic() + LONGEST_S
        person.asker.limit = _of(self._paces, person.asker.tenant, person.asker.limit)
        same = [each for each, known in self._known.items() if known.asker.name == person.asker.name]
        if len(same) >= MOST_OF_ONE:
            self._forget(same[0])
        elif len(self._known) >= MOST:
            self._forget(self._of_most(person.asker.name))
        self._known[digest] = person
        event(log, logging.INFO, "signed in", user=person.asker.name)
        return person

    def _of_most(self, name: str) -> bytes:
        """Return who goes for somebody of that *name*: of the tenant that has most sessions then, the one that was away for longest."""
        tenants = {digest: tenant_of(known.asker.name) for digest, known in self._known.items()}
        counts = Counter([*tenants.values(), tenant_of(name)])
        most = max(counts[tenant] for tenant in tenants.values())
        return next(digest for digest, tenant in tenants.items() if counts[tenant] == most)

    def _forget(self, digest: bytes) -> None:
        person = self._known.pop(digest)
        person.asker.left = True
        for key in person.keys:
            self._keys.pop(key, None)

    def _refuse(self, digest: bytes, now_s: float, address: str) -> None:
        self._refused[digest] = now_s
        while len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)
        self._limit_of(address).admits(now_s)
        event(log, logging.WARNING, "token refused", address=address)

    def _limit_of(self, address: str) -> RateLimit:
        """Return how often somebody at *address* may still show a token that isn't accepted."""
        return _of(self._wrong, address, RateLimit(_WRONG_AT_ONCE, _WRONG_PER_S))


async def _name_of(client: Client) -> str:
    try:
        return await name_of(client)
    except Unauthorized:
        return _ANONYMOUS


def _of(limits: OrderedDict[str, RateLimit], whose: str, new: RateLimit) -> RateLimit:
    """Return the limit of somebody among those of many: *new* where there is none; only those that were asked for last are kept."""
    limit = limits.setdefault(whose, new)
    limits.move_to_end(whose)
    while len(limits) > _REMEMBERED:
        limits.popitem(last=False)
    return limit
