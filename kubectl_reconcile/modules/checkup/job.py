"""A check of somebody's own: a Job of any image, which leaves a JSON object as the termination message of a container, or in a ConfigMap.

The ConfigMap is made with the Job and goes with it; its name and the key to write are told to each container by variables. Who writes it needs the right to.

The daemon makes the Job by its own rights, so it makes none that could get at the node: nothing that the baseline of the Pod Security Standards forbids. And a pod has a token only of an account that is named.

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
    ScanRules,
    SpecError,
    findings_among,
    last_words,
    map_at,
    maps_in,
    shortened,
)
from kubectl_reconcile.modules.checkup.verdict import Unjudging

FIELD: Final = ".spec.job.template"
CONFIG_MAP: Final = "CHECKUP_CONFIGMAP"
KEY: Final = "CHECKUP_KEY"
LONGEST: Final = "--job-max-seconds"
_DEADLINE_S: Final = 600
_BASELINE: Final = ScanRules.of({"profile": "baseline"})
_NO_TOKEN: Final = {"automountServiceAccountToken": False}
MOST_BYTES: Final = 64 * 1024
"""How long a result may be; what is longer than a termination message goes into the ConfigMap."""
_MOST_OF_MESSAGE: Final = 4096
"""Where nodes cut termination messages off, in bytes."""
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

    def check(self, ceilings: Mapping[str, int], deadline_s: int) -> None:
        """Refuse what is no pod's template, could get at the node, or may run for longer than the daemon allows.

        Raises:
            SpecError: a field is named.
        """
        self._check_template()
        longest, wanted = ceilings[LONGEST], deadline_s or self.deadline_s
        if wanted > longest:
            hint = f"lower it, or start the daemon with a larger {LONGEST}"
            raise SpecError(".spec.deadlineSeconds", f"must be {longest} or less here, not {wanted} (hint: {hint})")
        spec = {"job": {"template": self.template}}
        alone = {"apiVersion": "checks.reconcile.dev/v1alpha1", "kind": "Checkup", "metadata": {}, "spec": spec}
        for each in findings_among([alone], _BASELINE):
            if each.check.startswith("pod-security/"):
                raise SpecError(each.path, f"{each.demand}: a Checkup runs no pod that could gain access to its node")

    def _check_template(self) -> None:
        spec = map_at(self.template, "spec")
        if not list(maps_in(spec.get("containers"))):
            raise SpecError(f"{FIELD}.spec.containers", "must have at least one container")
        if spec.get("restartPolicy", "Never") not in {"Never", "OnFailure"}:
            raise SpecError(f"{FIELD}.spec.restartPolicy", f"must be Never or OnFailure, not {spec['restartPolicy']}")

    def missing(self, _owned: Owned) -> str:
        """Return what is in the way: nothing that could be known."""
        return ""

    def template_of(self, ctx: Context, job: str, _owned: Owned) -> dict[str, Any]:
        """Return the template of the pod of the Job of that name."""
        asked = map_at(self.template, "spec")
        names_account = any(asked.get(name) for name in ("serviceAccountName", "serviceAccount"))
        spec = {"restartPolicy": "Never", **({} if names_account else _NO_TOKEN), **asked}
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
        size, words = len(said.encode()), " ".join(said.split())
        if size > MOST_BYTES:
            return "TooLarge", f"its result is {size} bytes long; the limit is {MOST_BYTES} are the most"
        if words == "{}":
            return "NotAResult", "its result is an empty JSON object (hint: add at least one field)"
        hint = 'it must be a JSON object such as {"open": 3}, and nothing else'
        if size == _MOST_OF_MESSAGE:
            hint = f"nodes cut termination messages off after {size} bytes; write longer results into the ConfigMap"
        elif words.startswith("{"):
            hint = f"it may be nested {MOST_NESTED} deep, and JSON has neither NaN nor unpaired surrogates"
        return "NotAResult", f"its result isn't a JSON object: {shortened(words, 100)!r} (hint: {hint})"


def _told_to(container: Mapping[str, Any], told: Mapping[str, str]) -> dict[str, Any]:
    """Return a container that has these variables, and whose last output is known should it fail; what it says of these itself stays."""
    given = list(maps_in(container.get("env")))
    names = {each.get("name") for each in given}
    more = [{"name": name, "value": value} for name, value in told.items() if name not in names]
    return {"terminationMessagePolicy": "FallbackToLogsOnError", **container, "env": [*given, *more]}


def results_name(ctx: Context) -> str:
    """Return the name of the ConfigMap that a result may be left in, the same for all runs, so that a Role can name it."""
    return ctx.name("result")
