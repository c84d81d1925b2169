"""Shapes: grammars that make random values, and random variations of values they made.

A shape knows how to *make* a value and how to *vary* one: drop, change, add, reorder, sometimes
to null or to an empty container. Everything comes from the `Random` handed in, so a seed is a case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

GONE = object()
"""What a variation answers to say: leave it out."""


class Shape:
    def make(self, rng: Random) -> Any:
        raise NotImplementedError

    def vary(self, rng: Random, value: Any, rate: float) -> Any:
        return self.make(rng) if rng.random() < rate else value


@dataclass(frozen=True)
class Choice(Shape):
    values: Sequence[Any]

    def make(self, rng):
        return rng.choice(self.values)


@dataclass(frozen=True)
class Fixed(Shape):
    value: Any

    def make(self, rng):
        return self.value

    def vary(self, rng, value, rate):
        return value


@dataclass(frozen=True)
class Made(Shape):
    function: Callable[[Random], Any]

    def make(self, rng):
        return self.function(rng)


@dataclass(frozen=True)
class Either(Shape):
    shapes: Sequence[Shape]

    def make(self, rng):
        return rng.choice(self.shapes).make(rng)

    def vary(self, rng, value, rate):
        return self.make(rng) if rng.random() < rate else value


@dataclass(frozen=True)
class Obj(Shape):
    """Fields by name: a shape, or (shape, likelihood); likelihood 1 is required and never dropped."""

    fields: Mapping[str, Any]
    nulls: bool = True

    def _pairs(self):
        for name, entry in self.fields.items():
            yield (name, *(entry if isinstance(entry, tuple) else (entry, 0.5)))

    def make(self, rng):
        return {name: shape.make(rng) for name, shape, likelihood in self._pairs() if rng.random() < likelihood}

    def vary(self, rng, value, rate):
        if not isinstance(value, dict):
            return self.make(rng)
        out = dict(value)
        for name, shape, likelihood in self._pairs():
            if name in out:
                if likelihood < 1 and rng.random() < rate * 0.5:
                    del out[name]
                elif likelihood < 1 and self.nulls and rng.random() < rate * 0.05:
                    out[name] = None
                elif out[name] is not None:
                    out[name] = shape.vary(rng, out[name], rate)
            elif rng.random() < rate * 0.5:
                out[name] = shape.make(rng)
        return out


@dataclass(frozen=True)
class Table(Shape):
    """A map with free keys."""

    keys: Sequence[str]
    item: Shape
    most: int = 3
    least: int = 0

    def make(self, rng):
        names = rng.sample(self.keys, rng.randint(self.least, min(self.most, len(self.keys))))
        return {name: self.item.make(rng) for name in names}

    def vary(self, rng, value, rate):
        if not isinstance(value, dict):
            return self.make(rng)
        out = {}
        for name, below in value.items():
            if rng.random() >= rate * 0.5:
                out[name] = self.item.vary(rng, below, rate)
        while len(out) < self.least or rng.random() < rate * 0.5:
            out[rng.choice(self.keys)] = self.item.make(rng)
        return out


@dataclass(frozen=True)
class Items(Shape):
    """A list; with *key*, no two items have the same."""

    item: Shape
    most: int = 3
    least: int = 0
    key: Callable[[Any], Any] | None = None

    def _unique(self, items):
        if self.key is None:
            return items
        found: dict[Any, Any] = {}
        for item in items:
            found.setdefault(repr(self.key(item)), item)
        return list(found.values())

    def make(self, rng):
        return self._unique([self.item.make(rng) for _ in range(rng.randint(self.least, self.most))])

    def vary(self, rng, value, rate):
        if not isinstance(value, list):
            return self.make(rng)
        out = [self.item.vary(rng, item, rate) for item in value if rng.random() >= rate * 0.3]
        while len(out) < self.least or rng.random() < rate * 0.4:
            out.insert(rng.randint(0, len(out)), self.item.make(rng))
        if rng.random() < rate * 0.3:
            rng.shuffle(out)
        return self._unique(out)


def keyed(*names: str, **defaults: Any) -> Callable[[Any], Any]:
    """Return the key of list-map items: the named fields, absent ones at their defaults."""
    every = [*names, *defaults]
    return lambda item: [item.get(name, defaults.get(name)) for name in every] if isinstance(item, dict) else item


@dataclass
class Deferred(Shape):
    """A shape that is filled in later."""

    shape: Shape = field(default_factory=lambda: Fixed(None))

    def make(self, rng):
        return self.shape.make(rng)

    def vary(self, rng, value, rate):
        return self.shape.vary(rng, value, rate)
