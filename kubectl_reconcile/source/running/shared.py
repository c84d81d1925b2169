"""One thing for all of a process who ask for it by the same key, for as long as somebody holds it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Key = TypeVar("Key")
Thing = TypeVar("Thing")


class Shared(Generic[Key, Thing]):
    """Things by key, each made by who asks first. From any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: WeakValueDictionary[Key, Thing] = WeakValueDictionary()

    def of(self, key: Key, make: Callable[[], Thing]) -> Thing:
        """Return the thing by *key*; where nobody holds one, what *make* returns, which must not block."""
        with self._guard:
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = make()
            return found
