"""The history of a Sync: one row per state, and which one there is to go back to."""

from __future__ import annotations

import hashlib

import pytest

from kubectl_reconcile.core.resources.history import (
    current_of,
    digest_of,
    digest_of_sorted,
    is_of_other_settings,
    is_same_state,
    previous_of,
    print_of,
    settings_of,
    with_put_back,
    with_row,
)
from kubectl_reconcile.core.resources.status import ConditionReason, Counts, Report, sync_status


def row(revision, digest, result="Synced", **facts):
    return {"revision": revision, "digest": digest, "result": result, "time": "now", **facts}


def config_map(name, colour, kind="ConfigMap"):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": {"colour": colour}}


def test_a_digest_is_of_the_objects_and_of_nothing_else():
    red, blue = config_map("a", "red"), config_map("b", "blue")
    assert digest_of([red, blue]) == digest_of([blue, dict(reversed(red.items()))])
    others = [[red], [red, config_map("b", "red")], [red, blue, blue], [red, config_map("b", "blue", "Secret")], []]
    digests = {digest_of(objects) for objects in [[red, blue], *others]}
    assert len(digests) == 6


PIN = {"repository": "https://charts.example.com", "name": "web", "version": "1.2.3"}


def test_a_row_tells_of_the_chart_and_of_what_the_sync_itself_says_of_it():
    told = settings_of({"chart": PIN, "values": {"size": 1}})
    assert (told["chart"], told["helm"]["values"]) == ("web 1.2.3", {"size": 1})
    assert settings_of({}) == {}
    long = settings_of({"chart": PIN, "values": {"text": "x" * 5000}})
    assert (long["chart"], "helm" in long, len(long["settings"])) == ("web 1.2.3", False, 16)


OTHER_SETTINGS = {
    "another version": ({"chart": PIN}, {"chart": {**PIN, "version": "1.3.0"}}, True),
    "another value": ({"values": {"a": 1}}, {"values": {"a": 2}}, True),
    "no chart any more": ({"chart": PIN}, {}, True),
    "the same in another order": ({"values": {"a": 1, "b": 2}}, {"values": {"b": 2, "a": 1}}, False),
    "settings that nobody noted": ({}, {"chart": PIN}, False),
}


@pytest.mark.parametrize(("then", "now", "other"), OTHER_SETTINGS.values(), ids=OTHER_SETTINGS)
def test_a_state_of_other_settings_is_known_as_such(then, now, other):
    assert is_of_other_settings(row("c1", "A", **settings_of(then)), now) is other


def test_settings_that_leave_the_objects_as_they_are_are_noted_in_their_row():
    before = row("c1", "A", **settings_of({"values": {"a": 1}}))
    after = row("c1", "A", **settings_of({"values": {"a": 2}}))
    assert with_row([before], after) == [after]
    assert with_row([before], row("c2", "A")) == [row("c1", "A")]


def test_a_commit_that_leaves_the_objects_as_they_are_has_no_row():
    history = [row("c1", "A")]
    assert with_row(history, row("c2", "A")) == history


def test_other_objects_have_a_row_even_if_they_were_there_before():
    history = [row("c2", "B"), row("c1", "A")]
    assert [each["revision"] for each in with_row(history, row("c3", "A"))] == ["c3", "c2", "c1"]


def test_a_state_that_ends_otherwise_is_told_anew_in_its_row_with_the_commit_that_brought_it():
    history = [row("c1", "A", "ApplyFailed", message="no"), row("c0", "Z")]
    after = with_row(history, row("c2", "A", "Synced", time="later"))
    assert after == [row("c1", "A", "Synced", time="later"), row("c0", "Z")]


def test_a_row_has_who_made_the_commit_that_brought_its_state():
    before = sync_status({}, told(ConditionReason.FAILED, "c1", author="ann", subject="grow"), **PASS)
    assert {name: before["history"][0][name] for name in ("author", "subject")} == {"author": "ann", "subject": "grow"}
    (after,) = sync_status(before, told(ConditionReason.SYNCED, "c2", author="bob", subject="typo"), **PASS)["history"]
    assert [after[name] for name in ("revision", "result", "author", "subject")] == ["c1", "Synced", "ann", "grow"]
    (folder,) = sync_status({}, told(ConditionReason.SYNCED, "worktree-1"), **PASS)["history"]
    assert not {"author", "subject"} & {*folder}


PASS = {"generation": 1, "requested_at": "", "now": "now"}


def told(reason, revision, **more):
    return Report(reason, "…", revision, digest="A", **more)


def test_drift_that_was_put_back_is_noted_the_latest_first():
    before = with_put_back([], [("a", "grew"), ("b", "went")], "12:00")
    assert [(each["object"], each["times"]) for each in before] == [("b", 1), ("a", 1)]
    again = with_put_back(before, [("a", "grew"), ("a", "shrank")], "13:00")
    assert [tuple(each.values()) for each in again] == [
        ("a", "shrank", "13:00", 1),
        ("a", "grew", "13:00", 2),
        ("b", "went", "12:00", 1),
    ]


