"""Rows are acknowledged once enough replicas have them, in a model of Kubernetes and PostgreSQL: then no failover loses one, unless somebody approves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile_operators.postgres.membership import Quorum
from tests.operators.postgres.faults import befall_worse, disk
from tests.operators.postgres.foreseen import foreseen, is_part
from tests.operators.postgres.world import HANDOVER, World, begun, condition

REQUIRED = {"min": 1, "mode": "Required"}
PREFERRED = {"min": 1, "mode": "Preferred"}
THREE = ["db-0", "db-1", "db-2"]


def formed(synchronous=REQUIRED, replicas=3, **failover):
    world = World(
        replicas=replicas, synchronous=synchronous, failover={"delaySeconds": 30, "maxLagBytes": 1 << 40, **failover}
    )
    world.settle()
    assert world.write("first")
    world.run()
    world.taken.clear()
    return world


def setting(world):
    return world.running[world.pods[world.primary["name"]]["metadata"]["uid"]]["synchronous"]


def noted(world):
    return [(each["members"], each["min"]) for each in world.cr["status"]["synchronous"]["quorums"]]


def lost(world):
    """The primary's server ends, and none starts on its volume; half a minute goes by."""
    world.broken.add("db-0")
    world.kill("db-0")
    world.settle()
    world.taken.clear()
    world.later(30)
    return world


def test_the_primary_is_told_before_there_is_a_replica_and_it_is_confirmed_once_all_follow():
    world = World(replicas=3, synchronous=REQUIRED)
    shown = foreseen(world)
    outcome = world.settle()
    assert world.taken == shown
    assert world.taken[:3] == ["make-secret db-superuser", "create db-0", "set-quorum db-0"]
    assert world.taken[-2:] == ["create db-2", "confirm-quorum db-0"]
    assert setting(world) == 'ANY 1 ("db-1", "db-2")'
    assert noted(world) == [(THREE, 1)]
    assert world.cr["status"]["synchronous"]["min"] == 1
    assert condition(outcome, "Ready").status == "True"


def test_what_holds_is_noted_before_the_primary_is_told():
    world = formed()
    world.cr["spec"]["synchronous"] = {"min": 2}
    outcome = world.step()
    assert condition(outcome, "Progressing").message == (
        "note that rows are acknowledged once 2 of 2 replicas have them, before db-0 is told"
    )
    assert (noted(world), setting(world)) == ([(THREE, 1), (THREE, 2)], 'ANY 1 ("db-1", "db-2")')
    world.step()
    assert (noted(world), setting(world)) == ([(THREE, 1), (THREE, 2)], 'ANY 2 ("db-1", "db-2")')
    world.settle()
    assert noted(world) == [(THREE, 2)]
    assert world.taken == ["set-quorum db-0", "confirm-quorum db-0"]


def test_without_the_field_it_is_the_primary_alone_again():
    world = formed()
    del world.cr["spec"]["synchronous"]
    world.settle()
    assert (setting(world), noted(world)) == ("", [([], 0)])
    assert world.taken == ["set-quorum db-0", "confirm-quorum db-0"]


def test_required_never_means_fewer():
    world = formed()
    for name in ("db-1", "db-2"):
        world.broken.add(name)
        world.kill(name)
    world.settle()
    assert setting(world) == 'ANY 1 ("db-1", "db-2")'
    assert not world.write("nobody has it")


def test_preferred_means_as_many_as_there_are_and_says_so():
    world = formed({**PREFERRED, "min": 2})
    assert setting(world) == 'ANY 2 ("db-1", "db-2")'
    for name, expected in (("db-1", 'ANY 1 ("db-1", "db-2")'), ("db-2", "")):
        world.broken.add(name)
        world.kill(name)
        world.settle()
        assert setting(world) == expected
    assert world.cr["status"]["synchronous"]["min"] == 0
    assert world.write("alone")
    world.broken.clear()
    world.settle()
    assert setting(world) == 'ANY 2 ("db-1", "db-2")'
    assert noted(world) == [(THREE, 2)]


def test_no_replica_goes_that_is_waited_for():
    world = formed({"min": 2})
    world.cr["spec"]["replicas"] = 2
    outcome = world.settle()
    assert condition(outcome, "Degraded").reason == "SynchronousRefused"
    assert (world.taken, sorted(world.pods), setting(world)) == ([], THREE, 'ANY 2 ("db-1", "db-2")')
    world.cr["spec"]["synchronous"] = {"min": 1}
    world.settle()
    assert (setting(world), sorted(world.pods)) == ('ANY 1 ("db-1")', ["db-0", "db-1"])


