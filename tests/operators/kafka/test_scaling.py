"""Brokers come and are filled, are emptied and go, whatever happens in between: no partition is assigned twice, and nothing goes that holds something."""

import pytest

from tests.operators.kafka.world import World, condition

ROWS = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]] * 2


def a_world(*rows, brokers=3, **spec):
    world = World(brokers=brokers, **spec)
    world.settle()
    world.topic("orders", *rows, size=8 << 20)
    world.settle()
    world.took()
    return world


def held(world):
    return [sum(number in each["replicas"] for _, _, each in world.partitions()) for number in sorted(world.registered)]


def verbs(world):
    return [
        next(
            (verb for verb in ("move-partitions", "take-throttle-off", "elect-leaders") if each.startswith(verb)), each
        )
        for each in world.took()
    ]


def test_a_new_broker_joins_and_partitions_move_to_it_with_a_throttle():
    world = a_world(*ROWS)
    world.change(brokers=4)
    world.settle()
    assert verbs(world)[:2] == ["create kf-3", "move-partitions"]
    assert held(world) == [6, 6, 6, 6]
    assert world.throttled == {}
    assert world.cr["status"]["filling"] == []


def test_a_few_partitions_move_at_a_time_and_the_step_says_how_much_there_is_in_all():
    world = a_world(*ROWS, rebalance={"maxMovesInFlight": 2, "throttleBytesPerSecond": 1 << 20})
    world.change(brokers=4)
    world.step()
    outcome = world.step()
    (move,) = outcome.actions
    assert len(move.parameters["moves"]) == 2
    assert "in all 6 partitions, 6 replicas, 48 MiB" in move.summary
    assert "3 less than 1 MiB (0) → 48 MiB (6)" in move.summary
    assert condition(outcome, "Rebalancing").status == "True"


def test_in_mode_propose_nothing_moves_until_somebody_approves():
    world = a_world(*ROWS, rebalance={"mode": "Propose"})
    world.change(brokers=4)
    outcome = world.settle()
    (held_back,) = outcome.actions
    assert held_back.key.startswith("allow-moves-to-3-")
    assert held_back.needs_approval
    assert held(world) == [8, 8, 8, 0]
    assert condition(outcome, "Ready").reason == "MovesAwaitApproval"
    world.approve(held_back.key)
    world.settle()
    assert held(world) == [6, 6, 6, 6]


def test_brokers_that_come_again_are_filled_only_once_somebody_approves_again():
    world = a_world(*ROWS, rebalance={"mode": "Propose"})
    for brokers in (4, 3):
        world.change(brokers=brokers)
        (held_back,) = world.settle().actions
        world.approve(held_back.key)
        world.settle()
    assert held(world) == [8, 8, 8]
    world.change(brokers=4)
    (again,) = world.settle().actions
    assert again.key.startswith("allow-moves-to-3-")
    assert held(world) == [8, 8, 8, 0]


def test_another_throttle_is_for_what_moves_already_too():
    world = a_world(*ROWS, rebalance={"throttleBytesPerSecond": 1000})
    world.slow = {3}
    world.change(brokers=4)
    world.settle()
    world.took()
    world.change(rebalance={"throttleBytesPerSecond": 5000})
    world.settle()
    assert world.took() == ["set-throttle-5000"]
    assert {rate for each in world.throttled.values() for rate in each.values()} == {"5000"}
    world.slow = set()
    world.settle()
    assert world.throttled == {}


def test_what_somebody_else_moves_without_a_throttle_gets_none():
    world = a_world(*ROWS)
    world.topics["orders"]["partitions"][0]["target"] = [2, 1, 0]
    world.slow = {2}
    world.settle()
    assert world.in_flight()
    assert world.took() == []


def test_the_throttle_goes_while_what_the_cluster_refuses_is_tried_again():
    world = a_world(*ROWS, rebalance={"maxMovesInFlight": 1})
    world.change(brokers=4)
    for _ in range(3):
        world.step()
    world.refuses["move-partitions"] = "not now"
    world.settle()
    assert world.throttled == {}
    world.refuses.clear()
    world.settle()
    assert held(world) == [6, 6, 6, 6]


def test_a_broker_goes_once_it_is_empty_and_its_volume_once_somebody_has_approved():
    world = a_world(*[[0, 1, 3], [1, 2, 3], [2, 0, 3], [3, 2, 1]], brokers=4, deletionPolicy="Delete")
    world.change(brokers=3)
    world.settle()
    took = [each for each in verbs(world) if each != "elect-leaders"]
    assert took == ["move-partitions", "take-throttle-off", "delete kf-3", "unregister-broker-kf-3"]
    outcome = world.settle()
    assert condition(outcome, "Ready").reason == "AwaitsApproval"
    assert condition(outcome, "Ready").message == (
        "delete the volume of kf-3, which is no broker any more (.spec.deletionPolicy is Delete)"
    )
    (asked,) = outcome.actions
    world.approve(asked.key)
    outcome = world.settle()
    assert verbs(world) == [asked.key, "delete volume 3"]
    assert condition(outcome, "Ready").status == "True"
    assert held(world) == [4, 4, 4]


