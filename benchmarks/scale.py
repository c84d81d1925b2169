"""How what a daemon costs grows: fleets of several shapes, one after the other, and a power law through what was measured.

    python -m benchmarks.scale [--large] [SYNCSxOBJECTSxREPOSITORIES[xREPLICAS] …]

Prints a table as Markdown. How a figure grows along Syncs, objects or repositories is told in two ways: as a straight line, a base and so much for
each thousand; and as the exponent *e* of ``value = c · n^e``: 0 is not at all, 1 as the number itself. ``--large`` adds ten thousand Syncs and a hundred thousand objects; that takes many minutes.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.fleet import Shape, measured
from benchmarks.process import end_when_told

SHAPES = (
    Shape(100), Shape(300), Shape(1000),
    Shape(100, 12), Shape(100, 40),
    Shape(100, 4, 10), Shape(100, 4, 100),
)  # fmt: skip
LARGE = (Shape(10_000, 1), Shape(10_000, 10))

Found = Mapping[Shape, Mapping[str, float]]


def shape_of(text: str) -> Shape:
    """Read a shape such as ``1000x4x1``, or ``1000x4x1x3`` with three replicas.

    Raises:
        ValueError: it is none.
    """
    syncs, objects, repositories, *replicas = map(int, text.split("x"))
    return Shape(syncs, objects, repositories, *replicas)


def table(found: Found) -> list[str]:
    """Return a row of Markdown per figure, a column per shape."""
    names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    head = ["", *(f"{each.syncs:,} of {each.objects:,} from {each.repositories:,}" for each in found)]
    rows = [
        [name, *(f"{figures[name]:.3g}" if name in figures else "" for figures in found.values())] for name in names
    ]
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


@dataclass(frozen=True)
class Growth:
    """How a figure grows: *base* and so much *per_thousand* as a straight line, or with an *exponent*."""

    base: float
    per_thousand: float
    exponent: float


def growth(found: Found, along: str) -> dict[str, Growth]:
    """Return how each figure grows with *along*, a field of shapes, where those with four objects of one repository differ in it alone."""
    rest = {"syncs": 100, "objects": 4, "repositories": 1}
    del rest[along]
    points = {
        getattr(shape, along): figures
        for shape, figures in found.items()
        if all(getattr(shape, name) == value for name, value in rest.items())
    }
    if len(points) < 2:
        return {}
    names = set.intersection(*(set(figures) for figures in points.values()))
    return {
        name: fitted(list(points), [figures[name] for figures in points.values()])
        for name in sorted(names)
        if all(figures[name] > 0 for figures in points.values())
    }


def fitted(numbers: Sequence[float], values: Sequence[float]) -> Growth:
    """Return the straight line and the power law through these points, of which there are two at least."""
    line = statistics.linear_regression(numbers, values)
    exponent = statistics.linear_regression([*map(math.log, numbers)], [*map(math.log, values)]).slope
    return Growth(line.intercept, line.slope * 1000, exponent)


def main() -> None:
    """Measure all shapes, and print what was found."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("shapes", nargs="*", type=shape_of, metavar="SYNCSxOBJECTSxREPOSITORIES[xREPLICAS]")
    parser.add_argument("--large", action="store_true", help="ten thousand Syncs as well")
    options = parser.parse_args()
    end_when_told()
    shapes = options.shapes or [*SHAPES, *(LARGE if options.large else ())]
    found = {shape: asyncio.run(measured(shape)).values for shape in shapes}
    print("", *table(found), sep="\n")
    for along in ("syncs", "objects", "repositories"):
        for name, each in growth(found, along).items():
            print(f"{name}: {each.base:.3g} and {each.per_thousand:+.3g} per thousand {along} (n^{each.exponent:.2f})")


if __name__ == "__main__":
    main()
