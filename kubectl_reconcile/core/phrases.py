"""How a sentence names many things: the first few, and how many more there are.

Pure: texts only.
"""

from __future__ import annotations

from collections.abc import Iterable


def first_few(things: Iterable[object], most: int, separator: str = ", ", *, rest: str = "more") -> str:
    """Return the first *most* of *things*, and how many others there are: ``a, b and 3 more``."""
    texts = [*map(str, things)]
    left = len(texts) - most
    return separator.join(texts[:most]) + (f" and {left} {rest}" if left > 0 else "")
