"""Records that keep some of their fields to themselves.

Pure: values only.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Guarded(Struct, frozen=True):
    """A record whose ``repr`` leaves out the fields named in *hidden*: secrets, and what may contain them.

    A ``repr`` gets into logs and error messages by itself, so a subclass names such fields once, where it declares them.
    """

    hidden: ClassVar[frozenset[str]] = frozenset()

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in self.hidden)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
