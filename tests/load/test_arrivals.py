"""Load: requests come when they are due, and each counts from then on; held against a queue computed by hand, on a clock that leaps."""

import asyncio
import heapq
import selectors

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile.load.arrivals import LoadPlan, carried_out
from kubectl_reconcile.load.histogram import LatencyHistogram

NARROW = 1 + 1 / 128


class Leaping(selectors.DefaultSelector):
    """Nothing is waited for: the clock leaps to what comes next."""

    now = 0.0

    def select(self, timeout=None):
        assert timeout is not None, "nothing would ever come"
        self.now += timeout
        return super().select(0)


class SimulatedLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._leaping = Leaping()
        super().__init__(self._leaping)

    def time(self):
        return self._leaping.now


def simulated(plan, services, outcome=lambda number: 200):
    """What becomes of *plan* at a server that takes so long for each request."""
    numbers = iter(range(len(services)))

    async def send():
        number = next(numbers)
        await asyncio.sleep(services[number])  # what an answer takes
        found = outcome(number)
        if isinstance(found, Exception):
            raise found
        return found

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(carried_out(plan, send))


def queued(plan, services):
    """The same by the recursion of Kiefer and Wolfowitz: each request begins when it is due, or when the first connection is free."""
    free, began, took = [0.0] * plan.connections, iter(services), []
    for number in range(plan.count):
        due, first = number / plan.rate, heapq.heappop(free)
        if first >= plan.seconds + plan.timeout_s:
            heapq.heappush(free, first)
            took.append(first - due)
            continue
        end = max(due, first) + min(next(began), plan.timeout_s)
        heapq.heappush(free, end)
        took.append(end - due)
    return took


def exact(took, part):
    return sorted(took)[max(1, -int(-part * len(took) // 1)) - 1]


@settings(max_examples=60, deadline=None)
@given(
    rate=st.sampled_from([3, 10, 40]),
    connections=st.integers(1, 5),
    timeout_s=st.sampled_from([0.7, 30.1]),
    services=st.lists(st.sampled_from([0.01, 0.05, 0.13, 0.4, 1.1, 5.3]), min_size=80, max_size=80),
)
def test_requests_take_as_long_as_in_a_queue_with_so_many_servers(rate, connections, timeout_s, services):
    plan = LoadPlan(rate, 80 / rate, connections, timeout_s)
    result, model = simulated(plan, services), queued(plan, services)
    assert result.took.count == plan.count == len(model)
    assert result.took.sum_s == pytest.approx(sum(model), abs=1e-3)
    assert result.took.longest_s == pytest.approx(max(model), abs=1e-5)
    for part in (0.5, 0.9, 0.99):
        true = exact(model, part)
        assert true - 1e-5 <= result.took.quantile(part) <= true * NARROW + 1e-5
    assert result.late.longest_s < 1e-6, "on this clock nothing is ever late"


def test_a_stall_counts_for_all_that_had_to_wait_for_it():
    plan = LoadPlan(rate=100, seconds=10, connections=1, timeout_s=30)
    stalled = [0.001] * 500 + [2.0] + [0.001] * 499
    told = simulated(plan, stalled).tree()
    assert (told["requests"], told["errors"]) == (1000, 0)
    assert told["p50_ms"] < 2, "most are answered at once"
    assert told["p90_ms"] > 1000, "timed from when they were sent, all but one took a millisecond"
    assert told["max_ms"] == pytest.approx(2000)


def test_what_fails_or_is_never_sent_counts_by_how_long_it_was_waited_for():
    plan = LoadPlan(rate=10, seconds=2, connections=1, timeout_s=1)
    told = simulated(plan, [60.0] * 20).tree()
    assert (told["requests"], told["errors"]) == (20, 20)
    assert told["faults"] == {"NotSent": 17, "Timeout": 3}, "three are given up, one after the other"
    assert told["p50_ms"] > 1000


def test_answers_that_are_errors_count_as_errors_and_names_are_few():
    plan = LoadPlan(rate=10, seconds=4, connections=2, timeout_s=1)
    told = simulated(plan, [0.01] * 40, lambda number: 200 + number * 10 if number < 39 else OSError("gone")).tree()
    assert (told["errors"], told["faults"]) == (20, {"OSError": 1})
    assert told["statuses"]["others"] == 39 - 12


@given(st.lists(st.floats(0, 1e6), min_size=1), st.sampled_from([0.0, 0.5, 0.99, 1.0]))
def test_a_quantile_is_never_too_small_and_too_large_by_less_than_a_hundredth(durations, part):
    counted = LatencyHistogram()
    for each in durations:
        counted.add(each)
    true = exact(durations, part)
    assert true - 1e-6 <= counted.quantile(part) <= true * NARROW + 1e-6


def test_of_nothing_there_is_no_quantile():
    assert (LatencyHistogram().quantile(0.99), LatencyHistogram().mean_s) == (0.0, 0.0)


def test_memory_does_not_grow_with_what_is_counted():
    counted = LatencyHistogram()
    before = len(counted._counts)
    for each in (-1.0, 0.0, 1e-6, 1e30):
        counted.add(each)
    assert (len(counted._counts), counted.count) == (before, 4)
