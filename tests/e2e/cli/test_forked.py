"""Processes that are forked are like those that start from nothing, in all that tests look at."""

import os
import signal
import subprocess

import pytest

from tests import forked

COMMANDS = {
    "an answer": ["version", "-o", "json"],
    "a wrong word": ["nonsense"],
    "no cluster": ["diff", "-f", ".", "--server", "http://127.0.0.1:1"],
    "standard input": ["diff", "-f", "-", "--server", "http://127.0.0.1:1"],
    "Python's own variables": ["version"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_command_says_and_answers_the_same(words, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if "Python" in request.node.name:
        monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    real = subprocess.run([forked.PROGRAM, *words], input="a: 1\n", capture_output=True, text=True, check=False)
    ours = forked.run(words, text="a: 1\n")
    assert (ours.returncode, ours.stdout, ours.stderr) == (real.returncode, real.stdout, real.stderr)


@pytest.fixture
def waiting(kubeconfig, namespace, crds, tmp_path):
    """A command that goes on until it is ended, and has begun."""
    words = ["get", "--watch", "--kubeconfig", kubeconfig, "-n", namespace]
    with (tmp_path / "said").open("wb") as said:
        process = forked.start(words, env=os.environ, stdout=said.fileno(), stderr=said.fileno())
    yield process
    process.kill()
    process.wait()


def test_one_that_goes_on_is_told_by_signals_to_end(waiting):
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.2)
    assert waiting.poll() is None
    os.kill(waiting.pid, 0)
    waiting.send_signal(signal.SIGKILL)
    assert waiting.wait(60) == waiting.poll() == -signal.SIGKILL


def test_one_after_the_other_is_of_another_start(tmp_path):
    """What hangs on the order of a set differs between them, as between any two processes."""
    said = [forked._next_parent() for _ in range(4)]
    assert said[0] is not said[1]
    assert (said[0], said[1]) == (said[2], said[3])


def test_one_that_takes_too_long_is_killed(kubeconfig, namespace, crds):
    words = ["get", "--watch", "--kubeconfig", kubeconfig, "-n", namespace]
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run(words, timeout=1)