def test_what_is_put_back_again_and_again_pushes_out_nothing_else():
    found = with_put_back([], [("first", "x")], "12:00")
    for _ in range(50):
        found = with_put_back(found, [("again", "x" * 5000)], "13:00")
    assert [(each["object"], each["times"]) for each in found] == [("again", 50), ("first", 1)]
    for number in range(50):
        found = with_put_back(found, [(f"o-{number}", "x")], "14:00")
    assert ([each["object"] for each in found], len(found)) == ([f"o-{number}" for number in range(49, 29, -1)], 20)


def test_a_part_of_a_state_is_nothing_to_go_back_to():
    history = [row("c1", "A")]
    assert with_row(history, row("c2", "")) == history


def test_ten_rows_are_kept():
    history = []
    for number in range(14):
        history = with_row(history, row(f"c{number}", f"D{number}"))
    assert [each["revision"] for each in history] == [f"c{number}" for number in range(13, 3, -1)]


def test_rows_of_earlier_versions_are_known_by_their_commits():
    old = {"revision": "c1", "result": "Synced", "time": "then"}
    assert with_row([old], row("c1", "A")) == [row("c1", "A")]
    assert [each["revision"] for each in with_row([old], row("c2", "A"))] == ["c2", "c1"]
    assert not is_same_state({}, {})


BACK = {
    "the one before": ([row("c2", "B"), row("c1", "A")], "c1"),
    "not one that failed": ([row("c3", "C"), row("c2", "B", "ApplyFailed"), row("c1", "A")], "c1"),
    "not the same objects again": ([row("c3", "A", "ApplyFailed"), row("c2", "A"), row("c1", "B")], "c1"),
    "from what went wrong to what went well": ([row("c2", "B", "ProblemsInSource"), row("c1", "A")], "c1"),
    "drift that was left alone is no failure": ([row("c2", "B"), row("c1", "A", "Drifted")], "c1"),
    "nothing before": ([row("c1", "A")], None),
    "nothing that went well": ([row("c2", "B"), row("c1", "A", "ApplyFailed")], None),
    "nothing at all": ([], None),
}


@pytest.mark.parametrize(("history", "revision"), BACK.values(), ids=BACK)
def test_what_there_is_to_go_back_to_is_the_last_other_state_that_went_well(history, revision):
    assert (previous_of(history) or {}).get("revision") == revision


def test_the_cluster_is_at_the_newest_state_that_went_well():
    assert current_of([row("c2", "B", "ApplyFailed"), row("c1", "A"), row("c0", "B")])["revision"] == "c1"
    assert current_of([]) is None


# --- in the status ---


def status_after(before, counts, *, answers="", reason=ConditionReason.SYNCED, revision="c1", digest="A"):
    report = Report(reason, "a sentence", revision, counts, digest=digest)
    return sync_status(before, report, generation=1, requested_at=answers, now="2026-11-20T12:00:00Z")


def test_who_asks_is_told_what_that_sync_did_and_not_an_earlier_one():
    busy = status_after({}, Counts(total=2, deleted=1, unchanged=1))
    quiet = Counts(total=1, unchanged=1)
    assert status_after(busy, quiet)["summary"]["deleted"] == 1, "a quiet pass costs no write"
    answered = status_after(busy, quiet, answers="noon")
    assert (answered["summary"]["deleted"], answered["summary"]["unchanged"]) == (0, 1)
    busier = status_after(answered, Counts(total=1, updated=1), answers="noon")
    again = status_after(busier, quiet, answers="noon")
    assert again == busier, "the same request is answered once"


def test_what_git_asks_for_counts_as_applied_where_only_drift_waits_for_a_person():
    after = status_after({}, Counts(1), reason=ConditionReason.DRIFTED)
    assert after["lastAppliedRevision"] == "c1"
    assert "lastAppliedRevision" not in status_after({}, Counts(1), reason=ConditionReason.FAILED)


def test_a_report_that_the_source_cannot_be_read_leaves_history_and_summary():
    before = status_after({}, Counts(1, created=1))
    after = status_after(before, Counts(), reason=ConditionReason.SOURCE, revision="", digest="")
    assert (after["history"], after["summary"]) == (before["history"], before["summary"])


def test_a_digest_says_nothing_of_the_values_of_a_secret():
    red, blue = config_map("a", "red", "Secret"), config_map("a", "blue", "Secret")
    assert digest_of([red]) == digest_of([blue])
    assert digest_of([red]) != digest_of([{**red, "data": {"size": "red"}}])


def test_a_state_is_known_by_the_prints_of_its_objects_one_after_the_other():
    prints = sorted(print_of(config_map("a", colour)) for colour in ("red", "blue"))
    assert digest_of_sorted(prints) == hashlib.sha256(prints[0] + prints[1]).hexdigest()[:16]