def test_what_is_refused_leaves_nobody_waited_for_who_is_gone():
    world = World(replicas=2, synchronous=REQUIRED)
    world.settle()
    world.cr["spec"]["synchronous"] = {"min": 2}
    world.cr["status"]["synchronous"]["quorums"][-1]["members"] = ["db-0", "db-7"]
    outcome = world.settle()
    assert condition(outcome, "Degraded").reason == "SynchronousRefused"
    assert (setting(world), noted(world)) == ('ANY 1 ("db-1")', [(["db-0", "db-1"], 1)])
    assert world.write("last")


@pytest.mark.parametrize("synchronous", [{"min": 3}, {"min": 3, "mode": "Preferred"}])
def test_more_than_there_are_replicas_is_refused_and_the_database_stays_as_it_is(synchronous):
    world = formed()
    world.cr["spec"] |= {"synchronous": synchronous, "users": [{"name": "shop"}]}
    outcome = world.settle()
    assert (condition(outcome, "Degraded").reason, condition(outcome, "Degraded").message) == (
        "SynchronousRefused",
        ".spec.synchronous.min: 3 is more than the 2 that follow the primary where .spec.replicas is 3; both stay as they were (hint: set .spec.replicas to 4, or min to less)",
    )
    assert outcome.warnings == (condition(outcome, "Degraded").message,)
    assert setting(world) == 'ANY 1 ("db-1", "db-2")'
    assert world.taken == ["make-secret db-user-shop", "set-user shop"]


def test_what_is_refused_is_in_the_preview_of_a_database_that_is_still_to_be_made():
    refused = ".spec.synchronous.min: 1 is more than the 0 that follow the primary where .spec.replicas is 1"
    assert World(synchronous={"min": 1}).ask().warnings[0].startswith(refused)
    assert World(replicas=2, synchronous={"min": 1}).ask().warnings == ()


def test_where_enough_replicas_answer_one_takes_over_and_nothing_is_lost():
    world = formed(maxLagBytes=0)
    world.write("second", to=["db-2"])
    world.kill("db-0")
    world.broken.add("db-0")
    lost_none = "may lose 0 bytes, since those that answer have, together, all that was acknowledged"
    world.settle()
    world.later(30)
    world.taken.clear()
    assert condition(world.step(), "Progressing").message.endswith(lost_none)
    (promotion,) = world.step().actions
    assert lost_none in promotion.summary
    assert promotion.parameters["synchronous"] == 'ANY 1 ("db-0", "db-1")'
    world.settle()
    assert (world.primary["name"], setting(world)) == ("db-2", 'ANY 1 ("db-0", "db-1")')
    assert disk(world, "db-2")["rows"] == ["first", "second"]
    assert noted(world) == [(THREE, 1)]


def test_where_too_few_answer_somebody_decides():
    world = formed()
    world.broken.add("db-2")
    world.kill("db-2")
    lost(world)
    outcome = world.settle()
    assert world.taken == []
    (offer,) = outcome.actions
    assert offer.needs_approval
    world.cr["metadata"]["annotations"] |= {"reconcile.dev/approved-actions": offer.key}
    world.settle()
    assert world.primary["name"] == "db-1"


def test_one_that_goes_between_the_beginning_and_the_promotion_leaves_it_to_somebody():
    world = lost(formed())
    world.step()
    world.broken.add("db-2")
    world.kill("db-2")
    outcome = world.settle()
    assert world.primary is None
    (offer,) = outcome.actions
    assert (offer.verb, condition(outcome, "Degraded").reason) == ("fail-over", "FailoverOffered")
    world.broken.discard("db-2")
    world.settle()
    world.delete("Pod", "db-2")
    world.cr["metadata"]["annotations"] |= {"reconcile.dev/approved-actions": offer.key}
    world.settle()
    assert world.primary["name"] == "db-1"


def test_what_held_before_counts_until_what_holds_now_is_confirmed():
    world = formed()
    world.cr["spec"]["synchronous"] = {"min": 2}  # of which a single replica would have every row
    world.step()
    assert world.write("second", to=["db-1"])
    for slot in ("db-0", "db-1"):
        world.broken.add(slot)
        world.kill(slot)
    world.settle()
    world.later(30)
    world.settle()
    assert world.primary is None
    world.broken.clear()
    world.settle()
    assert disk(world, world.primary["name"])["rows"] == ["first", "second"]


def test_what_somebody_tells_the_primary_counts_and_is_put_right():
    world = formed()
    world.running[world.pods["db-0"]["metadata"]["uid"]]["synchronous"] = ""
    world.step()
    assert noted(world) == [([], 0), (THREE, 1)]
    world.settle()
    assert (world.taken, noted(world)) == (["set-quorum db-0", "confirm-quorum db-0"], [(THREE, 1)])


def test_it_holds_from_the_first_moment_on_when_a_primary_comes_back():
    world = formed()
    world.kill("db-0")
    world.step()
    world.step()
    assert setting(world) == 'ANY 1 ("db-1", "db-2")'
    assert not world.write("nobody has it", to=[])


