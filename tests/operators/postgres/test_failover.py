"""A replica takes over from a primary that is away, in a model of Kubernetes and PostgreSQL: only from one that has ended, and with what may be lost told before."""

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.module.action_journal import is_approved
from tests.operators.postgres.faults import befall_worse, disk, formed, lost, stopped
from tests.operators.postgres.foreseen import foreseen, is_part
from tests.operators.postgres.world import World, condition, uid_of


def test_a_primary_that_comes_back_in_time_stays_it():
    world = formed()
    world.kill("db-0")
    world.settle()
    world.later(60)
    world.settle()
    assert world.taken == ["delete db-0", "create db-0"]
    assert world.primary["name"] == "db-0"


def test_one_that_does_not_is_ended_and_the_replica_with_the_longest_log_promoted():
    world = lost(formed())
    disk(world, "db-1")["rows"].clear()
    world.later(29)
    world.settle()
    assert world.taken == []
    world.later(1)
    outcome = world.step()
    assert condition(outcome, "Progressing").message == (
        "delete db-0: db-2 takes over from db-0, which hasn't served since 2026-11-20T12:00:00Z; may lose up to 16777216 bytes (last known lag)"
    )
    assert (world.cr["status"]["phase"], world.cr["status"]["targetPrimary"]) == ("FailingOver", "db-2")
    (promotion,) = world.step().actions
    assert promotion.summary == (
        "promote db-2, whose log goes furthest of those that answer; may lose up to 16777216 bytes (last known lag), up to 0/3E9; it is the primary then"
    )
    assert promotion.precondition["pods.db-1.lsn"] == "0/3E8"
    world.settle()
    assert world.taken[:4] == ["delete db-0", "promote db-2", "checkpoint db-2", "create db-0"]
    assert [world.role(f"db-{at}") for at in (1, 2)] == ["replica", "primary"]
    assert world.cr["status"]["currentPrimary"] == world.cr["status"]["targetPrimary"] == "db-2"
    world.broken.clear()
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert world.role("db-0") == "replica"


@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("mode", ["Automatic", "Approve"])
def test_it_is_shown_before_it_is_done(mode, steps):
    world = lost(formed(mode=mode))
    world.later(30)
    for _ in range(steps):
        world.step()
    world.taken.clear()
    shown = foreseen(world)
    world.broken.clear()
    world.settle()
    assert is_part(world.taken, shown)  # what the primary held that is away isn't known, and shown as still to be made
    if (mode, steps) == ("Automatic", 0):
        assert shown[:2] == world.taken[:2] == ["delete db-0", "promote db-1"]


def test_one_whose_volume_is_lost_is_looked_at_again_soon_while_another_may_take_over():
    world = formed()
    world.delete("Pod", "db-0")
    del world.objects["PersistentVolumeClaim", "db-0-data"]
    outcome = world.step()
    assert (condition(outcome, "Degraded").reason, outcome.requeue_after_s) == ("DataLost", 2.0)
    world.later(30)
    world.step()
    world.step()
    assert world.primary["name"] == "db-1"
    assert world.settle().requeue_after_s == 10.0


def test_without_the_field_nobody_takes_over():
    world = World(replicas=2)
    world.settle()
    world.broken.add("db-0")
    world.kill("db-0")
    world.settle()
    world.taken.clear()
    world.later(100_000)
    world.settle()
    assert world.taken == []


def test_nobody_takes_over_from_one_whose_own_node_finds_it_ready():
    world = formed()
    facts = world.facts()
    facts["pods"]["db-0"] = {"uid": uid_of(world.pods["db-0"]), "error": "no answer"}
    for name in ("db-1", "db-2"):
        facts["pods"][name] |= {"lsn": "0/3E9", "receives": True}
    world.facts = lambda: {**facts, "writable": ""}
    world.settle()
    world.later(1000)
    world.settle()
    assert world.taken == []


def test_nobody_takes_over_before_the_node_says_that_the_primary_has_ended():
    world = unended(lost(formed()))
    world.later(120)
    outcome = world.settle()
    assert world.primary is None
    assert outcome.actions == ()
    assert (
        "nobody takes over before its node says that it has ended (hint: " in condition(outcome, "Progressing").message
    )
    world.delete("Pod", "db-0")
    world.settle()
    assert world.primary["name"] == "db-1"


