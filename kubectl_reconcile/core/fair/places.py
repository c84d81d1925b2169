"""Where members of a set are looked for, of all the namespaces that somebody names.

What the source asks for and the status tells comes before mere *hints*, which whoever may write the Sync writes as they like. What doesn't
exist has nothing in it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct


class Places(Struct, frozen=True):
    """The namespaces that are looked at, those that don't exist, and how many are *beyond* the ceiling."""

    looked_at: tuple[str, ...]
    missing: frozenset[str]
    beyond: int


def places_among(asked: Collection[str], hints: Collection[str], exists: Callable[[str], bool], most: int) -> Places:
    """Return which of the namespaces *asked* for and hinted at are looked at: those that exist, *most* of them at most, hints last."""
    named = [*sorted(asked), *sorted(frozenset(hints).difference(asked))]
    there = [each for each in named if exists(each)]
    return Places(tuple(there[:most]), frozenset(named).difference(there), max(len(there) - most, 0))
