"""Who of several replicas works on what: laws of the hash, and of how a share is handed over."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.daemon.sharding import Group, Member, Share

IDENTITIES = st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, max_size=8, unique=True)
KEYS = [f"Sync.reconcile.dev shop/{number}" for number in range(200)]


def group(*identities, generation=1):
    return Group(generation, tuple(Member(identity, f"uid-{identity}") for identity in identities), identities[0])


@given(IDENTITIES, st.from_regex(r"[A-Z]{1,8}", fullmatch=True))
def test_a_member_that_comes_or_goes_moves_only_its_own_share(identities, newcomer):
    before, after = group(*identities), group(*identities, newcomer)
    for key in KEYS:
        if after.owner(key).identity != newcomer:
            assert after.owner(key) == before.owner(key)


def test_shares_are_about_equal():
    of = [group("a", "b", "c").owner(key).identity for key in KEYS]
    assert all(40 <= of.count(identity) <= 95 for identity in "abc")


@given(IDENTITIES)
def test_a_group_is_read_as_it_was_written(identities):
    written = group(*identities, generation=7)
    assert Group.parse(7, written.leader, written.text()) == written


UNREADABLE = {"nothing": "", "no JSON": "{", "no list": "3", "no pairs": "[1]"}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_a_group_that_can_not_be_read_has_no_members(text):
    assert Group.parse(3, "a", text) == Group(3, (), "a")


def test_nothing_is_held_before_all_have_acknowledged_just_this_generation():
    mine, other = Member("a", "uid-a"), Member("b", "uid-b")
    share = Share()
    share.join(mine)
    share.adopt(group("a", "b"))
    assert not share.see({mine: 1, other: 0})
    assert not share.see({mine: 1, other: 2})
    assert not any(map(share.holds, KEYS))
    assert share.see({mine: 1, other: 1})
    assert [key for key in KEYS if share.holds(key)] == [key for key in KEYS if share.group.owner(key) == mine]


def test_what_stays_ours_is_worked_on_throughout_and_what_is_new_waits():
    mine = Member("a", "uid-a")
    share = Share()
    share.join(mine)
    share.adopt(group("a", "b"))
    share.see(dict.fromkeys(share.group.members, 1))
    before = {key for key in KEYS if share.holds(key)}
    share.adopt(group("a", generation=2))
    assert {key for key in KEYS if share.holds(key)} == before
    share.see({mine: 2})
    assert all(map(share.holds, KEYS))


def test_a_run_that_joins_anew_holds_nothing_by_what_its_former_life_was():
    share = Share()
    share.join(Member("a", "uid-a"))
    share.adopt(group("a"))
    share.see({share.me: 1})
    assert all(map(share.holds, KEYS))
    share.join(Member("a", "another"))
    assert not any(map(share.holds, KEYS))
    assert not share.see({Member("a", "uid-a"): 1})


def test_a_run_that_joins_anew_owes_its_word_even_on_a_group_that_it_went_by_before():
    share, anew = Share(), Member("a", "another")
    share.join(Member("a", "uid-a"))
    group = Group(2, (anew, Member("b", "uid-b")), "b")
    share.adopt(group)  # the leader was faster than the answer that made us a new member
    assert not share.owes(group)
    share.join(anew)
    assert share.owes(group)
    assert not share.acknowledge(Member("a", "uid-a"), group)
    assert share.acknowledge(anew, group)
    assert not share.owes(group)


class World:
    """Replicas that see the group and each other's acknowledgements late, in any order of events.

    Some are expelled and come back as new members, whom the leader may know before they do themselves.
    """

    def __init__(self, dice):
        self.dice, self.shares, self.written, self.acknowledged = dice, {}, Group(), {}
        self.runs, self.expelled, self.coming, self.begun, self.letting_go = 0, [], {}, {}, {}

    def start(self):
        """A Lease is made; its owner hears of that later."""
        self.runs += 1
        taken = {each.identity for each in (*self.shares, *self.coming, *(share.me for share in self.expelled))}
        if self.expelled and self.dice.random() < 0.7:
            share = self.expelled.pop()
            self.coming[Member(share.me.identity, f"uid-{self.runs}")] = share
        elif free := sorted({f"r{number}" for number in range(4)} - taken):
            self.coming[Member(self.dice.choice(free), f"uid-{self.runs}")] = Share()

    def join(self):
        if self.coming:
            me, share = self.coming.popitem()
            share.join(me)
            self.shares[me] = share

    def write(self):
        """The leader takes in who is there; whoever is taken out has a shut fence by then."""
        members = tuple(sorted(member for member in self.shares if self.dice.random() < 0.9))
        self.expelled += [self.shares.pop(gone) for gone in set(self.shares) & set(self.written.members) - set(members)]
        self.lead((*members, *(member for member in self.coming if self.dice.random() < 0.9)))

    def lead(self, members):
        members = tuple(sorted(members))
        self.written = Group(self.written.generation + 1, members, members[0].identity if members else "")

    def follow(self):
        """Begin, perhaps as one who is expelled meanwhile; go by the newest group; acknowledge it once all else is let go."""
        for share in (*self.shares.values(), *self.coming.values(), *self.expelled):
            if id(share) in self.letting_go:
                if self.dice.random() < 0.6:
                    me, group = self.letting_go.pop(id(share))
                    if share.acknowledge(me, group):
                        self.acknowledged[me] = group.generation
            elif id(share) in self.begun:
                if self.dice.random() < 0.6:
                    me = self.begun.pop(id(share))
                    if share.owes(self.written):
                        share.adopt(self.written)
                        self.letting_go[id(share)] = me, self.written
            elif share.owes(self.written) and self.dice.random() < 0.4:
                self.begun[id(share)] = share.me

    def see(self):
        for share in self.shares.values():
            if self.dice.random() < 0.5:
                late = {member: at for member, at in self.acknowledged.items() if self.dice.random() < 0.9}
                share.see(late)

    def holders(self, key):
        return [me for me, share in self.shares.items() if share.holds(key)]

    def live(self):
        """One more thing happens, whatever it is."""
        self.dice.choices([self.start, self.join, self.write, self.follow, self.see], [2, 2, 1, 6, 6])[0]()

    def rest(self):
        """Nobody comes or goes any more, and everybody hears of everything."""
        while self.coming:
            self.join()
        if set(self.written.members) != set(self.shares):
            self.lead(self.shares)
        for _ in range(60):
            self.follow()
        for share in self.shares.values():
            share.see(self.acknowledged)


@given(st.integers(min_value=0, max_value=10**9))
def test_never_do_two_hold_the_same_whatever_they_see_late(seed):
    world = World(random.Random(seed))  # noqa: S311 - no secret
    for _ in range(120):
        world.live()
        for key in KEYS[:12]:
            assert len(world.holders(key)) <= 1, f"{key} is held by {world.holders(key)}"


@given(st.integers(min_value=0, max_value=10**9))
def test_once_nobody_comes_or_goes_any_more_everything_is_held(seed):
    world = World(random.Random(seed))  # noqa: S311 - no secret
    for _ in range(60):
        world.live()
    world.rest()
    assert all(len(world.holders(key)) == min(len(world.shares), 1) for key in KEYS[:12])


def test_an_empty_group_owns_nothing():
    assert Group().owner("anything") is None
    share = Share()
    share.join(Member("a", "uid-a"))
    share.adopt(Group(1))
    assert not share.see({})
    assert not any(map(share.holds, KEYS))


def test_who_owns_what_is_the_same_in_every_version_of_the_program():
    """Replicas of two versions run side by side during an upgrade, and must not disagree."""
    owners = "".join(group("a", "b", "c").owner(key).identity for key in KEYS[:24])
    assert owners == "cacacbbbcacabcbbbcaabbba"


def test_an_acknowledgement_counts_only_of_who_is_a_member_of_the_group_that_is_gone_by():
    mine, share = Member("a", "uid-a"), Share()
    share.join(mine)
    share.adopt(group("a", "b"))
    assert not share.acknowledge(mine, group("a", "b", generation=2)), "another group came"
    assert not share.acknowledge(Member("b", "uid-b"), group("a", "b")), "that is another member"
    assert share.acknowledged == 0
    assert share.acknowledge(mine, group("a", "b"))
    assert share.acknowledged == 1
    share.adopt(group("b", generation=2))
    assert not share.acknowledge(mine, group("b", generation=2)), "it isn't a member of that"
    assert share.acknowledged == 1


def test_a_member_that_joins_has_acknowledged_nothing_and_is_not_settled():
    share = Share()
    share.join(Member("a", "uid-a"))
    share.adopt(group("a"))
    share.acknowledge(share.me, share.group)
    assert share.see({share.me: 1})
    share.join(Member("a", "another"))
    assert (share.acknowledged, share.is_settled) == (0, False)


def test_a_group_is_settled_once():
    share = Share()
    share.join(Member("a", "uid-a"))
    share.adopt(group("a"))
    assert share.see({share.me: 1})
    assert share.is_settled
    assert not share.see({share.me: 1}), "that it is settled was news before"
    share.adopt(group("a", generation=2))
    assert not share.is_settled
