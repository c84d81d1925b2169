"""An etcd begins a cluster once, and whoever has lost its data is never taken for the cluster: no member's data goes for it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.module.action_journal import ActionJournal
from kubectl_reconcile.core.module.call import check_purity
from kubectl_reconcile.module_api import Context, Owned, later
from kubectl_reconcile_operators.etcd.situation import VOTER, situation_of
from tests.operators.etcd.foreseen import foreseen
from tests.operators.etcd.world import World, condition, formed, joins, peer, told

BEGINS = ("--initial-cluster", "--initial-cluster-state")


def of_earlier_version(world):
    """Let all pods be as they were made before: what they begin with stands in their arguments for life."""
    for slot, pod in world.pods.items():
        (container,) = pod["spec"]["containers"]
        others = [each for each in container["args"] if each.partition("=")[0] not in BEGINS]
        begun = [
            f"--initial-cluster={slot}={peer(slot)}",
            f"--initial-cluster-state={'new' if slot == 'db-0' else 'existing'}",
        ]
        container["args"], container["env"] = [*others, *begun], []
        pod["metadata"]["annotations"] = {
            name: each for name, each in pod["metadata"]["annotations"].items() if "initial-cluster" not in name
        }
    return world


class Anew(World):
    """A cluster whose first member has begun again on an empty volume, with the ids that it had, while nobody else answers."""

    is_anew = False

    def facts(self):
        found = super().facts()
        if not self.is_anew:
            return found
        alone = {"id": "m0", "name": "db-0", "peer": peer("db-0"), "learner": False}
        pods = {name: {**each, "error": "it hangs"} for name, each in found["pods"].items()}
        pods["db-0"] |= {"id": "m0", "cluster": self.cluster, "learner": False, "synced": True, "error": ""}
        return {**found, "members": [alone], "membership": "m0", "quorum": True, "leader": "m0", "answering": "db-0", "pods": pods}  # fmt: skip


def anew(size=3, **spec):
    world = Anew(size, **spec)
    world.settle()
    world.taken.clear()
    world.is_anew = True
    return world


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("in_memory", [False, True])
def test_nobody_begins_anything_who_has_begun(size, in_memory):
    world = formed(size, in_memory=in_memory)
    assert {slot: tuple(told(pod)[name] for name in BEGINS) for slot, pod in world.pods.items()} == {
        slot: (f"{slot}={peer(slot)}", "existing") for slot in world.pods
    }


def test_clients_reach_a_first_member_once_it_begins_no_more():
    world = World(1)
    world.step()
    assert told(world.pods["db-0"])["--initial-cluster-state"] == "new"
    assert VOTER not in world.pods["db-0"]["metadata"]["labels"]
    world.step()
    assert told(world.pods["db-0"])["--initial-cluster-state"] == "existing"
    assert world.pods["db-0"]["metadata"]["labels"][VOTER] == "true"


def test_who_strips_a_pod_of_how_it_begins_makes_it_begin_nothing():
    world = formed()
    noted = world.pods["db-0"]["metadata"]["annotations"]
    for name in [name for name in noted if "initial-cluster" in name]:
        del noted[name]
    assert [told(world.pods["db-0"])[name] for name in BEGINS] == ["", ""]  # which etcd refuses
    world.step()
    assert told(world.pods["db-0"])["--initial-cluster-state"] == "existing"


def test_an_empty_volume_and_two_that_hang_cost_nothing():
    world = formed()
    world.broken |= {"db-1", "db-2"}
    world.wipe("db-0")
    world.run()
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Available").status == "False"
    assert "db-0: its data is gone: its volume came back empty" in condition(outcome, "Ready").message
    world.broken.clear()
    world.run()
    shown = foreseen(world)
    outcome = world.settle()
    assert world.taken == ["remove db-0", "delete db-0", "delete volume db-0", *joins("db-0")] == shown
    assert condition(outcome, "Ready").status == "True"
    assert "m0" not in {each["id"] for each in world.members}


def test_one_empty_volume_beside_two_that_serve_is_replaced():
    world = formed()
    world.wipe("db-1")
    world.run()
    world.settle()
    assert world.taken == ["remove db-1", "delete db-1", "delete volume db-1", *joins("db-1")]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("in_memory", [False, True])
def test_where_all_volumes_come_back_empty_that_is_said(size, in_memory):
    world = formed(size, in_memory=in_memory)
    for slot in world.pods:
        world.wipe(slot)
    world.run()
    outcome = world.settle()
    assert world.taken == []
    assert {each: condition(outcome, each).status for each in ("Ready", "Available", "Degraded")} == {
        "Ready": "False", "Available": "False", "Degraded": "True",
    }  # fmt: skip
    assert condition(outcome, "Degraded").reason == "DataLost"
    assert "nothing is begun in its place" in condition(outcome, "Degraded").message
    assert world.cr["status"]["phase"] == "Failed"
    world.now = later(world.now, 400)
    world.settle()
    assert world.held == world.taken == []


def test_two_empty_volumes_of_three_are_for_a_person():
    world = formed()
    world.wipe("db-0")
    world.wipe("db-2")
    world.run()
    world.settle()
    assert [(each.verb, each.parameters["slot"]) for each in world.held] == [("recover", "db-1")]


def test_an_etcd_that_waits_for_others_to_join_has_lost_nothing():
    world = World(2)
    while "db-1" not in world.pods:
        world.step()
    assert told(world.pods["db-1"])["--initial-cluster"].count("=") == 2
    ended = {
        "state": {"waiting": {}},
        "lastState": {"terminated": {"message": "cannot fetch cluster info from peer urls"}},
    }
    world.pods["db-1"]["status"] = {"containerStatuses": [ended]}
    assert (
        not situation_of(world.cr, Owned(world.pods.values()), {}, Context("", "etcdcluster", world.cr))
        .pods["db-1"]
        .has_lost_data
    )


# --- one that has begun anew ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 5])
def test_one_that_has_begun_anew_is_not_the_cluster(size):
    world = anew(size)
    world.step()
    assert VOTER not in world.pods["db-0"]["metadata"]["labels"]  # no client writes to it
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Ready").status == condition(outcome, "Available").status == "False"
    assert "db-0: it has begun again on an empty volume" in condition(outcome, "Ready").message
    assert len(world.cr["status"]["voters"]) == size


def test_the_others_come_back_and_replace_it():
    world = anew()
    world.settle()
    world.is_anew = False
    apart = world.facts

    def facts():
        found = apart()
        if any(each["id"] == "m0" for each in world.members):
            found["leader"] = world.members[1]["id"]
            anew = {"id": "m0", "cluster": "c", "learner": False, "error": ""}
            found["pods"]["db-0"] |= {**anew, "alone": True, "synced": False}
        return found

    world.facts, world.leader = facts, world.members[1]["id"]
    world.data[world.place(world.pods["db-0"])] = "anew"
    world.step()
    assert world.taken == ["remove db-0"]
    world.settle()
    assert world.taken == ["remove db-0", "delete db-0", "delete volume db-0", *joins("db-0")]


def test_members_that_were_removed_by_hand_take_an_approval():
    world = anew()
    world.settle()
    assert world.held == []
    world.now = later(world.now, 301)
    outcome = world.settle()
    (held,) = world.held
    assert (held.verb, held.asks_each_time) == ("accept", True)
    assert "kubectl reconcile approve etcd/db" in condition(outcome, "Degraded").message
    world.is_anew, world.members = False, [each for each in world.members if each["id"] == "m0"]
    world.leader = "m0"
    world.approve()
    world.run()
    world.settle()
    assert world.taken[0].startswith("accept")
    assert [each["name"] for each in world.cr["status"]["voters"]] == ["db-0", "db-3", "db-4"]
    assert world.aside("db-1")
    assert world.aside("db-2")


def test_who_was_killed_while_removing_a_member_goes_on_with_those_that_are_left():
    world = formed(2)
    world.cr["spec"]["size"] = 1
    (action,) = world.ask().actions
    journal = ActionJournal.of(world.cr).started(action, world.now)
    world.cr["metadata"].setdefault("annotations", {})[ACTIONS] = journal.text()
    world.act(action)  # and what followed was never noted
    world.run()
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert len(world.voters) == 1


# --- pods of earlier versions ---------------------------------------------------------------------


def test_pods_that_would_begin_anew_for_life_are_made_again():
    world = of_earlier_version(formed())
    world.settle()
    assert world.taken == [
        "delete db-1", "create db-1", "delete db-2", "create db-2", "move-leader db-1", "delete db-0", "create db-0",
    ]  # fmt: skip
    assert {told(pod)["--initial-cluster-state"] for pod in world.pods.values()} == {"existing"}


@pytest.mark.parametrize("size", [1, 3])
def test_those_that_keep_their_data_in_memory_stay(size):
    world = of_earlier_version(formed(size, in_memory=True))
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Ready").status == "True"


@settings(max_examples=60)
@given(st.integers(1, 5), st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4)), st.booleans())
def test_whatever_is_wiped_nobody_begins_twice_and_no_data_of_others_goes(size, wiped, hang, in_memory):
    world = formed(size, in_memory=in_memory)
    held = {slot: world.data[world.place(pod)] for slot, pod in world.pods.items()}
    world.broken |= {f"db-{number}" for number in hang if number < size}
    for number in wiped:
        if number < size:
            world.wipe(f"db-{number}")
    world.run()
    world.settle()
    world.broken.clear()
    world.run()
    world.ask(check_purity)
    world.settle()
    left = {slot for slot in held if int(slot[3:]) not in wiped}
    if 2 * len(left) > size:
        assert len(world.serving()) == size
    assert world.bootstraps == 1
    assert all(world.data.get(world.place(world.pods[slot])) == held[slot] for slot in left)
