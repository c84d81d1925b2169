"""Which commit brought the lines of a file: its versions, compared line by line.

A line was brought by the oldest commit from which on it is there without a gap; what was only moved up or down by others is the
same line.

Pure: versions in, commits out.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

from kubectl_reconcile.core.manifests.revision import Commit


def bringers(
    now: bytes, versions: Iterable[tuple[Commit, bytes | None]], lines: Collection[int], *, complete: bool
) -> Mapping[int, Commit]:
    """Return the commit that brought each of *lines* of a file that holds *now*; those that none of them brought are left out.

    *versions* are what the file held after each commit that touched it, the newest first (None: it wasn't there); no more of them
    are read than it takes. *complete* tells that the last of them is the first that there was.
    """
    newer = _split(now)
    left = {line: line - 1 for line in lines if 0 < line <= len(newer)}
    found: dict[int, Commit] = {}
    brought: Commit | None = None
    for commit, content in versions:
        older = _split(content or b"")
        place = _places(newer, older, left.values())
        if brought is not None:
            found |= {line: brought for line, at in left.items() if at not in place}
        left = {line: place[at] for line, at in left.items() if at in place}
        if not left:
            return found
        newer, brought = older, commit
    return found | (dict.fromkeys(left, brought) if complete and brought is not None else {})


def _split(content: bytes) -> list[bytes]:
    return content.splitlines()


def _places(newer: Sequence[bytes], older: Sequence[bytes], wanted: Collection[int]) -> Mapping[int, int]:
    """Return where the *wanted* lines of *newer*, counted from 0, stand in *older*; those that aren't there are left out."""
    if newer == older:
        return {at: at for at in wanted}
    shorter = min(len(newer), len(older))
    head = next((at for at in range(shorter) if newer[at] != older[at]), shorter)
    tail = next((at for at in range(shorter - head) if newer[-1 - at] != older[-1 - at]), shorter - head)
    middle = newer[head : len(newer) - tail], older[head : len(older) - tail]
    moved = len(older) - len(newer)
    found = {at: at for at in wanted if at < head}
    found |= {at: at + moved for at in wanted if at >= len(newer) - tail}
    if len(found) < len(set(wanted)):
        blocks = difflib.SequenceMatcher(None, *middle, autojunk=False).get_matching_blocks()
        for block in blocks:
            begins = head + block.a
            found |= {at: head + block.b + at - begins for at in wanted if begins <= at < begins + block.size}
    return found
