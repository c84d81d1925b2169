"""What waits for a person: a group of deletions, replacements or updates, and what that person lets it through by.

What carries the mark of a set's members is told apart by what the set's source asks for: the mark is a claim that anybody can make.

Pure: values only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.resources.sync import Sync

NEW_REVISION: Final = "NewRevision"
"""The reason of a hold of all that a new revision changes, whatever that is by the time: its approval names the revision alone."""


class Hold(Struct, frozen=True):
    """Deletions, replacements and updates that wait for a person; *along* is what would go with them, *asked* what of that Git still asks for.

    An approval names *refs* alone, with the *states* that tell these very objects from later ones: who else may see what goes along depends
    on who looks.
    """

    reason: str
    message: str
    refs: tuple[ObjectRef, ...]
    along: tuple[ObjectRef, ...] = ()
    asked: tuple[ObjectRef, ...] = ()
    states: tuple[str, ...] = ()


class Marked(Struct, frozen=True):
    """What says of itself that it is a member: how many *members* there are, and what Git doesn't ask for, *unasked*.

    *strangers* are those of the latter that no revision that was applied is known to have asked for. They count nowhere and hold up nothing,
    and are left alone until a person has them deleted.
    """

    members: int = 0
    unasked: Mapping[ObjectRef, Manifest] = field(default_factory=dict)
    strangers: Hold | None = None


def hash_of(text: str) -> str:
    """Return a short digest for comparing, never for security."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def approval_of(refs: Iterable[ObjectRef], states: Sequence[str] = ()) -> str:
    """Return what a person approves by: a digest of exactly these deletions, of objects in these *states*."""
    return hash_of(json.dumps([*sorted(refs), *states]))


def approval_of_all(holds: Iterable[Hold]) -> str:
    """Return what lets all of *holds* through; empty where there are none."""
    return ",".join(approval_of(hold.refs if hold.reason != NEW_REVISION else (), hold.states) for hold in holds)


def is_approved(sync: Sync, refs: Iterable[ObjectRef], states: Sequence[str] = ()) -> bool:
    """Tell whether a person let exactly these through."""
    return bool(sync.approved_plan) and approval_of(refs, states) in sync.approved_plan.split(",")