def test_a_switchover_goes_on_with_it():
    world = formed()
    world.cr["metadata"]["annotations"]["example.com/switchover-to"] = "db-1"
    world.settle()
    assert world.taken == HANDOVER
    assert setting(world) == 'ANY 1 ("db-0", "db-2")'
    assert noted(world) == [(THREE, 1)]


def test_another_number_of_replicas_is_noted_told_and_confirmed():
    world = formed()
    world.cr["spec"]["replicas"] = 4
    world.settle()
    assert world.taken == ["set-quorum db-0", "make-slot db_3", "create db-3", "confirm-quorum db-0"]
    world.taken.clear()
    world.cr["spec"]["replicas"] = 2
    world.settle()
    assert (world.taken[0], world.taken[-1]) == ("set-quorum db-0", "confirm-quorum db-0")
    assert (setting(world), noted(world)) == ('ANY 1 ("db-1")', [(["db-0", "db-1"], 1)])


HOSTILE = {
    "nothing": {},
    "text": {"quorums": "all"},
    "numbers": {"quorums": [1, 2]},
    "members that are none": {"quorums": [{"members": [{}], "min": 1}], "since": 7},
    "as many as there are": {"quorums": [{"members": ["db-1"], "min": 9}]},
    "fewer than none": {"quorums": [{"members": ["db-1", "db-2"], "min": -5}]},
    "a line of a server's file": {"quorums": [{"members": ["db-0", "x'\narchive_command = 'y"], "min": 1}]},
    "a line after a name": {"quorums": [{"members": ["db-0", "db-1\n"], "min": 1}]},
    "more members than there can be": {"quorums": [{"members": ["db-1"] * 1000, "min": 1}]},
    "very many": {"quorums": [{"members": ["db-1"], "min": 1}] * 1000},
}


@pytest.mark.parametrize("synchronous", HOSTILE.values(), ids=HOSTILE)
def test_a_status_that_makes_no_sense_promotes_nobody_and_is_put_right(synchronous):
    world = lost(formed())
    world.cr["status"]["synchronous"] = synchronous
    world.step()
    assert world.taken == []
    world.delete("Pod", "db-0")
    world.broken.clear()
    world.step()
    env = world.pods["db-0"]["spec"]["initContainers"][0]["env"]
    assert next(each.get("value", "") for each in env if each["name"] == "SYNCHRONOUS") == ""
    world.run()
    world.settle()
    assert (world.primary["name"], noted(world)) == ("db-0", [(THREE, 1)])


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize(
    "change",
    [
        {"synchronous": {"min": 2}},
        {"synchronous": PREFERRED},
        {"replicas": 4},
        {"replicas": 2},
        {"image": "postgres:17.6"},
    ],
    ids=str,
)
def test_it_is_shown_before_it_is_done(change, steps):
    world = formed()
    world.cr["spec"] |= change
    for _ in range(steps):
        world.step()
    world.taken.clear()
    shown, is_known = foreseen(world), bool(world.facts()["writable"])
    world.settle()
    assert shown == world.taken if is_known else is_part(world.taken, shown)


def test_a_failover_is_shown_before_it_is_done():
    world = lost(formed())
    shown = foreseen(world)
    world.settle()
    assert world.taken[:4] == ["delete db-0", "promote db-1", "checkpoint db-1", "create db-0"]
    assert is_part(world.taken, shown)  # what the primary held isn't known, and shown as still to be made


def test_too_few_for_a_failover_that_was_begun_are_brought_back_as_standbys():
    world = lost(formed())
    world.step()
    assert (world.cr["status"]["phase"], world.taken[-1]) == ("FailingOver", "delete db-0")
    world.delete("Pod", "db-1")
    world.broken.clear()
    world.settle()
    assert world.primary is not None
    assert condition(world.settle(), "Ready").status == "True"
    assert "fail-over db-2" not in world.taken


@given(st.integers(2, 7), st.data())
def test_any_that_meet_a_quorum_have_every_row_between_them(count, data):
    everybody = [f"db-{at}" for at in range(count)]
    quorum = Quorum(tuple(everybody), data.draw(st.integers(1, count - 1)))
    primary = data.draw(st.sampled_from([*everybody, "db-9"]))
    least = int(quorum.setting(primary).split()[1])
    names = [each for each in everybody if each != primary]
    holders = {primary, *data.draw(st.permutations(names))[:least]}
    there = data.draw(st.lists(st.sampled_from(everybody), unique=True))
    if quorum.is_met_by(there):
        assert holders & {*there}
    assert quorum.is_met_by(everybody)


