"""Which rights an account needs to make one planned change, and what to say where it lacks some.

Whoever writes a Role or binds one must hold what it gives, unless they may *escalate* that Role or *bind* it.

Pure: changes in, rights and sentences out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TypeAlias

from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.endings.updates import is_rewired
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.planning.rights.entrusted import EntrustedFields, rights_to_set
from kubectl_reconcile.core.planning.rights.grant import Account
from kubectl_reconcile.core.planning.rights.needs import OF_A_NAME, RBAC, is_binding, resource_of_role, role_bound_by
from kubectl_reconcile.core.planning.rights.rules import ANY, Right, TooManyRights, rights_in, rules_of
from kubectl_reconcile.core.resources.sync import Sync

PlacedRight: TypeAlias = tuple[str, Right]
"""A right in a namespace; everywhere, where that is empty."""

_VERBS: Mapping[Op, tuple[str, ...]] = {
    Op.CREATE: ("get", "create", "patch"),
    Op.UPDATE: ("get", "patch"),
    Op.REPLACE: ("get", "delete", "create", "patch"),
    Op.DELETE: ("delete",),
}
"""What the writer asks of the server: it looks before it creates, and applies by a patch."""

_EVERYTHING = frozenset({Right(ANY, ANY, ANY), Right("", "", ANY, url=ANY)})
"""What those must hold who have a ClusterRole gather the rules of others."""


def is_by_account(change: Change) -> bool:
    """Tell whether the account of the Sync is who makes a change."""
    gate = change.gate
    return (
        change.op in _VERBS
        and change.kind is not None
        and not (change.provenance.owner or gate.blocked or gate.cascade)
    )


def rights_to_make(change: Change) -> frozenset[PlacedRight]:
    """Return the rights on the object itself: on any of its kind in a namespace, on its name where it is cluster-scoped."""
    if change.kind is None:
        return frozenset()
    group, resource = change.kind.gvk.group, change.kind.plural
    verbs = (*_VERBS.get(change.op, ()), *(("update",) if change.takeover else ()))
    if change.op is Op.UPDATE and is_rewired(change):  # other owners may take it along
        verbs += ("delete",)
    name = "" if change.kind.namespaced else change.ref.name
    return frozenset(
        (change.ref.namespace, Right(group, resource, verb, name if verb in OF_A_NAME else "")) for verb in verbs
    )


def rights_to_state(change: Change, entrusted: EntrustedFields) -> frozenset[PlacedRight]:
    """Return the rights that the server asks for what a change sets in a custom resource: to run its image, to hand out its Secret."""
    fields = entrusted.get(change.ref.group_kind)
    if not fields or change.after is None or change.op is Op.DELETE:
        return frozenset()
    before = None if change.op is Op.REPLACE else change.before
    return frozenset((change.ref.namespace, right) for right in rights_to_set(fields, change.after, before))


def by_name(change: Change, asked: PlacedRight) -> PlacedRight | None:
    """Return the same right on the object's own name; None where RBAC knows no such right."""
    place, right = asked
    return (place, right._replace(name=change.ref.name)) if right.verb in OF_A_NAME and not right.name else None


def rights_given_by(change: Change, roles: Mapping[ObjectRef, Manifest]) -> frozenset[PlacedRight]:
    """Return what the object gives to others, which its writer must hold: the rights of a Role, or of the one of *roles* that is bound.

    A Role whose rules stay, and a binding that stays to the same Role, are written without a question.
    """
    place, after, before = change.ref.namespace, change.after or {}, change.before or {}
    if change.op is Op.DELETE:
        return frozenset()
    if resource_of_role(change.ref):
        if after.get("aggregationRule") is not None:
            return frozenset(("", right) for right in _EVERYTHING)
        return frozenset() if after.get("rules") == before.get("rules") else _placed(place, after)
    role = role_bound_by(change.ref, after) if is_binding(change.ref) else None
    if role is None or (role == role_bound_by(change.ref, before) and after.get("subjects") == before.get("subjects")):
        return frozenset()
    return _placed(place, roles.get(role, {}))


def _placed(place: str, role: Manifest) -> frozenset[PlacedRight]:
    try:
        return frozenset((place, right) for right in rights_in(role.get("rules")))
    except TooManyRights:
        return frozenset()


def right_instead(change: Change) -> PlacedRight | None:
    """Return the right with which the writer needn't hold what the object gives."""
    if resource := resource_of_role(change.ref):
        return change.ref.namespace, Right(RBAC, resource, "escalate", change.ref.name)
    role = role_bound_by(change.ref, change.after or {}) if is_binding(change.ref) else None
    return (change.ref.namespace, Right(RBAC, resource_of_role(role), "bind", role.name)) if role else None


def denial_of(sync: Sync, lacking: Collection[PlacedRight], not_held: Collection[PlacedRight]) -> str:
    """Return why the account of *sync* would be refused; the same words for the same reason, whichever the object."""
    account = f"ServiceAccount {Account.of(sync)}"
    why = f"{account} may not {'; '.join(told(lacking))}"
    if not lacking:
        why = f"{account} may not grant rights that it doesn't have itself: {'; '.join(told(not_held))}"
    return f"{why} (hint: {grant_command(sync)})"


def grant_command(sync: Sync) -> str:
    """Return the command that shows what the account of *sync* needs."""
    return f"kubectl reconcile grant {sync.name} -n {sync.namespace}"


_SHOWN = 3


def told(rights: Collection[PlacedRight]) -> list[str]:
    """Return rights as a sentence has them, one text for each place and sort of object."""
    places: dict[str, set[Right]] = defaultdict(set)
    for place, right in rights:
        places[place].add(right._replace(name=""))
    texts = []
    for place, found in sorted(places.items()):
        for rule in rules_of(found):
            group = rule.get("apiGroups", [""])[0]
            what = [f"{one}.{group}" if group else one for one in rule.get("resources", ())]
            where = f" in namespace {place}" if place else ""
            texts.append(f"{', '.join(rule['verbs'])} {', '.join([*what, *rule.get('nonResourceURLs', ())])}{where}")
    more = len(texts) - _SHOWN
    return texts if more <= 0 else [*texts[:_SHOWN], f"and {more} more"]
