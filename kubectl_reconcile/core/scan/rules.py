"""What is looked for in a namespace: a profile, and what of it is left out, as somebody writes it.

Pure: JSON in, rules out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Any, Self

from msgspec import Struct, field

from kubectl_reconcile.core.objects import mapping_of, maps_in
from kubectl_reconcile.core.scan.findings import CHECKS, ScanFinding
from kubectl_reconcile.core.scan.pod_security import Profile


class ScanRulesError(ValueError):
    """Invalid rules; *field* is the path within them."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Exclusion(Struct, frozen=True):
    """Findings that are left out: those of which all that is given is so. ``*`` stands for anything in a text.

    A *kind* is written as kubectl does: ``Deployment``, or ``Deployment.apps``.
    """

    check: str = ""
    kind: str = ""
    name: str = ""

    def covers(self, finding: ScanFinding) -> bool:
        """Tell whether a finding is left out."""
        ref = finding.ref
        return (
            _fits(self.check, finding.check)
            and (_fits(self.kind, ref.kind) or _fits(self.kind, str(ref.group_kind)))
            and _fits(self.name, ref.name)
        )


def _fits(pattern: str, text: str) -> bool:
    return not pattern or _compiled(pattern).match(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return what a pattern stands for, as fnmatch writes it: that never takes back what a star has passed, so many stars don't take long either."""
    return re.compile(translate(re.sub(r"[\[?]", r"[\g<0>]", pattern)))


class ScanRules(Struct, frozen=True):
    """A *profile*, and the findings to leave out."""

    profile: Profile
    exclude: tuple[Exclusion, ...] = field(default=())

    @classmethod
    def of(cls, scan: Mapping[str, Any]) -> Self:
        """Read the ``scan`` of a Checkup.

        Raises:
            ScanRulesError: there is no such profile or check, or an entry leaves out everything.
        """
        profile = str(scan.get("profile") or Profile.BASELINE)
        if profile not in {each.value for each in Profile}:
            raise ScanRulesError(".profile", f"must be baseline or restricted, not {profile}")
        excluded = (_exclusion(each, f".exclude[{at}]") for at, each in enumerate(maps_in(scan.get("exclude"))))
        return cls(Profile(profile), tuple(excluded))

    def leave_out(self, finding: ScanFinding) -> bool:
        """Tell whether a finding is left out."""
        return any(each.covers(finding) for each in self.exclude)


def _exclusion(entry: Mapping[str, Any], where: str) -> Exclusion:
    given = mapping_of(entry)
    check, kind, name = (str(given.get(part) or "") for part in ("check", "kind", "name"))
    if not (check or kind or name):
        raise ScanRulesError(where, "must have a check, a kind or a name: otherwise it matches nothing")
    if check and not any(_fits(check, each) for each in CHECKS):
        known = ", ".join(sorted(each for each in CHECKS if "/" not in each))
        raise ScanRulesError(f"{where}.check", f"there is no check {check}; there are pod-security/CONTROL, {known}")
    return Exclusion(check, kind, name)
