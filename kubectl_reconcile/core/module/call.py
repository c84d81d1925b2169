"""Calling a module: the one way to do it, and what an outcome must be to be of use.

A module that breaks its contract or crashes is named, and nothing of what it said counts.

Pure: modules are pure functions.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from traceback import walk_tb
from typing import Final, TypeAlias

from msgspec.structs import replace

from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.inputs import DNS_LABEL, NAME_MAX, Context, Facts, Owned
from kubectl_reconcile.core.module.outcome import Outcome, as_tree, kept_status, key_of
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.objects import Condition, GroupKind, GroupVersionKind, Manifest


class ModuleError(Exception):
    """A module broke its contract or crashed; the fault lies with the module, not with the CR."""

    def __init__(self, module: str, message: str) -> None:
        super().__init__(f"module {module}: {message}")
        self.module = module
        self.message = message


Ask: TypeAlias = Callable[[Module, Manifest, Owned, Facts, Context], Outcome]
"""How a module is called: `outcome_of`, or something stricter around it."""


def outcome_of(module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
    """Return what *module* wants for *cr*: the one way to call a module.

    A module that says nothing about ``Degraded`` is not degraded, so a condition left by an
    invalid spec goes away with it.

    Raises:
        SpecError: the CR makes no sense to the module; `outcome_of_invalid` says what follows.
        ModuleError: the module raised anything else, or made a child that it may not make.
    """
    try:
        finalizing = module.finalize is not None and cr["metadata"].get("deletionTimestamp")
        function = module.finalize if finalizing and module.finalize else module.reconcile
        outcome = function(cr, owned, facts, ctx)
    except (SpecError, ModuleError):
        raise
    except Exception as error:
        raise ModuleError(module.name, f"{type(error).__name__}: {error}{_place_of(error)}") from error
    if not isinstance(outcome, Outcome):
        raise ModuleError(module.name, f"returned {type(outcome).__name__}, not an Outcome")
    try:
        _check_children(module, outcome)
        _check_order(module, outcome)
        _check_dropped(module, outcome)
        _check_actions(module, outcome)
        json.dumps([outcome.children, outcome.status], allow_nan=False)
    except ModuleError:
        raise
    except Exception as error:
        why = f"its outcome can't be used: {type(error).__name__}: {error}{_place_of(error)}"
        raise ModuleError(module.name, why) from error
    if any(condition.type == "Degraded" for condition in outcome.conditions):
        return outcome
    return replace(outcome, conditions=(*outcome.conditions, Condition("Degraded", "False", "AsExpected")))


def _place_of(error: BaseException) -> str:
    """Return where a module crashed, as far as that is in its own code: ``, in web.py:41 (reconcile)``. No path of the machine is told."""
    frames = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walk_tb(error.__traceback__)]
    beyond = [each for each in frames if each[0] != __file__]
    own = [each for each in beyond if not _is_of_others(each[0])] or beyond
    if not own:
        return ""
    file, line, function = own[-1]
    return f", in {'/'.join(file.rsplit('/', 2)[-2:])}:{line} ({function})"


def _is_of_others(file: str) -> bool:
    """Tell whether a file is of the standard library, or of what modules are made with: what they called, not what they are."""
    return file.startswith((f"{_HERE}/", "<")) or (file.startswith(_STANDARD) and "-packages/" not in file)


_HERE: Final = __file__.rpartition("/")[0]
_STANDARD: Final = (json.__file__ or "").rpartition("/json/")[0] + "/"


def outcome_of_invalid(cr: Manifest, error: SpecError) -> Outcome:
    """Return what follows from an invalid spec: ``Degraded`` names the field, all else stays as it is."""
    conditions = (Condition("Degraded", "True", "InvalidSpec", str(error)),)
    return Outcome(status=kept_status(cr), conditions=conditions, keep_children=True)


def _check_children(module: Module, outcome: Outcome) -> None:
    made: set[tuple[GroupKind, str]] = set()
    for child in outcome.children:
        gvk, metadata = GroupVersionKind.of(child), child.get("metadata") or {}
        key = (gvk.group_kind, metadata.get("name") or "")
        if not key[1]:
            raise ModuleError(module.name, f"a child {gvk.group_kind} has no name")
        if gvk not in module.owns:
            raise ModuleError(module.name, f"made {gvk.group_kind} {key[1]}, but {gvk} isn't among the kinds it owns")
        if key in made:
            raise ModuleError(module.name, f"returned {gvk.group_kind} {key[1]} twice")
        made.add(key)


def _check_order(module: Module, outcome: Outcome) -> None:
    seen: set[str] = set()
    for child in outcome.children:
        if late := [key for key in outcome.after.get(key_of(child), ()) if key not in seen]:
            raise ModuleError(module.name, f"{key_of(child)} comes after {late[0]}, which must be listed before it")
        seen.add(key_of(child))


def _check_dropped(module: Module, outcome: Outcome) -> None:
    if wanted := {*outcome.dropped} & {*map(key_of, outcome.children)}:
        raise ModuleError(module.name, f"drops {min(wanted)}, which is also one of its children")


def _check_actions(module: Module, outcome: Outcome) -> None:
    keys: set[str] = set()
    if outcome.actions and module.act is None:
        raise ModuleError(module.name, f"wants action {outcome.actions[0].key}, but has no `act` to run it")
    for action in outcome.actions:
        if not DNS_LABEL.fullmatch(action.key) or len(action.key) > NAME_MAX:
            raise ModuleError(module.name, f"an action's key must be a DNS label, not {action.key!r}")
        if action.key in keys:
            raise ModuleError(module.name, f"wants action {action.key} twice")
        keys.add(action.key)


def check_purity(
    module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context, *, ask: Ask | None = None
) -> Outcome:
    """Return the outcome of two calls that agree, the second one made on copies.

    *ask* makes the calls, for watching what they do; an invalid spec is an outcome, too.

    Raises:
        ModuleError: the two outcomes differ, an input was changed, or an outcome isn't plain JSON.
    """
    inputs = (cr, list(owned), facts)
    before = copy.deepcopy(inputs)
    first = _answer(ask or outcome_of, module, cr, owned, facts, ctx)
    if inputs != before:
        raise ModuleError(module.name, "it changed its input; work on copies")
    again = _answer(ask or outcome_of, module, *copy.deepcopy((cr, owned, facts, ctx)))
    if _canonical(module, first) != _canonical(module, again):
        raise ModuleError(module.name, "two calls with the same input returned different outcomes")
    return first


def _answer(ask: Ask, module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
    try:
        return ask(module, cr, owned, facts, ctx)
    except SpecError as error:
        return outcome_of_invalid(cr, error)


def _canonical(module: Module, outcome: Outcome) -> str:
    try:
        return json.dumps(as_tree(outcome), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModuleError(module.name, f"its outcome isn't plain JSON: {error}") from error
