"""The people who have signed in: each a token of the cluster, and what is answered by its rights.

Vocabulary: a *person* is a token that the API server has accepted, with the name that it gave. A *key* is a random word that a browser
has in place of the token.

Rules:
- The API server alone says whose a token is (SelfSubjectReview), and what they may do. What a request says of itself besides is ignored.
- Tokens are held in memory, and nowhere else. They are in no log, no answer, and no cookie.
- So many people are known at once, and so many sessions of one; whoever was away for longest goes first, among those of the same name
  where these are many. Nobody is known for longer than half a day, nor once the API server has refused their token.
- A token that was refused isn't asked about again for a while, and whoever shows many such isn't heard for a while.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import Unauthorized
from kubectl_reconcile.engine.api.self_review import name_of
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.errors import Refused
from kubectl_reconcile.web.rate_limit import RateLimit

MOST = 200
MOST_OF_ONE = 10
LONGEST_S = 12 * 3600.0
_REFUSED_S = 30.0
_REMEMBERED = 1000
_WRONG_AT_ONCE, _WRONG_PER_S = 10.0, 0.2
_ANONYMOUS = "system:anonymous"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{1,12288}=*", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Person:
    """Somebody whom the API server knows."""

    asker: Asker
    came_s: float
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

    async def of_token(self, token: str, address: str) -> Person | None:
        """Return whose *token* is, shown by somebody at *address*; None where the API server doesn't know it.

        Raises:
            Refused: too many wrong ones came from there.
            ApiError: the server refuses to say, or doesn't answer.
        """
        if not _TOKEN.fullmatch(token):
            return None
        digest, now_s = hashlib.sha256(token.encode()).digest(), time.monotonic()
        if (found := self._fresh(digest, now_s)) is not None:
            return found
        if now_s - self._refused.get(digest, -_REFUSED_S) < _REFUSED_S:
            return None
        limit = self._limit_of(address)
        if not limit.admits(now_s):
            raise Refused(429, "too many tokens that aren't accepted", "wait for a minute")
        client = self._nobody.bearing(token)
        try:
            name = await name_of(client)
        except Unauthorized:
            name = _ANONYMOUS
        if name in {"", _ANONYMOUS}:
            self._refuse(digest, now_s, address)
            return None
        limit.give_back()
        return self._fresh(digest, now_s) or self._welcome(digest, Person(self._answered(client, name), now_s))

    def of_key(self, key: str) -> Person | None:
        """Return whose browser has *key*; None where nobody's has."""
        digest = self._keys.get(key)
        return self._fresh(digest, time.monotonic()) if digest is not None else None

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

    def _fresh(self, digest: bytes, now_s: float) -> Person | None:
        found = self._known.get(digest)
        if found is None:
            return None
        if found.asker.gone or now_s - found.came_s > LONGEST_S:
            self._forget(digest)
            return None
        self._known.move_to_end(digest)
        return found

    def _welcome(self, digest: bytes, person: Person) -> Person:
        same = [each for each, known in self._known.items() if known.asker.name == person.asker.name]
        if len(same) >= MOST_OF_ONE:
            self._forget(same[0])
        elif len(self._known) >= MOST:
            self._forget(next(iter(self._known)))
        self._known[digest] = person
        event(log, logging.INFO, "signed in", user=person.asker.name)
        return person

    def _forget(self, digest: bytes) -> None:
        person = self._known.pop(digest)
        person.asker.gone = True
        for key in person.keys:
            self._keys.pop(key, None)

    def _refuse(self, digest: bytes, now_s: float, address: str) -> None:
        self._refused[digest] = now_s
        while len(self._refused) > _REMEMBERED:
            self._refused.popitem(last=False)
        event(log, logging.WARNING, "token refused", address=address)

    def _limit_of(self, address: str) -> RateLimit:
        """Return how often somebody at *address* may still show a token that isn't accepted."""
        limit = self._wrong.setdefault(address, RateLimit(_WRONG_AT_ONCE, _WRONG_PER_S))
        self._wrong.move_to_end(address)
        while len(self._wrong) > _REMEMBERED:
            self._wrong.popitem(last=False)
        return limit
