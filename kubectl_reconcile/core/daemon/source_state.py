"""What is known of a Sync's source between two events: when it is asked again, whether it is being asked, and who waits for that.

The source is asked beside all else, so an answer may be older than it looks: where somebody asks for a sync or reports a push while
the source is being asked, it may have answered before that, and is asked once more.

Pure.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.resources.verification import Verification

_OF_INTERVAL: Final = 0.9
"""An answer will do whose age is that part of the interval: so of many who are due together one asks."""
_AT_FIRST_S: Final = 2.0
"""How old an answer may be for who reads a source for the first time; somebody may just have pushed to it."""


class SourceState(Struct, frozen=True):
    """What is known of the source: was it *read* ever, did it answer last (*is_open*), and when it is asked again.

    *is_reading* tells that it is being asked, *is_stale* that it may have had news since that began. *is_awaited*: somebody asked for a
    sync and waits for what it says. *asked* is the request that it is being asked for, or was at last; None where nobody asked.
    *news_s* is when somebody last said, or it is likely, that there is something to hear: an answer from before that won't do.
    *verification* is whose signature it had, where the Sync asks for that.
    """

    is_open: bool = False
    is_read: bool = False
    due_s: float = 0.0
    is_reading: bool = False
    is_stale: bool = False
    is_awaited: bool = False
    asked: str | None = None
    news_s: float = 0.0
    verification: Verification | None = None

    def validates(self) -> bool:
        """Tell whether it can be: only what is being asked may have news since."""
        return self.is_reading or not self.is_stale

    def heard_of_news(self, now_s: float) -> SourceState:
        """Somebody says that there is some."""
        return replace(self, due_s=0.0, is_stale=self.is_reading, news_s=now_s)

    def seen_to_move(self) -> SourceState:
        """Somebody else who follows the same repository has seen that there is some."""
        return replace(self, due_s=0.0, is_stale=self.is_reading)

    def since_s(self, now_s: float, interval_s: float) -> float:
        """Return from when on an answer will do that somebody else was given: what is asked for again and again may be that old."""
        return max(self.news_s, now_s - (_OF_INTERVAL * interval_s if self.is_read else _AT_FIRST_S))

    def wanted(self, request: str, now_s: float) -> SourceState:
        """Somebody asks for a sync; the same *request* is heard once."""
        if request == self.asked:
            return self
        return replace(self, is_awaited=True, is_stale=self.is_reading, asked=request, due_s=now_s, news_s=now_s)

    def begun(self, asked: str | None) -> SourceState:
        """It is being asked from now on."""
        return replace(self, is_reading=True, asked=asked)

    def waited_for(self) -> SourceState:
        """Whoever waited for it goes on."""
        return replace(self, is_awaited=False, asked=None)

    def answered(self, now_s: float, interval_s: float, verification: Verification | None) -> SourceState:
        """It has answered."""
        due_s = now_s if self.is_stale else now_s + interval_s
        heard = replace(self, is_open=True, is_read=True, due_s=due_s, is_reading=False, is_stale=False)
        return replace(heard, verification=verification)

    def failed(self, now_s: float) -> SourceState:
        """It can't be read. Who waited is told so, unless that was heard only meanwhile: then it is asked at once."""
        down = replace(self, is_open=False, is_reading=False, is_stale=False, news_s=now_s)
        return replace(down, due_s=now_s) if self.is_stale else replace(down, is_awaited=False)
