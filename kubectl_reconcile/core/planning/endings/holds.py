"""What ends with an operation, and whether a person must agree to it first: one decision, whatever the operation is called.

Vocabulary: *roots* are the objects that an operation ends by itself: those that are deleted, or deleted to be recreated. What goes *along*
follows from the live objects. What is *asked* for is what Git wants to be there.

Rules:

- All that ends counts, whichever object takes it along.
- What holds other things or data (``PRECIOUS``), what can't be counted, what Git still asks for, what its author wants
  to keep or to be asked about, and the very Sync that makes the plan: these wait for a person, however few they are.
- An approval is of these very objects: one that is recreated under its name is another.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.objects import Manifest, ObjectRef, annotations_of
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.endings.cascade import Cascade
from kubectl_reconcile.core.planning.hold import Hold, is_approved
from kubectl_reconcile.core.planning.kinds import PRECIOUS
from kubectl_reconcile.core.resources.sync import Sync

_SHOWN = 5


class Doom(Struct, frozen=True):
    """What ends with one sort of operation of *sync*: *roots*, and what goes along (*cascade*). *asked* is what Git wants to be there."""

    sync: Sync
    roots: Mapping[ObjectRef, Manifest]
    cascade: Cascade
    asked: Collection[ObjectRef]

    @property
    def number(self) -> int:
        """How many objects end."""
        return len(self.roots) + len(self.cascade.taken)

    @property
    def risky(self) -> tuple[ObjectRef, ...]:
        """The roots that may not end without a person, in order."""
        grave = {root for ref, root in self.cascade.roots.items() if ref in self.cascade.taken and self._is_grave(ref)}
        return tuple(sorted(ref for ref in self.roots if ref in grave or self._is_risky(ref)))

    def _is_risky(self, root: ObjectRef) -> bool:
        is_grave = root.group_kind in PRECIOUS or root == self.sync.ref
        return is_grave or root in self.cascade.blind or asks(self.roots[root])

    def _is_grave(self, ref: ObjectRef) -> bool:
        is_grave = ref.group_kind in PRECIOUS or ref in self.asked or ref == self.sync.ref
        return is_grave or _objects(self.cascade.taken[ref][0])

    def hold(self, reason: str, message: str, roots: Collection[ObjectRef]) -> Hold:
        """Return that *roots* wait, with all that goes along with these."""
        refs, along = tuple(sorted(roots)), tuple(sorted(self._along(roots)))
        asked = tuple(ref for ref in along if ref in self.asked)
        if asked:
            message = f"{message}; {len(asked)} of these Git still asks for: {first_few(asked, _SHOWN)}"
        return Hold(reason, message, refs, along, asked, states=states_of(self.roots, refs))

    def _along(self, roots: Collection[ObjectRef]) -> Iterator[ObjectRef]:
        chosen = set(roots)
        return (ref for ref, root in self.cascade.roots.items() if root in chosen and ref in self.cascade.taken)

    def consent(self, doing: str) -> Hold | None:
        """Return that what is risky waits for a person; None where nothing is, or somebody has agreed. *doing* these is what is asked about."""
        risky = self.risky
        if not risky or self.is_approved(risky):
            return None
        unknown = sorted(self.cascade.uncounted) if self.cascade.blind.intersection(risky) else []
        more = f"; uncounted, because they can't be listed: {first_few(unknown, _SHOWN)}" if unknown else ""
        why = self._gravest(doing, risky)
        if why is None and unknown:
            return self.hold("Uncounted", f"it isn't known which other objects are deleted with these{more}", risky)
        return self.hold("NeedsConsent", f"{why or self._own_word(doing, risky)}{more}", risky)

    def _gravest(self, doing: str, risky: Collection[ObjectRef]) -> str | None:
        """Return what there is to lose; None where it is just what is annotated, what isn't known, or what Git wants back."""
        ends = {*risky, *self._along(risky)}
        if self.sync.ref in ends:
            return f"this Sync itself would be deleted, and nothing would follow {self.sync.ref} any more"
        if any(ref.group_kind in PRECIOUS for ref in ends):
            return f"{doing} these deletes everything in them, too"
        return None

    def _own_word(self, doing: str, risky: Collection[ObjectRef]) -> str:
        along = sorted(self._along(risky))
        if any(ref in self.asked for ref in along):
            return f"{doing} these deletes what they own"
        if said := [ref for ref in along if _objects(self.cascade.taken[ref][0])]:
            return f"{doing} these deletes what is annotated to stay, or to be asked about: {first_few(said, _SHOWN)}"
        return "these are annotated so that a person must approve their deletion"

    def is_approved(self, roots: Collection[ObjectRef]) -> bool:
        """Tell whether a person agreed to just that."""
        return is_approved(self.sync, roots, states_of(self.roots, roots))


def states_of(roots: Mapping[ObjectRef, Manifest], chosen: Collection[ObjectRef]) -> tuple[str, ...]:
    """Return what tells these very objects from any that come after them."""
    return tuple(str(roots[ref]["metadata"].get("uid") or "") for ref in sorted(chosen))


def asks(manifest: Manifest) -> bool:
    """Tell whether an object says itself that a person must agree to its deletion."""
    return MemberOptions.of(manifest).theirs.asks


def _objects(manifest: Manifest) -> bool:
    """Tell whether an object that would go along says itself that it stays, or that a person must agree."""
    if not annotations_of(manifest):  # as most of ten thousand don't
        return False
    options = MemberOptions.of(manifest)
    return options.kept or options.theirs.asks


def others_along(number: int) -> str:
    """Return that so many other objects end, too, to be told after what takes them along."""
    return f", and with them {number} other object{'s' if number > 1 else ''}" if number else ""
