"""What is needed, and what the lock file says of it: pins that are missing, and such that nothing needs.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.rendering.pinned.lock import Lock, command, lock_file
from kubectl_reconcile.core.rendering.pinned.pins import Pin
from kubectl_reconcile.core.resources.chart import ChartSpec


class Needed(Struct, frozen=True):
    """What is fetched: *wanted*, which is bare, because of what stands in *file* at *line*."""

    wanted: Pin
    file: str
    line: int

    @property
    def folder(self) -> str:
        """What the folder is called that a chart stands in."""
        return f"{self.wanted.name}-{self.wanted.version}" if isinstance(self.wanted, ChartSpec) else ""


def missing(needed: Iterable[Needed], lock: Lock, folder: str) -> Iterator[Problem]:
    """Yield a problem for each that the *lock* of *folder*, which is rendered, says no digest of."""
    own = lock_file(folder)
    for each in needed:
        if lock.find(each.wanted) is None:
            other = lock.other_version(each.wanted)
            said = f"{own} has {other}" if other else f"{own} doesn't have it"
            yield Problem(each.file, each.line, f"{each.wanted} isn't fetched: {said}", command(folder))


def unused(needed: Iterable[Needed], lock: Lock, folder: str) -> Iterator[Problem]:
    """Yield a warning for each entry of the *lock* of *folder* that nothing needs."""
    used = {lock.find(each.wanted) for each in needed}
    for pin in lock.pins:
        if pin not in used:
            hint = f"{command(folder)} removes it"
            yield Problem(lock_file(folder), lock.places.get(pin, 0), f"nothing needs {pin}", hint, Severity.WARNING)
