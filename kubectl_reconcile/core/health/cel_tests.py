"""Questions in CEL that are answered by true or false, about one value: read, bounded and asked here, wherever somebody may write one.

What an expression names and the value lacks makes it false, since statuses are filled in late. One that can't be answered for another reason, as where it
compares a text with a number, is a *fault*. How long it takes is told before it is asked, see ``cel_cost``: nothing interrupts it.

Pure: expressions can't do anything but look. The library is imported where the first expression is read.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self

from kubectl_reconcile.core.health.cel_cost import MOST_STEPS, USUAL, Size, UnreadableError, steps

_REASON: Final = 160


class CelError(ValueError):
    """An expression that isn't CEL, or might take long; prints as a clause."""


class CelFault(Exception):  # noqa: N818 - what is wrong with an expression, for one value
    """An expression that can't be evaluated for a value; prints as a clause."""


@dataclass(frozen=True, slots=True)
class CelTest:
    """An expression about a value, which it calls *variable*."""

    text: str
    variable: str
    program: Any = field(compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, variable: str) -> Self:
        """Read an expression.

        Raises:
            CelError: it isn't CEL, or would take too long for a value of usual size.
        """
        try:
            program, taken = _program(text), steps(text, USUAL)
        except UnreadableError as error:
            raise CelError(f"its cost can't be estimated: {error}") from None
        except ValueError as error:
            raise CelError(_complaint(str(error))) from None
        if taken > MOST_STEPS:
            message = f"would take too long: about {taken:.2g} steps for an object of usual size; at most {MOST_STEPS} are allowed"
            raise CelError(f"{message}; nest fewer loops, or loop over shorter lists")
        return cls(text, variable, program)

    def takes_too_long(self, size: Size) -> bool:
        """Tell whether it might take too long for a value of that size."""
        return steps(self.text, size) > MOST_STEPS

    def holds(self, value: Any) -> bool:
        """Tell whether it is true for *value*. If the expression uses a field that *value* doesn't have, it is false.

        Raises:
            CelFault: it can't be answered.
        """
        try:
            found = self.program.execute({self.variable: value})
        except LookupError:
            return False
        except Exception as error:  # noqa: BLE001 - whatever an expression stumbles over is its author's to fix
            why = str(error).partition(". ")[0]  # what follows is advice about CEL at large
            raise CelFault(f"{self.text!r} can't be evaluated: {why[:_REASON]}") from None
        if not isinstance(found, bool):
            raise CelFault(f"{self.text!r} is neither true nor false but {type(found).__name__}")
        return found


_PLACE: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*?)(?: expecting \{.*)?$", re.MULTILINE)
"""How the library says where an expression stops being one; the list of what might have come instead is long."""


def _complaint(text: str) -> str:
    """Return why an expression isn't CEL, with its place."""
    if place := _PLACE.search(text):
        return f"isn't CEL: line {place[1]}, column {place[2]}: {place[3]}"
    return text.splitlines()[0]


@lru_cache(maxsize=1024)
def _program(text: str) -> Any:
    return importlib.import_module("cel").compile(text)
