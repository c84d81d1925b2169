"""How long things took, in memory that doesn't grow: a count for each range of durations, each range less than a hundredth wide.

Pure: durations in, quantiles out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

_FINE: Final = 7
"""Binary digits that are kept of a duration: ranges are 1/128 wide, at most."""
_LONGEST_US: Final = 2**42
"""Some fifty days; what is longer counts as that."""
_RANGES: Final = (_LONGEST_US.bit_length() - _FINE) << _FINE


def _range_of(microseconds: int) -> int:
    shift = max(0, microseconds.bit_length() - _FINE - 1)
    return (shift << _FINE) + (microseconds >> shift)


def _most_in(number: int) -> int:
    """Return the longest duration that is counted in a range, in microseconds."""
    shift = max(0, (number >> _FINE) - 1)
    return ((number - (shift << _FINE) + 1) << shift) - 1


@dataclass(slots=True)
class LatencyHistogram:
    """Durations, counted."""

    count: int = 0
    sum_s: float = 0.0
    longest_s: float = 0.0
    _counts: list[int] = field(default_factory=lambda: [0] * _RANGES)

    def add(self, seconds: float) -> None:
        """Count one more; less than nothing is nothing."""
        took = max(0.0, seconds)
        self._counts[_range_of(min(round(took * 1e6), _LONGEST_US - 1))] += 1
        self.count += 1
        self.sum_s += took
        self.longest_s = max(self.longest_s, took)

    def quantile(self, part: float) -> float:
        """Return what so large a *part* of all took at the most, in seconds: never too little, and too much by less than a hundredth; 0 where there are none."""
        wanted, seen = max(1, -int(-part * self.count // 1)), 0
        for number, count in enumerate(self._counts if self.count else ()):
            seen += count
            if seen >= wanted:
                return min(_most_in(number) / 1e6, self.longest_s)
        return self.longest_s

    @property
    def mean_s(self) -> float:
        """What one took on average."""
        return self.sum_s / self.count if self.count else 0.0
