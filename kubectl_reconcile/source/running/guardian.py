"""Whoever kills the process groups that we leave behind, should we be killed ourselves.

A shell that reads from a pipe which process groups live; when the pipe ends, since all that held it is gone, it kills them.
It is started with the first of them, in a session of its own, and ends with us. Nothing else would reach all members
of a group: the kernel tells a child of its parent's death, and not the child's own children.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading
from typing import IO, Final

_SCRIPT: Final = """
live=' '
while read -r what group; do
  case $what in
    live) live="$live$group " ;;
    gone) live="${live%% $group *} ${live#* $group }" ;;
  esac
done
for group in $live; do kill -9 "-$group" 2> /dev/null; done
"""


class Guardian:
    """One shell that outlives us just long enough; may be used from any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._groups: set[int] = set()
        self._pipe: IO[bytes] | None = None
        self._shell: subprocess.Popen[bytes] | None = None

    def watch(self, group: int) -> None:
        """Have the process group killed when we are gone."""
        with self._guard:
            self._groups.add(group)
            self._tell(f"live {group}\n")

    def leave(self, group: int) -> None:
        """Forget the process group: it has ended, and its number may be another's soon."""
        with self._guard:
            self._groups.discard(group)
            self._tell(f"gone {group}\n")

    def _tell(self, line: str) -> None:
        """Tell the shell, a new one where there is none or it was killed: that hears of all groups."""
        if self._shell is not None and self._shell.poll() is None and self._pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                self._pipe.write(line.encode())
                return
        self._start()

    def _start(self) -> None:
        if self._pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                self._pipe.close()
        self._shell = subprocess.Popen(
            ["sh", "-c", _SCRIPT, "kubectl-reconcile-guardian"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, bufsize=0, cwd="/",
        )  # fmt: skip
        self._pipe = self._shell.stdin
        if self._pipe is not None:
            self._pipe.write("".join(f"live {group}\n" for group in self._groups).encode())


GUARDIAN: Final = Guardian()
"""That of this process."""