def test_the_volume_of_a_broker_that_went_stays_by_default_and_serves_it_again():
    world = a_world(brokers=4)
    world.change(brokers=3)
    world.settle()
    assert verbs(world) == ["delete kf-3", "unregister-broker-kf-3"]
    assert ("PersistentVolumeClaim", "kf-3-data") in world.objects
    world.change(brokers=4)
    world.settle()
    assert verbs(world) == ["create kf-3"]


def test_a_broker_whose_partitions_find_no_other_place_stays_and_all_else_goes_on():
    world = a_world([0, 1, 2, 3], brokers=4)
    world.change(brokers=3, topics=[{"name": "prices"}])
    outcome = world.settle()
    assert 3 in world.pods
    assert "prices" in world.topics
    assert condition(outcome, "Degraded").reason == "ScaleInRefused"
    assert "orders" in condition(outcome, "Degraded").message


def test_a_refused_removal_holds_up_no_restart_and_no_other_broker():
    world = a_world([0, 1, 2, 3, 4], brokers=6)
    world.change(brokers=4, config={"queued.max.requests": "9"})
    outcome = world.settle()
    took = world.took()
    assert condition(outcome, "Degraded").reason == "ScaleInRefused"
    assert {f"delete kf-{number}" for number in range(4)} <= {*took}
    assert ("unregister-broker-kf-5" in took, {*world.pods}) == (True, {0, 1, 2, 3, 4})


def test_brokers_that_are_being_filled_are_remembered_while_moves_are_refused_and_while_nobody_hears_brokers():
    world = a_world(*ROWS, rebalance={"maxMovesInFlight": 1})
    world.change(brokers=4)
    world.steps_until(lambda: held(world) == [8, 8, 7, 1])
    world.refuses["move-partitions"] = "not now"
    world.settle()
    world.silent = {0, 1, 2, 3}
    world.settle()
    assert world.cr["status"]["filling"] == [3]
    world.silent, world.refuses = set(), {}
    world.settle()
    assert held(world) == [6, 6, 6, 6]


def test_a_broker_that_is_down_while_it_is_emptied_is_waited_for():
    world = a_world([0, 1, 3], brokers=4)
    world.objects.pop(("Pod", "kf-3"))
    world.change(brokers=3)
    world.settle()
    took = [each for each in verbs(world) if each != "elect-leaders"]
    assert took == ["create kf-3", "move-partitions", "take-throttle-off", "delete kf-3", "unregister-broker-kf-3"]


def test_a_broker_that_can_t_run_is_emptied_and_goes():
    world = a_world([0, 1, 3], brokers=4)
    world.down = {3}
    world.change(brokers=3)
    world.settle()
    took = [each for each in verbs(world) if each != "elect-leaders"]
    assert took == ["move-partitions", "take-throttle-off", "delete kf-3", "unregister-broker-kf-3"]
    assert held(world) == [1, 1, 1]


@pytest.mark.parametrize("passes", range(8))
def test_a_change_of_mind_on_the_way_ends_with_all_in_place(passes):
    world = a_world(*ROWS, rebalance={"maxMovesInFlight": 1})
    world.change(brokers=4)
    for _ in range(passes):
        world.step()
    world.change(brokers=3)
    for _ in range(passes):
        world.step()
    world.change(brokers=4)
    world.settle()
    assert held(world) == [6, 6, 6, 6]
    assert world.in_flight() == {}


def test_moves_to_a_broker_that_is_to_go_after_all_are_cancelled():
    world = a_world(*ROWS, rebalance={"maxMovesInFlight": 2})
    world.slow = {3}
    world.change(brokers=4)
    for _ in range(4):
        world.step()
    assert world.in_flight()
    world.change(brokers=3)
    world.settle()
    assert "cancel-moves" in world.took()
    assert held(world) == [8, 8, 8]


def test_moves_of_others_come_to_their_end_first():
    world = a_world(*ROWS)
    world.topics["orders"]["partitions"][0]["target"] = [2, 1, 0]
    world.slow = {2}
    world.change(brokers=4)
    world.settle()
    assert world.topics["orders"]["partitions"][0]["target"] == [2, 1, 0]


def test_a_topic_that_is_deleted_while_it_moves_is_forgotten():
    world = a_world(*ROWS)
    world.slow = {3}
    world.change(brokers=4)
    for _ in range(3):
        world.step()
    assert world.in_flight()
    del world.topics["orders"]
    world.settle()
    assert world.throttled == {}


def test_the_status_may_be_lost_at_any_time():
    world = a_world(*ROWS, rebalance={"maxMovesInFlight": 1})
    world.change(brokers=4)
    for _ in range(60):
        world.step()
        world.cr["status"] = {"clusterId": world.cr["status"]["clusterId"]}
    assert sum(held(world)) == 24
    assert world.throttled == {}
