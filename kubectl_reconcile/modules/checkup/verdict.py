"""What the result of a Checkup means: whether it passes, and whether it is worse than the one before.

Pure: a status in, conditions out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_reconcile.module_api import CelFault, CelSize, CelTest, Condition, ScanSeverity, map_at, maps_in, shortened

_MESSAGE_MAX = 400


class Unjudging:
    """The summary of checks that judge nothing by themselves: readers of the result know."""

    __slots__ = ()

    @staticmethod
    def is_good(_result: Mapping[str, Any]) -> bool:
        """Tell whether a result passes where nobody says what does: there is one."""
        return True

    @staticmethod
    def is_worse(_result: Mapping[str, Any]) -> bool:
        """Tell whether a result is worse than the one before by itself."""
        return False


NOT_STALLED: Final = Condition("Stalled", "False", "AsExpected")
"""What is said where nothing is in the way: a condition that nobody mentions stays as it was."""


def passed(status: Mapping[str, Any], test: CelTest | None) -> Condition:
    """Return whether the result in *status* passes: by *test*, or without one where nothing was found."""
    result = map_at(status, "result")
    if not result:
        return Condition("Passed", "Unknown", "NoResult", "nothing has been checked yet")
    is_good, fault = not result.get("total"), ""
    if test:
        is_good, fault = judged({"checks": {}, **result}, test)
    if fault:
        return Condition("Passed", "False", "CannotBeJudged", fault)
    if is_good:
        return Condition("Passed", "True", "Passed", _counts(result))
    what = f"{_counts(result)}{_first(status, only_new=False)}"
    told = f"not {test.text!r}: {what}" if test else what
    return Condition("Passed", "False", "NotPassed" if test else "Findings", shortened(told, _MESSAGE_MAX))


def judged(result: Mapping[str, Any], test: CelTest) -> tuple[bool, str]:
    """Return whether a result is as *test* wants it, and why that isn't known, if it can't."""
    if test.takes_too_long(CelSize.of(result)):  # a status is anybody's to write who has the right
        return False, ".spec.passes would take too long for a result of this size"
    try:
        return test.holds(result), ""
    except CelFault as fault:
        return False, f".spec.passes: {fault}"


def regressed(status: Mapping[str, Any]) -> Condition:
    """Return whether the result has findings that the one before hadn't."""
    result = map_at(status, "result")
    if not result.get("compared"):
        return Condition("Regressed", "False", "NothingToCompareWith", "there is no earlier result of the same scan")
    told = f"{result.get('new')} new, {result.get('fixed')} fixed, {result.get('unchanged')} unchanged"
    if result.get("new"):
        return Condition(
            "Regressed", "True", "NewFindings", shortened(f"{told}{_first(status, only_new=True)}", _MESSAGE_MAX)
        )
    return Condition("Regressed", "False", "NoNewFindings", told)


def _counts(result: Mapping[str, Any]) -> str:
    total = result.get("total") or 0
    parts = ", ".join(f"{result.get(each.value)} {each}" for each in ScanSeverity if result.get(each.value))
    return f"{total} finding{'' if total == 1 else 's'}{f' ({parts})' if parts else ''}"


def _first(status: Mapping[str, Any], *, only_new: bool) -> str:
    line = next((each for each in maps_in(status.get("findings")) if each.get("new") or not only_new), None)
    return f"; first {line.get('object')}: {line.get('path')} {line.get('message')}" if line else ""
