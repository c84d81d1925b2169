"""Which tests a free worker gets next: plain values."""

from hypothesis import given
from hypothesis import strategies as st

from tests.running.dealing import HANDFUL_S, Dealer, Dealt, units

CORES = 2


def computing(index, seconds=1.0, file="core.py", **other):
    return Dealt(index, file, seconds, **other)


def waiting(index, seconds=1.0, file="cluster.py", **other):
    return Dealt(index, file, seconds, waits=True, needs=frozenset({"sandbox"}), **other)


def indices(unit):
    return unit and [test.index for test in unit.tests]


def dealt(dealer, others=()):
    """Everything that a single worker gets, in turn, beside *others*."""
    found = []
    while unit := dealer.next_for(others):
        found.append(indices(unit))
    return found


def test_what_takes_longest_begins_first():
    dealer = Dealer(units([computing(0, 3), computing(1, 90), computing(2, 8)]), CORES)
    assert dealt(dealer) == [[1], [2], [0]]


def test_short_tests_of_a_file_are_dealt_by_the_handful():
    short = [computing(index, HANDFUL_S / 4) for index in range(6)]
    assert [indices(unit) for unit in units(short)] == [[0, 1, 2, 3], [4, 5]]


def test_short_tests_of_two_files_are_not_mixed_unless_all_are():
    short = [computing(0, 0.1, "a.py"), computing(1, 0.1, "b.py"), computing(2, 0.1, "a.py")]
    assert [indices(unit) for unit in units(short)] == [[0, 2], [1]]
    assert [indices(unit) for unit in units(short, mixed=True)] == [[0, 1, 2]]


def test_a_long_test_is_dealt_alone_and_nothing_stands_behind_it():
    tests = [computing(0, 0.1), computing(1, 60), computing(2, 0.1)]
    assert [indices(unit) for unit in units(tests)] == [[1], [0], [2]]


def test_tests_that_share_a_scenario_stay_together_in_their_order():
    tests = [waiting(0, 30, together="db"), waiting(1, 40), waiting(2, 30, together="db")]
    assert [indices(unit) for unit in units(tests)] == [[0, 2], [1]]


def test_in_mixed_order_units_come_as_their_first_tests_do():
    tests = [waiting(0, 3, together="db"), waiting(1, 40), waiting(2, 3, together="db"), computing(3, 90)]
    assert [indices(unit) for unit in units(tests, mixed=True)] == [[0, 2], [1], [3]]


def test_what_needs_a_program_waits_until_it_is_built():
    dealer = Dealer(units([waiting(0, 90), computing(1)]), CORES, {"sandbox"})
    assert dealt(dealer) == [[1]]
    dealer.built("sandbox")
    assert dealt(dealer) == [[0]]


def test_no_more_compute_than_there_are_cores_while_a_program_is_built():
    dealer = Dealer(units([waiting(0), *(computing(index, 5) for index in range(1, 9))]), CORES, {"sandbox"})
    others = [dealer.next_for([]), dealer.next_for([])]
    assert all(others)
    assert dealer.next_for(others) is None


def test_what_waits_for_another_program_may_begin():
    other = Dealt(1, "render.py", 3, waits=True, needs=frozenset({"render"}))
    dealer = Dealer(units([waiting(0), other]), CORES, {"sandbox"})
    assert dealt(dealer) == [[1]]


def test_those_who_compute_are_as_many_as_the_cores_while_others_could_wait():
    dealer = Dealer(units([computing(index, 5) for index in range(9)] + [waiting(9, 5), waiting(10, 5)]), CORES)
    busy = units([computing(20, 5), computing(21, 5)])
    assert dealer.next_for(busy).waits
    assert dealer.next_for(busy).waits
    assert not dealer.next_for(busy).waits, "everybody helps at the end"


def test_both_kinds_come_to_their_end_together():
    tests = [computing(index, 2) for index in range(10)] + [waiting(index, 6) for index in range(10, 20)]
    dealer = Dealer(units(tests), CORES)
    kinds = [dealer.next_for([]).waits for _ in range(20)]
    for dealt_so_far in range(2, 20, 2):
        assert sum(kinds[:dealt_so_far]) == dealt_so_far / 2


def test_after_a_build_what_is_left_is_dealt_in_step():
    """Else what had to wait would be dealt first, until it had caught up, and nothing would be left to compute beside."""
    tests = [computing(index, 2) for index in range(10)] + [waiting(index, 2) for index in range(10, 15)]
    dealer = Dealer(units(tests), CORES, {"sandbox"})
    for _ in range(5):
        assert not dealer.next_for([]).waits
    dealer.built("sandbox")
    kinds = [dealer.next_for([]).waits for _ in range(10)]
    assert sum(kinds[:4]) == 2


def test_what_needs_a_program_that_cannot_be_built_is_dealt_to_nobody():
    dealer = Dealer(units([waiting(0), waiting(1), computing(2)]), CORES, {"sandbox"})
    assert [test.index for test in dealer.dropped("sandbox")] == [0, 1]
    assert dealt(dealer) == [[2]]


def test_what_somebody_left_behind_is_next():
    dealer = Dealer(units([computing(0, 90)]), CORES)
    dealer.put_back([computing(7), computing(8)])
    assert dealt(dealer) == [[7, 8], [0]]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 90), st.booleans(), st.sampled_from(["", "", "db"]))),
    st.integers(1, 8),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_each_test_is_dealt_once_to_whatever_workers(drawn, workers, mixed, dice):
    tests = [
        Dealt(index, file, seconds, waits, frozenset({"sandbox"} if waits else ()), together and f"{file}{together}")
        for index, (file, seconds, waits, together) in enumerate(drawn)
    ]
    dealer = Dealer(units(tests, mixed=mixed), CORES, {"sandbox"})
    busy, found = [], []
    for step in range(10 * len(tests) + 10):
        if step == len(tests):
            dealer.built("sandbox")
        if len(busy) < workers and (unit := dealer.next_for(busy)):
            busy.append(unit)
            found += [test.index for test in unit.tests]
        elif busy:
            busy.pop(dice.randrange(len(busy)))
    assert sorted(found) == list(range(len(tests)))
    assert not dealer.left
