"""What in a source's answers is news to a followed Sync, and what has been said before."""

from __future__ import annotations

from contextlib import suppress

from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.daemon.sources.followed import FollowedSync
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.base import Source
from kubectl_reconcile.source.errors import SourceError


def asks_for_else(newest: Desired, followed: FollowedSync) -> bool:
    """Tell whether a source asks for something else than it did; to who waits for an answer another commit is something else, too."""
    known = followed.newest
    if known is None or newest is known or followed.state.source.is_awaited:
        return newest is not known
    return not newest.is_same_as(known)


def holds_the_same(source: Source, newest: Desired, earlier: str) -> bool:
    """Tell whether a commit *earlier* than that of *newest* had the same at the path, as far as the clone shows. Blocks."""
    if source.followed is None or newest.revision.overlay is not None:
        return False
    with suppress(SourceError):
        return not source.followed.differs(earlier, newest.revision.sha)
    return False


def tip_of(target: Target) -> str:
    """Return the commit that the ref of a target was at when it was asked for last; empty for a folder."""
    return target.source.followed.tip if target.source.followed else ""


def tells_of_move(target: Target, before: str) -> bool:
    """Tell whether the ref of a target isn't where it was *before*, and the others who follow its repository haven't been told."""
    source = target.source.followed
    return source is not None and before not in {"", source.tip} and source.tells_of_move()


def is_ref_current(followed: FollowedSync, sync: Sync, now_s: float) -> bool:
    """Tell whether somebody else was told lately that the ref is where it was read.

    Keys for signatures are read each time, and charts may render otherwise for another cluster.
    """
    source = followed.target.source if followed.target and followed.newest else None
    if followed.newest is not None and followed.newest.revision.is_chart:
        return False
    if sync.source is None or source is None or source.followed is None or source.verified is not None:
        return False
    return source.followed.is_current(followed.state.source.since_s(now_s, sync.source.interval_s))
