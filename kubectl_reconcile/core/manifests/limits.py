"""What reading one file may cost at most, and how the reading ends where it would cost more.

Input is hostile until proven otherwise, so each cap holds for a whole file: neither deep nesting nor aliases of aliases get
around them.

Pure.
"""

from __future__ import annotations

MAX_BYTES = 10 * 1024 * 1024
"""Largest file that is read at all. An API server takes no object beyond 3 MiB."""

MAX_DEPTH = 200
"""Deepest nesting of maps and lists. The deepest CRD schemas in the wild stay below 100."""

MAX_WEIGHT = 500_000
"""Most nodes of a file with its aliases written out; 32 characters of text weigh as much as a node."""

MAX_PROBLEMS = 100
"""Most problems reported of one file."""


class EndOfReadingError(Exception):
    """Nothing after this point of the file can be read."""

    def __init__(self, line: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.hint = line, message, hint


def too_deep(line: int) -> EndOfReadingError:
    """Return the end that nesting comes to."""
    return EndOfReadingError(line, f"nested deeper than {MAX_DEPTH} levels")


def too_heavy(line: int) -> EndOfReadingError:
    """Return the end that size comes to."""
    return EndOfReadingError(
        line,
        f"larger than {MAX_WEIGHT:,} values once its aliases are written out",
        "split the file, or use fewer aliases",
    )
