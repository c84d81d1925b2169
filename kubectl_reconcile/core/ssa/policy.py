"""What happens to fields that others own or that we were told to leave alone: what is sent, and by which owners.

Vocabulary: a *conflict* is a field that another manager owns and that our apply would change. A
policy decides who wins it. To *yield* a field is to leave it out of what we send.

Two sorts of fields are *left open*, though a manifest states them: they are never sent, so that nobody empties what somebody else fills in.

- ``rules`` of a ClusterRole with an ``aggregationRule`` are the control plane's, whatever a manifest says: it gathers them from other ClusterRoles, and
  overwrites what is there.
- A ``caBundle`` that is empty, or a mere line break, as generators write it, is a place that an injector fills.

Pure: no clock, no network, no logging; inputs are never mutated.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import FieldPath, GroupKind, Manifest
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.lookup import extract, left_out, value_at
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.ownership import ApplyOutcome, LiveObject, Ownership, applied, with_ports_taken_back
from kubectl_reconcile.core.ssa.typed import ABSENT, fields_of, none_for_absent
from kubectl_reconcile.core.ssa.typed_merge import merge

_MOST_ROUNDS: Final = 10
_SECRET: Final = GroupKind("", "Secret")
_ROLE: Final = "ClusterRole"
_BUNDLES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "APIService": (("spec", "caBundle"),),
    "CustomResourceDefinition": (("spec", "conversion", "webhook", "clientConfig", "caBundle"),),
    "MutatingWebhookConfiguration": (("webhooks", "*", "clientConfig", "caBundle"),),
    "ValidatingWebhookConfiguration": (("webhooks", "*", "clientConfig", "caBundle"),),
}
"""Where kinds of the server have the certificates by which it trusts whom it calls; ``*`` is each item of a list."""
_GROUPS: Final = frozenset({"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"})
_RBAC: Final = "rbac.authorization.k8s.io"


class ConflictPolicy(StrEnum):
    """What happens to a field that another manager owns and Git wants otherwise."""

    OVERRIDE = "override"
    """Git wins: the apply takes the field by force, and the loser is named."""
    YIELD = "yield"
    """The owner keeps it: the field is left out of what we send (an autoscaler's replicas)."""
    FAIL = "fail"
    """Nobody wins: the apply isn't forced, so the server refuses the object."""


class FieldConflict(Struct, frozen=True):
    """A field that *manager* owns and that we want otherwise; None where a side doesn't state it."""

    path: FieldPath
    manager: str
    live: Any
    desired: Any


class Decision(Struct, frozen=True):
    """What is sent over which owners, the result, and whose fields Git wanted otherwise."""

    intent: Manifest
    owners: Ownership
    outcome: ApplyOutcome
    conflicts: tuple[FieldConflict, ...]


def decided(
    intent: Manifest, live: LiveObject, owners: Ownership, policy: ConflictPolicy, ignores: Sequence[IgnoreRule]
) -> Decision:
    """Return what is sent of *intent*, fields yielded as *policy* and *ignores* say.

    Under FAIL the outcome is that of a forced apply; the conflicts say why the server will refuse.
    """
    if ignores:
        intent = _without_ignored(intent, live, owners, ignores)
    if policy is ConflictPolicy.OVERRIDE:
        owners = with_ports_taken_back(owners, live, intent)
    outcome = applied(intent, live, owners)
    conflicts = _conflicts(outcome, intent, live)
    if policy is ConflictPolicy.YIELD:
        intent, outcome = _yielded(intent, outcome, live, owners)
    return Decision(intent, owners, outcome, conflicts)


def _conflicts(outcome: ApplyOutcome, intent: Manifest, live: LiveObject) -> tuple[FieldConflict, ...]:
    def desired(path: FieldPath) -> Any:
        return none_for_absent(value_at(intent, path, live.root))

    return tuple(
        FieldConflict(path, owner.manager, none_for_absent(live.at(path)), desired(path))
        for owner, fields in outcome.conflicts
        for path in fields
    )


def _yielded(
    intent: Manifest, outcome: ApplyOutcome, live: LiveObject, owners: Ownership
) -> tuple[Manifest, ApplyOutcome]:
    """Return *intent* without what it contests, and its outcome: what is left may contest more, as its containers go."""
    rounds = 0
    while outcome.conflicts and rounds < _MOST_ROUNDS:
        intent = _without(intent, outcome.contested, live)
        outcome, rounds = applied(intent, live, owners), rounds + 1
    return intent, outcome


def _without(intent: Manifest, fields: FieldSet, live: LiveObject) -> Manifest:
    """Return *intent* without *fields*, its identity kept."""
    left = left_out(intent, fields, live.root)
    identity = {name: intent["metadata"][name] for name in ("name", "namespace") if name in intent["metadata"]}
    metadata = {**identity, **(left.get("metadata") or {})}
    return {"apiVersion": intent["apiVersion"], "kind": intent["kind"], **left, "metadata": metadata}


# --- fields to leave alone --------------------------------------------------------------------------


def _without_ignored(intent: Manifest, live: LiveObject, owners: Ownership, ignores: Sequence[IgnoreRule]) -> Manifest:
    """Leave the ignored fields as they are live.

    Others' fields are simply left out. What only we own must be stated, at its live value, or
    the server would take our silence for a wish to remove it.
    """
    candidates = (fields_of(intent, live.root) - STRIPPED).leaves() | owners.last.leaves()
    ignored = [path for path in candidates if _is_ignored(path, live, owners, ignores)]
    if not ignored:
        return intent
    left = _without(intent, FieldSet.of(ignored), live)
    kept = [path for path in ignored if _falls_to_us(path, owners)]
    held = extract(live.values, FieldSet.of(kept), live.root) if kept else ABSENT
    restored: Manifest = left if held is ABSENT else merge(held, left, live.root)
    return restored


def _falls_to_us(path: FieldPath, owners: Ownership) -> bool:
    """Return whether our silence would remove *path*: it, its container or something in it is ours, and nobody else's."""
    ours = owners.last
    is_ours = any(path[:depth] in ours for depth in range(1, len(path) + 1)) or bool(ours.under(path))
    return is_ours and not any(path in owner.fields for owner in owners.others)


def _is_ignored(path: FieldPath, live: LiveObject, owners: Ownership, ignores: Sequence[IgnoreRule]) -> bool:
    is_string_data = live.schema.gvk.group_kind == _SECRET and path[0] == "f:stringData"
    stored_at = FieldPath(("f:data", *path[1:])) if is_string_data else path
    return any(
        (rule.matches(path) or rule.matches(stored_at)) and (not rule.manager or _owns(rule.manager, path, owners))
        for rule in ignores
    )


def _owns(manager: str, path: FieldPath, owners: Ownership) -> bool:
    return any(path in owner.fields for owner in owners.others if owner.manager == manager)


# --- fields that others fill in ---------------------------------------------------------------------


def without_left_open(desired: Manifest) -> Manifest:
    """Return *desired* without the fields that others fill in; the very same where there are none."""
    kind = str(desired.get("kind"))
    if kind != _ROLE and kind not in _BUNDLES:
        return desired
    group = str(desired.get("apiVersion")).partition("/")[0]
    if (group, kind) == (_RBAC, _ROLE) and "rules" in desired and desired.get("aggregationRule") is not None:
        return {name: value for name, value in desired.items() if name != "rules"}
    if kind in _BUNDLES and group in _GROUPS:
        for path in _BUNDLES[kind]:
            desired = _without_empty(desired, path)
    return desired


def _without_empty(tree: Any, path: tuple[str, ...]) -> Any:
    """Return *tree* without what is at *path*, where that says nothing."""
    name, below = path[0], path[1:]
    if name == "*":
        if not isinstance(tree, list):
            return tree
        items = [_without_empty(item, below) for item in tree]
        return items if any(one is not other for one, other in zip(items, tree, strict=True)) else tree
    if not isinstance(tree, dict) or name not in tree:
        return tree
    if not below:
        return {key: value for key, value in tree.items() if key != name} if _says_nothing(tree[name]) else tree
    became = _without_empty(tree[name], below)
    return tree if became is tree[name] else {**tree, name: became}


def _says_nothing(bundle: Any) -> bool:
    if bundle is None:
        return True
    try:
        return isinstance(bundle, str) and not base64.b64decode(bundle, validate=True).strip()
    except (binascii.Error, ValueError):
        return False
