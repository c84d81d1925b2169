"""What a daemon notes of pods on their custom resource: when, how much, and what is made of it elsewhere."""

import json

import pytest

from kubectl_reconcile.core.annotations import OBSERVED
from kubectl_reconcile.core.module.published import LARGEST, age_s, recalled, to_be_noted

THEN, NOW = "2026-11-20T12:00:00Z", "2026-11-20T12:01:30Z"
FACTS = {"members": [{"id": "1f"}], "quorum": True}


def cr(text=None):
    annotations = {} if text is None else {"annotations": {OBSERVED: text}}
    return {"apiVersion": "example.com/v1", "kind": "Kettle", "metadata": {"name": "k", **annotations}}


def test_what_is_noted_is_recalled_with_its_age():
    seen = recalled(cr(to_be_noted(cr(), FACTS, THEN)), "no right")
    assert (seen.facts, seen.as_of, seen.unreached, seen.error) == (FACTS, THEN, "no right", "")
    assert age_s(seen, NOW) == 90
    assert age_s(seen, "2026-11-20T11:00:00Z") == 0  # clocks differ


@pytest.mark.parametrize(
    "text",
    ["", "null", "{", "[]", '"x"', '{"at": 1, "facts": {}}', '{"at": "yesterday", "facts": {}}',
     f'{{"at": "{THEN}", "facts": []}}', f'{{"at": "{THEN}"}}'],
)  # fmt: skip
def test_a_note_that_makes_no_sense_is_none(text):
    assert recalled(cr(text), "") is None
    assert json.loads(to_be_noted(cr(text), FACTS, NOW)) == {"at": NOW, "facts": FACTS}


NOTED = {
    "the same a moment ago": (FACTS, NOW, False),
    "the same long ago": (FACTS, "2026-11-20T12:05:00Z", True),
    "something else": ({**FACTS, "quorum": False}, NOW, True),
    "more than fits": ({"members": ["x" * LARGEST]}, NOW, False),
}


@pytest.mark.parametrize(("facts", "now", "is_noted"), NOTED.values(), ids=NOTED)
def test_what_is_known_isn_t_noted_again_at_once(facts, now, is_noted):
    assert bool(to_be_noted(cr(to_be_noted(cr(), FACTS, THEN)), facts, now)) is is_noted


def test_a_note_is_as_short_as_can_be():
    assert (
        to_be_noted(cr(), FACTS, NOW) == '{"at":"2026-11-20T12:01:30Z","facts":{"members":[{"id":"1f"}],"quorum":true}}'
    )
