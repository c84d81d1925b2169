"""Which of several replicas works on what, so that it is never two.

Vocabulary: a *member* is one run of a replica, known by its identity and the uid of its Lease; a *group* is a list of members
with a *generation*, a number that grows with every change and that a leader writes in one place. A member *acknowledges* a
generation once it has stopped working on whatever isn't its own by then. A group is *settled* when all of its members have
acknowledged just this generation.

Rules:

- The owner of an item is the member with the highest hash of both (rendezvous hashing): a member that comes
  takes its share from all, one that goes leaves its share to all, and nothing else moves.
- What was a member's own in the group that was settled last, and in every one since, stays its own throughout. Anything else is
  its own only once the group is settled: whoever had it before has let go.
- A run that was expelled never counts again; its successor has another uid.

Pure: what is seen of others comes in, who owns what comes out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self


class Member(NamedTuple):
    """One run of a replica."""

    identity: str
    uid: str


@dataclass(frozen=True, slots=True)
class Group:
    """Who is there, as of one generation. *leader* is the identity of whoever wrote it."""

    generation: int = 0
    members: tuple[Member, ...] = ()
    leader: str = ""

    @classmethod
    def parse(cls, generation: int, leader: str, members: str) -> Self:
        """Read a group as :meth:`text` writes its members; what can't be read is an empty group of that generation."""
        try:
            found = tuple(Member(str(identity), str(uid)) for identity, uid in json.loads(members))
        except (ValueError, TypeError):
            found = ()
        return cls(generation, found, leader)

    def text(self) -> str:
        """Return the members for writing down."""
        return json.dumps(self.members)

    def owner(self, key: str) -> Member | None:
        """Return the member that an item belongs to, None in an empty group."""
        return max(self.members, key=lambda member: _weight(member.identity, key), default=None)

    def is_settled(self, acknowledged: Mapping[Member, int]) -> bool:
        """Tell whether all members have acknowledged just this generation."""
        return all(acknowledged.get(member) == self.generation for member in self.members)


def _weight(identity: str, key: str) -> bytes:
    return hashlib.blake2b(f"{identity}\0{key}".encode(), digest_size=8).digest()


@dataclass(slots=True)
class Share:
    """What one replica may work on. *me* is None while it is no member of anything.

    *acknowledged* is the newest generation that it has acknowledged as the member that it is now.
    """

    me: Member | None = None
    group: Group = field(default_factory=Group)
    acknowledged: int = 0
    is_settled: bool = False
    _since: list[Group] = field(default_factory=list)

    def join(self, me: Member) -> None:
        """Begin as a new member, which owns nothing yet and has acknowledged nothing."""
        self.me, self.acknowledged, self.is_settled, self._since = me, 0, False, []

    def owes(self, group: Group) -> bool:
        """Tell whether *group* is still to be gone by, or to be acknowledged.

        A new member may have gone by it before, as the one that was expelled: that counts for nothing.
        """
        return group != self.group or (self.me in group.members and self.acknowledged != group.generation)

    def acknowledge(self, me: Member, group: Group) -> bool:
        """Note that *me* has let go of all that isn't its own in *group*; return whether that counts.

        It doesn't where *me* was expelled meanwhile, or another group came.
        """
        if (me, group) != (self.me, self.group) or me not in group.members:
            return False
        self.acknowledged = group.generation
        return True

    def adopt(self, group: Group) -> None:
        """Go by *group* from now on: what isn't our own in it is let go at once, what is new comes when it is settled."""
        self.group, self.is_settled = group, False
        if self._since:
            self._since.append(group)

    def see(self, acknowledged: Mapping[Member, int]) -> bool:
        """Take in what members acknowledged; return whether that settles the group only now."""
        if self.is_settled or self.me not in self.group.members or not self.group.is_settled(acknowledged):
            return False
        self.is_settled, self._since = True, [self.group]
        return True

    def holds(self, key: str) -> bool:
        """Tell whether an item is ours to work on now."""
        return bool(self._since) and self.me is not None and all(each.owner(key) == self.me for each in self._since)
