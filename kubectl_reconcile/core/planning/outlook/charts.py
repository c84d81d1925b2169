"""Which chart of a Helm repository an object comes from now, where it came from another version before.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.planning.plan import Change

_ARCHIVE: Final = re.compile(r"(?:^|.*/)([a-z0-9][-a-z0-9._]*?)-(v?[0-9]+\.[0-9]+\.[0-9]+[^/]*)\.tgz/.*")


def moved_chart(change: Change) -> Iterator[str]:
    """Yield by which versions of which chart an object moves; nothing where it comes from the same archive, or from none."""
    before = _ARCHIVE.fullmatch(MemberOptions.of(change.before or {}).source)
    after = _ARCHIVE.fullmatch(change.provenance.file)
    if before is None or after is None or before.groups() == after.groups():
        return
    name = after[1] if before[1] == after[1] else f"{before[1]} → {after[1]}"
    yield f"chart {name} {before[2]} → {after[2]}"
