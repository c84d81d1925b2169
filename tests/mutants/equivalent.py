"""Mutants that no test could tell from the program, each with the reason.

They are known by the module and the changed line, which outlive the numbers that mutmut gives them.
"""

from __future__ import annotations

_NULL = 'return names.get(type(value), "{}")'
_NO_NULL = "a null is allowed everywhere, so nothing that is refused is one"

EQUIVALENT: dict[tuple[str, str], str] = {
    ("ssa/typed", f"- {_NULL.format('null')}\n+ {_NULL.format(word)}"): _NO_NULL for word in ("XXnullXX", "NULL")
}
"""(Module, the lines taken out and put in) -> why nobody can see the change."""


def reason_of(module: str, change: str) -> str:
    """Return why a change of *module* can't be seen, or nothing."""
    return EQUIVALENT.get((module, change), "")
