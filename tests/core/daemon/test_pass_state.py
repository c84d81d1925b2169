"""The state machine of a pass, row by row of its table: one event at a time, on plain values."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import APPROVED_PLAN
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.pass_phase import RightsLack
from kubectl_reconcile.core.daemon.pass_state import (
    RIGHTS_S,
    SOON_S,
    InvariantError,
    PassPhase,
    PassState,
    is_at_rest,
    step,
)
from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S, Priority
from kubectl_reconcile.core.daemon.source_state import SourceState
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.resources.signatures import SignatureFault
from kubectl_reconcile.core.resources.status import ConditionReason, Counts, Report
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.core.resources.verification import Verification

NOW_S = 1000.0
WEB, DB, NEW = (ObjectRef("", "ConfigMap", "shop", name) for name in ("web", "db", "new"))
BASE = ObjectRef(SYNC.group, SYNC.kind, "shop", "base")
SYNCED = Report(ConditionReason.SYNCED, "2 objects in sync", "3f9c2e1", Counts(2, created=2))


def sync(*, generation=1, annotations=None, **spec):
    source = {"git": {"url": "https://git.example.com/shop", "interval": "1m"}}
    metadata = {"name": "shop", "namespace": "shop", "generation": generation, "annotations": annotations or {}}
    return Sync.of({"metadata": metadata, "spec": {"source": source, "dependsOn": [{"name": "base"}], **spec}})


def at_rest(**facts):
    """A Sync in step with its source, which is asked again in half a minute."""
    spec = facts.pop("spec", {})
    settled = replace(SYNCED, counts=Counts(2, unchanged=2)) if spec.get("drift", "Correct") == "Correct" else None
    source = SourceState(is_open=True, is_read=True, due_s=NOW_S + 30)
    known = {
        "sync": sync(**spec), "source": source, "is_due": False, "members": frozenset({WEB, DB}), "settled": settled,
        "told": ConditionReason.SYNCED, "is_gated": False,
    }  # fmt: skip
    return PassState(**(known | facts))


def after(state, *events, now_s=NOW_S):
    """Return the state after these events, and the instructions of the last."""
    instructions = ()
    for event in events:
        state, instructions = step(state, event, now_s)
        state.validate()
    return state, instructions


def turn(state, **facts):
    asked = facts.pop("is_asked", False)
    return on.TurnCame(state.sync or sync(), on.ClusterFacts(**facts), is_asked=asked)


def kinds(instructions):
    return [type(each) for each in instructions]


def test_a_turn_with_nothing_to_look_at_waits_for_its_source():
    state, instructions = after(at_rest(), turn(at_rest()))
    assert instructions == (on.LookAgain(Priority.POLL, 30.0),)
    assert state == at_rest()


FIRST = on.ReadSource(opened=True, since_s=NOW_S - 2)
POLL = on.ReadSource(opened=False, since_s=NOW_S - 54)
READING = SourceState(is_open=True, is_read=True, is_reading=True)
OPEN = SourceState(is_open=True, is_read=True, due_s=NOW_S)


def test_a_source_is_asked_when_its_time_has_come_and_opened_only_once():
    state, first = after(PassState(), turn(PassState()))
    assert (first, state.phase, state.source.is_reading) == ((FIRST,), PassPhase.IDLE, True)
    rested = at_rest(source=OPEN)
    assert after(rested, turn(rested))[1] == (POLL,)


def test_a_source_that_others_were_told_of_lately_is_not_asked_before_its_interval_is_over_again():
    rested = at_rest(source=OPEN)
    state, instructions = after(rested, turn(rested, is_current=True))
    assert instructions == (on.LookAgain(Priority.POLL, 60.0),)
    assert state == at_rest(source=replace(OPEN, due_s=NOW_S + 60))


def test_a_source_is_asked_itself_by_who_waits_for_it_and_where_it_failed_whatever_others_were_told():
    asked = turn(at_rest(), is_asked=True, is_current=True)
    assert kinds(after(at_rest(), asked)[1]) == [on.ReadSource]
    down = at_rest(source=SourceState(is_read=True))
    assert kinds(after(down, turn(down, is_current=True))[1]) == [on.ReadSource]


def test_a_source_that_others_saw_move_is_asked_at_once_and_what_they_were_told_will_do():
    state, instructions = after(at_rest(), on.SourceMoved())
    assert instructions == (on.LookAgain(Priority.PUSH),)
    assert after(state, turn(state))[1] == (POLL,)
    reading, _ = after(at_rest(source=READING), on.SourceMoved())
    assert kinds(after(reading, on.SourceRead(is_news=False), turn(reading))[1]) == [on.ReadSource]


def test_a_source_is_not_asked_while_it_is_being_asked():
    assert after(at_rest(source=READING), turn(at_rest()))[1] == ()


def test_a_sync_that_is_asked_for_reads_credentials_anew():
    assert after(at_rest(), turn(at_rest(), is_asked=True))[1] == (
        on.ReadSource(opened=True, is_awaited=True, since_s=NOW_S),
    )


def test_what_changed_in_the_cluster_and_what_is_due_is_not_held_up_by_a_source_that_is_being_asked():
    dirty = at_rest(source=READING, dirty=frozenset({WEB}))
    assert after(dirty, turn(dirty))[1] == (on.PlanObjects(frozenset({WEB})),)
    assert kinds(after(at_rest(source=READING), on.Approved(), turn(at_rest()))[1]) == [on.PlanSet]


def test_news_has_the_set_planned_at_once_even_in_the_pause_after_a_failure():
    failing = at_rest(is_due=True, settled=None, retry_s=NOW_S + 50)
    asleep = after(failing, turn(failing))[1]
    assert kinds(asleep) == [on.LookAgain]
    reading = replace(failing, source=READING)
    assert kinds(after(reading, on.SourceRead(is_news=False), turn(failing))[1]) == [on.LookAgain]
    assert kinds(after(reading, on.SourceRead(is_news=True), turn(failing))[1]) == [on.LookAgain, on.PlanSet]


SIGNED = Verification("3f9c2e1", "", "alice", "ED25519 SHA256:abc")
UNSIGNED = replace(SIGNED, fault=SignatureFault.NO_SIGNATURE, refusal="facade has no signature")


def test_a_refused_commit_is_told_with_the_pass_over_what_stays_in_force():
    reading = at_rest(source=READING)
    state, instructions = after(reading, on.SourceRead(is_news=True, verification=UNSIGNED), turn(reading))
    assert kinds(instructions) == [on.LookAgain, on.PlanSet]
    state, (*_, told, _forget) = after(
        state, on.PlanMade(Plan(None, "3f9c2e1", ()), frozenset({WEB, DB})), on.Applied(SYNCED)
    )
    assert told.report == replace(SYNCED, verification=UNSIGNED)
    assert (told.report.ending, told.report.sentence) == (ConditionReason.UNVERIFIED, UNSIGNED.refusal)
    read = on.SourceRead(is_news=False, verification=UNSIGNED)
    asked, instructions = after(state, turn(state, is_asked=True), read, turn(state))
    assert kinds(instructions) == [on.LookAgain, on.CheckMembers]
    _, (answer,) = after(asked, on.MembersChecked(are_there=True))
    assert answer.report.ending is ConditionReason.UNVERIFIED, "and who asks again is told again"


def test_drift_is_put_back_while_a_commit_is_refused():
    state = at_rest(source=SourceState(is_open=True, is_read=True, due_s=NOW_S + 30, verification=UNSIGNED))
    assert on.PlanObjects(frozenset({WEB})) in after(state, on.ObjectsChanged(frozenset({WEB})), turn(state))[1]


def test_where_nothing_is_verified_nothing_is_done():
    nothing = Verification(fault=SignatureFault.NO_SIGNATURE, refusal="facade has no signature")
    first = after(PassState(), turn(PassState()))[0]
    state, (retry, told) = after(first, on.SourceFailed(nothing.refusal, verification=nothing))
    assert (retry.scope, told.report.reason, told.report.verification) == (
        on.Scope.SOURCE,
        ConditionReason.UNVERIFIED,
        nothing,
    )
    assert state.phase is PassPhase.IDLE
    assert not state.source.is_open


def test_the_next_poll_is_an_interval_after_the_last_or_when_contention_lapses():
    reading, read = at_rest(source=READING), on.SourceRead(is_news=False)
    state, instructions = after(reading, read, turn(reading))
    assert (state.source.due_s, instructions) == (NOW_S + 60, (on.LookAgain(Priority.POLL, 60.0),))
    assert after(reading, read, turn(reading, lapses_at_s=NOW_S + 7))[1] == (on.LookAgain(Priority.POLL, 7.0),)
    assert after(reading, read, turn(reading, lapses_at_s=NOW_S - 7))[1] == (on.LookAgain(Priority.POLL, SOON_S),)
    assert after(reading, turn(reading, lapses_at_s=NOW_S + 7))[1] == (on.LookAgain(Priority.POLL, 7.0),)


def test_contention_that_lapses_when_the_source_is_due_is_not_forgotten_over_it():
    rested = at_rest(source=OPEN)
    assert kinds(after(rested, turn(rested, has_lapsed=True))[1]) == [on.ReadSource, on.PlanSet]


def test_an_outage_of_the_source_is_told_once_a_try_and_what_was_read_is_kept_up():
    reading = at_rest(source=READING, dirty=frozenset({WEB}))
    state, (retry, told) = after(reading, on.SourceFailed("no route to host"))
    assert (retry.scope, retry.cap_s, retry.priority) == (on.Scope.SOURCE, 60.0, Priority.POLL)
    assert (told.report.reason, told.report.message) == (ConditionReason.SOURCE, "no route to host")
    assert not state.source.is_open
    state, instructions = after(state, on.RetryScheduled(retry, 8.0), turn(state))
    assert instructions == (on.LookAgain(Priority.POLL, 8.0), on.PlanObjects(frozenset({WEB})))
    assert state.source.due_s == NOW_S + 8


def test_a_source_that_never_answered_is_asked_again_after_a_pause_and_not_at_each_turn():
    state, (retry, _) = after(PassState(), turn(PassState()), on.SourceFailed("no route to host"))
    state, instructions = after(state, on.RetryScheduled(retry, 8.0), turn(state))
    assert instructions == (on.LookAgain(Priority.POLL, 8.0),)
    assert after(state, turn(state), now_s=NOW_S + 8)[1] == (on.ReadSource(opened=True, since_s=NOW_S + 6),)


def test_an_outage_answers_who_asked_and_one_who_asked_only_meanwhile_has_the_source_asked_once_more():
    first, second = (sync(annotations={"reconcile.dev/sync-requested-at": at}) for at in ("noon", "one"))
    asked = after(at_rest(), on.TurnCame(first, is_asked=True))[0]
    assert after(asked, on.SourceFailed("no"))[1][1].answers == "noon"
    state, (told,) = after(asked, on.TurnCame(second, is_asked=True), on.SourceFailed("no"))
    assert told.answers == ""
    assert after(state, on.TurnCame(second, is_asked=True))[1] == (
        on.ReadSource(opened=True, is_awaited=True, since_s=NOW_S),
    )


def test_a_request_that_an_outage_answered_is_not_taken_for_another_one():
    asked = sync(annotations={"reconcile.dev/sync-requested-at": "noon"})
    came = on.TurnCame(asked, is_asked=True)
    state, (retry, _) = after(at_rest(), came, on.SourceFailed("no"))
    state, instructions = after(state, on.RetryScheduled(retry, 8.0), came)
    assert kinds(instructions) == [on.LookAgain]


def test_a_source_that_answers_again_is_told_by_a_pass_over_the_set():
    reading = at_rest(source=SourceState(is_read=True, is_reading=True))
    assert kinds(after(reading, on.SourceRead(is_news=False), turn(reading))[1]) == [on.LookAgain, on.PlanSet]


def test_a_push_that_comes_while_the_source_is_asked_has_it_asked_once_more():
    reading = at_rest(source=READING)
    state, instructions = after(reading, on.Pushed(), on.SourceRead(is_news=False), turn(reading))
    assert kinds(instructions) == [on.ReadSource]
    state, instructions = after(state, on.SourceRead(is_news=False), turn(reading))
    assert kinds(instructions) == [on.LookAgain]


def test_a_pass_that_ends_before_the_source_has_answered_is_no_answer_to_who_asked():
    asked = sync(annotations={"reconcile.dev/sync-requested-at": "noon"})
    state, instructions = after(at_rest(is_due=True, settled=None), on.TurnCame(asked, is_asked=True))
    assert kinds(instructions) == [on.ReadSource, on.PlanSet]
    state, (told, _) = after(state, on.Applied(SYNCED))
    assert told.answers == ""
    came = on.TurnCame(asked, is_asked=True)
    state, _ = after(state, on.SourceRead(is_news=False), came)
    assert after(state, on.MembersChecked(are_there=True))[1][0].answers == "noon"


def test_a_source_that_is_down_has_only_what_is_dirty_looked_at():
    down = at_rest(source=SourceState(is_read=True, due_s=NOW_S + 30), is_due=True, settled=None)
    assert kinds(after(down, turn(down))[1]) == [on.LookAgain]
    dirty = replace(down, dirty=frozenset({WEB}))
    assert kinds(after(dirty, turn(dirty))[1]) == [on.LookAgain, on.PlanObjects]


WAITS = "waits for Sync shop/base to be Ready"
NEWS = at_rest(source=READING)


def test_news_waits_for_what_the_sync_depends_on_and_is_woken_by_it():
    state, (_, told) = after(NEWS, on.SourceRead(is_news=True), turn(NEWS, waits=WAITS))
    assert (told.report.reason, told.report.message) == (ConditionReason.WAITING, WAITS)
    assert after(state, on.DependencyChanged(BASE))[1] == (on.LookAgain(Priority.PUSH),)
    assert after(state, on.DependencyChanged(WEB))[1] == ()
    assert kinds(after(state, turn(state))[1]) == [on.LookAgain, on.PlanSet]


def test_what_was_let_through_is_gated_no_more():
    assert after(at_rest(), turn(at_rest(), waits=WAITS)) == (at_rest(), (on.LookAgain(Priority.POLL, 30.0),))
    assert after(at_rest(), on.DependencyChanged(BASE))[1] == ()
    failing = at_rest(is_due=True, settled=None)
    assert kinds(after(failing, turn(failing, waits=WAITS))[1]) == [on.LookAgain, on.PlanSet], "a retry is no news"


def test_drift_is_put_back_while_news_waits_for_another_sync():
    waiting, _ = after(NEWS, on.SourceRead(is_news=True), turn(NEWS, waits=WAITS))
    drifted = on.ObjectsChanged(frozenset({WEB}))
    state, (_, told, planned) = after(waiting, drifted, turn(waiting, waits=WAITS))
    assert (told.report.reason, planned) == (ConditionReason.WAITING, on.PlanObjects(frozenset({WEB})))
    state, _ = after(state, on.PlanMade(Plan(None, "3f9c2e1", ())), on.Applied(SYNCED))
    assert (state.is_due, state.is_gated, state.told) == (True, True, ConditionReason.WAITING)


def test_a_new_spec_is_gated_and_what_a_daemon_before_let_through_is_not():
    changed = on.TurnCame(sync(generation=2), on.ClusterFacts(WAITS))
    assert after(at_rest(), changed)[1][-1].report.reason is ConditionReason.WAITING
    begun, _ = after(PassState(), turn(PassState()))
    assert after(begun, on.SourceRead(is_news=True), turn(begun, waits=WAITS))[0].told is ConditionReason.WAITING
    passed = on.SourceRead(is_news=True, was_passed=True)
    assert kinds(after(begun, passed, turn(begun, waits=WAITS))[1]) == [on.LookAgain, on.PlanSet]


def test_what_a_daemon_before_let_through_is_kept_up_while_news_waits():
    begun, _ = after(PassState(), turn(PassState()))
    came = turn(begun, waits=WAITS, has_earlier=True)
    state, (_, told, planned) = after(begun, on.SourceRead(is_news=True), came)
    assert (told.report.reason, planned) == (ConditionReason.WAITING, on.PlanSet(is_earlier=True))
    drifted = Plan(None, "3f9c2e1", (Change(WEB, Op.CREATE),))
    state, instructions = after(state, on.PlanMade(drifted, frozenset({WEB, DB}), "3f9c2e1"))
    assert kinds(instructions) == [on.ApplySet], "what is waited for stays told"
    state, instructions = after(state, on.Applied(SYNCED))
    assert (instructions, state.is_due, state.is_gated, state.told) == ((), True, True, ConditionReason.WAITING)
    state, (*_, planned) = after(state, on.ObjectsChanged(frozenset({WEB})), turn(state, waits=WAITS))
    assert planned == on.PlanObjects(frozenset({WEB})), "its members are known from now on"
    state, _ = after(state, on.PlanMade(Plan(None, "3f9c2e1", ())), on.Applied(SYNCED))
    assert after(state, turn(state))[1][-1] == on.PlanSet(unseen=True), "the gate opens"


def test_a_sync_that_waits_for_itself_says_by_way_of_whom():
    _, (_, told) = after(NEWS, on.SourceRead(is_news=True), turn(NEWS, waits=WAITS, cycle="it waits for itself"))
    assert (told.report.reason, told.report.message) == (ConditionReason.CYCLE, "it waits for itself")


def test_who_asks_is_told_as_before_if_nothing_can_have_changed():
    asked = at_rest(source=replace(READING, is_awaited=True, asked=""))
    state, instructions = after(asked, on.SourceRead(is_news=False), turn(asked))
    assert kinds(instructions) == [on.LookAgain, on.CheckMembers]
    assert after(state, on.MembersChecked(are_there=False))[1] == (on.PlanSet(unseen=True),)
    rested, (told,) = after(state, on.MembersChecked(are_there=True))
    assert (told.report.counts, rested.phase) == (Counts(2, unchanged=2), PassPhase.IDLE)


NEWS_FOR_WHO_ASKS = {
    "an object changed": ({"dirty": frozenset({WEB})}, {}),
    "fields are contended": ({}, {"is_contended": True}),
    "contention lapsed": ({}, {"has_lapsed": True}),
    "the last pass failed": ({"settled": None, "is_due": True, "retry_s": NOW_S + 50}, {}),
    "deletions are held": ({"settled": None}, {}),
}


@pytest.mark.parametrize(("known", "facts"), NEWS_FOR_WHO_ASKS.values(), ids=NEWS_FOR_WHO_ASKS)
def test_who_asks_gets_a_pass_over_the_set_if_something_may_have_changed(known, facts):
    asked = at_rest(source=replace(READING, is_awaited=True, asked=""), **known)
    assert kinds(after(asked, on.SourceRead(is_news=False), turn(asked, **facts))[1]) == [on.LookAgain, on.PlanSet]


def test_objects_that_are_put_back_too_often_wait_for_their_turn():
    dirty = at_rest(dirty=frozenset({WEB, DB}))
    state, (_, planned) = after(dirty, turn(dirty, pauses_s={WEB: 3.0, DB: 0.0}))
    assert (planned.refs, state.dirty, state.under_way) == (frozenset({DB}), frozenset({WEB}), frozenset({DB}))
    state, (_, again) = after(dirty, turn(dirty, pauses_s={WEB: 3.0, DB: 2.0}))
    assert (again, state.dirty, state.phase) == (
        on.LookAgain(Priority.DRIFT, 2.0),
        frozenset({WEB, DB}),
        PassPhase.IDLE,
    )


def test_a_change_of_a_member_makes_it_dirty_and_of_a_stranger_the_set_due():
    state, _ = after(at_rest(), on.ObjectsChanged(frozenset({WEB})))
    assert (state.dirty, state.is_due) == (frozenset({WEB}), False)
    state, _ = after(at_rest(), on.ObjectsChanged(frozenset({WEB, NEW})))
    assert (state.dirty, state.is_due) == (frozenset({WEB}), True)
    assert after(PassState(), on.ObjectsChanged(frozenset({WEB})))[0] == PassState()


DUE_NOW = {
    "other kinds": (on.KindsChanged(), Priority.RESYNC),
    "an approval": (on.Approved(), Priority.ASKED),
    "contention that a person ends": (on.Resumed(), Priority.ASKED),
    "a namespace that was missed": (on.NamespaceCame("shop"), Priority.PUSH),
}


@pytest.mark.parametrize(("event", "priority"), DUE_NOW.values(), ids=DUE_NOW)
def test_what_may_mend_a_failure_does_not_wait_for_the_pause_after_it(event, priority):
    failing = at_rest(is_due=False, settled=None, retry_s=NOW_S + 50, missing=frozenset({"shop"}))
    state, instructions = after(failing, event)
    assert instructions == (on.ForgetFailures(), on.LookAgain(priority))
    assert kinds(after(state, turn(state))[1]) == [on.LookAgain, on.PlanSet]


def test_a_namespace_that_nobody_missed_is_no_news():
    assert after(at_rest(missing=frozenset({"shop"})), on.NamespaceCame("stall"))[1] == ()


ACCOUNT = "system:serviceaccount:shop:kubectl-reconcile"
CONCERNING = {
    "anybody's": on.RightsChanged(),
    "its own": on.RightsChanged(frozenset({"system:serviceaccount:shop:other", ACCOUNT})),
}


def denied(**more):
    return at_rest(
        settled=None, is_due=True, retry_s=NOW_S + 50, told=ConditionReason.FAILED, rights=RightsLack(True, **more)
    )


@pytest.mark.parametrize("news", CONCERNING.values(), ids=CONCERNING)
def test_rights_that_changed_have_who_was_refused_something_try_again(news):
    state, instructions = after(denied(), news)
    assert instructions == (on.ForgetFailures(), on.LookAgain(Priority.PUSH))
    assert (state.is_due, state.retry_s, state.source.due_s) == (True, 0.0, 0.0)


def test_rights_of_others_are_no_news():
    news = on.RightsChanged(frozenset({"system:serviceaccount:shop:other"}))
    assert after(denied(), news) == (denied(), ())


def test_however_often_rights_change_it_is_tried_again_once_in_half_a_minute():
    state, _ = after(denied(), on.RightsChanged())
    for _ in range(20):
        state, instructions = after(replace(state, is_due=True, retry_s=NOW_S + 50), on.RightsChanged())
        assert instructions == (on.LookAgain(Priority.PUSH, RIGHTS_S + SOON_S),), "and failures aren't forgotten"
        assert state.retry_s == NOW_S + RIGHTS_S


OTHERWISE_FAILING = {
    "a server that is away": Report(
        ConditionReason.SOURCE, "https://git.example.com/shop.git: the server doesn't answer"
    ),
    "an object that isn't valid": Report(
        ConditionReason.FAILED, "Deployment.apps shop/web: spec.replicas: Invalid value"
    ),
}


@pytest.mark.parametrize("report", OTHERWISE_FAILING.values(), ids=OTHERWISE_FAILING)
def test_rights_that_changed_are_no_news_where_nothing_was_refused_for_want_of_them(report):
    assert not report.is_of_rights
    assert after(at_rest(told=report.reason), on.RightsChanged()) == (at_rest(told=report.reason), ())


OF_RIGHTS = [
    "ServiceAccount shop/kubectl-reconcile may not patch deployments.apps in namespace shop (hint: …)",
    "ServiceAccount shop/kubectl-reconcile lacks rights on 4 objects: …",
    "Secret shop/keys may not be read: …",
]


@pytest.mark.parametrize("sentence", OF_RIGHTS)
def test_a_refusal_for_want_of_rights_is_known_by_its_words(sentence):
    assert Report(ConditionReason.FAILED, sentence).is_of_rights
    assert Report(ConditionReason.FAILED, "2 objects failed", problems=[sentence]).is_of_rights


def test_a_push_has_the_source_asked_whatever_its_interval():
    state, instructions = after(at_rest(), on.Pushed())
    assert instructions == (on.LookAgain(Priority.PUSH),)
    assert after(state, turn(state))[1] == (on.ReadSource(opened=False, since_s=NOW_S),)


def test_a_set_that_failed_is_tried_again_after_its_pause_and_not_before():
    planned = at_rest(phase=PassPhase.ON_SET, settled=None)
    failed = Report(ConditionReason.FAILED, "no", "3f9c2e1")
    state, (told, retry) = after(planned, on.Applied(failed, missing_namespaces=frozenset({"shop"})))
    assert (told.scope, retry.scope, retry.cap_s, retry.priority) == (on.Scope.SET, on.Scope.SET, 60.0, Priority.DRIFT)
    assert (state.is_due, state.missing, state.settled) == (True, frozenset({"shop"}), None)
    state, _ = after(state, on.RetryScheduled(retry, 10.0))
    assert kinds(after(state, turn(state), now_s=NOW_S + 9)[1]) == [on.LookAgain]
    assert kinds(after(state, turn(state), now_s=NOW_S + 10)[1]) == [on.LookAgain, on.PlanSet]


def test_a_turn_that_comes_before_a_retry_asks_for_it_once_more_however_far_the_next_poll_is():
    failing = at_rest(settled=None, is_due=True, retry_s=NOW_S + 5, source=SourceState(True, True, NOW_S + 3600))
    state, (again,) = after(failing, turn(failing))
    assert again == on.LookAgain(Priority.POLL, 5)
    assert (state.is_due, state.retry_s) == (True, NOW_S + 5)


def test_a_set_that_is_as_it_should_be_is_settled_with_what_holds_from_now_on():
    planned = at_rest(phase=PassPhase.ON_SET, settled=None)
    state, instructions = after(planned, on.Applied(SYNCED))
    assert instructions == (on.Tell(SYNCED, on.Scope.SET), on.ForgetFailures())
    assert state.settled == replace(SYNCED, counts=Counts(2, unchanged=2))
    busy = replace(planned, is_due=True)
    assert after(busy, on.Applied(SYNCED))[0].settled is None


def test_what_could_not_be_deleted_for_want_of_rights_is_tried_again_for_whoever_asks_and_once_there_are_some():
    planned = at_rest(phase=PassPhase.ON_SET, settled=None)
    state, _ = after(planned, on.Applied(replace(SYNCED, undeletable=["ConfigMap shop/old"])))
    assert (state.told, state.settled, state.rights.is_denied) == (ConditionReason.SYNCED, None, True)
    assert after(state, on.RightsChanged())[0].is_due
    asked = turn(state, is_asked=True)
    assert on.PlanSet in kinds(after(state, asked)[1]) or on.ReadSource in kinds(after(state, asked)[1])


UNSEEN = {
    "a Sync that corrects drift": (True, {}),
    "one that asks first about drift": (False, {"spec": {"drift": "Ask"}}),
    "one that only reports it": (False, {"spec": {"drift": "Report"}}),
    "all or nothing": (False, {"spec": {"atomic": True}}),
    "what failed before": (False, {"retry_s": NOW_S - 1, "is_due": True}),
    "a plan that somebody approved": (False, {"spec": {"annotations": {APPROVED_PLAN: "abc"}}}),
}


@pytest.mark.parametrize(("expected", "facts"), UNSEEN.values(), ids=UNSEEN)
def test_what_is_new_is_created_unseen_unless_somebody_has_to_know_first(expected, facts):
    state = at_rest(**{"is_due": True, "source": replace(OPEN, due_s=NOW_S + 9), **facts})
    state, (*_, planned) = after(state, on.TurnCame(state.sync, on.ClusterFacts()))
    made = Plan(None, "3f9c2e1", ())
    assert planned == on.PlanSet(unseen=expected)
    assert after(state, on.PlanMade(made, applied_revision="3f9c2e1"))[1] == (on.ApplySet(made, unseen=expected),)


def test_a_sync_at_rest_whose_source_is_where_it_was_waits_for_the_next_time():
    rested = at_rest(source=OPEN)
    state, instructions = after(rested, on.SourceCurrent())
    assert instructions == (on.LookAgain(Priority.POLL, 60.0),)
    assert state == replace(rested, source=replace(OPEN, due_s=NOW_S + 60))


DELETED = {WEB: "somebody deleted it", DB: "by-hand changed .data.color"}


BUSY = {
    "not looked at yet": {"is_due": True, "settled": None},
    "a member changed": {"dirty": frozenset({WEB})},
    "waiting for another": {"is_gated": True},
    "an outage": {"source": replace(OPEN, is_open=False)},
    "being asked": {"source": replace(OPEN, is_reading=True)},
    "somebody waits": {"source": replace(OPEN, is_awaited=True, asked="now")},
    "something was deleted and is left so": {"spec": {"drift": "Report"}, "drift": DELETED},
}


@pytest.mark.parametrize("facts", BUSY.values(), ids=BUSY)
def test_a_sync_that_has_something_to_do_takes_its_turn(facts):
    busy = at_rest(**facts)
    assert not is_at_rest(busy)
    assert after(busy, on.SourceCurrent()) == (busy, ())


def test_what_somebody_deleted_and_is_left_so_is_looked_for_as_often_as_the_source():
    left = at_rest(spec={"drift": "Report"}, drift=DELETED, source=OPEN)
    asked, (*_, begun) = after(left, turn(left))
    assert isinstance(begun, on.ReadSource), "the source is due"
    state, _ = after(asked, on.SourceRead(is_news=False))
    assert after(state, turn(state))[1][-1] == on.PlanObjects(frozenset({WEB}))
    current = on.TurnCame(left.sync, on.ClusterFacts(is_current=True))
    assert after(left, current)[1][-1] == on.PlanObjects(frozenset({WEB})), "also where somebody else has asked it"
    early = replace(left, source=replace(OPEN, due_s=NOW_S + 9))
    assert kinds(after(early, turn(early))[1]) == [on.LookAgain], "and no sooner"


def test_a_plan_that_writes_is_announced_should_it_take_a_while():
    planning = at_rest(phase=PassPhase.ON_SET, settled=None)
    made = Plan(
        None, "3f9c2e1", (Change(WEB, Op.CREATE), Change(DB, Op.UNCHANGED), Change(NEW, Op.CREATE).gated(blocked="x"))
    )
    assert after(planning, on.PlanMade(made))[1] == (on.ApplySet(made, unseen=True, announced=1),)
    idle = replace(made, changes=(Change(DB, Op.UNCHANGED),))
    assert after(planning, on.PlanMade(idle))[1] == (on.ApplySet(idle, unseen=True),)
    gated = replace(planning, is_gated=True)
    assert after(gated, on.PlanMade(made))[1] == (on.ApplySet(made, unseen=True),), "what is waited for stays told"


@pytest.mark.parametrize("news", ["contention_changed", "was_told_anew"])
def test_what_concerns_other_members_is_told_by_a_pass_over_the_set(news):
    planning = at_rest(phase=PassPhase.ON_OBJECTS, under_way=frozenset({WEB}))
    made = Plan(None, "3f9c2e1", ())
    assert after(planning, on.PlanMade(made))[0].is_due is False
    state, instructions = after(planning, on.PlanMade(made, **{news: True}))
    assert (state.is_due, instructions) == (True, (on.LookAgain(Priority.DRIFT, DEBOUNCE_S), on.ApplyObjects(made)))


def test_drift_that_could_not_be_put_back_has_the_set_looked_at_after_a_pause():
    working = at_rest(phase=PassPhase.ON_OBJECTS, under_way=frozenset({WEB}), dirty=frozenset({DB}))
    applied = on.Applied(SYNCED, written=(Change(DB, Op.CREATE),), has_failed=True)
    state, (put_back, noted, retry, again) = after(working, applied)
    assert (put_back, retry.scope) == (on.DriftPutBack(DB, "somebody deleted it"), on.Scope.SET)
    assert noted == on.NotePutBack((put_back,))
    assert (again, state.is_due) == (on.LookAgain(Priority.DRIFT, DEBOUNCE_S), True)


ENDS = {
    "told to end": (on.PassInterrupted(), [on.LookAgain], False),
    "the server went": (on.PassFailed(ConditionReason.CLUSTER, "no answer"), [on.Retry, on.Tell], True),
}


@pytest.mark.parametrize(("event", "instructions", "is_told"), ENDS.values(), ids=ENDS)
def test_a_pass_that_breaks_off_leaves_its_work_for_the_next(event, instructions, is_told):
    on_set = at_rest(phase=PassPhase.ON_SET, settled=None)
    state, found = after(on_set, event)
    assert (state.is_due, state.phase, kinds(found)) == (True, PassPhase.IDLE, instructions)
    on_objects = at_rest(phase=PassPhase.ON_OBJECTS, under_way=frozenset({WEB}), dirty=frozenset({DB}))
    state, _ = after(on_objects, event)
    assert (state.dirty, state.under_way) == (frozenset({WEB, DB}), frozenset())
    assert state.is_due is is_told, "what was told is taken back by a pass over the set"


def test_only_a_pass_that_took_too_long_answers_who_asked():
    asked = at_rest(
        spec={"annotations": {"reconcile.dev/sync-requested-at": "noon"}}, phase=PassPhase.ON_SET, settled=None
    )
    late = on.PassFailed(ConditionReason.FAILED, "too late", is_answer=True)
    assert after(asked, late)[1][1].answers == "noon"
    assert after(asked, replace(late, is_answer=False))[1][1].answers == ""


def test_suspension_forgets_all_but_what_was_told():
    state, (told,) = after(at_rest(), on.TurnCame(sync(suspend=True, generation=2)))
    assert (state, told.report.reason) == (PassState(told=ConditionReason.SUSPENDED), ConditionReason.SUSPENDED)


def test_another_repository_starts_from_nothing_and_another_spec_with_the_set():
    moved = sync(generation=2, source={"git": {"url": "https://git.example.com/other"}})
    state, instructions = after(at_rest(), on.TurnCame(moved))
    assert (instructions, state.members) == ((FIRST,), frozenset())
    reading = at_rest(source=replace(READING, is_awaited=True, asked="noon"))
    assert after(reading, on.TurnCame(moved))[1] == (FIRST,)
    assert kinds(after(at_rest(), on.TurnCame(sync(generation=2, prune=False)))[1]) == [on.LookAgain, on.PlanSet]


LATE = {
    "a source": on.SourceRead(is_news=True),
    "an outage": on.SourceFailed("no"),
    "a plan": on.PlanMade(Plan(None, "1", ())),
    "writes": on.Applied(SYNCED),
    "a look at members": on.MembersChecked(are_there=True),
    "a pause": on.RetryScheduled(on.Retry(on.Scope.SOURCE, Priority.POLL, 60.0), 5.0),
}


@pytest.mark.parametrize("event", LATE.values(), ids=LATE)
def test_results_of_a_pass_that_was_forgotten_change_nothing(event):
    under_way = at_rest(phase=PassPhase.ON_SET, settled=None)
    assert after(under_way, on.Forgotten(), event) == (PassState(), ())


IMPOSSIBLE = {
    "of a Sync that isn't followed something is known": {"sync": None},
    "somebody asked, and nothing is under way": {"is_asked": True},
    "objects are under way in no pass over objects": {"under_way": frozenset({WEB})},
    "an object is dirty that no file explains": {"dirty": frozenset({NEW})},
    "members are worked on before the source was ever read": {
        "source": SourceState(), "members": frozenset(), "phase": PassPhase.ON_SET,
    },
    "members are known before the source was ever read": {"source": SourceState()},
    "the source answered and was never read": {"source": SourceState(is_open=True), "members": frozenset()},
    "the source may have changed: it wasn't checked": {"source": replace(OPEN, is_stale=True)},
    "the set is due, and settled": {"is_due": True},
    "what is settled isn't Synced": {"settled": Report(ConditionReason.HELD, "x")},
    "drift is left that is to be corrected": {"drift": {WEB: "somebody deleted it"}},
}  # fmt: skip


@pytest.mark.parametrize(("sentence", "facts"), IMPOSSIBLE.items(), ids=IMPOSSIBLE)
def test_a_state_that_cannot_be_is_found_and_named(sentence, facts):
    at_rest().validate()
    with pytest.raises(InvariantError, match=f"^{sentence}: "):
        at_rest(**facts).validate()


# --- in the middle of a pass that waits ---------------------------------------------------------------------------------------


def test_a_source_that_is_due_in_the_middle_of_a_pass_is_asked_beside_it():
    awaited = at_rest(phase=PassPhase.ON_SET, settled=None, source=replace(OPEN, is_awaited=True, asked="noon"))
    state, instructions = after(awaited, on.SourceDue())
    assert (kinds(instructions), state.source.asked, state.source.is_awaited) == ([on.ReadSource], "noon", True)
    waiting = at_rest(phase=PassPhase.ON_SET, settled=None, source=OPEN)
    state, instructions = after(waiting, on.SourceDue())
    assert instructions == (POLL,)
    assert (state.phase, state.source.is_reading) == (PassPhase.ON_SET, True)
    assert after(state, on.SourceDue()) == (state, ())
    state, _ = after(state, on.SourceRead(is_news=False))
    assert (state.phase, state.is_due, state.source.due_s) == (PassPhase.ON_SET, False, NOW_S + 60)


def test_nothing_is_asked_before_its_time_or_for_a_sync_that_is_not_followed_or_while_it_is_asked():
    for state in (at_rest(), PassState(), at_rest(source=READING)):
        assert after(state, on.SourceDue()) == (state, ())
