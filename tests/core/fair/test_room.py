"""Room that is set aside before it is taken up: never more than there is, and nobody waits without end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.fair.room import PATIENCE_S, Room

TOTAL = 768
SIZES = st.sampled_from([48, 160, 512, 640])


def granted(room, now_s=0.0):
    count = 0
    while room.grant(now_s):
        count += 1
    return count


@given(st.lists(st.tuples(SIZES, st.booleans()), max_size=40))
def test_no_more_is_held_than_there_is_and_all_are_granted_in_the_end(steps):
    room, wishes = Room(), []
    for now_s, (size, ends) in enumerate(steps):
        wishes.append(room.add(size, TOTAL, now_s))
        granted(room, now_s)
        assert room.held == sum(each.size for each in wishes if each.is_granted) <= TOTAL
        if ends and (first := next((each for each in wishes if each.is_granted), None)):
            wishes.remove(first)
            room.give_back(first.size)
    while wishes:
        granted(room, len(steps))
        [first, *_] = [each for each in wishes if each.is_granted]
        wishes.remove(first)
        room.give_back(first.size)
    assert room.held == 0


def test_beside_a_large_one_that_waits_only_those_begin_that_leave_room_for_it():
    room = Room()
    held = [room.add(160, TOTAL, 0.0), room.add(160, TOTAL, 0.0)]
    large, small, other = room.add(640, TOTAL, 0.0), room.add(48, TOTAL, 0.0), room.add(160, TOTAL, 0.0)
    assert (granted(room), large.is_granted, small.is_granted) == (2, False, False)
    for each in held:
        room.give_back(each.size)
    assert granted(room) == 2
    assert (large.is_granted, small.is_granted, other.is_granted) == (True, True, False)


def test_a_large_one_that_others_leave_no_room_holds_up_nobody_for_long():
    room = Room()
    room.add(160, TOTAL, 0.0)
    assert granted(room) == 1
    large, small = room.add(640, TOTAL, 0.0), room.add(160, TOTAL, 0.0)
    assert granted(room, PATIENCE_S - 1) == 0
    assert granted(room, PATIENCE_S) == 1
    assert (large.is_granted, small.is_granted) == (False, True)


def test_who_wants_more_than_there_is_goes_alone():
    room = Room()
    huge, small = room.add(2 * TOTAL, TOTAL, 0.0), room.add(48, TOTAL, 0.0)
    assert granted(room) == 1
    room.give_back(huge.size)
    assert (granted(room), small.is_granted) == (1, True)


def test_who_is_gone_leaves_nothing_behind():
    room = Room()
    first, second = room.add(640, TOTAL, 0.0), room.add(640, TOTAL, 0.0)
    assert granted(room) == 1
    room.withdraw(second)
    room.withdraw(first)
    assert (room.held, granted(room)) == (0, 0)
