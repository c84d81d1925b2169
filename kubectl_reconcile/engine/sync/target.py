"""What a pass is about, and what it leaves to the next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning.difference import Footing
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.rendering.substitution import NO_VALUES, Values
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader
from kubectl_reconcile.engine.sync.variables import Lines
from kubectl_reconcile.source.base import Source

T = TypeVar("T")


class Locally(Protocol):
    """Reads clones of this machine in a thread."""

    def __call__(self, work: Callable[[], T], otherwise: T) -> Awaitable[T]:
        """Return what *work* reads; *otherwise* where that takes too long."""


class Target(Struct, frozen=True):
    """What to sync: a Sync and the source it follows. *parent* is the live Sync object, None where there is none, and between the turns of a daemon.

    *grouped* is False for files previewed outside any Sync. *locally* reads clones where a plan mustn't wait for a server. *values* are those that
    ConfigMaps and Secrets hold: of the variables that the Sync declares, and of its chart.
    """

    sync: Sync
    source: Source
    grouped: bool = True
    parent: Manifest | None = None
    reader: ManifestReader = field(default_factory=ManifestReader)
    locally: Locally | None = None
    values: Values = NO_VALUES

    @property
    def settings(self) -> Manifest:
        """What its Sync says of a chart, as a status tells of it."""
        return self.sync.source.told() if self.sync.source else {}

    def read(self) -> Desired:
        """Return what the source asks for now, with the values of variables in it. Blocks.

        Raises:
            SourceError: the source can't be read.
        """
        desired = self.reader.read(self.source, self.sync, self.values.held)
        return self.reader.filled(desired, self.values, Lines(self.source, desired.revision))

    def follows_same(self, other: Target) -> bool:
        """Tell whether both have what they follow from the same repository, with the same credentials."""
        mine, theirs = self.source.followed, other.source.followed
        return mine is not None and theirs is not None and mine.server is theirs.server

    def has_moved(self) -> bool:
        """Tell whether the source asks for something else, by what its server was heard to say last; asks nobody. Blocks."""
        return self.source.followed is None or self.reader.has_moved(self.source.followed)


class PassMemory(Struct, frozen=True):
    """What a pass leaves to the next: which objects it found as they should be (*verdicts*), under which *kinds*, and the *footing* of its plan."""

    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    kinds: Mapping[GroupVersionKind, Kind] = field(default_factory=dict)
    footing: Footing | None = None

    def under(self, kinds: Mapping[GroupVersionKind, Kind]) -> Mapping[ObjectRef, tuple[str, str]]:
        """Return the verdicts that hold under *kinds*: what a schema of before had no fields for may be missing by that of now."""
        others = {gvk.group_kind for gvk, kind in kinds.items() if self.kinds.get(gvk, kind) is not kind}
        if not others:
            return self.verdicts
        return {ref: each for ref, each in self.verdicts.items() if ref.group_kind not in others}

    def after(self, known: Inputs, made: Plan, footing: Footing | None) -> PassMemory:
        """Return what is remembered once a plan was *made* of all that is *known*; one of a part of a set says nothing about the others."""
        if not known.whole:
            return replace(self, verdicts={**self.verdicts, **made.verdicts})
        return PassMemory(made.verdicts, {**self.kinds, **known.kinds}, footing)

    def written(self, made: Plan, verdicts: Mapping[ObjectRef, tuple[str, str]]) -> PassMemory:
        """Return what is remembered once *made* was carried out, and what it wrote has these *verdicts*."""
        kinds = self.kinds or {each.kind.gvk: each.kind for each in made.changes if each.kind}
        return PassMemory({**self.verdicts, **made.verdicts, **verdicts}, kinds, self.footing)


NOTHING_KNOWN: Final = PassMemory()
"""What the first pass has from earlier ones."""
