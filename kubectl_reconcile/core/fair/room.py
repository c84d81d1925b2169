"""Room for what takes up some of a whole while it runs: memory of processes, in bytes.

Rules:

- Who fits into what is left begins. Who came first is looked at first.
- For the first who doesn't fit room is set aside for a while: those behind begin if they fit beside it, too. After that it waits
  for a moment in which it fits, and holds up nobody.
- Who wants more than there is goes alone.

Pure: time is an argument, in seconds of a clock that only goes forward.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

PATIENCE_S: Final = 60.0
"""For how long room is set aside for somebody: longer than most take who have it."""


class Wish(Struct, eq=False):
    """Somebody who wants *size* of a *total*, since then, and has it once it *is_granted*."""

    size: int
    total: int
    since_s: float
    is_granted: bool = False


class Room(Struct, eq=False):
    """Who waits, and how much is *held*."""

    held: int = 0
    _waiting: list[Wish] = field(default_factory=list)

    def add(self, size: int, total: int, now_s: float) -> Wish:
        """Have somebody wait for room, and return their wish."""
        wish = Wish(size, total, now_s)
        self._waiting.append(wish)
        return wish

    def grant(self, now_s: float) -> bool:
        """Grant the next wish, if any is; its size is held then."""
        set_aside = 0
        for wish in self._waiting:
            if wish.size <= wish.total - self.held - set_aside or not (self.held or set_aside):
                self._waiting.remove(wish)
                self.held += wish.size
                wish.is_granted = True
                return True
            if not set_aside and now_s - wish.since_s < PATIENCE_S:
                set_aside = wish.size
        return False

    def withdraw(self, wish: Wish) -> None:
        """Drop a wish that isn't wanted any more; one that was granted is given back."""
        if wish.is_granted:
            self.give_back(wish.size)
        else:
            self._waiting.remove(wish)

    def give_back(self, size: int) -> None:
        """Note that somebody who held so much is done."""
        self.held -= size
