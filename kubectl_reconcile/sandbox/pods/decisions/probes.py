"""When a probe that was tried some times has succeeded or failed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class ProbeKind(StrEnum):
    """What a probe is for."""

    STARTUP = "startupProbe"
    """Until it succeeds no other probe is tried; failed, the container is restarted."""
    LIVENESS = "livenessProbe"
    """Failed, the container is restarted."""
    READINESS = "readinessProbe"
    """Failed, the pod gets no traffic."""


@dataclass(frozen=True, slots=True)
class ProbeState:
    """What is known of one probe of one run of a container."""

    passing: bool
    """What it counts as now."""
    settled: bool = False
    """Whether that was found out, not assumed."""
    streak: int = 0
    """How many times in a row it went the same way."""
    last: bool | None = None

    @classmethod
    def begin(cls, kind: ProbeKind) -> ProbeState:
        """Return what holds before the first try: alive, but neither started nor ready."""
        return cls(passing=kind is ProbeKind.LIVENESS)

    def tried(self, probe: Mapping[str, Any], *, succeeded: bool) -> ProbeState:
        """Return what holds after one more try of *probe*."""
        streak = self.streak + 1 if self.last is succeeded else 1
        needed = probe.get("successThreshold", 1) if succeeded else probe.get("failureThreshold", 3)
        after = replace(self, streak=streak, last=succeeded)
        return replace(after, passing=succeeded, settled=True) if streak >= needed else after

    @property
    def failed(self) -> bool:
        """Whether it was tried often enough to say that it failed."""
        return self.settled and not self.passing
