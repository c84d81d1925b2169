"""Which of several replicas works on what, so that it is never two.

Vocabulary: a *member* is one run of a replica, known by its identity and the uid of its Lease; a *group* is a list of members
with a *generation*, a number that grows with every change and that a leader writes in one place. A member *acknowledges* a
generation once it has stopped working on whatever isn't its own by then. A group is *settled* when all of its members have
acknowledged just this generation. A member is *silent* when its Lease hasn't changed for longer than that may be used, and it
*owes* its word while it has not acknowledged the group that names it.

Rules:

- The owner of an item is the member with the highest hash of both (rendezvous hashing): a member that comes
  takes its share from all, one that goes leaves its share to all, and nothing else moves.
- What was a member's own in the group that was settled last, and in every one since, stays its own throughout. Anything else is
  its own only once the group is settled: whoever had it before has let go.
- A run that was expelled never counts again; its successor has another uid, and says whom it replaces.
- Generations are told apart by the Lease that they stand in (its uid): where somebody deletes that, they start over, and no
  word that was given on the old ones counts.
- A leader who is gone is replaced by the first of those who were members with it, since they have watched it for long enough;
  whoever comes next in line goes ahead a second later, should the first not.
- Who renews its Lease but doesn't acknowledge is expelled too, for nobody settles without it. Its share moves only when its
  fence is shut for certain: when it says so by a new Lease, or when the time of the old one is over.
- A Lease that is gone and that we didn't delete in the version that we saw may have been renewed, unseen, until just before: its
  time is counted from when we find it gone. Not so where an unbroken watch tells that it was deleted, which told all renewals before.
- A group begins without members, and nobody writes any into one without before they have listed the Leases: somebody may hold a
  share by a group that was deleted before we saw it, and whose Leases our watch never told. Nobody lets go for a group without members.

Pure: what is seen of others, and when, comes in; who owns what and what is to be done come out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, Self

from msgspec import Struct, field

VALID_S = 10.0
"""How long after it was sent a renewal lets its replica write."""

DURATION_S = 12
"""How long after the last sign of life a replica's share goes to others. Longer than it may write, whoever's clock measures."""

ACKNOWLEDGE_S = 15.0
"""How long a member may owe its word. Longer than any write that it may have to wait for."""

_IN_LINE_S = 1.0
"""By how much later each further candidate takes the lead."""


class Member(NamedTuple):
    """One run of a replica."""

    identity: str
    uid: str


class Group(Struct, frozen=True):
    """Who is there, as of one generation. *leader* is the identity of whoever wrote it, *term* the uid of the Lease it stands in."""

    generation: int = 0
    members: tuple[Member, ...] = ()
    leader: str = ""
    term: str = ""

    @classmethod
    def parse(cls, generation: int, leader: str, members: str, term: str) -> Self:
        """Read a group as :meth:`text` writes its members; what can't be read is an empty group of that generation."""
        try:
            found = tuple(Member(str(identity), str(uid)) for identity, uid in json.loads(members))
        except (ValueError, TypeError):
            found = ()
        return cls(generation, found, leader, term)

    def text(self) -> str:
        """Return the members for writing down."""
        return json.dumps(self.members)

    @property
    def stamp(self) -> str:
        """What a member writes to acknowledge this group and no other."""
        return f"{self.generation}@{self.term}"

    def owner(self, key: str) -> Member | None:
        """Return the member that an item belongs to, None in an empty group."""
        return max(self.members, key=lambda member: _weight(member.identity, key), default=None)

    def without(self, member: Member) -> Group:
        """Return the next group, which *member* isn't in any more; another one leads if it did."""
        others = tuple(each for each in self.members if each != member)
        leader = others[0].identity if others and self.leader == member.identity else self.leader
        return Group(self.generation + 1, others, leader, self.term)

    def is_settled(self, acknowledged: Mapping[Member, str]) -> bool:
        """Tell whether all members have acknowledged just this generation."""
        return all(acknowledged.get(member) == self.stamp for member in self.members)


def _weight(identity: str, key: str) -> bytes:
    return hashlib.blake2b(f"{identity}\0{key}".encode(), digest_size=8).digest()


