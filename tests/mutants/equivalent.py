"""Mutants that no test could tell from the program, each with the reason.

They are known by the module and the changed line, which outlive the numbers that mutmut gives them.
"""

from __future__ import annotations

import re

_NULL = 'return names.get(type(value), "{}")'
_NO_NULL = "a null is allowed everywhere, so nothing that is refused is one"
_AGAIN = "it is compared once more as the same shape, which finds the same"
_OTHER_SHAPE = "of another shape is another value, whatever it is"
_SLOWER = "the closer look says the same; it only takes longer"
_NO_ROUND = "without a conflict a round leaves nothing out"
_AS_OPEN = "a gate with nothing in it is an open one"
_OF_NOBODY = "whom the server makes up applied nothing, whatever the subresource"

_WHOLE_SHAPES = "_compare_as(shape(lhs, of), lhs, {}, of, path, found)"
_BOTH_SHAPES = "elif lhs is ABSENT {} shape(lhs, of) == shape(rhs, of):"
_TAKEN_OVER = "and not managers_to_take_over(live, {}, take_over, adopting=adopting)"
_ROUNDS = "while outcome.conflicts {} rounds < _MOST_ROUNDS:"
_UNTRACKED = 'return Owner(BEFORE_FIRST_APPLY, UPDATE, {}, live.manifest["apiVersion"], "", fields)'
_OPEN_GATE = "gate = Gate(hook=hook, needs=needs) if {} else OPEN"
_KEY_NAME = "name = {}"
_ONE_KEY = "found = [item.get({}) for item in items]"


def _swap(line: str, was: str, *words: str) -> list[str]:
    """Return the changes of *line* that put each of *words* where *was* stood."""
    return [f"- {line.format(was)}\n+ {line.format(word)}" for word in words]


_REASONS: dict[str, dict[str, list[str]]] = {
    "ssa/typed": {
        _NO_NULL: _swap(_NULL, "null", "XXnullXX", "NULL"),
        _AGAIN: _swap(_BOTH_SHAPES, "or", "and"),
        _OTHER_SHAPE: _swap(_WHOLE_SHAPES, "rhs", "None"),
    },
    "ssa/merge": {_SLOWER: _swap(_TAKEN_OVER, "manager", "None")},
    "ssa/policy": {_NO_ROUND: _swap(_ROUNDS, "and", "or")},
    "ssa/ownership": {_OF_NOBODY: _swap(_UNTRACKED, '""', "None", '"XXXX"')},
    "planning/members": {_AS_OPEN: _swap(_OPEN_GATE, "hook or needs", "(hook or needs) or True")},
    "ssa/unchanged": {_SLOWER: [*_swap(_ONE_KEY, "name", "None"), *_swap(_KEY_NAME, "of.keys[0]", "None")]},
}

EQUIVALENT: dict[tuple[str, str], str] = {
    (module, change): reason
    for module, reasons in _REASONS.items()
    for reason, changes in reasons.items()
    for change in changes
}
"""(Module, the lines taken out and put in) -> why nobody can see the change."""

_STRICT = re.compile(r",\s*(strict=\w+)?(?=\))")
"""The last argument of a ``zip``, or the place where it stood."""


def reason_of(module: str, change: str) -> str:
    """Return why a change of *module* can't be seen, or nothing."""
    before, _, after = change.partition("\n")
    if "strict=True" in before and _STRICT.sub("", before[2:]) == _STRICT.sub("", after[2:]):
        return "one list is made from the other, item by item, so no input makes them differ in length"
    return EQUIVALENT.get((module, change), "")
