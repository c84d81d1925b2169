"""Which exit status a preview has, and each error."""

from __future__ import annotations

import importlib

import pytest

from kubectl_reconcile.cli.output import failures
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.verbs.inspect.diff import status_of
from kubectl_reconcile.core.objects import Problem, Severity
from kubectl_reconcile.core.planning.plan import Plan

PROBLEMS = {
    "nothing is wrong": ((), ExitStatus.OK),
    "a file is wrong": ((Problem("a.yaml", 1, "no kind"),), ExitStatus.SOURCE),
    "what a module asks is down": ((Problem("Candy a", 0, "no answer", in_source=False),), ExitStatus.FAILED),
    "something is odd": ((Problem("a.yaml", 1, "odd", severity=Severity.WARNING),), ExitStatus.OK),
}


@pytest.mark.parametrize(("problems", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_the_status_of_a_preview_says_whose_fault_it_is(problems, expected):
    assert status_of(Plan(None, "3f9c2e1", (), problems=problems)) == expected


def test_every_class_in_the_table_of_errors_exists():
    for name in failures._BY_CLASS:
        module, _, cls = name.rpartition(".")
        assert issubclass(getattr(importlib.import_module(module), cls), Exception)
