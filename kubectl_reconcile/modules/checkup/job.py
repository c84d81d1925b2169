"""A check of somebody's own: a Job of any image, which leaves a JSON object as the termination message of a container, or in a ConfigMap.

The ConfigMap is made with the Job and goes with it; its name and the key to write are told to each container by variables. Who writes it needs the right to.

Pure: a spec, a context and live objects in; a pod's template and results out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_reconcile.module_api import (
    MOST_NESTED,
    Context,
    Owned,
    SpecError,
    last_words,
    map_at,
    maps_in,
    shortened,
)
from kubectl_reconcile.modules.checkup.verdict import Unjudging

FIELD: Final = ".spec.job.template"
CONFIG_MAP: Final = "CHECKUP_CONFIGMAP"
KEY: Final = "CHECKUP_KEY"
_DEADLINE_S: Final = 600
MOST_BYTES: Final = 64 * 1024
"""How long a result may be. Nodes cut termination messages off at 4 KiB; more goes into the ConfigMap."""
_SUMMARY_MAX: Final = 200
_TOLD: Final = 6


@dataclass(frozen=True, slots=True)
class JobWish(Unjudging):
    """The pod that makes the check."""

    template: Mapping[str, Any]

    @property
    def deadline_s(self) -> int:
        """How long it may take where nobody says."""
        return _DEADLINE_S

    @property
    def basis(self) -> str:
        """What results must have in common to be compared: the whole template."""
        return f"job-{hashlib.sha256(json.dumps(self.template, sort_keys=True).encode()).hexdigest()[:12]}"

    def check(self) -> None:
        """Refuse what is no pod's template.

        Raises:
            SpecError: a field is named.
        """
        spec = map_at(self.template, "spec")
        if not list(maps_in(spec.get("containers"))):
            raise SpecError(f"{FIELD}.spec.containers", "must have at least one container")
        if spec.get("restartPolicy", "Never") not in {"Never", "OnFailure"}:
            raise SpecError(f"{FIELD}.spec.restartPolicy", f"must be Never or OnFailure, not {spec['restartPolicy']}")

    def missing(self, _owned: Owned) -> str:
        """Return what is in the way: nothing that could be known."""
        return ""

    def template_of(self, ctx: Context, job: str) -> dict[str, Any]:
        """Return the template of the pod of the Job of that name."""
        spec = {"restartPolicy": "Never", **map_at(self.template, "spec")}
        told = {CONFIG_MAP: results_name(ctx), KEY: job}
        for place in ("initContainers", "containers"):
            if containers := list(maps_in(spec.get(place))):
                spec[place] = [_told_to(each, told) for each in containers]
        return {**self.template, "spec": spec}

    @staticmethod
    def result_of(said: str) -> dict[str, Any]:
        """Return the result; nothing where what was said is no JSON object."""
        return dict(last_words(said)) if len(said.encode()) <= MOST_BYTES else {}

    @staticmethod
    def summary(result: Mapping[str, Any]) -> str:
        """Return a result in a few words."""
        plain = [
            f"{name} {value}"
            for name, value in result.items()
            if isinstance(value, int | float | str) and name != "compared"
        ]
        return shortened(", ".join(plain[:_TOLD]), _SUMMARY_MAX) or "there is a result"

    @staticmethod
    def why_none(said: str) -> tuple[str, str]:
        """Return why there is no result in what was said: in one word, and in a sentence."""
        if len(said.encode()) > MOST_BYTES:
            return "TooLarge", f"its result is {len(said.encode())} bytes long; {MOST_BYTES} are the most"
        hint = f"it may be nested {MOST_NESTED} deep, and JSON has neither NaN nor halves of characters"
        return (
            "NotAResult",
            f"what it left is no JSON object: {shortened(' '.join(said.split()), 100)!r} (hint: {hint})",
        )


def _told_to(container: Mapping[str, Any], told: Mapping[str, str]) -> dict[str, Any]:
    """Return a container that has these variables, and whose last output is known should it fail; what it says of these itself stays."""
    given = list(maps_in(container.get("env")))
    names = {each.get("name") for each in given}
    more = [{"name": name, "value": value} for name, value in told.items() if name not in names]
    return {"terminationMessagePolicy": "FallbackToLogsOnError", **container, "env": [*given, *more]}


def results_name(ctx: Context) -> str:
    """Return the name of the ConfigMap that a result may be left in, the same for all runs, so that a Role can name it."""
    return ctx.name("result")
