"""The status of a Sync after a pass: what a reader of ``kubectl get sync -o yaml`` finds, and what costs no write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.resources.signatures import SignatureFault
from kubectl_reconcile.core.resources.status import (
    ConditionReason,
    Counts,
    Report,
    reconciling,
    sync_status,
    tells_more,
)
from kubectl_reconcile.core.resources.verification import Verification

FIRST, LATER = "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"
WROTE = Counts(total=3, created=1, updated=2, unchanged=0)
DONE = Report(ConditionReason.SYNCED, "all 3 objects are as they should be", "c0ffee", WROTE, digest="d1")
REFUSED = Report(
    ConditionReason.FAILED, "the server refused one", "facade", Counts(total=3, failed=1, unchanged=2), digest="d2"
)
NO_SOURCE = Report(ConditionReason.SOURCE, "the repository can't be read")


def after(report, before=None, *, generation=1, requested_at="", now=FIRST, observed=""):
    return sync_status(
        before or {}, report, generation=generation, requested_at=requested_at, now=now, observed=observed
    )


def condition(status, type_):
    (found,) = [each for each in status["conditions"] if each["type"] == type_]
    return found


def types(status):
    return [each["type"] for each in status["conditions"]]


def test_a_first_pass_that_did_all_tells_what_it_did():
    assert after(DONE, generation=4, requested_at="today") == {
        "observedGeneration": 4,
        "lastHandledSyncAt": "today",
        "observedRevision": "c0ffee",
        "lastAttemptedRevision": "c0ffee",
        "lastAttemptedGeneration": 4,
        "lastAppliedRevision": "c0ffee",
        "lastReadyRevision": "c0ffee",
        "lastReadyGeneration": 4,
        "summary": {"total": 3, "created": 1, "updated": 2, "deleted": 0, "unchanged": 0, "failed": 0},
        "problems": [],
        "history": [
            {
                "revision": "c0ffee",
                "digest": "d1",
                "time": FIRST,
                "result": "Synced",
                "message": "all 3 objects are as they should be",
                "total": 3,
                "created": 1,
                "updated": 2,
                "deleted": 0,
                "unchanged": 0,
                "failed": 0,
            }
        ],
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Synced",
                "message": "all 3 objects are as they should be",
                "observedGeneration": 4,
                "lastTransitionTime": FIRST,
            },
            {
                "type": "Reconciling",
                "status": "False",
                "reason": "Idle",
                "message": "",
                "observedGeneration": 4,
                "lastTransitionTime": FIRST,
            },
            {
                "type": "Stalled",
                "status": "False",
                "reason": "NotStalled",
                "message": "",
                "observedGeneration": 4,
                "lastTransitionTime": FIRST,
            },
            {
                "type": "Synced",
                "status": "True",
                "reason": "Synced",
                "message": "all 3 objects are as they should be",
                "observedGeneration": 4,
                "lastTransitionTime": FIRST,
            },
        ],
    }


STALLED = {
    ConditionReason.HELD,
    ConditionReason.INVALID,
    ConditionReason.CYCLE,
    ConditionReason.DRIFTED,
    ConditionReason.UNVERIFIED,
    ConditionReason.UNDELETABLE,
}


@pytest.mark.parametrize("reason", ConditionReason, ids=str)
def test_ready_is_true_when_synced_alone_and_stalled_where_only_a_person_helps(reason):
    status = after(Report(reason, "so it went", "c0ffee"))
    ready, stalled = condition(status, "Ready"), condition(status, "Stalled")
    assert (ready["status"], ready["reason"], ready["message"]) == (
        str(reason is ConditionReason.SYNCED),
        reason.value,
        "so it went",
    )
    helpless = ("True", reason.value, "so it went") if reason in STALLED else ("False", "NotStalled", "")
    assert (stalled["status"], stalled["reason"], stalled["message"]) == helpless
    assert condition(status, "Reconciling")["status"] == "False"


def test_the_source_was_looked_at_up_to_the_commit_that_its_ref_is_at():
    assert after(DONE)["observedRevision"] == "c0ffee"
    assert after(DONE, observed="beaded")["observedRevision"] == "beaded"


def test_a_later_pass_at_the_same_revision_takes_back_nothing_that_was_looked_at_since():
    assert after(DONE, after(DONE, observed="beaded"))["observedRevision"] == "beaded"
    assert after(REFUSED, after(DONE, observed="beaded"))["observedRevision"] == "facade"


def test_up_to_which_commit_a_source_was_looked_at_is_no_reason_to_write_a_status():
    before = after(DONE)
    assert not tells_more(before, after(DONE, before, observed="beaded"))
    assert tells_more(before, after(REFUSED, before, observed="beaded"))


def test_a_later_commit_that_holds_the_same_says_nothing_new_and_any_other_does():
    before, later, other = after(DONE), replace(DONE, revision="facade"), replace(DONE, revision="beaded")
    same = ("c0ffee", "facade")
    assert tells_more(before, after(later, before))
    assert not tells_more(before, after(later, before), same)
    assert tells_more(before, after(other, before), same)
    assert tells_more(before, after(later, before, requested_at="today"), same)
    assert tells_more(before, after(replace(later, digest="d2"), before), same)
    assert tells_more(after(REFUSED, before), after(later, after(REFUSED, before)), same)


def test_the_tag_that_a_range_led_to_is_that_of_what_was_tried_last():
    before = after(replace(DONE, tag="v1.0.0"))
    assert (before["lastAttemptedTag"], before["history"][0]["tag"]) == ("v1.0.0", "v1.0.0")
    assert after(REFUSED, before).keys() & {"lastAttemptedTag"} == set()
    assert after(replace(REFUSED, tag="v1.1.0"), before)["lastAttemptedTag"] == "v1.1.0"
    assert after(NO_SOURCE, before)["lastAttemptedTag"] == "v1.0.0"
    assert after(DONE, before)["lastAttemptedTag"] == "v1.0.0", "a pass over some objects doesn't tell it"
    assert "lastAttemptedTag" not in after(DONE, before, generation=2), "by another spec it follows something else"


def test_the_tag_of_a_state_is_the_one_that_brought_it():
    before = after(replace(DONE, tag="v1.0.0"))
    again = after(replace(DONE, revision="facade", tag="v1.0.1"), before, now=LATER)
    assert [(row["revision"], row["tag"]) for row in again["history"]] == [("c0ffee", "v1.0.0")]
    failed = after(replace(DONE, revision="beaded", tag="v1.0.2", reason=ConditionReason.FAILED), again, now=LATER)
    assert [(row["revision"], row["tag"], row["result"]) for row in failed["history"]] == [
        ("c0ffee", "v1.0.0", "ApplyFailed")
    ]


def test_a_tag_of_a_later_commit_that_holds_the_same_says_nothing_new():
    before, later = after(replace(DONE, tag="v1.0.0")), replace(DONE, revision="facade", tag="v1.0.1")
    assert not tells_more(before, after(later, before), ("c0ffee", "facade"))
    assert tells_more(before, after(later, before))


def test_the_revision_counts_as_applied_only_when_all_of_it_is():
    status = after(REFUSED, after(DONE))
    assert (status["lastAttemptedRevision"], status["lastAppliedRevision"]) == ("facade", "c0ffee")


def test_a_source_that_can_not_be_read_leaves_what_is_known_of_the_last_pass():
    before = after(replace(DONE, problems=("a.yaml:3: no kind",)), requested_at="yesterday")
    status = after(NO_SOURCE, before, now=LATER)
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        name: value for name, value in before.items() if name != "conditions"
    }
    assert condition(status, "Ready")["reason"] == "SourceUnavailable"


def test_a_request_that_was_answered_is_noted_and_none_takes_nothing_back():
    before = after(DONE, requested_at="today")
    assert after(DONE, before)["lastHandledSyncAt"] == "today"
    assert after(DONE, before, requested_at="tomorrow")["lastHandledSyncAt"] == "tomorrow"
    assert "lastHandledSyncAt" not in after(DONE)


reports = st.builds(
    Report,
    st.sampled_from(ConditionReason),
    st.text(max_size=5),
    st.sampled_from(["", "c0ffee", "facade"]),
    st.builds(Counts, *[st.integers(0, 2)] * 6),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    st.none() | st.lists(st.text(max_size=3), max_size=2).map(tuple),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    digest=st.sampled_from(["", "d1", "d2"]),
)


@given(st.lists(reports, max_size=4), reports)
def test_the_same_pass_again_costs_no_write(history, report):
    before = {}
    for each in [*history, report]:
        before = after(each, before)
    quiet = replace(report, counts=Counts(total=report.counts.total, unchanged=report.counts.unchanged))
    again = after(quiet, before, now=LATER) if not report.counts.failed else after(report, before, now=LATER)
    assert again == before


@given(reports, reports)
def test_the_status_that_was_there_is_never_changed_in_place(one, other):
    before = after(one)
    kept = repr(before)
    after(other, before, now=LATER)
    assert repr(before) == kept


def test_a_quiet_pass_recounts_the_set_and_keeps_what_the_last_one_did():
    quiet = replace(DONE, counts=Counts(total=4, unchanged=4))
    assert after(quiet, after(DONE))["summary"] == {**after(DONE)["summary"], "total": 4}


SUMMARIES = {
    "one made": Counts(total=4, created=1, unchanged=3),
    "one changed": Counts(total=4, updated=1, unchanged=3),
    "one deleted": Counts(total=4, deleted=1, unchanged=4),
    "one refused": Counts(total=4, failed=1, unchanged=3),
}


@pytest.mark.parametrize("counts", SUMMARIES.values(), ids=SUMMARIES)
def test_a_pass_that_did_something_is_what_the_summary_tells(counts):
    told = after(replace(DONE, counts=counts), after(DONE))["summary"]
    assert told == {name: getattr(counts, name) for name in told}


def test_a_pass_without_failures_takes_the_failures_of_the_one_before_off_the_summary():
    quiet = Counts(total=3, unchanged=3)
    assert after(replace(DONE, counts=quiet), after(REFUSED))["summary"]["failed"] == 0


def test_history_tells_of_each_state_once_the_newest_first_and_how_it_ended_last():
    status = {}
    for at, report in enumerate([DONE, DONE, REFUSED, replace(REFUSED, reason=ConditionReason.SYNCED), DONE]):
        status = after(report, status, now=f"at {at}")
    told = [(entry["revision"], entry["result"], entry["time"]) for entry in status["history"]]
    assert told == [("c0ffee", "Synced", "at 4"), ("facade", "Synced", "at 3"), ("c0ffee", "Synced", "at 0")]


def test_history_keeps_ten_entries():
    status = {}
    for number in range(12):
        status = after(replace(DONE, revision=str(number), digest=str(number)), status)
    assert [entry["revision"] for entry in status["history"]] == [str(number) for number in range(11, 1, -1)]


def test_a_status_is_bounded_whatever_the_source_holds():
    long = "x" * 3000
    report = replace(
        REFUSED, message=long, problems=(long,) * 30, drifted=(long,), contended=(long,), reason=ConditionReason.HELD
    )
    status = after(report)
    assert [len(problem) for problem in status["problems"]] == [1024] * 20
    assert len(status["history"][0]["message"]) == 1024
    told = {each["type"]: len(each["message"]) for each in status["conditions"]}
    assert told == {
        "Synced": 1024,
        "Ready": 1024,
        "Stalled": 1024,
        "Reconciling": 0,
        "Drifted": 1024,
        "Contended": 1024,
    }


def test_drift_that_is_left_alone_is_named():
    status = after(replace(DONE, drifted=("web: .spec.size is 3", "data: it is gone")))
    drifted = condition(status, "Drifted")
    assert (drifted["status"], drifted["reason"]) == ("True", "NotCorrected")
    assert drifted["message"] == "web: .spec.size is 3; data: it is gone"


def test_a_sync_that_asks_before_drift_is_put_back_says_when_there_is_none():
    drifted = condition(after(replace(DONE, drifted=())), "Drifted")
    assert (drifted["status"], drifted["reason"], drifted["message"]) == ("False", "InSync", "")


def test_a_sync_that_puts_drift_back_says_nothing_of_it_unless_it_once_did():
    assert "Drifted" not in types(after(DONE))
    before = after(replace(DONE, drifted=("web: .spec.size is 3",)))
    assert condition(after(DONE, before), "Drifted")["status"] == "False"


def test_fields_that_are_left_to_others_are_named_until_they_are_taken_back():
    before = after(replace(DONE, contended=("web: .spec.size", "web: .spec.image")))
    contended = condition(before, "Contended")
    assert (contended["status"], contended["reason"]) == ("True", "BackedOff")
    assert contended["message"] == "web: .spec.size; web: .spec.image"
    contended = condition(after(DONE, before, now=LATER), "Contended")
    assert (contended["status"], contended["reason"], contended["message"]) == ("False", "InSync", "")
    assert contended["lastTransitionTime"] == LATER
    assert "Contended" not in types(after(DONE))


def test_a_pass_that_begins_to_write_says_so_and_keeps_the_rest():
    before = after(DONE)
    busy = reconciling(before, "3 objects to write", generation=2, now=LATER)
    under_way = condition(busy, "Reconciling")
    assert under_way == {
        "type": "Reconciling",
        "status": "True",
        "reason": "Applying",
        "message": "3 objects to write",
        "observedGeneration": 2,
        "lastTransitionTime": LATER,
    }
    assert condition(busy, "Ready") == condition(before, "Ready")
    assert busy["history"] == before["history"]
    assert condition(after(DONE, busy, generation=2), "Reconciling")["status"] == "False"


def test_a_first_pass_may_begin_to_write_before_there_is_any_status():
    assert types(reconciling({}, "3 objects to write", generation=1, now=FIRST)) == ["Reconciling"]


@pytest.mark.parametrize("what", ["created", "updated", "deleted"])
def test_counts_tell_whether_a_pass_wrote(what):
    assert Counts(**{what: 1}).wrote
    assert not Counts(total=3, unchanged=3, failed=1).wrote


SHA, NEWER = "a" * 40, "b" * 40
SIGNED = Verification(SHA, "", "alice", "ED25519 SHA256:abc")
UNSIGNED = replace(SIGNED, fault=SignatureFault.NO_SIGNATURE, refusal="commit bbbbbbb has no signature")
GOOD = replace(DONE, revision=SHA, verification=SIGNED)


def test_a_verified_commit_is_noted_with_its_signer():
    status = after(GOOD)
    assert status["verified"] == {"revision": SHA, "signer": "alice", "key": "ED25519 SHA256:abc"}
    assert (status["history"][0]["signer"], status["history"][0]["key"]) == ("alice", "ED25519 SHA256:abc")
    verified = condition(status, "SourceVerified")
    assert (verified["status"], verified["reason"]) == ("True", "GoodSignature")
    assert condition(status, "Ready")["status"] == "True"


def test_a_refused_commit_makes_nothing_ready_and_leaves_what_was_applied():
    before = after(GOOD)
    status = after(replace(GOOD, counts=Counts(3, unchanged=3), verification=UNSIGNED), before, now=LATER)
    ready = condition(status, "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", "Unverified", UNSIGNED.refusal)
    assert condition(status, "Stalled")["status"] == "True"
    assert condition(status, "SourceVerified")["reason"] == "NoSignature"
    assert status["lastAppliedRevision"] == SHA
    assert status["history"] == before["history"]
    assert status["verified"] == before["verified"]


def test_what_is_wrong_besides_a_refused_commit_is_told_too():
    status = after(replace(REFUSED, verification=UNSIGNED))
    assert condition(status, "Ready")["message"] == f"{UNSIGNED.refusal}; also: the server refused one"


def test_a_refusal_before_anything_was_verified_leaves_what_the_status_names():
    nothing = Verification(fault=SignatureFault.NO_SIGNATURE, refusal="nothing is applied")
    before = after(GOOD)
    status = after(Report(ConditionReason.UNVERIFIED, "nothing is applied", verification=nothing), before)
    assert status["verified"] == before["verified"]
    assert condition(status, "Ready")["message"] == "nothing is applied"


def test_where_nobody_asks_for_signatures_any_more_none_is_told():
    status = after(DONE, after(GOOD))
    assert "verified" not in status
    assert "SourceVerified" not in types(status)
    assert "SourceVerified" in types(after(NO_SOURCE, after(GOOD))), "an outage says nothing of signatures"
