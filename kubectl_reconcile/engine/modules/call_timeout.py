"""How a daemon asks modules: each for a while at most, and with a clock running.

Modules are pure functions and are called in the event loop. One that doesn't return would stop the whole daemon, so an
alarm of the operating system breaks it off, even in a loop without end, and that is a fault of the module like any other.
Whoever wants to know is told how much of the processor's time each call took, since meanwhile nobody else had any.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from msgspec import Struct

from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.call import ModuleError, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Facts, Owned
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.engine.telemetry.metrics import Metrics

LONGEST_S = 5.0
"""What a module may take for one CR; a few milliseconds are usual."""

_AGAIN_S = 1.0


class _TooLongError(BaseException):
    """The alarm; no module that catches exceptions of its own catches it."""


class ModuleCalls(Struct, frozen=True):
    """Calls modules, and tells *metrics* how long each took, and *took* for which CR."""

    metrics: Metrics
    longest_s: float = LONGEST_S
    took: Callable[[ObjectRef, float], None] = lambda _ref, _seconds: None

    def __call__(self, module: Module, cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> Outcome:
        """Return what *module* wants for *cr*.

        Raises:
            SpecError: the CR makes no sense to the module.
            ModuleError: it failed, took too long, or returned nonsense.
        """
        began_s, used_s = time.perf_counter(), time.thread_time()
        try:
            with _alarm(self.longest_s):
                return outcome_of(module, cr, owned, facts, ctx)
        except _TooLongError:
            raise ModuleError(module.name, f"no outcome within {self.longest_s:g} s; it was stopped") from None
        finally:
            self.metrics.passes.module_seconds.labels(module.name).observe(time.perf_counter() - began_s)
            self.took(ObjectRef.of(cr), time.thread_time() - used_s)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise in the block if it takes longer; the system rings in the main thread alone, where daemons run."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)  # again, should somebody swallow the first
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(_number: int, _frame: FrameType | None) -> None:
    raise _TooLongError
