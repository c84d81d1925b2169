"""What registries and web servers gave, held in memory by digest, for those alone who ask in the same way.

All of a process share one budget. Beyond it something of the tenant goes who had most brought here, and of that what was used longest ago: so who pulls
much makes others fetch nothing again. What somebody holds meanwhile is found as long as they do. Nothing of it is on a disk.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

from kubectl_reconcile.source.limits import MEBIBYTE
from kubectl_reconcile.source.running.places import TENANT

T = TypeVar("T")

MOST_BYTES: Final = 128 * MEBIBYTE

Key = tuple[Hashable, str, str]
"""Who asked, with what and whom; the digest; and what was made of what has it."""


class _Held(Struct):
    value: Any
    size: int
    tenant: str


class KeptByDigest:
    """Things of *most_bytes* together; *held_bytes* is how many there are now. From any thread."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._guard = threading.Lock()
        self._most = most_bytes
        self._held: OrderedDict[Key, _Held] = OrderedDict()
        self._known: WeakValueDictionary[Key, Any] = WeakValueDictionary()
        self._by_tenant: Counter[str] = Counter()

    @property
    def held_bytes(self) -> int:
        """How many bytes are held."""
        return sum(self._by_tenant.values())

    def find(self, key: Key, kind: type[T]) -> T | None:
        """Return what is known by *key*, which is of that *kind*; None where nothing is."""
        with self._guard:
            if key in self._held:
                self._held.move_to_end(key)
            found = self._known.get(key)
            return found if isinstance(found, kind) else None

    def keep(self, key: Key, value: object, size: int) -> None:
        """Hold *value*, which takes *size* bytes, for whoever asks for it next."""
        with self._guard:
            self._known[key] = value
            if (before := self._held.pop(key, None)) is not None:
                self._by_tenant[before.tenant] -= before.size
            self._held[key] = _Held(value, size, TENANT.get())
            self._by_tenant[TENANT.get()] += size
            while self.held_bytes > self._most:
                self._drop_one()

    def _drop_one(self) -> None:
        tenant, _ = self._by_tenant.most_common(1)[0]
        key = next(key for key, held in self._held.items() if held.tenant == tenant)
        held = self._held.pop(key)
        self._by_tenant[tenant] -= held.size
        if self._by_tenant[tenant] <= 0:
            del self._by_tenant[tenant]


KEPT: Final = KeptByDigest()
"""What this process holds of registries."""
