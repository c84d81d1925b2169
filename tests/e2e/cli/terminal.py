"""The program on a terminal, with somebody who types when a certain text stands there."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

CTRL_C, CTRL_D = "\x03", "\x04"
_BIN = Path(sys.executable).parent
_PATIENCE_S = 200.0


def on_terminal(*arguments, typed, **environ):
    """Run the program on a terminal; return its exit status and what stood there.

    *typed* says what is typed once a text stands there: {"[y/N]": "n\\n"}; each once, in this order; what is
    called for it may do something meanwhile. A program that
    neither goes on nor ends is killed, and the test fails with what it showed.
    """
    words = ["kubectl-reconcile", *arguments]
    environ = {**os.environ, "TERM": "xterm", "PAGER": "cat", **environ}  # nobody leaves a pager
    pid, screen = pty.fork()
    if pid == 0:
        os.execve(_BIN / words[0], words, environ)  # noqa: S606 - no shell is the point
    waiting, seen, looked, deadline = list(typed.items()), "", 0, time.monotonic() + _PATIENCE_S
    while chunk := _read(screen, deadline):
        seen += chunk
        if waiting and (at := seen.find(waiting[0][0], looked)) >= 0:
            looked = at + len(waiting[0][0])
            answer = waiting.pop(0)[1]
            os.write(screen, (answer() if callable(answer) else answer).encode())
    if hangs := chunk is None:
        os.kill(pid, signal.SIGKILL)
    os.close(screen)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert not hangs, f"nothing more within {_PATIENCE_S:g} s, {waiting} not typed yet: {seen}"
    return status, seen


def _read(screen, deadline):
    """Return what comes next, "" at the end, None where nothing comes in time."""
    ready, _, _ = select.select([screen], [], [], max(deadline - time.monotonic(), 0))
    if not ready:
        return None
    try:
        return os.read(screen, 4096).decode(errors="replace")
    except OSError:  # Linux says so where the other end is closed
        return ""
