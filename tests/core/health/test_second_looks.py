"""When objects are looked at again though nothing happens to them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.health.second_looks import SecondLooks
from kubectl_reconcile.core.objects import ObjectRef


def ref(name):
    return ObjectRef("", "Pod", "shop", str(name))


def test_what_is_due_is_taken_once_the_first_due_first():
    looks = SecondLooks()
    for name, at_s in {"late": 30.0, "soon": 10.0, "next": 20.0}.items():
        looks.note(ref(name), at_s)
    assert looks.next_s() == 10.0
    assert looks.take(9.0) == []
    assert looks.take(20.0) == [ref("soon"), ref("next")]
    assert looks.take(20.0) == []
    assert (looks.next_s(), len(looks)) == (30.0, 1)


def test_the_last_word_counts():
    looks = SecondLooks()
    looks.note(ref("a"), 10.0)
    looks.note(ref("a"), 50.0)
    looks.note(ref("b"), 20.0)
    looks.note(ref("b"), None)
    looks.note(ref("c"), 40.0)
    looks.note(ref("c"), 40.9)  # the same moment, told in whole seconds
    assert looks.next_s() == 40.0
    assert looks.take(100.0) == [ref("c"), ref("a")]
    assert looks.next_s() is None


NOTES = st.lists(st.tuples(st.integers(0, 5), st.none() | st.floats(0, 100)), max_size=40)


@given(notes=NOTES, now_s=st.floats(0, 100))
def test_nothing_is_taken_before_its_time_and_nothing_is_lost(notes, now_s):
    looks, wanted = SecondLooks(), {}
    for name, at_s in notes:
        looks.note(ref(name), at_s)
        if at_s is None:
            wanted.pop(ref(name), None)
        elif ref(name) not in wanted or abs(wanted[ref(name)] - at_s) > 2:
            wanted[ref(name)] = at_s
    assert sorted(looks.take(now_s)) == sorted(each for each, at_s in wanted.items() if at_s <= now_s)
    assert len(looks) == sum(1 for at_s in wanted.values() if at_s > now_s)
