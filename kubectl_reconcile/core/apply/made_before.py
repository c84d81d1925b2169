"""Whether a trial was refused only for what the same plan makes before it.

A dry run sees the cluster as it is. What is written after something else of the plan will meet another cluster: a Role
that its binding names, a class that a pod asks for, a limit that a quota calls for, a namespace with other labels. Such a refusal says
nothing of the real write, so the change stays as planned.

Vocabulary: what is *made before* a change is created, updated or replaced in an earlier wave, or is what the change waits for.

Rules:

- The refusal must name what is made before: its name as a word, and its kind. Or it must be about rights, limits or a standard that what is made
  before decides on.
- Where neither is so, the refusal counts.

Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.objects import GroupKind, ObjectRef, maps_in
from kubectl_reconcile.core.planning.kinds import NAMESPACE
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.planning.rights.needs import is_binding, role_bound_by
from kubectl_reconcile.core.planning.rights.subjects import groups_of, user_of

_LIMITS: Final = frozenset({GroupKind("", "LimitRange"), GroupKind("", "ResourceQuota")})
_MISSING: Final = re.compile(
    r"not found|was found|no such|(?:does not|doesn't) exist|unknown|not registered", re.IGNORECASE
)
_STANDARD: Final = "violates PodSecurity"


class TrialRefusal(Struct, frozen=True):
    """What the server said: its *message*, whether it *lacks_rights*, and which *user* lacks them, where that was said."""

    message: str
    lacks_rights: bool = False
    user: str = ""


class MadeBefore(Struct, frozen=True):
    """What a plan makes, to be asked about what comes after it."""

    _by_name: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    _rulers: tuple[Change, ...] = ()

    @classmethod
    def of(cls, changes: Iterable[Change]) -> MadeBefore:
        """Return what *changes* make."""
        by_name: dict[str, list[Change]] = defaultdict(list)
        rulers: list[Change] = []
        for each in changes:
            if each.writes and each.op in {Op.CREATE, Op.UPDATE, Op.REPLACE}:
                by_name[each.ref.name].append(each)
                if is_binding(each.ref) or each.ref.group_kind in {*_LIMITS, NAMESPACE}:
                    rulers.append(each)
        return cls(by_name, tuple(rulers))

    def explains(self, change: Change, refused: TrialRefusal) -> bool:
        """Tell whether *change* was refused only for what is made before it."""
        return any(True for _ in self._reasons(change, refused))

    def _reasons(self, change: Change, refused: TrialRefusal) -> Iterator[ObjectRef]:
        for name in _words(refused.message) & self._by_name.keys() if _MISSING.search(refused.message) else ():
            yield from (
                each.ref for each in self._by_name[name] if _is_before(each, change) and _names_kind(refused, each)
            )
        if refused.lacks_rights:
            yield from self._of_rights(change, refused)
        for each in self._rulers:
            if _is_before(each, change) and not refused.lacks_rights and _rules(each, change, refused.message):
                yield each.ref

    def _of_rights(self, change: Change, refused: TrialRefusal) -> Iterator[ObjectRef]:
        """Yield the role that *change* binds, whose rights will be others, and the bindings that give the user more."""
        role = role_bound_by(change.ref, change.intent or {}) if is_binding(change.ref) else None
        if role is not None:
            yield from (each.ref for each in self._by_name.get(role.name, ()) if each.ref == role)
        for each in self._rulers:
            if is_binding(each.ref) and _is_before(each, change) and _gives(each, change, refused.user):
                yield each.ref


def _words(message: str) -> frozenset[str]:
    """Return what may be names in a message."""
    return frozenset(re.findall(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]*[A-Za-z0-9])?", message))


def _is_before(made: Change, change: Change) -> bool:
    if made.ref == change.ref:
        return False
    return made.gate.wave < change.gate.wave or made.ref in change.gate.needs or made.ref == change.provenance.owner


def _names_kind(refused: TrialRefusal, made: Change) -> bool:
    """Tell whether a message speaks of the kind of what is made."""
    message, kind = refused.message.lower(), made.ref.kind.lower()
    plural = made.kind.plural if made.kind else kind
    return kind in message or plural.lower() in message


def _rules(ruler: Change, change: Change, message: str) -> bool:
    """Tell whether a limit or a namespace that is made before decides on what was refused."""
    if ruler.ref.group_kind == NAMESPACE:
        return ruler.ref.name == change.ref.namespace and _STANDARD in message
    if ruler.ref.group_kind not in _LIMITS or ruler.ref.namespace != change.ref.namespace:
        return False
    if ruler.ref.kind == "ResourceQuota":
        return f"exceeded quota: {ruler.ref.name}," in message or f"failed quota: {ruler.ref.name}:" in message
    return "failed quota:" in message or "usage per" in message or "must be less than or equal to" in message


def _gives(binding: Change, change: Change, user: str) -> bool:
    """Tell whether a binding is for *user*, and holds where *change* is made."""
    if binding.ref.namespace not in {"", change.ref.namespace} or not user:
        return False
    return any(
        user_of(subject, binding.ref.namespace) in (groups_of(user) if subject.get("kind") == "Group" else (user,))
        for subject in maps_in((binding.intent or {}).get("subjects"))
    )
