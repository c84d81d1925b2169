"""How a sync is told while it runs: result by result, and what is going on right now.

Everywhere: one line for each object written, on standard output; what went wrong, and each wave as it begins,
on standard error. On a terminal there is a *board* besides, a few lines at the bottom that are drawn
over as the work goes on: the wave, the counts, how long it may take yet, and what takes longest. It is gone
when the work is done. On a pipe nothing is ever drawn over.

`board` decides what it shows and is pure; `Progress` remembers, and draws.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping

from msgspec import Struct, field

from kubectl_reconcile.cli.output.results import DONE, result_line
from kubectl_reconcile.cli.output.terminal import Terminal
from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.apply.results import Result
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.engine.apply.writer import Hooks, Step
from kubectl_reconcile.views.text import Line, Tone, line

_SLOW_MS = 1000.0
_SLOWEST = 3
_DRAW_EVERY_S = 0.2
_TELL_EVERY_S = 0.1
"""Results that come sooner than this after the last are written together: a write for each line cost a fourteenth of a first sync's CPU time."""
_QUIET_S = 0.3
"""Work that is done sooner gets no board, which would only flicker."""
_BAR = 20
_ENOUGH = 10
"""Writes from which is told how long others may take; fewer say too little."""
_WAITS = frozenset({Op.REPLACE, Op.ACT})
"""Changes that wait for something in the middle: how long one takes says nothing about how fast the server writes."""


class Busy(Struct, frozen=True):
    """Something under way: since when (on the same clock as the board's), and what is known of it."""

    since_s: float
    note: str = ""


class Writes(Struct):
    """How fast the server writes: so many requests in so many seconds in which at least one was under way.

    Time in which nothing is written, as while a wave waits for health, is no part of it.
    """

    number: int = 0
    busy_s: float = 0.0
    _until_s: float = float("-inf")

    def add(self, ended_s: float, taken_s: float) -> None:
        """Count a request, given in the order in which they end; those under way at once take their time once."""
        self.number += 1
        self.busy_s += ended_s - max(ended_s - taken_s, min(self._until_s, ended_s))
        self._until_s = ended_s

    def left_s(self, objects: int) -> float | None:
        """Return how long writing *objects* more may take, None where too little is known to tell."""
        return self.busy_s / self.number * objects if self.number >= _ENOUGH else None


class SyncProgress(Struct, frozen=True):
    """How far a sync is, in objects. *left_s* is how long writing may take yet, None where nothing tells."""

    total: int
    done: int = 0
    failed: int = 0
    wave: int = 0
    waves: int = 0
    left_s: float | None = None


def board(standing: SyncProgress, busy: Mapping[str, Busy], now_s: float, width: int) -> list[Line]:
    """Return what to show of work under way, in lines of at most *width* columns."""
    longest = sorted(busy.items(), key=lambda item: item[1].since_s)
    lines = [_headline(standing, width)] if standing.total else []
    for name, one in longest[:_SLOWEST]:
        note = f": {one.note}" if one.note else ""
        lines.append(line(_cut(f"  {now_s - one.since_s:3.0f} s  {name}{note}", width), Tone.ASIDE))
    if len(longest) > _SLOWEST:
        lines.append(line(f"         and {len(longest) - _SLOWEST} more", Tone.ASIDE))
    return lines


def _headline(standing: SyncProgress, width: int) -> Line:
    filled = _BAR * standing.done // standing.total
    texts = [
        f"wave {standing.wave} of {standing.waves}" if standing.waves > 1 else "",
        f"{'#' * filled}{'.' * (_BAR - filled)}",
        f"{standing.done} of {standing.total} done",
        f"{standing.failed} failed" if standing.failed else "",
        _left(standing.left_s),
    ]
    text = "  ".join(text for text in texts if text)
    return line(_cut(text, width), Tone.BAD if standing.failed else Tone.TITLE)


def _left(left_s: float | None) -> str:
    return f"about {left_s:.0f} s left" if left_s is not None and left_s >= 1 else ""


def _cut(text: str, width: int) -> str:
    return text if len(text) < width else f"{text[: max(width - 2, 1)]}…"


class Untold(Struct):
    """Lines that wait to be written together."""

    lines: list[Line] = field(default_factory=list)
    _taken_s: float = float("-inf")

    @property
    def is_due(self) -> bool:
        """Tell whether the last ones were taken long enough ago."""
        return time.monotonic() - self._taken_s >= _TELL_EVERY_S

    def taken(self) -> list[Line]:
        """Return them, and have none wait any more."""
        lines, self.lines = self.lines, []
        if lines:
            self._taken_s = time.monotonic()
        return lines


