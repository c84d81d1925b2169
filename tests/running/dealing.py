"""Which tests a free worker gets next.

Vocabulary: a test *waits* (for a control plane, a server) or *computes*; it *needs* programs by name, which may still be built. A
*unit* is what is dealt at once: tests that share a fixture of their module, in their order; a test that takes long; or a handful of
short ones of one file.

Rules: what takes longest begins first. Units that wait and units that compute are dealt in step, so that both come to their end
together and the cores are busy until then; no more workers compute than there are cores while others could wait. What needs a
program that isn't there yet is dealt later.

Pure: no clock, no files, no workers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

HANDFUL_S = 1.0
"""About as long as a unit of short tests takes: much more than it takes to deal one, much less than a run."""

HANDFUL = 40
"""Tests of a unit at most, where nothing is known about how long they take."""


@dataclass(frozen=True)
class Dealt:
    """A test, as it matters for dealing."""

    index: int
    file: str
    seconds: float
    waits: bool = False
    needs: frozenset[str] = frozenset()
    together: str = ""
    """What it shares with others of the same text, which are to run one after the other; empty where it shares nothing."""


@dataclass(frozen=True)
class Unit:
    """Tests that one worker gets at once."""

    tests: tuple[Dealt, ...]

    @cached_property
    def seconds(self) -> float:
        return sum(test.seconds for test in self.tests)

    @cached_property
    def waits(self) -> bool:
        return any(test.waits for test in self.tests)

    @cached_property
    def needs(self) -> frozenset[str]:
        return frozenset().union(*(test.needs for test in self.tests))


def units(tests: Iterable[Dealt], *, mixed: bool = False) -> list[Unit]:
    """Units of all *tests*, the longest first; in the order of the tests if they are to be *mixed*, short ones of several files too."""
    together: dict[str, list[Dealt]] = {}
    alone: dict[tuple[str, bool, frozenset[str]], list[Dealt]] = {}
    for test in tests:
        if test.together:
            together.setdefault(test.together, []).append(test)
        else:
            alone.setdefault(("" if mixed else test.file, test.waits, test.needs), []).append(test)
    found = [Unit(tuple(each)) for each in together.values()]
    found += [unit for each in alone.values() for unit in _handfuls(each)]
    if mixed:
        return sorted(found, key=lambda unit: unit.tests[0].index)
    return sorted(found, key=lambda unit: (-unit.seconds, unit.tests[0].index))


def _handfuls(tests: Sequence[Dealt]) -> Iterable[Unit]:
    hand: list[Dealt] = []
    for test in tests:
        if hand and (test.seconds >= HANDFUL_S or _seconds(hand) >= HANDFUL_S or len(hand) >= HANDFUL):
            yield Unit(tuple(hand))
            hand = []
        hand.append(test)
    if hand:
        yield Unit(tuple(hand))


def _seconds(tests: Iterable[Dealt]) -> float:
    return sum(test.seconds for test in tests)


@dataclass
class Dealer:
    """All units that nobody has yet, and who may have which."""

    left: list[Unit]
    cores: int
    missing: set[str] = field(default_factory=set)
    """Programs that aren't built yet."""
    _whole_s: dict[bool, float] = field(default_factory=dict)
    _left_s: dict[bool, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._measure()

    def _measure(self) -> None:
        for waits in (False, True):
            self._whole_s[waits] = self._left_s[waits] = sum(unit.seconds for unit in self.left if unit.waits is waits)

    def built(self, program: str) -> None:
        """A program is there: what needs it may begin, and from now on all that is left is dealt in step."""
        self.missing.discard(program)
        self._measure()

    def dropped(self, program: str) -> list[Dealt]:
        """Tests that need a program which will never be there; they are dealt to nobody."""
        lost = [unit for unit in self.left if program in unit.needs]
        self.left = [unit for unit in self.left if program not in unit.needs]
        self._measure()
        return [test for unit in lost for test in unit.tests]

    def put_back(self, tests: Collection[Dealt]) -> None:
        """Somebody ended before these were run: they are next."""
        if tests:
            self.left.insert(0, Unit(tuple(tests)))
            self._left_s[self.left[0].waits] += self.left[0].seconds

    def next_for(self, others: Iterable[Unit]) -> Unit | None:
        """Unit for a free worker while *others* are at work; None while there is nothing for it."""
        ready = {waits: self._first(waits=waits) for waits in (False, True)}
        at = ready[self._turn(ready, sum(not unit.waits for unit in others))]
        if at is None:
            return None
        unit = self.left.pop(at)
        self._left_s[unit.waits] -= unit.seconds
        return unit

    def _first(self, *, waits: bool) -> int | None:
        ready = (at for at, unit in enumerate(self.left) if unit.waits is waits and not unit.needs & self.missing)
        return next(ready, None)

    def _turn(self, ready: dict[bool, int | None], computing: int) -> bool:
        """Whether it is the turn of what waits."""
        if ready[True] is None:  # a build computes, too: whoever computes beside it only keeps it from its end
            return computing >= self.cores and any(unit.needs & self.missing for unit in self.left)
        if ready[False] is None or computing >= self.cores:
            return True
        dealt = {waits: 1 - self._left_s[waits] / (self._whole_s[waits] or 1) for waits in (False, True)}
        return dealt[True] <= dealt[False]
