"""A controller that has lost its volume is let in again among those that vote, and nobody who votes restarts or is put out before."""

import asyncio
import struct
from uuid import UUID

import pytest

from kubectl_reconcile_operators.kafka.session import KafkaRefusedError, KafkaSession
from tests.operators.kafka.world import World, condition

NEW_VOLUME = ["create kf-1", "remove-voter-kf-1", "add-voter-kf-1"]


@pytest.fixture
def world():
    found = World(topics=[{"name": "orders", "partitions": 2}])
    found.settle()
    found.took()
    return found


def but_elections(world):
    return [each for each in world.took() if each != "elect-leaders"]


def test_a_controller_that_lost_its_volume_is_let_in_again(world):
    before = world.voters[1]
    world.lose_volume(1)
    outcome = world.settle()
    assert but_elections(world) == NEW_VOLUME
    assert world.voters.keys() == {0, 1, 2}
    assert world.voters[1] == world.disks[1]["id"] != before
    assert condition(outcome, "Ready").status == "True"


def test_it_is_waited_for_until_it_has_all_of_the_metadata(world):
    world.lose_volume(1)
    world.lagging.add(1)
    world.settle()
    assert but_elections(world) == NEW_VOLUME[:1]
    world.lagging.clear()
    world.settle()
    assert but_elections(world) == NEW_VOLUME[1:]


def test_it_goes_on_where_it_was_put_out_and_not_let_in_yet(world):
    world.lose_volume(1)
    while "remove-voter-kf-1" not in world.taken:
        world.step()
    world.took()
    assert world.voters.keys() == {0, 2}
    world.settle()
    assert but_elections(world) == NEW_VOLUME[2:]


def test_nobody_is_put_out_while_another_controller_is_away(world):
    world.lose_volume(1)
    world.silent.add(2)
    world.settle()
    assert but_elections(world) == NEW_VOLUME[:1]


def test_no_voter_restarts_while_another_controller_only_observes(world):
    world.lagging.add(1)
    world.lose_volume(1)
    world.settle()
    world.took()
    world.change(config={"queued.max.requests": "9"})
    outcome = world.settle()
    assert but_elections(world) == ["delete kf-1", "create kf-1"]
    assert "no majority" in condition(outcome, "Rolling").message
    world.lagging.clear()
    world.settle()
    assert {"delete kf-0", "delete kf-2"} <= {*world.took()}


def test_a_claim_that_lost_what_it_held_is_not_formatted_as_one_of_the_first_again(world):
    world.objects.pop(("Pod", "kf-1"))
    del world.disks[1]
    world.settle()
    assert but_elections(world) == NEW_VOLUME
    assert world.disks[1]["begins"] == "joins"


class Stream:
    """A connection that keeps what is sent, and answers with a code."""

    def __init__(self, code):
        self.sent, self.answer = b"", struct.pack(">iibih", 11, 1, 0, 0, code)

    async def write(self, content):
        self.sent += content

    async def read(self, _most):
        answer, self.answer = self.answer, b""
        return answer


DIRECTORY = "00010203-0405-0607-0809-0a0b0c0d0e0f"
HEAD = b"\0\0\0\0\0\x01\0\x11kubectl-reconcile\0"


def test_a_voter_is_put_out_in_kafkas_own_words():
    stream = Stream(127)
    assert asyncio.run(KafkaSession(stream).remove_voter("c", 1, DIRECTORY)) == 127
    body = b"\0\x51" + HEAD + b"\x02c" + b"\0\0\0\x01" + UUID(DIRECTORY).bytes + b"\0"
    assert stream.sent == struct.pack(">i", len(body)) + body


def test_a_voter_is_let_in_in_kafkas_own_words():
    stream = Stream(0)
    host = "h" * 200
    assert asyncio.run(KafkaSession(stream).add_voter("c", 1, DIRECTORY, ("CONTROLLER", host, 9093))) == 0
    listener = b"\x02\x0bCONTROLLER\xc9\x01" + host.encode() + struct.pack(">H", 9093) + b"\0"
    timeout = struct.pack(">i", 20_000)
    body = b"\0\x50" + HEAD + b"\x02c" + timeout + b"\0\0\0\x01" + UUID(DIRECTORY).bytes + listener + b"\0"
    assert stream.sent == struct.pack(">i", len(body)) + body


def test_a_name_without_end_is_not_sent():
    with pytest.raises(KafkaRefusedError, match="too long"):
        asyncio.run(KafkaSession(Stream(0)).remove_voter("c" * 400, 1, DIRECTORY))
