"""One instance takes over from the primary, in a model of Kubernetes and PostgreSQL: nothing that was acknowledged is lost, and never do two take writes."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.postgres.faults import ASKED, asked, befall, disk, stopped
from tests.operators.postgres.world import HANDOVER, QUICK, World, condition, lsn, place, uid_of


def formed(replicas=3, *, tells_end=False, **spec):
    world = World(replicas=replicas, **spec)
    world.tells_end = tells_end
    world.settle()
    world.write("first")
    world.run()
    world.taken.clear()
    return world


def test_a_switchover_that_somebody_asks_for_loses_nothing():
    world = asked(formed())
    outcome = world.settle()
    assert world.taken == HANDOVER
    assert (world.primary["name"], disk(world, "db-1")["rows"]) == ("db-1", ["first"])
    assert [world.role(f"db-{at}") for at in range(3)] == ["replica", "primary", "replica"]
    assert condition(outcome, "Ready").status == "True"
    status = world.cr["status"]
    assert {status[name] for name in ("currentPrimary", "targetPrimary", "switchoverAnswered")} == {"db-1"}
    assert (status["timeline"], "handover" in status) == (2, False)
    assert world.claim("db-1")["metadata"]["annotations"]["example.com/role"] == "primary"
    assert "example.com/role" not in world.claim("db-0")["metadata"]["annotations"]


@pytest.mark.parametrize("why", ["somebody asks", "a restart"])
def test_nobody_takes_over_who_is_far_behind_and_all_else_goes_on_meanwhile(why):
    world = formed(replicas=2)
    facts, behind = world.facts, {"db-1": {"state": "streaming", "lagBytes": 1 << 25}}
    world.facts = lambda: {**facts(), "followers": behind}
    world.cr["spec"]["databases"] = [{"name": "orders"}]
    if why == "somebody asks":
        asked(world)
    else:
        world.cr["spec"]["parameters"] = {"max_connections": "300"}
    outcome = world.settle()
    ready = condition(outcome, "Ready")
    assert (ready.reason, world.primary["name"]) == ("ReplicaBehind", "db-0")
    assert ready.message.startswith("db-1, which is to take over")
    assert ready.message.endswith("is up to 33554432 bytes behind")
    assert "make-database orders" in world.taken
    assert not {"delete db-0", "checkpoint db-0"} & {*world.taken}
    world.facts = facts
    world.settle()
    assert world.primary["name"] == "db-1"


def test_whoever_has_the_record_with_which_the_old_primary_ended_takes_over_at_once():
    world = asked(formed(tells_end=True, failover={}))
    for _ in range(2):
        world.step()
    noted = world.cr["status"]["handover"]
    assert (noted["timeline"], noted["checkpoint"]) == (1, lsn(place(disk(world, "db-0")) - 2))
    (action,) = world.step().actions
    assert action.summary.startswith("promote db-1, which has all of the log, up to 0/")
    assert action.precondition["pods.db-1.closed"] == action.parameters["closed"]
    assert world.cr["status"]["handover"]["closed"] is True
    outcome = world.settle()
    assert world.taken == QUICK
    assert world.pods["db-0"]["spec"]["initContainers"][0]["env"][0] == {"name": "BEGIN", "value": "replica"}
    assert disk(world, "db-1")["rows"] == ["first"]
    assert condition(outcome, "Ready").status == "True"
    assert "handover" not in world.cr["status"]


def test_it_takes_over_though_the_node_does_not_say_yet_that_the_old_primary_has_ended():
    world = asked(formed(tells_end=True, failover={}))
    old = world.pods["db-0"]
    world.step()
    world.ends("db-0")
    world.kill("db-0")
    old["metadata"]["deletionTimestamp"] = world.now
    world.step()
    assert world.taken == ["checkpoint db-0", "promote db-1"]
    world.step()
    assert (world.role("db-0"), world.role("db-1")) == (None, "primary")
    assert "example.com/rejoins" not in world.claim("db-0")["metadata"]["annotations"]


def test_an_old_primary_that_is_about_to_stop_is_handed_over_from_all_the_same():
    world = asked(formed(tells_end=True))
    world.step()
    world.pods["db-0"]["metadata"]["deletionTimestamp"] = world.now
    assert world.step().actions == ()
    assert world.cr["status"]["handover"]["to"] == "db-1"


UNPROVEN = {
    "it ended so in an earlier run": lambda world: world.cr["status"]["handover"].update(checkpoint="0/FFFFFF"),
    "it did so on another timeline": lambda world: world.cr["status"]["handover"].update(timeline=2),
    "nobody saw a checkpoint of it": lambda world: world.cr["status"]["handover"].pop("checkpoint"),
    "it was another pod": lambda world: world.cr["status"]["handover"].pop("uid"),
    "it has not got that record": lambda world: disk(world, "db-1")["marks"].pop(),
    "it is a failover": lambda world: world.cr["status"]["handover"].update(kind="Failover"),
}


@pytest.mark.parametrize("is_unproven", UNPROVEN.values(), ids=UNPROVEN)
def test_nobody_takes_over_at_once_of_whom_it_is_not_proven_that_it_has_all(is_unproven):
    world = asked(formed(tells_end=True))
    world.step()
    world.step()
    is_unproven(world)
    assert [each for each in world.step().actions if each.parameters.get("closed")] == []


def test_nobody_takes_over_at_once_whose_log_goes_less_far_than_anothers():
    world = asked(formed(tells_end=True))
    world.step()
    world.step()
    facts, told = world.facts, world.facts()
    told["pods"]["db-2"]["lsn"] = "0/FFFFFF"
    world.facts = lambda: told
    assert world.step().actions == ()
    world.facts = facts


def test_it_says_who_takes_over_and_why_nobody_serves_meanwhile():
    world = asked(formed())
    assert world.step().actions[0].summary == "checkpoint db-0, before db-1 takes over"
    assert world.cr["status"]["targetPrimary"] == "db-1"
    assert (
        condition(world.step(), "Progressing").message
        == "delete db-0, which comes back as a standby, so that db-1 takes over"
    )
    outcome = world.step()
    assert (condition(outcome, "Available").status, world.cr["status"]["phase"]) == ("False", "SwitchingOver")
    (action,) = world.step().actions
    assert action.summary == "promote db-1, which has all of the log, up to 0/3E9; it is the primary then"
    assert action.parameters["slots"] == ["db_0", "db_2"]
    assert action.precondition["pods.db-0.lsn"] == action.precondition["pods.db-1.lsn"] == "0/3E9"
    assert action.precondition["writable"] == ""
    assert action.precondition["pods.db-0.recovery"] is True


def test_while_clients_wait_no_pass_is_put_off_and_servers_are_asked_often():
    world = formed()
    assert not world.ask().urgent
    asked(world)
    while world.role("db-1") != "primary":
        assert world.step().urgent
    assert world.taken == HANDOVER
    assert not world.ask().urgent


def test_the_longer_a_handover_takes_the_more_seldom_servers_are_asked():
    world = asked(formed())
    for _ in range(3):
        world.step()
    stopped(world, "db-0")
    waits = []
    for seconds in (1, 4, 60):
        world.later(seconds)
        waits.append(world.step().requeue_after_s)
    assert waits == [0.2, 1.0, 2.0]


def test_one_that_is_not_as_specified_any_more_gets_clients_all_the_same():
    world = asked(formed())
    world.cr["spec"]["image"] = "postgres:17.6"
    for _ in HANDOVER:
        world.step()
    assert world.taken == HANDOVER
    world.step()
    assert (world.role("db-0"), world.role("db-1")) == (None, "primary")
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert world.role(world.primary["name"]) == "primary"


def test_a_wish_is_granted_once():
    world = asked(formed())
    world.settle()
    world.cr["spec"]["image"] = "postgres:17.6"  # which takes another switchover
    world.settle()
    assert world.primary["name"] == "db-0"
    world.taken.clear()
    world.settle()
    assert world.taken == []
    asked(world, "")
    world.settle()
    asked(world)
    world.settle()
    assert world.primary["name"] == "db-1"


def test_a_wish_for_the_one_that_is_the_primary_changes_nothing():
    world = asked(formed(), "db-0")
    world.settle()
    assert world.taken == []


@pytest.mark.parametrize("to", ["db-7", "other", "db-0-data"])
def test_a_wish_for_what_is_no_replica_is_refused_and_all_else_goes_on(to):
    world = asked(formed(), to)
    world.cr["spec"]["users"] = [{"name": "shop"}]
    outcome = world.settle()
    degraded = condition(outcome, "Degraded")
    assert (degraded.reason, degraded.message) == (
        "SwitchoverRefused", f"annotation {ASKED}: '{to}' isn't a replica that will stay (hint: there is db-1, db-2)",
    )  # fmt: skip
    assert world.taken == ["make-secret db-user-shop", "set-user shop"]


def test_nobody_takes_over_who_does_not_follow():
    world = asked(formed())
    stopped(world, "db-1")
    world.settle()
    assert world.taken == []
    world.broken.clear()
    world.settle()
    assert world.taken == HANDOVER


def test_nobody_takes_over_who_is_far_behind():
    world = asked(formed())
    facts = world.facts
    far = {"state": "streaming", "lagBytes": 1 << 30}
    world.facts = lambda: {**facts(), "followers": {**facts()["followers"], "db-1": far}}
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Progressing").message == "db-1, which is to take over, is up to 1073741824 bytes behind"


def test_a_switchover_is_called_off_where_the_one_to_take_over_stops_following():
    world = asked(formed())
    world.step()
    stopped(world, "db-1")
    world.settle()
    assert world.taken == ["checkpoint db-0"]
    assert (world.cr["status"]["targetPrimary"], "handover" in world.cr["status"]) == ("db-0", False)
    assert world.primary["name"] == "db-0"


def test_one_whose_log_goes_less_far_is_not_promoted():
    world = asked(formed(), "db-2")
    world.step()
    world.step()
    disk(world, "db-2")["rows"].clear()  # it had lost its connection before the primary ended
    world.settle()
    assert world.taken == ["checkpoint db-0", "delete db-0", "create db-0", "promote db-0"]
    assert [disk(world, f"db-{at}")["rows"] for at in range(3)] == [["first"]] * 3
    assert (
        world.cr["status"]["switchoverAnswered"] == "db-2"
    )  # it is given up: nobody is kept from working again and again


def test_nobody_is_promoted_while_somebody_still_receives():
    world = asked(formed())
    for _ in range(3):
        world.step()
    facts, told = world.facts, world.facts()
    told["pods"]["db-2"]["receives"] = True
    world.facts = lambda: told
    outcome = world.step()
    assert condition(outcome, "Progressing").message == "a standby still receives the log, or reads its own again"
    assert outcome.actions == ()
    world.facts = facts
    world.settle()
    assert world.primary["name"] == "db-1"


def test_nobody_is_promoted_while_the_old_primary_does_not_say_what_it_holds():
    world = asked(formed())
    world.step()
    world.step()
    world.broken.add("db-0")
    outcome = world.settle()
    assert world.taken == HANDOVER[:3]
    assert world.primary is None
    assert condition(outcome, "Available").status == "False"
    assert condition(outcome, "Progressing").message.startswith("db-0 begins as a standby")
    world.broken.clear()
    world.settle()
    assert world.primary["name"] == "db-1"


def test_a_volume_that_is_lost_in_the_midst_of_it_is_for_a_person():
    world = asked(formed())
    world.step()
    world.step()
    del world.disks[uid_of(world.objects.pop(("PersistentVolumeClaim", "db-0-data")))]
    outcome = world.settle()
    assert condition(outcome, "Degraded").reason == "DataLost"
    assert "pg_promote(): there is db-1, db-2" in condition(outcome, "Degraded").message
    asked(world, "db-2")
    world.running[uid_of(world.pods["db-2"])]["standby"] = False  # as somebody does then
    disk(world, "db-2")["slots"] |= {"db_0", "db_1"}
    world.settle()
    assert (world.primary["name"], disk(world, "db-2")["rows"]) == ("db-2", ["first"])


FAULTS = st.sampled_from(["kill", "delete", "forget", "stop", "none", "none"])


@settings(max_examples=25, deadline=None)
@example(faults=[("none", 0)] * 3 + [("forget", 0), ("kill", 1)], to="db-1", tells_end=False)
@example(faults=[("none", 0)] * 2 + [("forget", 0), ("kill", 1)], to="db-1", tells_end=True)
@example(faults=[("none", 0), ("kill", 0)], to="db-1", tells_end=True)
@example(faults=[("kill", 0), ("none", 0), ("none", 0), ("stop", 1)], to="db-1", tells_end=True)
@given(st.lists(st.tuples(FAULTS, st.integers(0, 2)), max_size=8), st.sampled_from(["db-1", "db-2"]), st.booleans())
def test_whatever_happens_meanwhile_no_acknowledged_row_is_lost(faults, to, tells_end):
    world = asked(formed(tells_end=tells_end), to)
    rows = ["first"]
    for at, (fault, number) in enumerate(faults):
        befall(world, fault, f"db-{number}")
        if world.write(at):
            rows.append(at)
        world.step(notes=fault != "forget")
        world.broken.clear()
        world.run()
    world.settle()
    assert world.write("last")
    assert disk(world, world.primary["name"])["rows"] == [*rows, "last"]
    assert world.role(world.primary["name"]) == "primary"
    assert condition(world.ask(), "Ready").status == "True"
