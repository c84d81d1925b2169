"""Fields of a Sync as its users write them: what is wrong with one, and what several have in common.

Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

from kubectl_reconcile.core.objects import Manifest

_Policy = TypeVar("_Policy", bound=StrEnum)

_DURATION = re.compile(r"(?=\d)(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")


class SyncSpecError(ValueError):
    """A field of a Sync that can't be meant so. *field* is its path, as users write it."""

    def __init__(self, field: str, message: str) -> None:
        self.field, self.message = field, message
        super().__init__(f"{field}: {message}")


def duration_s(text: str, field: str = "duration") -> float:
    """Return a duration as Kubernetes writes it (``90s``, ``1h30m``) in seconds.

    Raises:
        SyncSpecError: *text* isn't a duration, or is zero.
    """
    found = _DURATION.fullmatch(text)
    if not found or not any(found.groups()):
        raise SyncSpecError(field, f"{text!r} isn't a duration; write it as 30s, 5m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    if not (total := hours * 3600 + minutes * 60 + seconds):
        raise SyncSpecError(field, "a duration can't be zero")
    return total


def check_fields(fields: Manifest, known: Sequence[str], at: str) -> None:
    """Return if all *fields*, which are below *at*, are among those *known*.

    Raises:
        SyncSpecError: one isn't. Whoever wrote it means something by it, which nobody would do.
    """
    for name in sorted(fields.keys() - {*known}):
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {close[0]}?" if close else f"there is {', '.join(known)}"
        raise SyncSpecError(f"{at}.{name}", f"isn't a field; {meant}")


def one_of(policy: type[_Policy], fields: Manifest, field: str, default: _Policy, above: str = "spec") -> _Policy:
    """Return the member of *policy* that *fields* name, which are *above* in the Sync.

    Raises:
        SyncSpecError: it isn't one.
    """
    text = fields.get(field, default)
    try:
        return policy(text)
    except ValueError:
        raise SyncSpecError(f"{above}.{field}", f"{text!r} isn't one of {', '.join(policy)}") from None
