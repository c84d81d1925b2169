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
from dataclasses import dataclass, field

from kubectl_reconcile.cli.output.results import DONE, result_line
from kubectl_reconcile.cli.output.terminal import Line, Terminal, Tone, line
from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.apply.results import Result
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.apply.writer import Hooks, Step

_SLOW_MS = 1000.0
_SLOWEST = 3
_DRAW_EVERY_S = 0.2
_QUIET_S = 0.3
"""Work that is done sooner gets no board, which would only flicker."""
_BAR = 20


@dataclass(frozen=True, slots=True)
class Busy:
    """Something under way: since when (on the same clock as the board's), and what is known of it."""

    since_s: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class SyncProgress:
    """How far a sync is. *left_s* is None where nothing tells yet."""

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
        f"about {standing.left_s:.0f} s left" if standing.left_s is not None and standing.left_s >= 1 else "",
    ]
    text = "  ".join(text for text in texts if text)
    return line(_cut(text, width), Tone.BAD if standing.failed else Tone.TITLE)


def _cut(text: str, width: int) -> str:
    return text if len(text) < width else f"{text[: max(width - 2, 1)]}…"


@dataclass(slots=True)
class Progress:
    """Tells each result as it comes, and remembers how each object ended: what was made and then changed was made."""

    out: Terminal
    err: Terminal
    pending: int = 0
    tell_results: bool = True
    outcomes: dict[ObjectRef, str] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    _began_s: float = field(default_factory=time.monotonic)
    _busy: dict[str, Busy] = field(default_factory=dict)
    _durations_ms: dict[ObjectRef, float] = field(default_factory=dict)
    _causes: set[str] = field(default_factory=set)
    _step: Step | None = None
    _drawn: int = 0

    @property
    def is_live(self) -> bool:
        """Tell whether a person watches a screen that can be drawn over."""
        return self.err.width is not None

    def hooks(self) -> Hooks:
        """Return what the writer is to call."""
        return Hooks(result=self._on_result, step=self._on_step, waiting=self.waits)

    @contextlib.asynccontextmanager
    async def drawn(self) -> AsyncIterator[None]:
        """Keep the board up to date while the body runs, where a person watches."""
        drawing = asyncio.create_task(self._draw_on()) if self.is_live else None
        try:
            yield
        finally:
            if drawing is not None:
                drawing.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await drawing
            self._erase()

    # --- what the writer tells --------------------------------------------------------------------------

    def _on_step(self, step: Step) -> None:
        self._step = step
        if self.is_live or step.of < 2:
            return
        text = f"wave {step.number} of {step.of}: {step.objects} object{'s' if step.objects > 1 else ''}"
        if self.results:
            text += f", {len(self.results)} of {self.pending} done, about {self._left_s() or 0:.0f} s left"
        if step.waiting:
            more = f" and {len(step.waiting) - 1} more" if len(step.waiting) > 1 else ""
            text += f"; first {step.waiting[0]}{more} must be healthy or gone"
        self.write_line(line(text, Tone.ASIDE))

    def note(self, ref: ObjectRef, text: str) -> None:
        """Tell what somebody else does for an object, if that is new."""
        known = self._busy.get(str(ref))
        self.waits(ref, text)
        if text and not self.is_live and (known is None or known.note != text):
            self.write_line(line(text, Tone.ASIDE))

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
        self._durations_ms[result.change.ref] = result.duration_ms
        if result.state.value != "succeeded":
            self.outcomes[result.change.ref] = result.state.value
            self.write_line(result_line(result, known=self._is_known(result)))
        elif result.wrote:
            self.outcomes.setdefault(result.change.ref, DONE[result.change.op.value])
            if self.tell_results:
                self._erase()
                self.out.write([result_line(result)])

    def _is_known(self, result: Result) -> bool:
        """Tell whether another object failed for the same cause before."""
        cause = Refusal.of(result.change, result.error).cause
        known = cause in self._causes
        self._causes.add(cause)
        return known

    def write_line(self, one: Line) -> None:
        """Write a line to standard error, above the board."""
        self._erase()
        self.err.write([one])

    # --- how it stands ----------------------------------------------------------------------------------

    def _left_s(self) -> float | None:
        done = len(self.results)
        if not done:
            return None
        return (time.monotonic() - self._began_s) / done * max(self.pending - done, 0)

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
            self._draw()
            await asyncio.sleep(_DRAW_EVERY_S)

    def _draw(self) -> None:
        step = self._step
        failed = sum(1 for ending in self.outcomes.values() if ending in {"failed", "skipped"})
        standing = SyncProgress(
            max(self.pending, len(self.results)), len(self.results), failed,
            step.number if step else 0, step.of if step else 0, None if self._busy else self._left_s(),
        )  # fmt: skip
        lines = board(standing, self._busy, time.monotonic(), self.err.width or 80)
        self._erase()
        self.err.write(lines)
        self._drawn = len(lines)

    def _erase(self) -> None:
        """Take the board off the screen."""
        if self._drawn:
            self.err.rewind(self._drawn)
            self._drawn = 0
