"""Whether an apply changes an object, what it changes, and why.

Vocabulary: a difference is *soft* where defaults of the server's Go code, which no schema shows, may
undo it, *hard* where they can't; a soft one is *open* unless it is known that live is what the
server made of this very value.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import FieldPath, GroupKind, Manifest
from kubectl_reconcile.core.ssa.defaulting import settled, softly_same
from kubectl_reconcile.core.ssa.go_defaults.completion import completed
from kubectl_reconcile.core.ssa.lookup import Difference, differences, struct_field_at, value_at
from kubectl_reconcile.core.ssa.ownership import LiveObject
from kubectl_reconcile.core.ssa.policy import Decision
from kubectl_reconcile.core.ssa.schema import Schema
from kubectl_reconcile.core.ssa.typed import ABSENT, Path, none_for_absent
from kubectl_reconcile.core.ssa.values import is_zero, same

_POD: Final = GroupKind("", "Pod")
_TOLERATIONS: Final = FieldPath.fields("spec", "tolerations")
"""Admission appends to the tolerations of every pod."""


class Reason(StrEnum):
    """Why a field changes."""

    GIT = "git"
    """Git asks for something else than we applied last."""
    DRIFT = "drift"
    """Somebody changed it in the cluster; Git still asks for what we applied last."""
    BOTH = "both"
    """Git asks for something else, and somebody changed it in the cluster too."""
    ADOPT = "adopt"
    """We never applied this object before."""


class Verdict(StrEnum):
    """Whether an apply would change the object."""

    SAME = "same"
    """Neither a value nor an owner would change."""
    DIFFERENT = "different"
    """A value or an owner would change."""
    UNSURE = "unsure"
    """Only the server can tell: ask it for a dry-run."""


class FieldChange(Struct, frozen=True):
    """One place that an apply changes; *before* or *after* is None where it is added or removed.

    *manager*, *operation* and *time* say who drifted it; *commit* and its *author* are for the caller to fill in, and so is the
    *origin*: where what is rendered has the field from.
    """

    path: FieldPath
    op: str
    before: Any
    after: Any
    reason: Reason
    manager: str = ""
    time: str = ""
    commit: str = ""
    author: str = ""
    operation: str = ""
    origin: str = ""


class Judgement(Struct, frozen=True):
    """The verdict on one apply: *final* is the object as the server will store it."""

    verdict: Verdict
    final: Manifest
    changes: tuple[FieldChange, ...]
    doubt: str


def judged(live: LiveObject, decision: Decision, base: Manifest | None) -> Judgement:
    """Judge what *decision* makes of *live*; *base* is what the last apply sent, where it is known."""
    return _Case(live, decision, base).judged()


def confirmed(
    changes: Iterable[FieldChange], live: Manifest, answer: Manifest, schema: Schema
) -> tuple[FieldChange, ...]:
    """Return those of the *changes* to *live* that the server makes, going by the *answer* of its dry run."""

    def is_made(change: FieldChange) -> bool:
        was, became = (value_at(tree, change.path, schema.root) for tree in (live, answer))
        return not _alike(was, became)

    return tuple(filter(is_made, changes))


class _Case(Struct, frozen=True):
    """One apply to be judged."""

    live: LiveObject
    decision: Decision
    base: Manifest | None

    def judged(self) -> Judgement:
        """Return the verdict.

        Theory. Two objects are compared as the server would store them: live, and what the apply makes of it
        (`settled` does what schemas tell: KEP-555, and defaulting as the API conventions have it). Where they
        are the same and so are the owners, an apply changes nothing. Where they differ, one thing may still undo the
        difference: defaults in the server's Go code (``pkg/apis/*/v*/defaults.go``), which no schema shows. So each
        difference is hard, or soft, or soft and known to be none. The order of the answers follows the one law,
        that "same" is never wrong: any doubt about the merge as a whole beats every sum that was done with it;
        then what is certain to change; then what may change; and "same" is what is left.
        """
        schema, outcome, owners = self.live.schema, self.decision.outcome, self.decision.owners
        final = settled(outcome.merged, schema)
        found = list(differences(settled(self.live.values, schema), final, schema.root))
        soft = [self._is_soft(difference) for difference in found]
        # No default undoes these: a label "a" -> "b", an env entry that goes.
        hard = [difference for difference, is_soft in zip(found, soft, strict=True) if not is_soft]
        # A default may undo these: a stated `timeoutSeconds: 0` of a probe, where live says 1. Out of them fall those
        # that we applied before and nobody touched since: then live is what the server made of the very same.
        open_ = [
            difference
            for difference, is_soft in zip(found, soft, strict=True)
            if is_soft and not self._was_stored_so(difference)
        ]
        # The values may be the same, and the object written anyway: we state a field that another one owned
        # alone, give one up, or the server drops an owner who owns nothing.
        owners_change = (
            bool(owners.takeover) or owners.lapses or outcome.owned != owners.last or bool(outcome.conflicts)
        ) or self._is_restated_at_another_version()
        # The sum itself is in doubt: an unknown schema, or an owner at a version that only the server converts.
        doubt = owners.doubt or self._doubt_of_versions(found)
        if not (hard or owners_change) and open_:
            doubt = doubt or "defaults of the server may explain the difference"
        verdict = Verdict.UNSURE if doubt else Verdict.DIFFERENT if hard or owners_change else Verdict.SAME
        shown = self._without_phantoms(hard + open_, {each.path for each in found}, final)
        return Judgement(verdict, final, tuple(self._explained(each) for each in shown), doubt)

    def _without_phantoms(self, shown: list[Difference], found: set[Path], final: Manifest) -> list[Difference]:
        """Return what is left of *shown* when the defaults that are known are filled in; the verdict doesn't ask.

        Of a part that goes that may be a part: what the server doesn't restore. What was *found* and isn't shown stays so.
        """
        schema = self.live.schema
        if schema.is_custom or not shown:
            return shown
        was, places = settled(self.live.values, schema), {each.path for each in shown}
        left = differences(was, completed(final, was, schema.root), schema.root)
        return [
            each for each in left if each.path in places or (each.path not in found and _is_below(each.path, places))
        ]

    def _is_restated_at_another_version(self) -> bool:
        """Return whether our entry will say another apiVersion than it does: the server writes that, though no field moves."""
        ours = self.decision.owners.ours
        return ours is not None and ours.api_version != self.decision.intent["apiVersion"]

    def _doubt_of_versions(self, found: list[Difference]) -> str:
        """Return what owners at other versions leave to the server: their fields convert in ways unknown here."""
        owners, versions = self.decision.owners, self.live.versions
        foreign = [owner for owner in (*owners.others, owners.ours) if owner and owner.api_version not in versions]
        if not foreign or not (found or owners.ours in foreign):
            return ""
        return f"{foreign[0].manager} wrote {foreign[0].api_version}, which only the server can convert"

    # --- what defaults may explain ----------------------------------------------------------------

    def _is_soft(self, difference: Difference) -> bool:
        """Return whether defaults in the server's Go code may undo *difference*."""
        path, before, after = difference.path, difference.before, difference.after
        schema = self.live.schema
        kind = None if schema.is_custom else struct_field_at(path, schema.root)
        if kind is None:
            return False
        if after is ABSENT:
            wanted = self._wanted_at(path)
            return wanted is not ABSENT and is_zero(wanted)
        if before is ABSENT:
            return is_zero(after) or self.decision.owners.covers(path)
        if schema.gvk.group_kind == _POD and path == _TOLERATIONS:
            before = before[: len(after)]
        return softly_same(after, before, kind)

    def _was_stored_so(self, difference: Difference) -> bool:
        """Return whether live is what the server made of this very value when we applied it last.

        While a field is still ours nobody has changed it since. So an owned zero scalar that live
        lacks was dropped by the server (a struct may have gone with somebody else's last field), and
        an owned value that equals the base's was stored as live has it. A base whose fields aren't
        those that we own isn't what we applied.
        """
        owners = self.decision.owners
        if not owners.covers(difference.path):
            return False
        if difference.before is ABSENT:
            return is_zero(difference.after) and not isinstance(difference.after, dict)
        wanted = self._wanted_at(difference.path)
        return (
            self.base is not None
            and wanted is not ABSENT
            and same(wanted, self._at(self.base, difference.path))
            and self.live.stated_by(self.base) == owners.last
        )

    def _wanted_at(self, path: tuple[str, ...]) -> Any:
        return self._at(self.decision.intent, path)

    def _at(self, tree: Any, path: tuple[str, ...]) -> Any:
        return value_at(tree, path, self.live.root)

    # --- reasons ------------------------------------------------------------------------------------

    def _explained(self, difference: Difference) -> FieldChange:
        path, before, after = difference.path, difference.before, difference.after
        op = "add" if before is ABSENT else "remove" if after is ABSENT else "replace"
        reason = self._reason(difference)
        culprit = self.decision.owners.latest_other(path) if reason in {Reason.DRIFT, Reason.BOTH} else None
        return FieldChange(
            path=FieldPath(path),
            op=op,
            before=none_for_absent(before),
            after=none_for_absent(after),
            reason=reason,
            manager=culprit.manager if culprit else "",
            time=culprit.time if culprit else "",
            operation=culprit.operation if culprit else "",
        )

    def _reason(self, difference: Difference) -> Reason:
        """Say why: by the base's values, or, where they are unknown, by who owns the field now."""
        owners = self.decision.owners
        if self.base is None:
            if owners.ours is None or owners.adopts:
                return Reason.ADOPT
            return Reason.DRIFT if owners.latest_other(difference.path) else Reason.GIT
        last = self._at(settled(self.base, self.live.schema), difference.path)
        by_git = not _alike(last, difference.after)
        drifted = not _alike(last, difference.before)
        if by_git and drifted and last is not ABSENT:
            return Reason.BOTH
        return Reason.DRIFT if drifted and not by_git else Reason.GIT


def _alike(one: Any, other: Any) -> bool:
    return one is other or (one is not ABSENT and other is not ABSENT and same(one, other))


def _is_below(path: Path, places: set[Path]) -> bool:
    return any(path[:depth] in places for depth in range(len(path)))