def unended(world):
    """The primary's pod is deleted, and its node hasn't reported that it has ended."""
    world.later(30)
    then = dt.datetime.fromisoformat(world.now) + dt.timedelta(seconds=120)
    delete, world.delete = world.delete, lambda *_: going(world, "db-0", then.isoformat().replace("+00:00", "Z"))
    world.step()
    world.delete = delete
    return world


def going(world, slot, until):
    world.pods[slot]["metadata"]["deletionTimestamp"] = until


def test_somebody_decides_whether_one_that_should_have_ended_is_left_behind():
    world = unended(lost(formed()))
    world.later(200)
    world.taken.clear()
    outcome = world.settle()
    assert world.taken == []
    (offer,) = outcome.actions
    assert offer.needs_approval
    assert is_approved(offer, with_annotation(world.cr, offer.key))
    assert not any(is_approved(offer, with_annotation(world.cr, text)) for text in ("*", "fail-over"))  # not in advance
    assert offer.summary == (
        "db-0 was to end and its node doesn't say that it has: it may still take writes of clients that reach it, and these are lost; db-1 takes over from db-0, which hasn't"
        " served since 2026-11-20T12:00:00Z; may lose up to 16777216 bytes (last known lag) (hint: if db-0 won't come back: kubectl reconcile approve mydatabase/db)"
    )
    assert (condition(outcome, "Degraded").reason, world.primary) == ("FailoverOffered", None)
    approve(world, offer)
    world.settle()
    assert world.taken == ["fail-over db-1", "promote db-1"]
    assert (world.role("db-1"), world.role("db-0")) == ("primary", None)
    world.delete("Pod", "db-0")  # its node is back, and says that it has ended
    world.broken.clear()
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert world.role("db-0") == "replica"


def test_what_was_approved_before_of_one_that_was_to_end_does_not_leave_it_behind():
    world = lost(formed(mode="Approve"))
    world.later(30)
    (offer,) = world.settle().actions
    approve(world, offer)
    world.step()
    unended(world)
    world.later(200)
    (another,) = world.settle().actions
    assert another.key != offer.key
    assert world.primary is None


def test_nobody_is_to_decide_while_a_replica_still_receives_or_the_one_that_is_to_end_answers():
    world = unended(lost(formed()))
    world.later(200)
    silent = world.facts()
    receiving = {**silent["pods"], "db-2": {**silent["pods"]["db-2"], "receives": True}}
    standing_by = {**silent["pods"], "db-0": {**silent["pods"]["db-1"], "uid": uid_of(world.pods["db-0"])}}
    for pods in (receiving, standing_by):
        world.facts = lambda pods=pods: {**silent, "pods": pods}
        outcome = world.settle()
        assert outcome.actions == ()
        assert condition(outcome, "Progressing").reason in {"Recovering", "PodTerminating"}


def test_one_that_was_left_behind_gets_no_clients_though_it_takes_writes():
    world = unended(lost(formed()))
    world.later(200)
    (offer,) = world.settle().actions
    approve(world, offer)
    world.settle()
    facts = world.facts()
    lives = {**facts["pods"]["db-1"], "uid": uid_of(world.pods["db-0"]), "timeline": 1}
    world.facts = lambda: {**facts, "pods": {**facts["pods"], "db-0": lives}}
    outcome = world.settle()
    assert condition(outcome, "Degraded").status == "False"
    assert (world.role("db-1"), world.role("db-0")) == ("primary", None)
    assert world.cr["status"]["currentPrimary"] == "db-1"


def with_annotation(cr, text):
    """*cr* with what is approved of it in Git."""
    return {**cr, "metadata": {**cr["metadata"], "annotations": {"reconcile.dev/approve-actions": text}}}


def approve(world, offer):
    world.cr["metadata"]["annotations"] |= {"reconcile.dev/approved-actions": offer.key}


def test_one_that_hangs_is_deleted_first():
    world = formed()
    stopped(world, "db-0")
    world.settle()
    world.later(30)
    world.settle()
    assert world.taken[:2] == ["delete db-0", "promote db-1"]


def test_one_that_serves_again_before_it_was_deleted_stays_it():
    world = formed()
    stopped(world, "db-0")
    world.settle()
    world.later(30)
    delete, world.delete = world.delete, lambda *_: ""
    world.step()
    world.delete = delete
    assert world.cr["status"]["handover"]["kind"] == "Failover"
    world.broken.clear()
    world.settle()
    assert world.primary["name"] == world.cr["status"]["targetPrimary"] == "db-0"
    assert "handover" not in world.cr["status"]


