"""Which of a plan's objects are meant: by name, kind, label, file, and by what happens to them.

Two questions are asked of a change. *Which object?* Its name (``deploy/web``), kind, labels and file all have to
fit, as far as they are given; what follows from a chosen object (a module's children) is chosen with it. And
*what happens?* ``create``, ``update``, ``delete``, or ``drift``: somebody changed a field in the cluster.

A plan of which something was left out is *partial*: carried out, it neither closes the books of the Sync nor
touches what was left out. Problems of the source stay, whatever was chosen.

Pure, but for the names of kinds, which the server's discovery knows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.core.objects import GroupKind, ObjectRef, labels_of
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.selector import Selector
from kubectl_reconcile.core.ssa.merge import Reason

_SHOWN = 5


class Only(StrEnum):
    """What happens to an object."""

    CREATE = "create"
    """It will come to be."""
    UPDATE = "update"
    """It changes, or is recreated."""
    DELETE = "delete"
    """It goes."""
    DRIFT = "drift"
    """It changes, and somebody changed it in the cluster."""


class SelectionError(Exception):
    """A name, a kind or a selector that can't be meant as it is written; *hint* says what can."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.hint = hint
        super().__init__(message)


class SelectionTerms(Struct, frozen=True):
    """What somebody asked for, in words: objects as ``TYPE/NAME``, kinds, a label selector, paths, what happens."""

    objects: Sequence[str] = ()
    kinds: Sequence[str] = ()
    selector: str = ""
    paths: Sequence[str] = ()
    only: frozenset[Only] = frozenset()

    @property
    def is_everything(self) -> bool:
        """Tell whether nothing is left out."""
        return not (self.objects or self.kinds or self.selector or self.paths or self.only)


class Selection(Struct, frozen=True):
    """The same, understood. Empty groups of conditions hold for everything."""

    names: frozenset[tuple[GroupKind, str]]
    kinds: frozenset[GroupKind]
    labels: Selector
    paths: tuple[str, ...]
    only: frozenset[Only]

    @classmethod
    def of(cls, wanted: SelectionTerms, discovery: Discovery, plan: Plan) -> Self:
        """Return what *wanted* means for *plan*; kinds are those that the server knows, or that the plan brings.

        Raises:
            SelectionError: something can't be meant as it is written.
        """
        try:
            labels = Selector.parse(wanted.selector)
        except ValueError as error:
            raise SelectionError(
                f"{wanted.selector!r} isn't a label selector: {error}", "as in -l app=web,tier!=db"
            ) from None
        named = (each.partition("/") for each in wanted.objects)
        return cls(
            frozenset((_kind(kind, discovery, plan), name) for kind, _, name in named),
            frozenset(_kind(kind, discovery, plan) for kind in wanted.kinds),
            labels,
            tuple(path.removeprefix("./").rstrip("/") for path in wanted.paths),
            wanted.only,
        )

    def chosen(self, plan: Plan) -> Plan:
        """Return the part of *plan* that is chosen."""
        refs = self._refs(plan.changes)
        changes = tuple(change for change in plan.changes if change.ref in refs and self._happens(change))
        kept = {change.ref for change in changes}
        statuses = tuple(status for status in plan.outcomes.statuses if status.ref in kept)
        return replace(
            plan,
            changes=changes,
            holds=tuple(hold for hold in plan.holds if kept.intersection(hold.refs)),
            outcomes=replace(plan.outcomes, statuses=statuses),
            schedule=replace(plan.schedule, fallbacks=()),
            unhealthy=tuple(one for one in plan.unhealthy if one.ref in kept),
            partial=True,
        )

    def unmatched(self, *plans: Plan) -> list[SelectionError]:
        """Return an error for each name and path that means nothing in any of *plans*, with the nearest that does.

        Kinds, labels and what happens are filters: that nothing passes one is no slip of the pen.
        """
        changes = [change for plan in plans for change in plan.changes]
        named = {(change.ref.group_kind, change.ref.name) for change in changes}
        files = {change.provenance.file for change in changes}
        files |= {problem.path for plan in plans for problem in plan.problems}
        place = _place(plans)
        missing = [_no_object(kind, name, named, place) for kind, name in sorted(self.names - named)]
        lost = (path for path in self.paths if not any(_is_within(file, path) for file in files))
        return missing + [_no_file(path, files) for path in lost]

    def _refs(self, changes: Iterable[Change]) -> set[ObjectRef]:
        """Return the objects that fit, and those that follow from them."""
        changes = tuple(changes)
        found = {change.ref for change in changes if self._fits(change)}
        while more := {each.ref for each in changes if each.provenance.owner in found and each.ref not in found}:
            found |= more
        return found

    def _fits(self, change: Change) -> bool:
        live = change.after or change.before
        labels = labels_of(live) if live else change.labels or {}
        return (
            (not self.names or (change.ref.group_kind, change.ref.name) in self.names)
            and (not self.kinds or change.ref.group_kind in self.kinds)
            and (not self.paths or any(_is_within(change.provenance.file, path) for path in self.paths))
            and self.labels.matches(labels)
        )

    def _happens(self, change: Change) -> bool:
        if not self.only:
            return True
        drifted = any(field.reason in {Reason.DRIFT, Reason.BOTH} for field in change.fields)
        op = Only.UPDATE if change.op in {Op.UPDATE, Op.REPLACE} else change.op.value
        return op in self.only or (drifted and Only.DRIFT in self.only)


def _is_within(file: str, path: str) -> bool:
    return bool(file) and (path in {file, "", "."} or file.startswith(f"{path}/"))


def _place(plans: Iterable[Plan]) -> str:
    """Say in a few words where an object was looked for."""
    syncs = {plan.sync for plan in plans}
    if len(syncs) > 1:
        return "belongs to any of these Syncs"
    sync = next(iter(syncs), None)
    return f"belongs to Sync {sync.namespace}/{sync.name}" if sync else "is in these files"


def _no_object(kind: GroupKind, name: str, known: Iterable[tuple[GroupKind, str]], place: str) -> SelectionError:
    names = sorted(other for its_kind, other in known if its_kind == kind)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(names[:_SHOWN])}" if names else ""
    return SelectionError(f"no {kind} {name} {place}", hint or "without a name, diff -o tree shows all that change")


def _no_file(path: str, files: Iterable[str]) -> SelectionError:
    close = difflib.get_close_matches(path, sorted(filter(None, files)), n=1)
    hint = f"did you mean {close[0]}?" if close else "paths are those of the repository, or of the folder of -f"
    return SelectionError(f"no object comes from {path}", hint)


def _kind(text: str, discovery: Discovery, plan: Plan) -> GroupKind:
    """Return the kind that *text* names, as kubectl does it; or one that only the plan knows yet."""
    if resource := discovery.resolve(text):
        return resource.gvk.group_kind
    name, _, group = text.lower().partition(".")
    for known in sorted({change.ref.group_kind for change in plan.changes}):
        spellings = {known.kind.lower(), f"{known.kind.lower()}s"}
        if name in spellings and known.group.startswith(group):
            return known
    raise SelectionError(f"the server has no kind {text!r}", "kubectl api-resources lists the kinds")