class Progress(Struct):
    """Tells each result as it comes, and remembers how each object ended: what was made and then changed was made."""

    out: Terminal
    err: Terminal
    tell_results: bool = True
    outcomes: dict[ObjectRef, str] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    _expected: set[ObjectRef] = field(default_factory=set)
    _ended: set[ObjectRef] = field(default_factory=set)
    _writes: Writes = field(default_factory=Writes)
    _busy: dict[str, Busy] = field(default_factory=dict)
    _durations_ms: dict[ObjectRef, float] = field(default_factory=dict)
    _causes: set[str] = field(default_factory=set)
    _step: Step | None = None
    _untold: Untold = field(default_factory=Untold)
    _drawn: int = 0

    @property
    def is_live(self) -> bool:
        """Tell whether a person watches a screen that can be drawn over."""
        return self.err.width is not None

    def expect(self, plan: Plan) -> Plan:
        """Have the objects that *plan* writes counted as work to do, besides those known already; return it."""
        self._expected.update(change.ref for change in plan.changes if change.writes)
        return plan

    def hooks(self) -> Hooks:
        """Return what the writer is to call."""
        return Hooks(result=self._on_result, step=self._on_step, waiting=self.waits)

    @contextlib.asynccontextmanager
    async def drawn(self) -> AsyncIterator[None]:
        """Have all that is to be told told in time while the body runs, with a board where a person watches; nothing is left when it ends."""
        drawing = asyncio.create_task(self._draw_on())
        try:
            yield
        finally:
            drawing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await drawing
            self._write_results()
            self._erase()

    # --- what the writer tells --------------------------------------------------------------------------

    def _on_step(self, step: Step) -> None:
        self._step = step
        if self.is_live or step.of < 2:
            return
        text = f"wave {step.number} of {step.of}: {step.objects} object{'s' if step.objects > 1 else ''}"
        standing = self.standing()
        if standing.done:
            left = _left(standing.left_s)
            text += f", {standing.done} of {standing.total} done{f', {left}' if left else ''}"
        if step.waiting:
            more = f" and {len(step.waiting) - 1} more" if len(step.waiting) > 1 else ""
            text += f"; first {step.waiting[0]}{more} must be healthy or gone"
        self.write_line(line(text, Tone.ASIDE))

    def note(self, ref: ObjectRef, text: str) -> None:
        """Tell what somebody else does for an object, if that is new."""
        self._tell(ref, text, text)

    def awaits(self, ref: ObjectRef, why: str) -> None:
        """Tell what an object lacks to be well, if that is new; nothing any more with an empty *why*."""
        self._tell(ref, why, f"waiting for {ref}: {why}")

    def _tell(self, ref: ObjectRef, note: str, sentence: str) -> None:
        known = self._busy.get(str(ref))
        self.waits(ref, note)
        if note and not self.is_live and (known is None or known.note != note):
            self.write_line(line(sentence, Tone.ASIDE))

    def waits(self, ref: ObjectRef, why: str) -> None:
        """Note what an object is waited for; an empty *why* says that the wait is over."""
        name = str(ref)
        if not why:
            self._busy.pop(name, None)
            return
        known = self._busy.get(name)
        self._busy[name] = Busy(known.since_s if known else time.monotonic(), why)

    def _on_result(self, result: Result) -> None:
        self.results.append(result)
        self._ended.add(result.change.ref)
        if result.duration_ms and result.change.op not in _WAITS:
            self._writes.add(time.monotonic(), result.duration_ms / 1000)
        self._durations_ms[result.change.ref] = result.duration_ms
        if result.state.value != "succeeded":
            self.outcomes[result.change.ref] = result.state.value
            self.write_line(result_line(result, known=self._is_known(result)))
            return
        if self.outcomes.get(result.change.ref) not in DONE.values():  # what failed before has come right
            self.outcomes.pop(result.change.ref, None)
        if result.wrote:
            self.outcomes.setdefault(result.change.ref, DONE[result.change.op.value])
            if self.tell_results:
                self._untold.lines.append(result_line(result))
                if self._untold.is_due:
                    self._write_results()

    def _write_results(self) -> None:
        """Write the results that wait for it."""
        if lines := self._untold.taken():
            self._erase()
            self.out.write(lines)

    def _is_known(self, result: Result) -> bool:
        """Tell whether another object failed for the same cause before."""
        cause = Refusal.of(result.change, result.error).cause
        known = cause in self._causes
        self._causes.add(cause)
        return known

    def write_line(self, one: Line) -> None:
        """Write a line to standard error, above the board and after all results until now."""
        self._write_results()
        self._erase()
        self.err.write([one])

    # --- how it stands ----------------------------------------------------------------------------------

    def standing(self) -> SyncProgress:
        """Return how far it is: each object once, however often it is written, and what followed from the others."""
        total, done = len(self._expected | self._ended), len(self._ended)
        failed = sum(1 for ending in self.outcomes.values() if ending in {"failed", "skipped"})
        left_s = None if self._busy else self._writes.left_s(total - done)
        step = self._step
        return SyncProgress(total, done, failed, step.number if step else 0, step.of if step else 0, left_s)

    def slowest(self) -> list[Line]:
        """Return a line with the objects that took longest, if any took long."""
        slow = sorted(self._durations_ms.items(), key=lambda item: -item[1])[:_SLOWEST]
        texts = [f"{ref} {taken_ms / 1000:.1f} s" for ref, taken_ms in slow if taken_ms >= _SLOW_MS]
        return [line(f"slowest: {', '.join(texts)}", Tone.ASIDE)] if texts else []

    def counts(self, plan: Plan) -> Counter[str]:
        """Count the objects of *plan*, and those that followed from it, by how they ended."""
        counts = Counter(self.outcomes.values())
        idle = (
            change.ref
            for change in plan.changes
            if change.ref not in self.outcomes and not change.gate.held and not change.gate.cascade
        )
        counts.update(unchanged=sum(1 for _ in idle), held=sum(len(hold.refs) for hold in plan.holds))
        return counts

    # --- drawing ----------------------------------------------------------------------------------------

    async def _draw_on(self) -> None:
        await asyncio.sleep(_QUIET_S)
        while True:
            self._write_results()
            if self.is_live:
                self._draw()
            await asyncio.sleep(_DRAW_EVERY_S)

    def _draw(self) -> None:
        lines = board(self.standing(), self._busy, time.monotonic(), self.err.width or 80)
        self._erase()
        self.err.write(lines)
        self._drawn = len(lines)

    def _erase(self) -> None:
        """Take the board off the screen."""
        if self._drawn:
            self.err.rewind(self._drawn)
            self._drawn = 0
