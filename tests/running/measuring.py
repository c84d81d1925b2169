"""What a process and all below it take: seconds of the clock and of processors, by test, by fixture, by step.

Processor seconds are the process's own, those of whoever has ended below it, and those of whoever is still there, as Linux tells;
on other systems those of whoever still runs are left out. What isn't below the process, such as a control plane that all
workers share, is for somebody else to measure.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")

STEPS = {
    "tests.e2e.program:Daemon.start": "a daemon begins",
    "tests.forked:_parent": "a parent of commands begins",
    "tests.forked:run": "a command runs",
    "tests.kubectl:Kubectl.__call__": "kubectl runs",
    "kubectl_reconcile.sandbox.controlplane:Sandbox.up": "a control plane begins",
    "kubectl_reconcile.sandbox.controlplane:Sandbox.down": "a control plane ends",
}
"""Functions that are measured wherever they are called, and what the table calls them."""


def processor_s() -> float:
    """Processor seconds of this process and all that it has started."""
    times = os.times()
    own = time.process_time() + times.children_user + times.children_system
    return own + sum(_seconds_of(pid) for pid in _below(os.getpid()))


def _below(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):  # one may end meanwhile
        for task in (PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _below(int(child))


def _seconds_of(pid: int) -> float:
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS  # its own, and of those whose end it has seen


@dataclass
class Spent:
    """How often something was done, and the seconds that it took."""

    times: int = 0
    seconds: float = 0.0
    processor_s: float = 0.0


@dataclass
class Meter:
    """What was measured in one process."""

    tests: dict[str, Spent] = field(default_factory=dict)
    fixtures: dict[str, Spent] = field(default_factory=dict)
    steps: dict[str, Spent] = field(default_factory=dict)
    now_s: Callable[[], float] = time.monotonic
    _inner_s: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def test(self, name: str) -> Iterator[None]:
        begun, processor = self.now_s(), processor_s()
        try:
            yield
        finally:
            _add(self.tests, name, self.now_s() - begun, processor_s() - processor)

    @contextlib.contextmanager
    def fixture(self, name: str, *, times: int) -> Iterator[None]:
        """Measure what a fixture does without the fixtures that it asks for meanwhile."""
        begun = self.now_s()
        self._inner_s.append(0.0)
        try:
            yield
        finally:
            took = self.now_s() - begun
            _add(self.fixtures, name, took - self._inner_s.pop(), times=times)
            if self._inner_s:
                self._inner_s[-1] += took

    def step(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return *function*, measured whenever it is called."""

        @functools.wraps(function)
        def measured(*arguments: Any, **named: Any) -> Any:
            begun = self.now_s()
            try:
                return function(*arguments, **named)
            finally:
                _add(self.steps, name, self.now_s() - begun)

        return measured


def _add(where: dict[str, Spent], name: str, seconds: float, processor: float = 0.0, *, times: int = 1) -> None:
    spent = where.setdefault(name, Spent())
    spent.times += times
    spent.seconds += seconds
    spent.processor_s += processor


def measure_steps(meter: Meter) -> None:
    """Have the functions of ``STEPS`` measured in this process."""
    for place, name in STEPS.items():
        owner, attribute = found(place)
        setattr(owner, attribute, meter.step(name, getattr(owner, attribute)))


def found(place: str) -> tuple[Any, str]:
    """The owner of the function at *place*, and the name that it has there.

    Raises:
        AttributeError: there is none.
    """
    module, _, path = place.partition(":")
    *owners, attribute = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    getattr(owner, attribute)
    return owner, attribute
