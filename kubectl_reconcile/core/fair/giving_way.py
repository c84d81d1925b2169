"""Who gives up a place where all are taken: whoever has more than the newcomer will have, so that nobody is kept out by those who have many.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping


def gives_way(held: Mapping[str, int], newcomer: str) -> str | None:
    """Return the tenant that gives one of the places *held* to a *newcomer*, the one with most; None where nobody would have as many still."""
    most = max(held, key=lambda tenant: held[tenant], default=newcomer)
    return most if held.get(most, 0) > held.get(newcomer, 0) + 1 else None
