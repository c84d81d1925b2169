"""What tests of Checkups that make Jobs share: time passes, Jobs are as the module made them, and end as the test says."""

from __future__ import annotations

import copy
import json

from kubectl_reconcile.core.health.judge import health
from kubectl_reconcile.core.module.inputs import CEILINGS
from kubectl_reconcile.core.objects import merge_conditions
from kubectl_reconcile.module_api import Context, Owned
from kubectl_reconcile.module_testing import outcome_of
from kubectl_reconcile.modules.checkup import checkup
from tests.job_pods import JobsOfModule
from tests.modules.checkup.world import meta, service, stored

CREATED = "2026-11-20T12:00:00Z"
RESULT = {"requests": 300, "errors": 0, "p50_ms": 1.5, "p99_ms": 8.25, "statuses": {"200": 300}}
WEB = service(ports=[{"port": 80}])


class Jobs(JobsOfModule):
    """A Checkup over time."""

    def __init__(self, *around, **spec):
        super().__init__()
        self.around, self.now, self.unread, self.ceilings = list(around), CREATED, {}, CEILINGS
        self.maps, self.outcome = {}, None
        self.cr = {
            "apiVersion": "checks.reconcile.dev/v1alpha1",
            "kind": "Checkup",
            "metadata": meta("check", uid="u-1", generation=1, creationTimestamp=CREATED),
            "spec": spec,
        }

    def at(self, now, ask=outcome_of):
        self.now = now
        around = [*self.around, *self.pods.values()]
        owned = Owned(
            copy.deepcopy([*self.jobs.values(), *self.maps.values()]),
            around=stored(around),
            unread=self.unread,
        )
        context = Context(now, "checkup", self.cr, ceilings=self.ceilings)
        self.outcome = outcome = ask(checkup, copy.deepcopy(self.cr), owned, {}, context)
        before = (self.cr.get("status") or {}).get("conditions")
        conditions = merge_conditions(before, outcome.conditions, generation=1, now=now)
        self.cr = {**self.cr, "status": json.loads(json.dumps({**outcome.status, "conditions": conditions}))}
        maps = {each["metadata"]["name"]: each for each in outcome.children if each["kind"] == "ConfigMap"}
        self.maps = {
            name: copy.deepcopy(each if "data" in each else self.maps.get(name, each)) for name, each in maps.items()
        }
        self.take(outcome, now)
        return self.cr["status"]

    def begin(self, now=CREATED):
        """Let a Job begin, and be seen."""
        self.at(now)
        self.at(now)
        return self.begun[-1]

    def end(self, said=RESULT, *, at="", ok=True, **condition):
        """End the Job that is at work; its pod tells *said*."""
        super().end(self.begun[-1], said, at=at or self.now, ok=ok, **condition)

    def change(self, **spec):
        self.cr = {**self.cr, "spec": {**self.cr["spec"], **spec}}

    def told(self, type_):
        found = next((each for each in self.cr["status"]["conditions"] if each["type"] == type_), {})
        return found.get("status"), found.get("reason")

    def message(self, type_):
        return next(each for each in self.cr["status"]["conditions"] if each["type"] == type_)["message"]

    @property
    def health(self):
        return str(health(self.cr, rule=checkup.health).status)
