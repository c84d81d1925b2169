"""Work that blocks, in threads: of the process, or, for a request of somebody else, in threads that are kept for such.

Vocabulary: an *errand* is what is done for one request. Its work runs in threads that its server has for errands, so that what the
process itself does in threads waits for none of it. Whoever doesn't wait for the request any more has the work ended (``ending``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar

from msgspec import Struct, field

from kubectl_reconcile.source.running.ending import ENDING, Ending

P = ParamSpec("P")
T = TypeVar("T")


def begin(threads: Executor, ending: Ending, work: Callable[[], T]) -> asyncio.Future[T]:
    """Have *work*, which *ending* may end, begin in one of *threads*. What it raises may be left alone."""
    context = copy_context()
    context.run(ENDING.set, ending)
    thread = asyncio.get_running_loop().run_in_executor(threads, context.run, work)
    thread.add_done_callback(_seen)
    return thread


class Errand(Struct, eq=False):
    """What is done in *threads* for one request."""

    threads: Executor
    _under_way: set[asyncio.Future[Any]] = field(default_factory=set)

    async def run(self, work: Callable[[], T]) -> T:
        """Return what *work* returns; cancelled, it is ended, and its thread ends by itself."""
        ending = Ending()
        thread = begin(self.threads, ending, work)
        self._under_way.add(thread)
        thread.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.shield(thread)
        finally:
            ending.end()

    def when_over(self, then: Callable[[], None]) -> None:
        """Call *then* once no thread works for it any more, which may be at once; nothing else is begun after that."""
        if not self._under_way:
            then()
            return
        asyncio.gather(*self._under_way, return_exceptions=True).add_done_callback(lambda _: then())


ERRAND: ContextVar[Errand | None] = ContextVar("errand", default=None)
"""The errand at hand; None for what a process does for itself."""


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what *work*, which blocks, returns for those arguments: in a thread of the errand at hand, or any where there is none."""
    errand = ERRAND.get()
    if errand is None:
        return await asyncio.to_thread(work, *args, **kwargs)
    return await errand.run(partial(work, *args, **kwargs))


def _seen(thread: asyncio.Future[Any]) -> None:
    """Look at what a thread raised that nobody waits for any more, so that nobody complains of it."""
    if not thread.cancelled():
        thread.exception()
