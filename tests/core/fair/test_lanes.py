"""Who may ask a Git server next: bounds, turns, and nobody in the way of others, whatever happens in whatever order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubectl_reconcile.core.fair.lanes import (
    THIS_MACHINE,
    BreakOff,
    Job,
    Lane,
    LaneLimits,
    Lanes,
    Start,
    host_of,
    shared_out,
)

HOSTS = {
    "https": ("https://git.example.com/team/shop.git", "https://git.example.com:443"),
    "another case and its own port": ("https://GIT.example.com:443/other", "https://git.example.com:443"),
    "another port": ("http://git.example.com:8080/shop", "http://git.example.com:8080"),
    "ssh": ("ssh://git@git.example.com/shop", "ssh://git.example.com:22"),
    "ssh without a scheme": ("git@git.example.com:shop", "ssh://git.example.com:22"),
    "a folder": ("file:///srv/git/shop", THIS_MACHINE),
}


@pytest.mark.parametrize(("url", "host"), HOSTS.values(), ids=HOSTS)
def test_the_host_is_who_answers(url, host):
    assert host_of(url) == host


@given(jobs=st.integers(1, 500))
def test_every_host_and_tenant_has_a_part_of_both_lanes_and_none_has_all_of_a_lane_that_has_several(jobs):
    for limits in shared_out(jobs):
        assert 1 <= limits.per_host <= limits.slots
        assert 1 <= limits.per_tenant <= limits.slots
        if limits.slots > 1:
            assert max(limits.per_host, limits.per_tenant) < limits.slots
    assert sum(limits.slots for limits in shared_out(jobs)) == max(jobs, 2)


def decided(lanes):
    """Return all that follows now."""
    made = []
    while (decision := lanes.next()) is not None:
        made.append(decision)
        assert len(made) < 1000, "it never ends"
    return made


def started(lanes):
    return [each.job.number for each in decided(lanes) if isinstance(each, Start)]


QUICK, SLOW = LaneLimits(4, 2, 3), LaneLimits(2, 1, 2)


def job(number, host="a", tenant="x", who=None, **rest):
    return Job(number, number if who is None else who, host, tenant, **rest)


def test_a_host_has_its_part_of_the_lane_and_no_more():
    lanes = Lanes(QUICK, SLOW)
    for number in range(4):
        lanes.add(job(number, tenant=f"t{number}"))
    assert started(lanes) == [0, 1]
    lanes.add(job(9, host="b"))
    assert started(lanes) == [9]


def test_a_tenant_has_its_part_of_the_lane_whatever_hosts_it_names():
    lanes = Lanes(QUICK, SLOW)
    for number in range(9):
        lanes.add(job(number, host=f"h{number}"))
    assert started(lanes) == [0, 1, 2]
    lanes.add(job(9, host="z", tenant="y"))
    assert started(lanes) == [9]


def test_hosts_take_turns_however_many_jobs_one_has():
    lanes = Lanes(LaneLimits(1, 1, 1), SLOW)
    for number in range(5):
        lanes.add(job(number))
    for number in range(5, 8):
        lanes.add(job(number, host="b"))
    order, running = [], started(lanes)
    while running:
        [number] = running
        order.append(number)
        lanes.ended(job(number, host="a" if number < 5 else "b"))
        running = started(lanes)
    assert order == [0, 5, 1, 6, 2, 7, 3, 4]


def test_tenants_of_one_host_take_turns():
    lanes = Lanes(LaneLimits(1, 1, 1), SLOW)
    for number in range(4):
        lanes.add(job(number))
    lanes.add(job(4, tenant="y"))
    assert started(lanes) == [0]
    lanes.ended(job(0))
    assert started(lanes) == [4]


def test_an_urgent_job_passes_the_others_of_its_tenant():
    lanes = Lanes(LaneLimits(1, 1, 1), SLOW)
    for number in range(4):
        lanes.add(job(number))
    lanes.add(job(4, is_urgent=True))
    assert started(lanes) == [4]


def test_a_job_that_outstays_moves_aside_and_is_let_go_on():
    lanes = Lanes(QUICK, SLOW)
    lanes.add(job(0))
    decided(lanes)
    lanes.outstayed(job(0))
    assert decided(lanes) == []
    assert (lanes.running(Lane.QUICK), lanes.running(Lane.SLOW)) == (0, 1)


def test_a_job_that_outstays_where_there_is_no_room_is_broken_off_only_if_it_is_in_the_way():
    lanes = Lanes(QUICK, SLOW)
    lanes.add(job(0))
    lanes.add(job(1))
    decided(lanes)
    lanes.outstayed(job(0))
    lanes.outstayed(job(1))
    assert decided(lanes) == []  # the slow lane has room for one of this host; nobody needs the other's slot
    lanes.add(job(2, host="b"))
    assert started(lanes) == [2]
    lanes.add(job(3))
    lanes.add(job(4))
    assert decided(lanes) == [Start(job(3), Lane.QUICK), BreakOff(job(1)), Start(job(4), Lane.QUICK)]
    lanes.add(job(1))
    assert (decided(lanes), lanes.waiting(Lane.SLOW)) == ([], 1)
    lanes.ended(job(0))
    assert decided(lanes) == [Start(job(1), Lane.SLOW)]


def test_a_job_that_was_broken_off_waits_in_the_slow_lane_though_another_of_theirs_was_quick():
    lanes = Lanes(LaneLimits(3, 3, 3), LaneLimits(1, 1, 1))
    lanes.add(job(0, who="patient"))
    decided(lanes)
    lanes.outstayed(job(0, who="patient"))
    decided(lanes)
    for number in (1, 2):
        lanes.add(job(number, who="shop"))
    lanes.add(job(3, who="another"))
    decided(lanes)
    for late in (job(1, who="shop"), job(3, who="another")):
        lanes.outstayed(late)
    lanes.ended(job(2, who="shop"))
    for number in (4, 5):
        lanes.add(job(number))
    assert decided(lanes) == [Start(job(4), Lane.QUICK), BreakOff(job(1, who="shop")), Start(job(5), Lane.QUICK)]
    lanes.ended(job(1, who="shop"))
    lanes.add(job(1, who="shop"))
    assert (decided(lanes), lanes.waiting(Lane.SLOW)) == ([], 1)


def test_who_took_long_begins_in_the_slow_lane_until_it_is_quick_again():
    lanes = Lanes(QUICK, SLOW)
    lanes.add(job(0, who="shop"))
    decided(lanes)
    lanes.outstayed(job(0, who="shop"))
    decided(lanes)
    lanes.ended(job(0, who="shop"))
    for number, lane in ((1, Lane.SLOW), (2, Lane.QUICK)):
        lanes.add(job(number, who="shop"))
        assert decided(lanes) == [Start(job(number, who="shop"), lane)]
        lanes.ended(job(number, who="shop"))
    lanes.outstayed(job(3, who="shop"))
    lanes.forget("shop")
    lanes.add(job(4, who="shop"))
    assert decided(lanes) == [Start(job(4, who="shop"), Lane.QUICK)]


def test_a_job_that_is_withdrawn_never_begins():
    lanes = Lanes(LaneLimits(1, 1, 1), SLOW)
    for number in range(3):
        lanes.add(job(number))
    assert started(lanes) == [0]
    lanes.withdraw(job(1))
    lanes.ended(job(0))
    assert started(lanes) == [2]
    lanes.ended(job(2))
    assert (started(lanes), lanes.waiting(Lane.QUICK)) == ([], 0)


class AnyHistory(RuleBasedStateMachine):
    """Jobs come, run, outstay, end and are withdrawn, in any order; the laws hold after each of it."""

    @initialize(slots=st.integers(1, 6), slow=st.integers(1, 3), host=st.integers(1, 3), tenant=st.integers(1, 4))
    def begin(self, slots, slow, host, tenant):
        self.limits = {
            Lane.QUICK: LaneLimits(slots, min(host, slots), min(tenant, slots)),
            Lane.SLOW: LaneLimits(slow, 1, min(tenant, slow)),
        }
        self.lanes = Lanes(self.limits[Lane.QUICK], self.limits[Lane.SLOW])
        self.count = 0
        self.waiting, self.running, self.late = {}, {}, set()
        self.passed = {}  # of each host that waits: who began since, while it could have

    def settle(self):
        while decisions := decided(self.lanes):
            self.follow(decisions)

    def follow(self, decisions):
        for decision in decisions:
            job = decision.job
            if isinstance(decision, BreakOff):
                assert self.running.pop(job.number) == job
                assert job.number in self.late, "who is within its patience is never broken off"
                self.late.discard(job.number)
                self.lanes.ended(job)
                self.lanes.add(job)
                self.waiting[job.number] = job
            else:
                assert self.waiting.pop(job.number) == job
                self.running[job.number] = job

    @rule(host=st.sampled_from("abcd"), tenant=st.sampled_from("xyz"), who=st.integers(0, 8), is_urgent=st.booleans())
    def comes(self, host, tenant, who, is_urgent):
        self.count += 1
        self.waiting[self.count] = Job(self.count, who, host, tenant, is_urgent)
        self.lanes.add(self.waiting[self.count])
        self.settle()

    def any_of(self, jobs, data):
        return jobs[data.draw(st.sampled_from(sorted(jobs)))]

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def ends(self, data):
        job = self.any_of(self.running, data)
        del self.running[job.number]
        self.late.discard(job.number)
        self.lanes.ended(job)
        self.settle()

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def outstays(self, data):
        job = self.any_of(self.running, data)
        self.late.add(job.number)
        self.lanes.outstayed(job)
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def is_withdrawn(self, data):
        job = self.any_of(self.waiting, data)
        del self.waiting[job.number]
        self.lanes.withdraw(job)
        self.settle()

    @invariant()
    def nobody_has_more_than_its_part(self):
        both = [self.limits[lane] for lane in Lane]
        assert len(self.running) <= sum(each.slots for each in both)
        hosts, tenants = Counter(), Counter()
        for each in self.running.values():
            hosts[each.host] += 1
            tenants[each.tenant] += 1
        assert all(count <= sum(each.per_host for each in both) for count in hosts.values())
        assert all(count <= sum(each.per_tenant for each in both) for count in tenants.values())
        for lane, limits in self.limits.items():
            assert self.lanes.running(lane) <= limits.slots

    @invariant()
    def all_is_accounted_for(self):
        assert sum(map(self.lanes.running, Lane)) == len(self.running)
        assert sum(map(self.lanes.waiting, Lane)) == len(self.waiting)

    @invariant()
    def who_waits_in_the_quick_lane_waits_for_jobs_within_their_patience(self):
        quick = self.lanes._slots[Lane.QUICK]
        late = [quick.running[number] for number in self.late if number in quick.running]
        for group in quick.groups():
            assert not quick.has_room(*group)
            for each in late:
                assert not quick.has_room(*group, without=each)

    @invariant()
    def nobody_waits_in_the_slow_lane_while_there_is_room(self):
        slow = self.lanes._slots[Lane.SLOW]
        assert not any(slow.has_room(*group) for group in slow.groups())


AnyHistory.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyHistory = AnyHistory.TestCase


@settings(deadline=None)
@given(
    crowd=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=8),
    slots=st.integers(1, 4),
)
def test_nobody_starves_however_many_others_come(crowd, slots):
    """As many jobs come as end, for ever, urgent ones among them; who came before is through after a round of the hosts and tenants."""
    lanes = Lanes(LaneLimits(slots, slots, slots), SLOW)
    numbers = iter(range(10_000))
    jobs = {}

    def come(host, tenant, is_urgent):
        each = Job(next(numbers), object(), host, tenant, is_urgent)
        jobs[each.number] = each
        lanes.add(each)

    for _ in range(5):
        for each in crowd:
            come(*each)
    running = started(lanes)
    mine = Job(next(numbers), "mine", "d", "w")
    lanes.add(mine)
    turns = 0
    while True:
        lanes.ended(jobs[running.pop(0)])
        come(*crowd[turns % len(crowd)])
        running += started(lanes)
        turns += 1
        if mine.number in running:
            break
        assert turns <= len({host for host, *_ in crowd}) + 1


def test_an_urgent_job_passes_only_so_many():
    lanes = Lanes(LaneLimits(1, 1, 1), SLOW)
    lanes.add(job(0))
    decided(lanes)
    lanes.add(job(1))
    last, number = job(0), 1
    while number < 5000:
        number += 1
        lanes.add(job(number, is_urgent=True))
        lanes.ended(last)
        [now] = started(lanes)
        if now == 1:
            return
        last = job(now, is_urgent=True)
    pytest.fail("it never came to its turn")
