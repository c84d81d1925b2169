"""Which exit status a preview has, and each error."""

from __future__ import annotations

import importlib

import pytest

from kubectl_reconcile.cli.output import failures, findings, markdown
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.verbs.inspect.diff import status_of
from kubectl_reconcile.core.objects import ObjectRef, Problem, Severity
from kubectl_reconcile.core.planning.plan import Nested, Op, Plan
from kubectl_reconcile.core.scan.outlook import PlanScan, ScanScope
from kubectl_reconcile.core.scan.pod_security import Profile
from kubectl_reconcile.views.changes import PlanView
from tests.core.planning.changes import a_change

PROBLEMS = {
    "nothing is wrong": ((), ExitStatus.OK),
    "a file is wrong": ((Problem("a.yaml", 1, "no kind"),), ExitStatus.SOURCE),
    "what a module asks is down": ((Problem("Candy a", 0, "no answer", in_source=False),), ExitStatus.FAILED),
    "something is odd": ((Problem("a.yaml", 1, "odd", severity=Severity.WARNING),), ExitStatus.OK),
}


@pytest.mark.parametrize(("problems", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_the_status_of_a_preview_says_whose_fault_it_is(problems, expected):
    assert status_of(Plan(None, "3f9c2e1", (), problems=problems)) == expected


BELOW = ObjectRef("reconcile.dev", "Sync", "shop", "web")
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"hostNetwork": True, "containers": []}}
RISKY = a_change(ObjectRef("", "Pod", "shop", "a"), Op.CREATE, after=POD)
NESTED = {
    "changes nothing": (Plan(BELOW, "3f9c2e1", ()), ExitStatus.OK),
    "changes something, though its Sync stays as it is": (Plan(BELOW, "3f9c2e1", (RISKY,)), ExitStatus.DIFFERENT),
    "has a file that is wrong": (Plan(BELOW, "3f9c2e1", (), (Problem("a.yaml", 1, "no kind"),)), ExitStatus.SOURCE),
    "would be refused": (Plan(BELOW, "3f9c2e1", (RISKY.gated(denied="may not create pods"),)), ExitStatus.FAILED),
}


@pytest.mark.parametrize(("below", "expected"), NESTED.values(), ids=NESTED)
def test_the_status_of_a_preview_tells_of_a_nested_plan_that(below, expected):
    assert status_of(Plan(None, "3f9c2e1", (), nested=(Nested(BELOW, Op.UNCHANGED, plan=below),))) == expected


def test_a_new_finding_in_a_nested_plan_is_a_new_finding():
    scan = PlanScan(ScanScope(Profile.BASELINE))
    made = Plan(None, "3f9c2e1", (), nested=(Nested(BELOW, Op.UPDATE, plan=Plan(BELOW, "3f9c2e1", (RISKY,))),))
    assert status_of(made, must_pass=scan) is ExitStatus.FINDINGS
    shown = ["".join(span.text for span in one) for one in findings.lines_below(made, scan)]
    assert (shown[0], shown[1].startswith("new finding: Pod a")) == ("Sync shop/web", True)
    comment = "\n".join(
        "".join(span.text for span in one) for one in markdown.github(made, PlanView("2026-11-20T12:00:00Z", scan=scan))
    )
    assert "1 new finding, 0 fixed" in comment.partition("shop/web")[2]


def test_every_class_in_the_table_of_errors_exists():
    for name in failures._BY_CLASS:
        module, _, cls = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), cls), Exception)
