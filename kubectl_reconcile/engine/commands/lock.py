"""``lock``: the lock file of a folder, written from what its files refer to.

What is pinned already keeps its digest: that another archive was published under the same version shows when it is fetched, and nobody accepts it by
the way. Whoever wants it removes the entry.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from kubectl_reconcile.core.manifests.which_files import LOCK_FILE
from kubectl_reconcile.core.objects import Problem, errors_among
from kubectl_reconcile.core.rendering.pinned.lock import Lock, text_of
from kubectl_reconcile.core.rendering.pinned.pins import Pin
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.source.base import Fetching
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.render.pinned import Chosen, survey_of


class Locking(Struct, frozen=True):
    """What happened to the lock file at *place*: pins that are *new*, *kept* or *gone*. With *problems* nothing is written."""

    place: Path
    new: tuple[Pin, ...] = ()
    kept: tuple[Pin, ...] = ()
    gone: tuple[Pin, ...] = ()
    problems: tuple[Problem, ...] = ()


def lock(folder: Path, fetching: Fetching, render: Render = Render.AUTO) -> Locking:
    """Pin all that the chart or the overlay in *folder* has fetched, by what it is now where it wasn't pinned before. Blocks.

    Raises:
        SourceError: the folder can't be read or written, or something can't be fetched: then nothing is written.
    """
    limits = GitLimits.of_environment()
    source = WorktreeSource(folder, limits=limits, render=render, reaches=True)
    revision, place = source.revision(), source.location / LOCK_FILE
    if revision.overlay is None or errors_among(revision.problems):
        return Locking(place, problems=errors_among(revision.problems))
    found: dict[Pin, Pin] = {}

    def chosen(known: Lock) -> Chosen:
        def choose(wanted: Pin) -> Pin:
            if wanted not in found:
                found[wanted] = known.find(wanted) or fetching.pinned(wanted)
            return found[wanted]

        return choose

    with source.tree(revision.sha) as tree:
        survey = survey_of(tree, revision.overlay, limits, fetching, is_chart=revision.is_chart, chosen=chosen)
    if wrong := errors_among(survey.problems):
        return Locking(place, problems=wrong)
    was, now = frozenset(survey.lock.pins), tuple(found.values())
    new, kept = (tuple(pin for pin in now if (pin in was) is is_kept) for is_kept in (False, True))
    gone = tuple(pin for pin in survey.lock.pins if pin not in now)
    if new or gone:
        _write(place, text_of(Lock(now)))
    return Locking(place, new, kept, gone)


def _write(place: Path, text: str) -> None:
    try:
        place.write_text(text)
    except OSError as error:
        raise SourceError(SourceFault.UNREADABLE, f"{place} can't be written: {error.strerror}") from None