FAULTS = st.sampled_from(["kill", "break", "break", "delete", "heal", "heal", "forget", "stop", "none"])
CHANGES = st.sampled_from(
    [{}, {}, {}, {"replicas": 2}, {"replicas": 4}, {"synchronous": {"min": 2}}, {"synchronous": {"min": 1}}]
)
REACHED = st.lists(st.sampled_from([*THREE, "db-3"]), unique=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FAULTS, st.integers(0, 3), REACHED, CHANGES, st.sampled_from([0, 31])), max_size=14))
def test_whoever_is_reached_no_acknowledged_row_is_lost_unless_somebody_approves(faults):
    world = formed()
    acknowledged = {"first"}
    for at, (fault, number, reached, change, seconds) in enumerate(faults):
        world.cr["spec"] |= change
        if world.write(at, to=reached):
            acknowledged.add(at)
        befall_worse(world, fault, f"db-{number}")
        world.later(seconds)
        world.step(notes=fault != "forget")
    for _ in range(4):
        world.broken.clear()
        world.settle(150)
        world.later(60)
    assert acknowledged <= {*disk(world, world.primary["name"])["rows"]}
    assert world.write("last")
    assert begun(world, world.primary["name"])


# --- what acknowledges rows that no replica has ----------------------------------------------------

LOOSE = ["off", "OFF", "local", "Local", "remote_write", "false", "no", "0", " off", "'off'"]
STRICT = ["on", "On", "remote_apply", "true", "yes", "1"]


@pytest.mark.parametrize("value", LOOSE)
def test_what_acknowledges_rows_that_no_replica_has_isnt_set_where_none_may_be_lost(value):
    world = World(replicas=3, synchronous=REQUIRED, parameters={"synchronous_commit": value, "work_mem": "8MB"})
    outcome = world.settle()
    assert all(server["settings"] == {"work_mem": "8MB"} for server in world.running.values())
    degraded = condition(outcome, "Degraded")
    assert (degraded.reason, condition(outcome, "Ready").status) == ("CommitRefused", "False")
    assert degraded.message.startswith(
        f".spec.parameters[synchronous_commit]: {value} acknowledges rows that no replica has"
    )
    assert outcome.warnings == (degraded.message,)
    assert noted(world) == [(THREE, 1)]


@pytest.mark.parametrize("value", STRICT)
def test_what_waits_for_replicas_is_set(value):
    world = World(replicas=3, synchronous=REQUIRED, parameters={"synchronous_commit": value})
    outcome = world.settle()
    assert world.server_of("db-0")["settings"] == {"synchronous_commit": value}
    assert (condition(outcome, "Degraded").status, outcome.warnings) == ("False", ())


def test_a_failover_that_may_lose_rows_says_so_until_the_primary_is_told_otherwise_and_replicas_have_all():
    world = formed(PREFERRED)
    assert noted(world) == [(THREE, 1)]
    world.cr["spec"]["parameters"] = {"synchronous_commit": "off"}
    world.step()
    assert noted(world) == [([], 0), (THREE, 1)]  # before any server is told
    assert "synchronous_commit" not in world.server_of("db-0")["settings"]
    outcome = world.settle()
    assert noted(world) == [([], 0), (THREE, 1)]
    assert condition(outcome, "Ready").status == "True"
    assert condition(outcome, "Ready").message.endswith(
        ".spec.parameters[synchronous_commit] is off: rows that were acknowledged may be lost when the primary crashes"
    )
    assert outcome.warnings
    away = lost(world)
    message = condition(away.step(), "Available").message
    assert "may lose rows that were acknowledged, since .spec.parameters[synchronous_commit] is off" in message
    assert "may lose 0 bytes" not in message


def test_once_rows_wait_again_that_is_confirmed_before_a_failover_loses_nothing():
    world = formed(PREFERRED)
    world.cr["spec"]["parameters"] = {"synchronous_commit": "local"}
    world.settle()
    world.cr["spec"]["parameters"] = {"synchronous_commit": "on"}
    world.taken.clear()
    world.settle()
    assert world.taken[-1] == "confirm-quorum db-0"
    assert noted(world) == [(THREE, 1)]


def test_what_is_still_set_on_a_primary_counts():
    world = formed()
    world.server_of("db-0")["settings"]["synchronous_commit"] = "off"  # as a daemon of before has set it
    world.step()
    assert noted(world) == [([], 0), (THREE, 1)]
    world.settle()
    assert world.server_of("db-0")["settings"] == {}
    assert noted(world) == [(THREE, 1)]


def test_without_replicas_that_are_waited_for_a_commit_that_waits_for_nothing_is_warned_of():
    told = {"off": "when the primary crashes", "local": "", "on": ""}
    for value, words in told.items():
        outcome = World(parameters={"synchronous_commit": value}).settle()
        assert bool(outcome.warnings) == bool(words)
        assert all(each.endswith(words) for each in outcome.warnings)
