"""What a daemon found out about the pods of a custom resource, noted on it for those who can't reach them.

A preview from a machine that reaches no pods uses these facts, and says how old they are. They hold no secrets, since modules put none
into facts, and are bounded: what is larger isn't noted at all, and previews say that nothing is known. Facts that stay as they are are noted
again now and then, so that their age tells how long ago somebody looked.

Pure: annotations in, annotations out; time is an argument.
"""

from __future__ import annotations

import datetime as dt
import json

from kubectl_reconcile.core.annotations import OBSERVED
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.module.inputs import Facts
from kubectl_reconcile.core.objects import Manifest, annotations_of

LARGEST = 16 * 1024
"""Bytes of an annotation; all of an object's have 256 KiB."""

_REFRESHED_S = 300.0


def recalled(cr: Manifest, unreached: str) -> Observation | None:
    """Return what was noted on *cr*, None where nothing was; *unreached* says why nobody looks now."""
    try:
        noted = json.loads(annotations_of(cr).get(OBSERVED) or "null")
        at, facts = noted["at"], noted["facts"]
        dt.datetime.fromisoformat(at)
    except (ValueError, TypeError, KeyError):
        return None
    return Observation(facts, as_of=at, unreached=unreached) if isinstance(facts, dict) else None


def to_be_noted(cr: Manifest, facts: Facts, now: str) -> str:
    """Return what is to be noted on *cr*; nothing where that stands there, or would be too large."""
    before = recalled(cr, "")
    if before is not None and before.facts == facts and age_s(before, now) < _REFRESHED_S:
        return ""
    text = json.dumps({"at": now, "facts": facts}, separators=(",", ":"), sort_keys=True)
    return text if len(text) <= LARGEST else ""


def age_s(seen: Observation, now: str) -> float:
    """Return how old facts are that were noted, in seconds."""
    return max(0.0, (dt.datetime.fromisoformat(now) - dt.datetime.fromisoformat(seen.as_of)).total_seconds())
