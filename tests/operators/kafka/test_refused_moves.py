"""A move that the cluster refuses leaves no throttle behind; one that is under way keeps it. A broker that answers in Kafka's own bytes stands for the cluster."""

import asyncio

import pytest

from kubectl_reconcile.core.module.outcome import Action
from kubectl_reconcile_operators.kafka import driver
from kubectl_reconcile_operators.kafka.session import KafkaRefusedError
from tests.operators.kafka.broker import Broker, some
from tests.operators.kafka.world import a_cr

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # said of how kafka-python is imported
MOVE = Action(
    "move-partitions-1",
    "move-partitions",
    "move",
    {"moves": [{"topic": "orders", "partition": 0, "replicas": [1, 0]}], "throttle": 5000, "brokers": [0]},
)


class Refusing(Broker):
    """A broker that refuses moves, and says of *flying* partitions of topic orders that they are under way."""

    def __init__(self, flying=()):
        super().__init__()
        moving = [some(partition_index=at, replicas=[1, 0], adding_replicas=[1], removing_replicas=[]) for at in flying]
        refusal = some(partition_index=0, error_code=39, error_message="its directories are cordoned")
        self.says |= {
            "IncrementalAlterConfigs": lambda: {"responses": []},
            "AlterPartitionReassignments": lambda: {"error_code": 0, "error_message": None, "responses": [some(name="orders", partitions=[refusal])]},
            "ListPartitionReassignments": lambda: {"error_code": 0, "error_message": None, "topics": [some(name="orders", partitions=moving)] if moving else []},
        }  # fmt: skip

    def act(self):
        asyncio.run(driver.act(a_cr(), MOVE, self))


def test_the_throttle_of_a_move_that_is_refused_goes_at_once():
    broker = Refusing()
    with pytest.raises(KafkaRefusedError, match="orders-0: its directories are cordoned"):
        broker.act()
    set_, reset = ["IncrementalAlterConfigs"] * 2, ["IncrementalAlterConfigs"] * 2
    assert broker.asked == [*set_, "AlterPartitionReassignments", "ListPartitionReassignments", *reset]


def test_the_throttle_of_a_move_that_is_refused_stays_while_others_are_under_way():
    broker = Refusing(flying=[1])
    with pytest.raises(KafkaRefusedError, match="cordoned"):
        broker.act()
    assert broker.asked[-2:] == ["AlterPartitionReassignments", "ListPartitionReassignments"]


def test_a_broker_that_falls_silent_after_it_refused_is_told_by_what_it_refused():
    broker = Refusing()
    broker.spoilt["ListPartitionReassignments"] = lambda _said: b""
    with pytest.raises(KafkaRefusedError, match="cordoned"):
        broker.act()
