"""What went wrong, told once for each cause: one missing namespace is one sentence, however many objects need it.

Vocabulary: a *cause* is what is wrong and what to do about it, whatever the place. Sentences come in the order in which their causes
were met first. Nothing is left out but names: counts say how many there are.

Pure.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from kubectl_reconcile.core.objects import ObjectRef, Problem, place_of
from kubectl_reconcile.core.phrases import first_few
from kubectl_reconcile.core.planning.hold import Hold
from kubectl_reconcile.core.planning.plan import Change

T = TypeVar("T")

_NAMED = 3
"""How many places or objects a sentence names."""

_LACKING = re.compile(r"ServiceAccount (\S+) may not .* \(hint: (kubectl reconcile grant [^)]*)\)$")
"""How a right is told that the account of a Sync lacks."""

_OF_ONE_FILE = 5
"""How many sentences a message has for one file."""


class Refusal(Struct, frozen=True):
    """An object that isn't as it should be, where it is written down (``file:line``, may be empty), and why."""

    ref: ObjectRef
    where: str
    why: str

    @classmethod
    def of(cls, change: Change, why: str) -> Refusal:
        """Return the refusal of *change*."""
        origin = change.provenance
        return cls(change.ref, place_of(origin.file, origin.line), why)

    @property
    def cause(self) -> str:
        """What is wrong, without the object's own name: the server says it in each of its sentences."""
        return self.why.replace(f'"{self.ref.name}"', '""').replace(str(self.ref), "")


def of_problems(problems: Iterable[Problem]) -> list[str]:
    """Return a sentence for each cause among *problems*, a few for each file and a count of the rest."""
    told: list[str] = []
    files: Counter[str] = Counter()
    for group in _grouped(problems, lambda problem: (problem.message, problem.hint)):
        file = group[0].path
        files[file] += 1
        if files[file] <= _OF_ONE_FILE:
            told.append(_problem(group))
    rest = ((file, count - _OF_ONE_FILE) for file, count in files.items() if count > _OF_ONE_FILE)
    return [*told, *(f"{file}: and {more} more problem{'' if more == 1 else 's'}" for file, more in rest)]


def of_refusals(refusals: Iterable[Refusal]) -> list[str]:
    """Return a sentence for each cause among *refusals*, with the first objects that it concerns.

    An account that lacks several rights is one cause: what gives them is one command.
    """
    groups = list(_grouped(refusals, lambda refusal: refusal.cause))
    merged = list(_grouped(groups, lambda group: _lacking(group[0]) or group[0].cause))
    return [
        _refusal(same[0]) if len(same) == 1 else _rights([each for group in same for each in group]) for same in merged
    ]


def of_hold(hold: Hold) -> str:
    """Return why something waits, and what."""
    return f"{hold.message}: {listed([str(ref) for ref in hold.refs])}"


def of_strangers(hold: Hold) -> str:
    """Return that something only says of itself that it is a member, and what may be done about it."""
    which = listed([str(ref) for ref in hold.refs])
    advice = "take the label off; or kubectl reconcile approve deletes them"
    return f"marked as members, and left alone: {hold.message}: {which} (hint: {advice})"


def listed(names: Sequence[str]) -> str:
    """Return the first of *names*, and how many more there are."""
    return first_few(names, _NAMED)


def _grouped(things: Iterable[T], cause: Callable[[T], Hashable]) -> Iterator[list[T]]:
    groups: dict[Hashable, list[T]] = defaultdict(list)
    for thing in things:
        groups[cause(thing)].append(thing)
    yield from groups.values()


def _problem(group: list[Problem]) -> str:
    if len(group) == 1:
        return str(group[0])
    first = group[0]
    places = listed([place_of(each.path, each.line) for each in group])
    return f"{places}: {first.message}{f' (hint: {first.hint})' if first.hint else ''}"


def _lacking(refusal: Refusal) -> tuple[str, ...] | None:
    """Return the account that lacks a right and what to do about it, None where a refusal has another cause."""
    found = _LACKING.search(refusal.why)
    return found.groups() if found else None


def _rights(refusals: list[Refusal]) -> str:
    account, advice = _lacking(refusals[0]) or ("", "")
    objects = listed([str(each.ref) for each in refusals])
    return f"ServiceAccount {account} lacks rights on {len(refusals)} objects: {objects} (hint: {advice})"


def _refusal(group: list[Refusal]) -> str:
    first = group[0]
    where = f"{first.where}: " if first.where else ""
    others = f" and {len(group) - 1} more ({listed([str(each.ref) for each in group[1:]])})" if len(group) > 1 else ""
    return f"{where}{first.ref}{others}: {first.why}"
