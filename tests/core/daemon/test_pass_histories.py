"""Whatever happens to a followed Sync, and in whatever order: in the end it is as a fresh look would have it."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.drift import deleted_in
from kubectl_reconcile.core.daemon.pass_state import PassPhase
from kubectl_reconcile.core.daemon.priority import RETRY_CAP_S, Priority
from kubectl_reconcile.core.resources.status import ConditionReason

from .followed_world import BASE, INTERVAL_S, Desired, Replica, World, ref

NAMES = st.sampled_from("abc")
COLOURS = st.sampled_from(["red", "green", None])


class History(Replica):
    """What can happen, each as one method."""

    def git_news(self, name, colour, *, is_told, fault=""):
        self.fault = fault or self.fault
        self.world.git = {**self.world.git, name: colour} if colour else {
            each: value for each, value in self.world.git.items() if each != name
        }  # fmt: skip
        self.world.pushes += 1
        if is_told:
            self.notify(on.Pushed())

    def drift(self, name, colour, fault=""):
        self.fault = fault or self.fault
        before = self.world.live.get(name)
        if before is None or before == colour:
            return  # nobody makes members but we
        if colour is None:
            del self.world.live[name]
        else:
            self.world.live[name] = colour
        self.touched(name)

    def stranger(self):
        """Somebody marks an object of theirs as a member."""
        self.world.live["stranger"] = "grey"
        self.touched("stranger")

    def source(self, *, is_up):
        self.world.is_source_up = is_up

    def refuse(self, name):
        self.world.refused.add(name)

    def accept(self):
        self.world.refused.clear()
        self.notify(on.NamespaceCame("shop"))

    def spec(self, **changes):
        for name, value in changes.items():
            setattr(self.world, name, value)
        self.world.generation += 1
        self.add(Priority.PUSH)

    def dependency(self, *, is_ready):
        self.world.is_dependency_ready = is_ready
        self.notify(on.DependencyChanged(BASE))

    def ask(self):
        self.world.requested_at = f"request-{self.now_s}-{len(self.done)}"
        self.add(Priority.ASKED)

    def approve(self):
        self.world.approved = self.world.plan(self.world.desired()).approval
        self.notify(on.Approved())

    def lose(self):
        """Another replica takes over, and brings the Sync to where it should be."""
        if not self.is_owner:
            return
        self.notify(on.Forgotten())
        self.is_owner, self.changed, self.answer, self.newest = False, set(), None, Desired()
        other = Replica(self.world, now_s=self.now_s, due_s=self.now_s)
        other.run(0.1)

    def regain(self):
        if not self.is_owner:
            self.is_owner = True
            self.add(Priority.PUSH)

    def kinds(self):
        self.notify(on.KindsChanged())

    def contention(self, *, is_contended):
        self.has_lapsed = (self.has_lapsed or self.is_contended) and not is_contended  # until a turn hears of it
        self.is_contended = is_contended

    def person_resumes(self):
        self.is_contended = False
        self.notify(on.Resumed())


FAULTS = st.sampled_from(["", "", "interrupted", "failed"])
GIT_NEWS = st.tuples(
    st.just("git_news"),
    st.fixed_dictionaries({"name": NAMES, "colour": COLOURS, "is_told": st.booleans(), "fault": FAULTS}),
)
DRIFT = st.tuples(
    st.just("drift"),
    st.fixed_dictionaries({"name": NAMES, "colour": st.sampled_from(["blue", "red", None]), "fault": FAULTS}),
)
ELSE = st.one_of(
    st.tuples(st.just("source"), st.fixed_dictionaries({"is_up": st.booleans()})),
    st.tuples(st.just("refuse"), st.fixed_dictionaries({"name": NAMES})),
    st.tuples(st.just("spec"), st.fixed_dictionaries({"suspend": st.booleans()})),
    st.tuples(st.just("spec"), st.fixed_dictionaries({"path": st.sampled_from(["shop", "stall"])})),
    st.tuples(st.just("dependency"), st.fixed_dictionaries({"is_ready": st.booleans()})),
    st.tuples(st.just("contention"), st.fixed_dictionaries({"is_contended": st.booleans()})),
    st.tuples(
        st.sampled_from(["stranger", "accept", "ask", "approve", "lose", "regain", "kinds", "person_resumes"]),
        st.just({}),
    ),
)
STEPS = st.one_of(GIT_NEWS, DRIFT, ELSE)
PAUSES_S = st.sampled_from([0.0, 1.0, 1.0, 700.0])
HISTORIES = st.lists(st.tuples(st.sampled_from(["now", "now", "meanwhile"]), STEPS, PAUSES_S), max_size=12)


READINGS_S = st.sampled_from([0.0, 0.0, 3.0, 90.0])


def lived(policy, history, *, is_guarded=False, reading_s=0.0):
    """Return a replica after this history: what happens meanwhile happens in the middle of the next turn."""
    replica = History(World(policy=policy, is_guarded=is_guarded), due_s=0.0, reading_s=reading_s)
    replica.run(1.0)
    for when, (what, arguments), pause_s in history:
        happens = functools.partial(getattr(replica, what), **arguments)
        if when == "meanwhile":
            replica.meanwhile.append(happens)
            replica.notify(on.Pushed())
        else:
            happens()
        replica.run(pause_s)
    return replica


def come_to_rest(replica):
    """End all that keeps a Sync from being in step, and let an hour pass."""
    while replica.meanwhile:
        replica.meanwhile.pop()()
    replica.regain()
    replica.source(is_up=True)
    replica.dependency(is_ready=True)
    replica.contention(is_contended=False)
    replica.world.refused.clear()
    replica.fault, replica.reading_s = "", 0.0
    if replica.world.suspend:
        replica.spec(suspend=False)
    replica.run(3600.0)
    if replica.world.plan(replica.world.desired()).holds:
        replica.approve()
        replica.run(3600.0)


def ready(world):
    conditions = {each["type"]: each for each in world.status.get("conditions") or ()}
    drifted = conditions.get("Drifted") or {"status": "False", "message": ""}
    return (
        [(conditions["Ready"][key]) for key in ("status", "reason", "message")],
        drifted["status"],
        drifted["message"],
    )


policies = pytest.mark.parametrize("policy", ["Correct", "Report", "Ask"])
laws = settings(max_examples=60, deadline=None)


@policies
@settings(max_examples=300, deadline=None)
@given(history=HISTORIES, is_guarded=st.booleans(), reading_s=READINGS_S)
def test_any_history_ends_in_the_state_that_a_fresh_look_would_have(policy, history, is_guarded, reading_s):
    replica = lived(policy, history, is_guarded=is_guarded, reading_s=reading_s)
    come_to_rest(replica)
    fresh = replica.fresh()
    fresh.run(0.1)
    assert replica.world.live == fresh.world.live
    assert ready(replica.world) == ready(fresh.world)
    assert replica.world.status.get("lastAppliedRevision") == fresh.world.status.get("lastAppliedRevision")
    assert (replica.state.drift, replica.state.members) == (fresh.state.drift, fresh.state.members)
    if policy == "Correct":
        assert replica.world.live == replica.world.git


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_nothing_is_left_dirty_or_under_way(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    state = replica.state
    assert (state.phase, state.is_asked, state.is_due) == (PassPhase.IDLE, False, False)
    assert (state.dirty, state.under_way, state.source.is_open) == (frozenset(), frozenset(), True)


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_at_rest_the_source_is_asked_once_an_interval_and_nothing_else_but_for_what_was_deleted_and_left_so(
    policy, history, reading_s
):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.done.clear()
    world = dict(replica.world.live)
    replica.run(10 * INTERVAL_S)
    count = Counter(type(each) for turn in replica.done for each in turn)
    assert count[on.ReadSource] in {9, 10}
    looks = count[on.PlanObjects]
    assert looks in ({9, 10} if deleted_in(replica.state.drift) else {0})
    assert count.keys() - {on.PlanObjects, on.ApplyObjects, on.Tell} == {on.ReadSource, on.LookAgain}
    assert (count[on.ApplyObjects], count[on.Tell], replica.world.live) == (looks, looks, world)


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_no_turn_asks_anybody_twice(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    for turn in replica.done:
        count = Counter(type(each) for each in turn)
        assert count[on.ReadSource] <= 1
        assert count[on.PlanSet] + count[on.PlanObjects] <= 1
        assert count[on.ApplySet] + count[on.ApplyObjects] <= 1
        assert count[on.Retry] <= 2  # the source, and what was kept up meanwhile


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_whoever_asks_is_answered_once(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.done.clear()
    replica.ask()
    replica.run(1.0)
    told = [each for turn in replica.done for each in turn if isinstance(each, on.Tell)]
    assert [each.answers for each in told] == [replica.world.requested_at]
    assert replica.world.status["lastHandledSyncAt"] == replica.world.requested_at
    replica.done.clear()
    replica.run(10 * INTERVAL_S)
    assert not [each for turn in replica.done for each in turn if isinstance(each, on.Tell)]


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_drift_is_told_once_and_left_or_put_back_as_the_sync_says(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.ask()
    replica.run(1.0)
    if not replica.world.live:
        return
    name = min(replica.world.live)
    replica.done.clear()
    replica.drift(name, "blue")
    replica.run(10 * INTERVAL_S)
    done = [each for turn in replica.done for each in turn]
    left = [each for each in done if isinstance(each, on.DriftLeft)]
    put_back = [each for each in done if isinstance(each, on.DriftPutBack)]
    if policy == "Correct":
        assert ([each.ref for each in put_back], left) == ([ref(name)], [])
        assert replica.world.live == replica.world.git
    else:
        assert ([each.ref for each in left], put_back) == ([ref(name)], [])
        assert replica.world.live[name] == "blue"
        assert replica.state.drift == {ref(name): "by-hand changed .data.colour"}


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_drift_and_approvals_never_wait_for_a_source_that_hangs(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.reading_s = 1e6
    replica.notify(on.Pushed())
    replica.run(1.0)
    assert replica.state.source.is_reading
    if replica.world.live:
        name = min(replica.world.live)
        replica.done.clear()
        replica.drift(name, "purple")
        replica.run(10.0)
        assert on.ApplyObjects in {type(each) for turn in replica.done for each in turn}
        assert policy != "Correct" or replica.world.live[name] == replica.world.git[name]
    replica.done.clear()
    replica.notify(on.Approved())
    replica.run(10.0)
    assert on.PlanSet in {type(each) for turn in replica.done for each in turn}


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_a_push_that_comes_while_the_source_is_asked_is_not_lost_over_its_answer(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.reading_s = 30.0
    replica.notify(on.Pushed())
    replica.run(1.0)
    replica.git_news("new", "yellow", is_told=True)
    replica.run(61.0)
    assert replica.world.live["new"] == "yellow"


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_who_asks_while_the_source_is_asked_is_told_of_what_it_holds_now(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.reading_s = 30.0
    replica.notify(on.Pushed())
    replica.run(1.0)
    replica.git_news("new", "yellow", is_told=False)
    replica.ask()
    replica.run(40.0)
    assert replica.world.status.get("lastHandledSyncAt") != replica.world.requested_at
    replica.run(30.0)
    assert replica.world.status["lastHandledSyncAt"] == replica.world.requested_at
    assert replica.world.live["new"] == "yellow"


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_news_that_somebody_tells_of_is_there_at_once_and_other_news_an_interval_later(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    for colour, is_told, wait_s in (("yellow", True, 1.0), ("brown", False, INTERVAL_S + 1)):
        replica.git_news("new", colour, is_told=is_told)
        replica.run(wait_s)
        assert replica.world.live["new"] == colour


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_what_is_refused_is_tried_again_without_any_news(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.refuse("new")
    replica.git_news("new", "yellow", is_told=True)
    replica.run(1.0)
    assert "new" not in replica.world.live
    replica.world.refused.clear()
    replica.run(RETRY_CAP_S)
    assert replica.world.live["new"] == "yellow"


@policies
@laws
@given(history=HISTORIES, reading_s=READINGS_S)
def test_a_suspended_sync_touches_nothing(policy, history, reading_s):
    replica = lived(policy, history, reading_s=reading_s)
    come_to_rest(replica)
    replica.spec(suspend=True)
    replica.run(1.0)
    before, _ = dict(replica.world.live), replica.done.clear()
    replica.git_news("a", "yellow", is_told=True)
    replica.stranger()
    replica.kinds()
    replica.run(10 * INTERVAL_S)
    assert {type(each) for turn in replica.done for each in turn} <= {on.Tell, on.LookAgain}
    assert replica.world.live == {**before, "stranger": "grey"}
    assert replica.state.told is ConditionReason.SUSPENDED
