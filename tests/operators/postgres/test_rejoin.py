"""An instance whose log has what the primary's hasn't joins again, in a model of Kubernetes and PostgreSQL: rewound, or as another one with a new copy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.postgres.faults import befall_worse, disk, formed, lost
from tests.operators.postgres.foreseen import foreseen, is_part
from tests.operators.postgres.world import World, begun, condition, ended

TAKEN_OVER = ["delete db-0", "promote db-1", "checkpoint db-1", "create db-0"]
REPLACED = ["make-slot db_3", "create db-3"]


def left_behind(**failover):
    """A primary that has written what nobody received is away for good, so that db-1 takes over."""
    world = formed(**failover)
    disk(world, "db-0")["rows"].append("unreceived")
    lost(world)
    world.later(30)
    return world


def noted(world, slot):
    return world.claim(slot)["metadata"]["annotations"]


def follow_in_the_end(world):
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert all(disk(world, slot)["rows"] == disk(world, world.primary["name"])["rows"] for slot in world.pods)
    return outcome


def test_an_old_primary_with_rows_that_nobody_received_is_rewound_and_follows():
    world = left_behind()
    world.step()
    world.step()
    outcome = world.step()
    assert world.write("new")
    assert outcome.actions[0].summary == "checkpoint db-1, so that db-0 can be rewound to what it has"
    outcome = world.step()
    assert condition(outcome, "Progressing").message == (
        "create db-0 on its volume, as a replica: rewound to what db-1 has; rows that only db-0 holds are lost then"
    )
    assert noted(world, "db-0")["example.com/rejoins"] == "true"
    world.broken.clear()
    world.run()
    follow_in_the_end(world)
    assert world.taken == TAKEN_OVER
    assert (begun(world, "db-0"), disk(world, "db-0")["rows"]) == ("rewind", ["first", "new"])
    assert "example.com/rejoins" not in noted(world, "db-0")
    assert world.role("db-0") == "replica"


def test_one_that_was_rewound_once_comes_back_as_any_replica():
    world = left_behind()
    world.settle()
    world.broken.clear()
    follow_in_the_end(world)
    world.kill("db-0")
    follow_in_the_end(world)
    assert begun(world, "db-0") == "replica"


def test_a_replica_that_had_received_more_than_the_one_that_took_over_is_rewound():
    world = formed()
    disk(world, "db-2")["rows"].append("more")
    world.broken.add("db-2")
    lost(world)
    world.later(30)
    for _ in range(4):
        world.step()
    world.broken.clear()
    world.run()
    outcome = world.step()
    assert condition(outcome, "Progressing").message == (
        "delete db-2, whose log has what that of db-1 hasn't, up to 0/3EA on timeline 1; it comes back rewound"
    )
    assert noted(world, "db-2")["example.com/rejoins"] == "true"
    follow_in_the_end(world)
    assert begun(world, "db-2") == "rewind"
    assert disk(world, "db-2")["rows"] == ["first"]


def test_a_primary_that_handed_over_is_not_rewound():
    world = formed()
    world.cr["metadata"]["annotations"]["example.com/switchover-to"] = "db-1"
    world.settle()
    assert (world.primary["name"], begun(world, "db-0")) == ("db-1", "replica")
    assert "example.com/rejoins" not in noted(world, "db-0")


def test_without_failovers_nothing_is_rewound_and_it_says_what_to_do():
    world = World(replicas=2)
    world.settle()
    disk(world, "db-0")["rows"].append("unreceived")
    world.delete("Pod", "db-0")
    world.running[world.pods["db-1"]["metadata"]["uid"]]["standby"] = False  # as somebody does by hand
    own = disk(world, "db-1")
    own |= {"slots": {"db_0"}, "forks": {"1": "0/3E8"}, "timeline": 2}
    outcome = world.settle()
    assert begun(world, "db-0") == "replica"
    assert disk(world, "db-0")["rows"] == ["unreceived"]
    assert "delete the pod and its volume claim db-0-data" in condition(outcome, "Ready").message


CANT = {
    "it is refused": ("refused", []),
    "it is killed in the middle": ("killed", ["delete db-0", "create db-0"]),
}


@pytest.mark.parametrize(("rewinds", "before"), CANT.values(), ids=CANT)
def test_where_it_cannot_be_rewound_another_begins_with_a_copy_and_the_volume_is_kept(rewinds, before):
    world = left_behind()
    world.rewinds = rewinds
    for _ in range(3):
        world.step()
    world.broken.clear()
    follow_in_the_end(world)
    assert world.taken == [*TAKEN_OVER, *before, "delete db-0", "drop-slot db_0", *REPLACED]
    assert noted(world, "db-0")["example.com/kept-since"] == world.now
    assert disk(world, "db-0")["rows"] == ["first", "unreceived"]
    assert world.cr["status"]["keptVolumes"] == [{"claim": "db-0-data", "since": world.now}]
    assert sorted(world.pods) == ["db-1", "db-2", "db-3"]


def set_aside(**failover):
    world = left_behind(**failover)
    world.rewinds = "refused"
    for _ in range(3):
        world.step()
    world.broken.clear()
    world.settle()
    world.rewinds = "done"
    world.taken.clear()
    return world


def test_it_says_why_a_volume_is_set_aside_before_it_is():
    world = left_behind()
    world.rewinds = "refused"
    for _ in range(3):
        world.step()
    world.broken.clear()
    world.step()
    shown = foreseen(world)
    assert condition(world.step(), "Progressing").message == (
        "set the volume of db-0 aside, which can't be rewound (prepare ended with exit code 5); it is kept for 24 h, and another replica begins with a new copy"
    )
    world.settle()
    assert shown == world.taken[-4:]


def test_a_volume_that_was_set_aside_goes_once_its_time_is_over_and_all_replicas_follow():
    world = set_aside()
    world.later(24 * 3600 - 1)
    world.settle()
    assert world.taken == []
    world.broken.add("db-3")
    world.kill("db-3")
    world.settle()
    world.later(1)
    world.settle()
    assert "delete volume db-0" not in world.taken
    world.broken.clear()
    shown = foreseen(world)
    world.settle()
    assert world.taken[-1] == shown[-1] == "delete volume db-0"
    assert world.cr["status"]["keptVolumes"] == []
    world.cr["spec"]["replicas"] = 4
    follow_in_the_end(world)
    assert "db-0" in world.pods  # the name is free again


@pytest.mark.parametrize("since", ["", "soon", "2026-11-20", "0001-01-01T00:00:00Z" * 100, "2026-99-01T00:00:00Z"])
def test_a_volume_whose_time_nobody_can_read_is_kept(since):
    world = set_aside()
    noted(world, "db-0")["example.com/kept-since"] = since or "?"
    world.later(10**8)
    world.settle()
    assert world.taken == []


def test_volumes_that_were_set_aside_stay_when_it_is_deleted():
    world = set_aside()
    world.cr["metadata"]["deletionTimestamp"] = world.now
    assert world.ask().dropped == ()
    world.cr["spec"]["deletionPolicy"] = "Delete"
    assert "PersistentVolumeClaim/db-0-data" in world.ask().dropped


def test_no_more_volumes_are_set_aside_than_a_few():
    world = set_aside()
    for slot in ("db-7", "db-8"):
        claim = {**world.claim("db-0"), "metadata": {**world.claim("db-0")["metadata"], "name": f"{slot}-data"}}
        world.objects["PersistentVolumeClaim", f"{slot}-data"] = claim
    disk(world, "db-3")["half"] = True
    world.kill("db-3")
    outcome = world.settle()
    assert world.taken == ["delete db-3", "create db-3"]
    assert condition(outcome, "Available").status == "True"
    assert condition(outcome, "Degraded").reason == "InstanceFails"
    assert condition(outcome, "Degraded").message == (
        "db-3 can't be rewound: prepare ended with exit code 5; no other begins in its place, since 3 old volumes are kept already"
        " (hint: delete of these what you don't need: db-0-data, db-7-data, db-8-data)"
    )
    del world.objects["PersistentVolumeClaim", "db-8-data"]
    follow_in_the_end(world)


def test_nothing_is_rewound_to_what_the_primary_has_thrown_away():
    world = left_behind()
    world.step()
    world.step()
    facts = world.facts
    world.facts = lambda: {**facts(), "slots": {**facts()["slots"], "db_0": {"active": False, "status": "lost"}}}
    outcome = world.step()
    assert condition(outcome, "Progressing").message.startswith(
        "set the volume of db-0 aside, which can't follow any more: what it needs for that"
    )
    world.facts = facts
    world.broken.clear()
    follow_in_the_end(world)
    assert disk(world, "db-0")["rows"] == ["first", "unreceived"]


@pytest.mark.parametrize("runs", [True, False])
def test_a_replica_that_was_away_until_its_log_was_thrown_away_gives_way_to_a_copy(runs):
    world = formed()
    world.settle()
    world.taken.clear()
    row = disk(world, "db-2")["rows"]
    facts = world.facts
    if not runs:
        world.delete("Pod", "db-2")

    def told():
        found = facts()
        is_there = "db_2" in found["slots"]
        slots = {**found["slots"], **({"db_2": {"active": False, "status": "lost"}} if is_there else {})}
        followers = {name: each for name, each in found["followers"].items() if name != "db-2"}
        return {**found, "slots": slots, "followers": followers}

    world.facts = told
    outcome = world.step()
    assert condition(outcome, "Progressing").message.startswith(
        "set the volume of db-2 aside, which can't follow any more"
    )
    world.step()
    world.facts = facts
    follow_in_the_end(world)
    assert (sorted(world.pods), noted(world, "db-2")["example.com/kept-since"]) == (["db-0", "db-1", "db-3"], world.now)
    assert disk(world, "db-2")["rows"] == row


def test_one_that_was_rewound_and_does_not_follow_gives_way_to_a_copy_in_the_end():
    world = left_behind()
    for _ in range(4):
        world.step()
    world.broken.clear()
    follows, world.follows = world.follows, lambda name: name != "db-0" and follows(name)
    world.run()
    world.pods["db-0"]["metadata"]["creationTimestamp"] = world.now
    world.settle()
    assert world.taken == TAKEN_OVER
    world.later(600)
    follow_in_the_end(world)
    assert world.taken[-4:] == ["delete db-0", "drop-slot db_0", *REPLACED]


HOSTILE = {
    "no positions": {"1": "far", "2": None},
    "no timelines": {"x": "0/3E9", "-1": "0/0"},
    "lists": {"1": ["0/3E9"]},
    "nothing": {},
}


@pytest.mark.parametrize("forks", HOSTILE.values(), ids=HOSTILE)
def test_a_primary_that_tells_nonsense_of_its_past_breaks_nothing(forks):
    world = left_behind()
    for _ in range(3):
        world.step()
    facts = world.facts
    world.facts = lambda: {**facts(), "forks": forks}
    world.broken.clear()
    follow_in_the_end(world)
    assert not world.cr["status"]["keptVolumes"]


@pytest.mark.parametrize("steps", range(6))
def test_it_is_shown_before_it_is_done(steps):
    world = left_behind()
    for _ in range(steps):
        world.step()
    world.taken.clear()
    shown = foreseen(world)
    world.broken.clear()
    world.settle()
    assert is_part(world.taken, shown)
    assert world.taken[:4] == TAKEN_OVER[min(steps, 4) :]


def test_a_container_that_ends_otherwise_is_tried_again():
    world = left_behind()
    for _ in range(4):
        world.step()
    ended(world.pods["db-0"], 6)
    world.broken.clear()
    follow_in_the_end(world)
    assert world.taken == [*TAKEN_OVER, "delete db-0", "create db-0"]
    assert begun(world, "db-0") == "rewind"


FAULTS = st.sampled_from(["kill", "delete", "break", "heal", "forget", "none"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(FAULTS, st.integers(0, 2), st.sampled_from(["done", "killed", "refused"])), max_size=10))
def test_whatever_happens_meanwhile_no_half_rewound_folder_is_started_and_all_follow_in_the_end(faults):
    world = formed(maxLagBytes=1 << 40)
    for at, (fault, number, rewinds) in enumerate(faults):
        world.write(at)  # nobody has received it when something befalls the primary
        befall_worse(world, fault, f"db-{number}")
        world.rewinds = rewinds
        world.later(40)
        world.step(notes=fault != "forget")
    world.rewinds = "done"
    for _ in range(4):
        world.broken.clear()
        world.settle(150)
        world.later(60)
    assert world.write("last")
    world.run()
    follow_in_the_end(world)
    world.later(100_000)
    follow_in_the_end(world)
    assert not any("example.com/kept-since" in noted(world, slot) for slot in world.pods)
