"""One git process: a session and process group of its own, no terminal, and an environment that nobody else has a say in.

A shell of one line sets its limits and becomes git, so that they hold for git and all that it starts from the first
instruction on. The whole group is killed when its time is up, when it isn't needed any more (``ending``), when the block
around it is left early, and when we are gone ourselves (``guardian``).
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

from msgspec import Struct, field

from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import MEBIBYTE, MOST_OUTPUT_BYTES, SAID_KEPT_BYTES, GitLimits
from kubectl_reconcile.source.running.ending import Ending, ending
from kubectl_reconcile.source.running.guardian import GUARDIAN

BIG_FILE: Final = "1m"
QUIET: Final = {
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
    "GIT_NAMESPACE": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TRACE": "0",
    "GIT_TRACE_CURL": "0",
    "GIT_TRACE_PACKET": "0",
    # What is larger is passed on in pieces, and never held as a whole. Who talks to a server says the same among other things.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.bigFileThreshold",
    "GIT_CONFIG_VALUE_0": BIG_FILE,
}
NOWHERE: Final = {"GIT_DIR": os.devnull}

_BLOCK = 64 * 1024
_SHELL = 'trap "" XFSZ; ulimit -d "$1"; ulimit -f "$2"; ulimit -t "$3"; shift 3; exec "$@"'
"""How git is started within its limits. A file that grows too large ends it with a sentence: of a signal, fetch-pack says nothing."""
_FILE_UNIT = 512
"""What POSIX counts the size of files in, in bytes."""


class GitProcess(Struct, frozen=True):
    """A git that runs. *late* is set once its time was up."""

    popen: Any
    ending: Ending
    limits: GitLimits
    late: threading.Event = field(default_factory=threading.Event)

    def kill(self) -> None:
        """Kill it with all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.popen.returncode is None:  # else its id may be another's by now
                os.killpg(self.popen.pid, signal.SIGKILL)

    def kill_late(self) -> None:
        """Kill it since its time is up."""
        self.late.set()
        self.kill()

    def heard(self, most_bytes: int = MOST_OUTPUT_BYTES) -> tuple[bytes, bytes, str]:
        """Listen to its end; return what it printed, what it complained of, and what was too much, if anything.

        Whoever says too much is killed.
        """
        with self.complaints() as (complaint, excess):
            output = bytearray()
            while block := self.popen.stdout.read1(_BLOCK):
                output += block
                if len(output) > most_bytes:
                    excess.append(f"git printed more than {most_bytes // MEBIBYTE} MiB")
                    self.kill()
                    break
        return bytes(output), bytes(complaint), "".join(excess[:1])

    @contextlib.contextmanager
    def complaints(self) -> Iterator[tuple[bytearray, list[str]]]:
        """Listen to what it complains of while the block listens to what it prints; after the block it has ended.

        Yields what is complained of, and what was too much of something.
        """
        complaint = bytearray()
        excess: list[str] = []
        listener = threading.Thread(target=self._listen, args=(complaint, excess), daemon=True)
        listener.start()
        try:
            yield complaint, excess
        except BaseException:
            self.kill()
            raise
        finally:
            listener.join()  # before the process is waited for: until then its whole group can be killed when time is up
            self.popen.wait()

    def _listen(self, complaint: bytearray, excess: list[str]) -> None:
        said, most = 0, self.limits.said_bytes
        while block := self.popen.stderr.read1(_BLOCK):
            said += len(block)
            complaint.extend(block[: SAID_KEPT_BYTES - len(complaint)])
            if said > most and not excess:
                excess.append(said_too_much(self.limits))
                self.kill()


def said_too_much(limits: GitLimits) -> str:
    """Return what is wrong where a server complains of more than it may."""
    return f"the server said more than {limits.said_bytes // MEBIBYTE} MiB, which is too much"


@contextlib.contextmanager
def running(
    arguments: list[str],
    environment: Mapping[str, str],
    limits: GitLimits,
    timeout_s: float,
    stdin: BinaryIO | None = None,
) -> Iterator[GitProcess]:
    """Run git and yield it; by the end of the block it is gone, killed with its children unless it ended by itself.

    Raises:
        SourceError: there is no git, or nobody waits any more.
    """
    waited = ending()
    waited.check()
    git = GitProcess(_start(arguments, environment, limits, stdin), waited, limits)
    GUARDIAN.watch(git.popen.pid)
    watchdog = threading.Timer(timeout_s, git.kill_late)
    watchdog.daemon = True
    watchdog.start()
    try:
        with waited.around(git.kill):
            yield git
    finally:
        watchdog.cancel()
        if git.popen.poll() is None:
            git.kill()
        GUARDIAN.leave(git.popen.pid)
        for stream in (git.popen.stdout, git.popen.stderr):
            stream.close()
        git.popen.wait()


@contextlib.contextmanager
def given(data: bytes) -> Iterator[BinaryIO | None]:
    """Yield a file that holds *data* for git to read, None if there is none; it has no name and vanishes."""
    if not data:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def _start(arguments: list[str], environment: Mapping[str, str], limits: GitLimits, stdin: BinaryIO | None) -> Any:
    """Start git, the leader of its own process group, without a terminal to ask at."""
    git = shutil.which("git")
    try:
        from git.cmd import Git  # noqa: PLC0415 - importing GitPython runs git, which may not be there
        from git.exc import GitCommandNotFound  # noqa: PLC0415
    except ImportError:
        raise _no_git() from None
    if git is None:
        raise _no_git()
    try:
        command = limited([git, "--no-pager", *arguments], limits)
        started = Git().execute(
            command, istream=stdin, env=dict(environment), as_process=True, start_new_session=True, shell=False
        )
    except GitCommandNotFound:
        raise SourceError(
            SourceFault.FAILED, "there is no shell here", "git is started by sh, which sets its limits"
        ) from None
    process, started.proc = started.proc, None  # GitPython would end it as soon as we release its wrapper
    return process


def limited(command: list[str], limits: GitLimits) -> list[str]:
    """Return the command that sets these limits and becomes *command*."""
    return ["sh", "-c", _SHELL, "sh", *_limits(limits), *command]


def _no_git() -> SourceError:
    return SourceError(SourceFault.FAILED, "git is not installed here", "install git 2.31 or newer")


def _limits(limits: GitLimits) -> list[str]:
    """Return what the shell sets: memory, size of files and seconds of the processor, in the shell's units.

    A lower limit that we run under ourselves stays. Files that git maps to read them don't count as memory.
    """
    memory, file, seconds = (
        min([wanted, *(each for each in resource.getrlimit(kind) if each != resource.RLIM_INFINITY)])
        for kind, wanted in (
            (resource.RLIMIT_DATA, limits.memory_bytes),
            (resource.RLIMIT_FSIZE, limits.clone_bytes),
            (resource.RLIMIT_CPU, limits.seconds),
        )
    )
    return [str(memory // 1024), str(file // _FILE_UNIT), str(seconds)]
