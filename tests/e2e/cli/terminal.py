"""The program on a terminal, with somebody who types when a certain text stands there."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

CTRL_C, CTRL_D = "\x03", "\x04"
_BIN = Path(sys.executable).parent


def on_terminal(*arguments, typed, **environ):
    """Run the program on a terminal; return its exit status and what stood there.

    *typed* says what is typed once a text stands there: {"[y/N]": "n\n"}; each once, in this order.
    """
    pid, screen = pty.fork()
    if pid == 0:
        words = ["kubectl-reconcile", *arguments]
        os.execve(_BIN / words[0], words, {**os.environ, "TERM": "xterm", **environ})  # noqa: S606 - no shell is the point
    waiting, seen, looked = list(typed.items()), "", 0
    try:
        while chunk := os.read(screen, 4096):
            seen += chunk.decode(errors="replace")
            if waiting and (at := seen.find(waiting[0][0], looked)) >= 0:
                looked = at + len(waiting[0][0])
                os.write(screen, waiting.pop(0)[1].encode())
    except OSError:  # Linux says so where the other end is closed
        pass
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen
