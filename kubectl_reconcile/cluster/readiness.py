"""Whether an API server that refuses us knows yet who may do what.

kube-apiserver answers before it has read roles and bindings: for that moment it refuses all but ``system:masters``, with the
very words of a right that is missing (403). Its ``/readyz`` isn't well until it has read them (``informer-sync``), so that is
what a refusal is compared with. Observed with 1.36: 0.1 to 0.4 s of refusals; and one killed and started again listens
0.1 s later, and keeps connections waiting until it answers, so that nobody need have noticed an outage.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

_REMEMBERED_S = 0.5
"""How long an answer holds: less than a server takes to start."""
_UNCLEAR_S = 5.0
"""How long an answer that may come of the same moment is asked for again, before it counts as the server's last word."""
_PAUSE_S = 0.2


class Readiness:
    """Asks one server whether it is ready, by *ask*, which returns the status of ``/readyz``, 0 where no answer came."""

    def __init__(self, ask: Callable[[], Awaitable[int]]) -> None:
        self._ask = ask
        self._lock = asyncio.Lock()
        self._is_starting = False
        self._asked_s = float("-inf")
        self._is_told: bool | None = None

    async def is_starting(self) -> bool:
        """Tell whether a refusal of this moment may be that of a server that hasn't read its rules yet.

        One question answers all who ask meanwhile. Where even ``/readyz`` is forbidden for good, the answer is no.
        """
        async with self._lock:
            if time.monotonic() - self._asked_s > _REMEMBERED_S and self._is_told is not False:
                self._is_starting = await self._found()
                self._asked_s = time.monotonic()
            return self._is_starting

    async def _found(self) -> bool:
        deadline_s = time.monotonic() + _UNCLEAR_S
        while True:
            status = await self._ask()
            match status:
                case 200:
                    self._is_told = True
                    return False
                case 403 if self._is_told:
                    return True  # it told us before
                case 403 | 429 if time.monotonic() < deadline_s:
                    await asyncio.sleep(_PAUSE_S)
                case 403:
                    self._is_told = False
                    return False
                case _:
                    return status == 0 or status >= 500
