"""What modules are told of their actions by the journal on the custom resource."""

import json

import pytest

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import actions_done, actions_failed


def noted(text):
    return {"metadata": {"name": "sweet", "annotations": {ACTIONS: text}}}


def line(key, progress, message=""):
    return {"key": key, "verb": "stir", "progress": progress, "at": "2026-11-20T12:00:00Z", "message": message}


def test_what_ran_and_what_failed_are_told_apart():
    lines = [line("a", "done"), line("b", "failed", "too hot"), line("c", "started"), line("d", "done")]
    cr = noted(json.dumps(lines))
    assert actions_done(cr) == ("a", "d")
    assert actions_failed(cr) == {"b": "too hot"}


@pytest.mark.parametrize("text", ["", "{", "null", "[1]", '[{"key": "a"}]'])
def test_a_journal_that_cannot_be_read_tells_nothing(text):
    assert actions_done(noted(text)) == ()
    assert actions_failed(noted(text)) == {}
