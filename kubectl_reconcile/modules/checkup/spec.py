"""The spec of a Checkup: what is looked for, when, and what passes.

Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from kubectl_reconcile.module_api import (
    Between,
    CelError,
    CelTest,
    CronSchedule,
    Manifest,
    ScanRules,
    ScanRulesError,
    SpecError,
    schedule_if_any,
    spec_of,
)
from kubectl_reconcile.modules.checkup.job import JobWish
from kubectl_reconcile.modules.checkup.load import LoadWish
from kubectl_reconcile.modules.checkup.report import ReportWish

_LEAST_DEADLINE_S = 10


@dataclass(frozen=True, slots=True)
class CheckupSpec:
    """The spec of a Checkup."""

    scan: Mapping[str, Any] | None = None
    load: LoadWish | None = None
    job: JobWish | None = None
    report: ReportWish | None = None
    schedule: str = ""
    time_zone: str = "UTC"
    passes: str = ""
    keep: Annotated[int, Between(1, 50)] = 10
    suspend: bool = False
    on_sync: bool = False
    deadline_seconds: Annotated[int, Between(0, 86_400)] = 0

    @property
    def rules(self) -> ScanRules:
        """What is looked for.

        Raises:
            SpecError: it can't be meant so; the field is named.
        """
        try:
            return ScanRules.of(self.scan or {})
        except ScanRulesError as error:
            raise SpecError(f".spec.scan{error.field}", str(error)) from error

    @property
    def calendar(self) -> CronSchedule | None:
        """When it is looked; None where that is whenever something changes.

        Raises:
            SpecError: it is no schedule, or there is no such zone.
        """
        return schedule_if_any(self.schedule, self.time_zone, ".spec")

    @property
    def test(self) -> CelTest | None:
        """What a result must be to pass.

        Raises:
            SpecError: it isn't CEL.
        """
        try:
            return CelTest.parse(self.passes, "result") if self.passes else None
        except CelError as error:
            raise SpecError(".spec.passes", str(error)) from error

    @property
    def basis(self) -> str:
        """What tells results that can be compared from others: the profile, and what is left out; of a Job, what it does."""
        if measurement := self.load or self.job or self.report:
            return measurement.basis
        rules = self.rules
        left_out = [[each.check, each.kind, each.name] for each in rules.exclude]
        digest = hashlib.sha256(json.dumps(left_out).encode()).hexdigest()
        return f"{rules.profile}-{digest[:12]}"


def checkup_spec(cr: Manifest, ceilings: Mapping[str, int]) -> CheckupSpec:
    """Return the spec of *cr*, which may go as far as the *ceilings*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, CheckupSpec)
    if sum(each is not None for each in (spec.scan, spec.load, spec.job, spec.report)) != 1:
        raise SpecError(".spec", "must have one of scan, load, job and report")
    if spec.load:
        spec.load.check(ceilings)
    elif spec.job:
        spec.job.check(ceilings, spec.deadline_seconds)
    if spec.report:
        spec.report.check()
    if spec.deadline_seconds and not (spec.load or spec.job):
        raise SpecError(".spec.deadlineSeconds", "can be set only with load and job: nothing else creates a Job")
    if 0 < spec.deadline_seconds < _LEAST_DEADLINE_S:
        raise SpecError(".spec.deadlineSeconds", f"must be {_LEAST_DEADLINE_S} or more, not {spec.deadline_seconds}")
    return spec
