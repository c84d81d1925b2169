"""What happened to each object of a sync, as lines and as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_reconcile.core.apply.results import Result
from kubectl_reconcile.core.objects import place_of
from kubectl_reconcile.views.text import Line, Span, Tone, line

DONE = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted", "act": "acted"}
"""What is said of a change that was made."""


def result_line(result: Result, *, known: bool = False) -> Line:
    """Return what happened to one object, as a line; a cause that is *known* isn't told in full once more."""
    change = result.change
    if result.state.value != "succeeded":
        place = place_of(change.provenance.file, change.provenance.line)
        where = f" ({place})" if place else ""
        why = "for the same cause" if known else result.error
        return (Span(f"{result.state.value:<8}", Tone.BAD), Span(f" {change.ref}{where}: {why}"))
    tone = Tone.REMOVED if change.op.value == "delete" else Tone.ADDED if change.op.value == "create" else Tone.WARNING
    return (Span(f"{DONE[change.op.value]:<8}", tone), Span(f" {change.ref}"))


def results_summary(counts: Mapping[str, int], duration_s: float) -> Line:
    """Return the count of what was done, and how long it took: ``2 created, 1 failed in 0.8 s``."""
    return (*counted(counts), Span(f" in {duration_s:.1f} s", Tone.ASIDE))


def counted(counts: Mapping[str, int]) -> Line:
    """Return the count of what was done: ``2 created, 996 unchanged``."""
    order = ("created", "updated", "replaced", "deleted", "acted", "unchanged", "skipped", "failed", "held")
    text = ", ".join(f"{counts[word]} {word}" for word in order if counts.get(word)) or "nothing to do"
    bad = counts.get("failed") or counts.get("skipped")
    return line(text, Tone.BAD if bad else Tone.WARNING if counts.get("held") else Tone.GOOD)
