"""What a plan does to the findings of a scan: which ones it adds, and which it mends.

What the plan would not write isn't counted: what is blocked, denied or held stays as it is until somebody sees to that.

Pure: a plan in, findings out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kubectl_reconcile.core.objects import place_of
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.scan.findings import ScanFinding, findings_of
from kubectl_reconcile.core.scan.pod_security import Profile


@dataclass(frozen=True, slots=True)
class PlannedFinding:
    """A finding that a change adds or mends, and where what is changed is written: ``file:line``, a module's name, or nothing."""

    finding: ScanFinding
    place: str = ""


@dataclass(frozen=True, slots=True)
class ScanOutlook:
    """What a plan adds to a scan by *profile*, and what it mends."""

    profile: Profile
    new: tuple[PlannedFinding, ...] = ()
    mended: tuple[PlannedFinding, ...] = ()


def outlook_of(changes: Iterable[Change], profile: Profile) -> ScanOutlook:
    """Return what *changes* do to the findings of a scan, in the order of the changes."""
    new: list[PlannedFinding] = []
    mended: list[PlannedFinding] = []
    for change in changes:
        if change.op in {Op.UNCHANGED, Op.ACT} or change.gate.blocked or change.gate.denied or change.gate.held:
            continue
        # In the order in which they are found, each once.
        before = dict.fromkeys(findings_of(change.before, profile) if change.before else ())
        after = dict.fromkeys(findings_of(change.after, profile) if change.after else ())
        new += [_planned(each, change) for each in after if each not in before]
        mended += [_planned(each, change) for each in before if each not in after]
    return ScanOutlook(profile, tuple(new), tuple(mended))


def _planned(finding: ScanFinding, change: Change) -> PlannedFinding:
    place = place_of(change.provenance.file, change.provenance.line)
    told = replace(finding, path=change.told(finding.path), demand=change.told(finding.demand))
    return PlannedFinding(told, "" if change.op is Op.DELETE else change.module or place)
