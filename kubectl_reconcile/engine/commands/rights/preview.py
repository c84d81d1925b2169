"""A plan with what the Sync's account may not do of it: the preview tells which right is missing, before the server refuses.

Whoever previews asks on behalf of the account. What they may not ask is unchecked, and said once. Nothing of this is part of
the plan's hash: it depends on who looks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from kubectl_reconcile.core.objects import Manifest, ObjectRef, Problem, Severity
from kubectl_reconcile.core.planning.plan import Change, Plan
from kubectl_reconcile.core.planning.rights.entrusted import EntrustedFields
from kubectl_reconcile.core.planning.rights.grant import Account
from kubectl_reconcile.core.planning.rights.needs import is_binding, role_bound_by
from kubectl_reconcile.core.planning.rights.writes import (
    PlacedRight,
    by_name,
    denial_of,
    is_by_account,
    right_instead,
    rights_given_by,
    rights_to_make,
    rights_to_state,
)
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.commands import install
from kubectl_reconcile.engine.commands.rights.needed import readable
from kubectl_reconcile.engine.commands.rights.reviews import Reviewer
from kubectl_reconcile.engine.sync.session import Session

_MOST_BY_NAME = 200
"""Names of a namespace that are asked for one by one, where the account may not do it to all of a kind."""


async def checked(session: Session, sync: Sync, made: Plan) -> Plan:
    """Return *made* with the rights that the account of *sync* lacks for it. Writes nothing.

    Raises:
        ApiError: the server doesn't answer.
    """
    changes = [change for change in made.changes if is_by_account(change)]
    if not changes:
        return made
    entrusted = install.entrusted(change.ref.group_kind for change in changes)
    check = _Check(Reviewer(session.client, Account.of(sync)), entrusted)
    lacking = await check.of_objects(changes)
    not_held = await check.of_what_they_give(changes, await _roles(session, changes))
    denied = {
        id(change): denial_of(sync, lacking.get(change.ref, ()), not_held.get(change.ref, ()))
        for change in changes
        if change.ref in lacking or change.ref in not_held
    }
    told = tuple(change.gated(denied=denied[id(change)]) if id(change) in denied else change for change in made.changes)
    return replace(made, changes=told, problems=(*made.problems, *_untried(sync, made), *_unchecked(sync, check)))


async def _roles(session: Session, changes: Iterable[Change]) -> dict[ObjectRef, Manifest]:
    """Return the Roles that bindings among *changes* refer to: as they will be, or else as they are."""
    changed = {change.ref: change.after for change in changes if change.after is not None}
    bound = (role_bound_by(change.ref, change.after or {}) for change in changes if is_binding(change.ref))
    wanted = {role for role in bound if role is not None}
    found = {ref: role for ref in wanted if (role := changed.get(ref)) is not None}
    return {**await readable(session, wanted - found.keys()), **found}


def _untried(sync: Sync, made: Plan) -> tuple[Problem, ...]:
    if made.confirmed:
        return ()
    message = "not checked in a dry run: changes that you may not make yourself are shown as planned"
    hint = "defaults, webhooks and quotas may still change them"
    return (Problem(f"Sync {sync.namespace}/{sync.name}", 0, message, hint, Severity.WARNING, in_source=False),)


def _unchecked(sync: Sync, check: _Check) -> tuple[Problem, ...]:
    if not check.unchecked:
        return ()
    places = sorted({place for place, _ in check.unchecked if place})
    where = f" in namespace {places[0]}" if places == [sync.namespace] else ""
    message = f"unchecked: what ServiceAccount {Account.of(sync)} may do{where} can't be checked with your rights: {check.why}"
    hint = "the built-in role admin allows these checks in its namespace"
    name = f"Sync {sync.namespace}/{sync.name}"
    return (Problem(name, 0, message, hint, Severity.WARNING, in_source=False),)


class _Check:
    """What was asked so far. *unchecked* are rights that may not be asked for, *why* is the server's reason."""

    def __init__(self, reviewer: Reviewer, entrusted: EntrustedFields) -> None:
        self._reviewer, self._entrusted = reviewer, entrusted
        self.unchecked: set[PlacedRight] = set()
        self.why = ""

    async def of_objects(self, changes: Iterable[Change]) -> dict[ObjectRef, frozenset[PlacedRight]]:
        """Return the rights on the objects themselves that are missing, and those that their entrusted fields take."""
        asked = {
            change.ref: (change, rights_to_make(change) | rights_to_state(change, self._entrusted))
            for change in changes
        }
        missing = await self._missing(one for _, rights in asked.values() for one in rights)
        lacking = {ref: missing & rights for ref, (_, rights) in asked.items() if missing & rights}
        if not 0 < len(lacking) <= _MOST_BY_NAME:
            return lacking
        names = {
            (ref, one): named
            for ref, rights in lacking.items()
            for one in rights
            if (named := by_name(asked[ref][0], one))
        }
        still = await self._missing(names.values())
        left = {
            ref: frozenset(one for one in rights if (ref, one) not in names or names[ref, one] in still)
            for ref, rights in lacking.items()
        }
        return {ref: rights for ref, rights in left.items() if rights}

    async def of_what_they_give(
        self, changes: Collection[Change], roles: dict[ObjectRef, Manifest]
    ) -> dict[ObjectRef, frozenset[PlacedRight]]:
        """Return the rights that the account would give to others and lacks itself."""
        given = {change.ref: rights for change in changes if (rights := rights_given_by(change, roles))}
        instead = {change.ref: one for change in changes if change.ref in given and (one := right_instead(change))}
        not_instead = await self._missing(instead.values())
        held_to = {ref: rights for ref, rights in given.items() if instead.get(ref) in not_instead}
        missing = await self._missing(one for rights in held_to.values() for one in rights)
        return {ref: missing & rights for ref, rights in held_to.items() if missing & rights}

    async def _missing(self, asked: Iterable[PlacedRight]) -> frozenset[PlacedRight]:
        found = await self._reviewer.review(asked)
        self.unchecked |= found.unchecked
        self.why = self.why or found.why
        return found.missing
