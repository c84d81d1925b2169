"""Mutants that no test could tell from the program, each with the reason.

They are known by the module and the changed line, which outlive the numbers that mutmut gives them.
"""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str], str] = {}
"""(Module, the lines taken out and put in) -> why nobody can see the change."""


def reason_of(module: str, change: str) -> str:
    """Return why a change of *module* can't be seen, or nothing."""
    return EQUIVALENT.get((module, change), "")