class Share(Struct):
    """What one replica may work on. *me* is None while it isn't a member of anything.

    *acknowledged* is the stamp of the newest group that it has acknowledged as the member that it is now.
    """

    me: Member | None = None
    group: Group = field(default_factory=Group)
    acknowledged: str = ""
    is_settled: bool = False
    _since: list[Group] = field(default_factory=list)

    def join(self, me: Member) -> None:
        """Begin as a new member, which owns nothing yet and has acknowledged nothing."""
        self.me, self.acknowledged, self.is_settled, self._since = me, "", False, []

    def owes(self, group: Group) -> bool:
        """Tell whether *group* is still to be gone by, or to be acknowledged.

        A new member may have gone by it before, as the one that was expelled: that counts for nothing. One without members is
        about to be filled, with us among them.
        """
        if not group.members:
            return False
        return group != self.group or (self.me in group.members and self.acknowledged != group.stamp)

    def acknowledge(self, me: Member, group: Group) -> bool:
        """Note that *me* has released all that isn't its own in *group*; return whether that counts.

        It doesn't where *me* was expelled meanwhile, or another group came.
        """
        if (me, group) != (self.me, self.group) or me not in group.members:
            return False
        self.acknowledged = group.stamp
        return True

    def adopt(self, group: Group) -> None:
        """Go by *group* from now on: what isn't our own in it is let go at once, what is new comes when it is settled."""
        self.group, self.is_settled = group, False
        if self._since:
            self._since.append(group)

    def see(self, acknowledged: Mapping[Member, str]) -> bool:
        """Take in what members acknowledged; return whether that settles the group only now."""
        if self.is_settled or self.me not in self.group.members or not self.group.is_settled(acknowledged):
            return False
        self.is_settled, self._since = True, [self.group]
        return True

    def holds(self, key: str) -> bool:
        """Tell whether an item is ours to work on now."""
        return bool(self._since) and self.me is not None and all(each.owner(key) == self.me for each in self._since)


# Who is there ---------------------------------------------------------------------------------------


class MemberLease(Struct, frozen=True):
    """What the Lease of one member says, in the *version* that was seen. *replaces* is the uid of its process' run before."""

    member: Member
    version: str = ""
    acknowledged: str = ""
    replaces: str = ""
    leaves: bool = False
    ended: bool = False


class ExpulsionReason(StrEnum):
    """Why a member's Lease is deleted by another."""

    LEFT = "it has left"
    """It said so on its Lease; it writes nothing any more."""
    ENDED = "its process has ended"
    """That can be seen from here."""
    SILENT = "its Lease wasn't renewed"
    """Its time is over by anybody's clock."""
    OWES = "it doesn't follow the group"
    """It may write still, until it finds its Lease gone or can't renew it."""


class Expulsion(NamedTuple):
    """A Lease to be deleted, in the version that was judged."""

    lease: MemberLease
    reason: ExpulsionReason


class GroupDecision(Struct, frozen=True):
    """What is to be done: Leases to delete, and then to judge again; or a group to write; or nothing.

    *lists* says that the group may be written only as it is judged with all Leases that there are since the one before it.
    """

    expel: tuple[Expulsion, ...] = ()
    group: Group | None = None
    lists: bool = False


