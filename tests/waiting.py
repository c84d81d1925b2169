"""Waiting without sleeping: for what comes true by itself, on a machine that may be busy with other tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.kubectl import KubectlError

PATIENCE_S = 150.0  # a machine may be busy with other tests


def eventually(condition: Callable[[], Any], what: str, *, timeout_s: float = PATIENCE_S, pause_s: float = 0.02) -> Any:
    """Return what *condition* returns once that is true; fail, saying *what* didn't come true, after *timeout_s*.

    What kubectl refuses while *condition* looks isn't true yet: an object that nobody has created so far, the
    logs of a container that hasn't begun. Nor is what lacks a part that is still to be written. The failure tells
    what was refused or lacking last.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        refused = ""
        try:
            if result := condition():
                return result
        except (KubectlError, LookupError, TypeError, ValueError, StopIteration) as error:
            refused = f"; {type(error).__name__}: {error}"
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}{refused}"
        time.sleep(pause_s)


def patiently(condition: Callable[[], Any], what: str, *, timeout_s: float = PATIENCE_S, pause_s: float = 0.1) -> Any:
    """As :func:`eventually`; a look at what a daemon does may cost more, so it is taken less often."""
    return eventually(condition, what, timeout_s=timeout_s, pause_s=pause_s)