@pytest.mark.parametrize("notes", [True, False], ids=["", "the daemon ends before it notes anything"])
def test_one_whose_pod_was_deleted_for_it_never_comes_back_as_the_primary(notes):
    world = lost(formed())
    world.later(30)
    world.step()
    assert (world.taken, world.cr["status"]["targetPrimary"]) == (["delete db-0"], "db-1")
    world.broken.clear()  # it could serve again
    while world.primary is None:
        world.step(notes=notes)
    assert world.primary["name"] == "db-1"
    world.settle()
    assert world.primary["name"] == world.cr["status"]["currentPrimary"] == "db-1"
    assert not world.cr["status"].get("handover")


ASKED = {
    "it is to be asked": ({"mode": "Approve"}, "may lose up to 16777216 bytes (last known lag)"),
    "more may be lost than is allowed": ({"maxLagBytes": 1000}, "may lose up to 16777216 bytes (last known lag)"),
}


@pytest.mark.parametrize(("failover", "loss"), ASKED.values(), ids=ASKED)
def test_somebody_decides_where(failover, loss):
    decided(lost(formed(**failover)), loss)


def test_somebody_decides_where_nobody_knows_what_may_be_lost():
    world = lost(formed())
    for each in world.cr["status"]["instances"]:
        each.pop("lagBytes", None)
    decided(world, "how far it was behind isn't known, nor what is lost")


def decided(world, loss):
    world.later(30)
    outcome = world.settle()
    assert world.taken == []
    (offer,) = outcome.actions
    assert offer.needs_approval
    assert loss in offer.summary
    assert "kubectl reconcile approve mydatabase/db" in offer.summary
    assert condition(outcome, "Degraded").reason == "FailoverOffered"
    approve(world, offer)
    world.settle()
    assert world.taken[1:3] == ["delete db-0", "promote db-1"]


def test_an_approval_is_of_one_outage_alone():
    world = lost(formed(mode="Approve"))
    world.later(30)
    (offer,) = world.settle().actions
    world.broken.clear()
    world.settle()
    assert world.primary["name"] == "db-0"
    world.cr["metadata"]["annotations"] |= {"reconcile.dev/approved-actions": offer.key}
    world.taken.clear()
    world.later(1000)
    lost(world)
    world.later(30)
    (again,) = world.settle().actions
    assert again.key != offer.key
    assert world.taken == []


def test_a_switchover_whose_old_primary_does_not_come_back_becomes_a_failover():
    world = formed()
    world.cr["metadata"]["annotations"]["example.com/switchover-to"] = "db-2"
    world.step()
    world.step()
    world.broken.add("db-0")
    world.settle()
    assert world.primary is None
    world.later(30)
    world.settle()
    assert world.primary["name"] in {"db-1", "db-2"}
    assert disk(world, world.primary["name"])["rows"] == ["first"]


def test_a_volume_of_another_that_is_about_to_go_keeps_nobody_from_taking_over():
    world = formed()
    world.claim("db-2")["metadata"]["deletionTimestamp"] = world.now
    world.broken.add("db-0")
    world.delete("Pod", "db-0")
    world.settle()
    world.later(30)
    world.settle()
    assert world.primary["name"] == "db-1"


def test_nobody_else_is_promoted_while_it_is_not_known_whether_one_was():
    world = lost(formed())
    world.later(30)
    world.step()
    world.step()  # db-1 is promoted, and nobody has seen it yet
    stopped(world, "db-1")
    world.settle()
    assert world.primary["name"] == "db-1"
    assert "promote db-2" not in world.taken
    world.kill("db-1")
    world.broken.discard("db-1")
    world.settle()
    assert world.primary["name"] == "db-1"


FAULTS = st.sampled_from(["kill", "delete", "stop", "break", "heal", "forget", "none"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(FAULTS, st.integers(0, 2), st.sampled_from([0, 5, 40])), max_size=10))
def test_whatever_happens_never_do_two_take_writes_and_one_does_in_the_end(faults):
    world = formed(maxLagBytes=1 << 40)
    for at, (fault, number, seconds) in enumerate(faults):
        befall_worse(world, fault, f"db-{number}")
        world.write(at)
        world.later(seconds)
        world.step(notes=fault != "forget")  # two that take writes are found out by the model
    for _ in range(3):
        world.broken.clear()
        world.settle(120)
        world.later(60)
    assert world.write("last")


