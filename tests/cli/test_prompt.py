"""Questions at a terminal: what counts as an answer, and that Ctrl-C is one at any moment."""

import os
import pty
import select
import signal
import sys

import pytest

from tests.talking import talking

ASKS = """
import signal, sys, threading, time
from kubectl_reconcile.cli.output.failures import Interrupted
from kubectl_reconcile.cli.output.prompt import confirmed
if "elsewhere" in sys.argv:  # the system hands signals to another thread
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
try:
    sys.exit(0 if confirmed("Go on?") else 7)
except Interrupted:
    sys.exit(130)
"""


def asked(react, *words):
    """What the program ends with where a person does *react* once the question stands there."""
    screen, terminal = pty.openpty()
    with talking([sys.executable, "-c", ASKS, *words], stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        seen = ""
        while "[y/N]" not in seen:
            assert select.select([screen], [], [], 200)[0], "no question came"
            seen += os.read(screen, 4096).decode()
        react(process, screen)
        status = process.wait(200)
    os.close(screen)
    return status


TYPED = {"y\n": 0, "YES\n": 0, "n\n": 7, "\n": 7, "what?\ny\n": 0, "\x04": 7}


@pytest.mark.parametrize(("typed", "status"), TYPED.items(), ids=map(repr, TYPED))
def test_what_is_typed_is_yes_or_no_or_asked_for_again(typed, status):
    assert asked(lambda _, screen: os.write(screen, typed.encode())) == status


@pytest.mark.parametrize("words", [(), ("elsewhere",)], ids=["as ever", "in a thread that waits for nothing"])
def test_ctrl_c_ends_the_question_wherever_the_signal_arrives(words):
    assert asked(lambda process, _: process.send_signal(signal.SIGINT), *words) == 130