class Roster(Struct):
    """What one replica knows of the others: when it saw a sign of life, who has left, and since when who owes its word.

    All times are the caller's, on one monotonic clock.
    """

    _seen_s: dict[Member, float] = field(default_factory=dict)
    _over: set[Member] = field(default_factory=set)
    _expelled: set[Member] = field(default_factory=set)
    _sharing: set[Member] = field(default_factory=set)
    _absent: set[Member] = field(default_factory=set)
    _owes: dict[Member, tuple[float, str]] = field(default_factory=dict)
    _leaderless_s: float | None = None

    def saw(self, lease: MemberLease, now_s: float) -> None:
        """Note a sign of life, and what it says of the end of others."""
        self._seen_s[lease.member] = now_s
        if lease.leaves:
            self._over.add(lease.member)
        if lease.replaces:
            self._over.add(Member(lease.member.identity, lease.replaces))

    def is_over(self, member: Member) -> None:
        """Note that a member certainly writes nothing any more."""
        self._over.add(member)

    def expelled(self, expulsion: Expulsion) -> None:
        """Note that we deleted a member's Lease, in the version that was judged: it wasn't renewed since."""
        self._expelled.add(expulsion.lease.member)
        if expulsion.reason is not ExpulsionReason.OWES:
            self._over.add(expulsion.lease.member)

    def found_gone(self, expulsion: Expulsion, now_s: float) -> None:
        """Note that somebody else had deleted a Lease before we could: that it was silent or owed its word is old news then."""
        self._expelled.add(expulsion.lease.member)
        self._seen_s[expulsion.lease.member] = now_s
        if expulsion.reason is ExpulsionReason.ENDED:
            self._over.add(expulsion.lease.member)

    def told_gone(self, member: Member) -> None:
        """Note that a watch has told of the deletion of a Lease, and of all its renewals before that."""
        self._absent.add(member)

    def was_away(self, now_s: float) -> None:
        """Note that nothing could be seen of the others until now: what was seen before is as old as that."""
        self._seen_s = dict.fromkeys(self._seen_s, now_s)
        self._owes = {member: (now_s, word) for member, (_, word) in self._owes.items()}

    def judge(self, me: Member, leases: Collection[MemberLease], group: Group, now_s: float) -> GroupDecision:
        """Return what *me* has to do for the group, given all *leases* that there are."""
        leases = [lease for lease in leases if lease.member not in self._expelled]
        self._note(me, leases, group, now_s)
        expel = [
            Expulsion(lease, reason) for lease in leases if lease.member != me and (reason := self._fault(lease, now_s))
        ]
        live = {lease.member for lease in leases} - {each.lease.member for each in expel} | {me}
        waiting = self._sharing - live  # none of them is free: _note has seen to that
        leading = live | (waiting - self._expelled - {each.lease.member for each in expel})
        if not self._leads(me, group, live, leading, now_s):
            return GroupDecision()
        if expel:
            return GroupDecision(expel=tuple(expel))
        if not group.term:
            return GroupDecision(group=Group(group.generation + 1, (), me.identity))
        wanted = tuple(sorted(live | waiting))
        if (wanted, me.identity) == (group.members, group.leader):
            return GroupDecision()
        return GroupDecision(
            group=Group(group.generation + 1, wanted, me.identity, group.term), lists=not group.members
        )

    def due_s(self, me: Member) -> float | None:
        """Return when the next verdict may come out otherwise though nothing is seen till then, None for never."""
        times = [seen_s + DURATION_S for member, seen_s in self._seen_s.items() if member != me]
        times += [since_s + ACKNOWLEDGE_S for member, (since_s, _) in self._owes.items() if member != me]
        if self._leaderless_s is not None:
            times.append(self._leaderless_s + _IN_LINE_S)
        return min(times, default=None)

    def _note(self, me: Member, leases: Iterable[MemberLease], group: Group, now_s: float) -> None:
        """Take in who is seen for the first time, and who owes its word since when; forget whom nobody names any more."""
        word = {lease.member: lease.acknowledged for lease in leases}
        self._sharing |= set(group.members)  # whoever had a share may write still, though the group be deleted
        for member in {me, *word, *self._sharing}:
            self._seen_s.setdefault(member, now_s)
        self._note_absent(self._sharing - word.keys() - {me}, now_s)
        self._sharing -= {member for member in self._sharing if self._is_free(member, now_s)}
        known = {me, *word, *group.members, *self._sharing}
        self._seen_s = {member: at_s for member, at_s in self._seen_s.items() if member in known}
        self._over &= known
        self._expelled &= known
        owing = {member: said for member, said in word.items() if member in group.members and said != group.stamp}
        self._owes = {
            member: before if (before := self._owes.get(member)) and before[1] == said else (now_s, said)
            for member, said in owing.items()
        }

    def _note_absent(self, absent: set[Member], now_s: float) -> None:
        """Start counting the time of Leases over that others have deleted since: the watch may have missed their last renewals."""
        for member in absent - self._absent - self._expelled:
            self._seen_s[member] = now_s
        self._absent = absent

    def _fault(self, lease: MemberLease, now_s: float) -> ExpulsionReason | None:
        """Return why a member is to be expelled, None where it is well."""
        member = lease.member
        if member in self._over:
            return ExpulsionReason.LEFT
        if lease.ended:
            return ExpulsionReason.ENDED
        if self._is_silent(member, now_s):
            return ExpulsionReason.SILENT
        owes = self._owes.get(member)
        return ExpulsionReason.OWES if owes and now_s - owes[0] > ACKNOWLEDGE_S else None

    def _is_free(self, member: Member, now_s: float) -> bool:
        """Tell whether the share of a member without a Lease may go to others: its fence is shut for certain."""
        return member in self._over or self._is_silent(member, now_s)

    def _is_silent(self, member: Member, now_s: float) -> bool:
        return now_s - self._seen_s[member] > DURATION_S

    def _leads(self, me: Member, group: Group, live: set[Member], leading: set[Member], now_s: float) -> bool:
        """Tell whether it is *me* who writes the group: its leader, if that is among *leading*, else the first in line."""
        if any(member.identity == group.leader for member in leading):
            self._leaderless_s = None
            return me.identity == group.leader
        if self._leaderless_s is None:
            self._leaderless_s = now_s
        line = sorted(live, key=lambda member: (member not in group.members, member))
        return now_s - self._leaderless_s >= line.index(me) * _IN_LINE_S