# --- a primary whose network is dead, or that hangs -------------------------------------------------


def cut_off(world, *answering, receives=()):
    """The primary answers nobody, though its node finds it ready; of the replicas these answer, and some still receive."""
    facts = world.facts()
    for name in ("db-0", "db-1", "db-2"):
        if name in answering:
            facts["pods"][name] |= {"lsn": "0/3E9", "receives": name in receives}
        else:
            facts["pods"][name] = {"uid": uid_of(world.pods[name]), "error": "no answer"}
    world.facts = lambda: {**facts, "writable": "", "followers": {}}
    world.step()
    world.later(30)
    return world


def test_one_from_whom_no_replica_receives_anything_is_left_behind_though_its_node_finds_it_ready():
    world = cut_off(formed(), "db-1", "db-2")
    outcome = world.ask()
    assert condition(outcome, "Progressing").message.startswith("delete db-0: db-1 takes over from db-0")
    assert outcome.graces == {"Pod/db-0": 10}  # a server that hangs would take its pod's whole grace


@pytest.mark.parametrize("answering", [("db-1",), ("db-2",)])
def test_half_of_the_replicas_are_enough_to_know_it(answering):
    world = cut_off(formed(), *answering)
    assert condition(world.ask(), "Progressing").message.startswith("delete db-0: ")


@pytest.mark.parametrize(
    ("answering", "receives"), [((), ()), (("db-1", "db-2"), ("db-2",)), (("db-1", "db-2"), ("db-1", "db-2"))]
)
def test_one_whom_replicas_hear_is_only_out_of_our_own_reach(answering, receives):
    world = cut_off(formed(), *answering, receives=receives)
    outcome = world.step()
    assert (world.taken, outcome.graces) == ([], {})
    assert condition(outcome, "Available").status == "False"


WITHIN_S, SPARE_S = 30, 2
"""How much later than the delay a replica takes over at most, and what of that is left to machines that are busy."""
ANSWER_S, ASKED_AGAIN_S, RECEIVES_S, SEEN_S = 3.0, 0.3, 5.0, 0.5
"""How long one is waited for who doesn't answer, one who was silent before isn't, replicas wait for a sign of life, and it takes to see that a pod has ended."""


@pytest.mark.parametrize("delay_s", [1, 5, 30])
def test_a_replica_takes_over_within_half_a_minute_more_than_the_delay_from_a_network_that_is_dead(delay_s):
    world = formed(delaySeconds=delay_s)
    outcome, facts, cut_at = world.settle(), world.facts, dt.datetime.fromisoformat(world.now)
    passed_s, answer_s = 0.0, ANSWER_S  # it is cut off right after it was looked at

    def told():
        found = facts()
        if "db-0" not in world.pods:
            return found
        found["pods"]["db-0"] = {"uid": uid_of(world.pods["db-0"]), "error": "no answer"}
        for name in ("db-1", "db-2"):
            found["pods"][name] |= {"lsn": "0/3E9", "receives": passed_s < RECEIVES_S}
        return {**found, "writable": "", "followers": {}}

    world.facts = told
    while not any(each.startswith("promote") for each in world.taken):
        ends_s = outcome.graces.get("Pod/db-0")
        passed_s += (outcome.requeue_after_s if ends_s is None else ends_s + SEEN_S) + answer_s
        answer_s = ASKED_AGAIN_S
        world.now = (cut_at + dt.timedelta(seconds=int(passed_s))).isoformat().replace("+00:00", "Z")
        outcome = world.step()
        assert passed_s < 10 * (delay_s + WITHIN_S), "nobody takes over"
    assert passed_s <= delay_s + WITHIN_S - SPARE_S
    assert world.taken == ["delete db-0", "promote db-1"]


def test_a_switchover_and_a_restart_leave_a_server_its_own_time():
    world = formed()
    world.cr["metadata"]["annotations"]["example.com/switchover-to"] = "db-1"
    graces = [world.step().graces for _ in range(6)]
    assert world.taken[:2] == ["checkpoint db-0", "delete db-0"]
    assert graces == [{}] * 6
