"""What modules are told of their actions by the journal on the custom resource."""

import json

import pytest

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import (
    ActionJournal,
    ActionProgress,
    JournalEntry,
    actions_done,
    actions_failed,
)
from kubectl_reconcile.core.module.outcome import Action


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


STIR = Action("a", "stir", "stir it")


def test_how_an_action_ended_is_noted_with_its_attempts_and_survives_the_annotation():
    begun = ActionJournal().started(STIR, "1").started(STIR, "2")
    ended = begun.ended(STIR, "3", ActionProgress.FAILED, "too hot")
    assert ended.entries == (JournalEntry("a", "stir", ActionProgress.FAILED, "3", 2, "too hot"),)
    assert ActionJournal.of(noted(ended.text())) == ended


def test_an_action_that_nobody_began_ends_all_the_same():
    others = ActionJournal().started(Action("b", "stir", "stir it"), "1")
    assert others.ended(STIR, "2", ActionProgress.DONE).is_done("a")
