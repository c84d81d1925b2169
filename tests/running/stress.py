"""Company that slows a run down: processes that compute without end, and others that write to the disk and wait for it.

They are children of the run and read from it; so they end once it has ended, whatever ended it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BUSY = 4
WRITERS = 2

COMPUTES = """
import select, sys
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(1_000_000):
        pass
"""

WRITES = """
import os, select, sys
with open(sys.argv[1], "wb") as file:
    while not select.select([sys.stdin], [], [], 0)[0]:
        file.seek(0)
        for _ in range(16):
            file.write(bytes(2**19))
            file.flush()
            os.fsync(file.fileno())
"""


class Stress:
    """Busy processes, and a slow disk where *folder* is: each writer has a file of eight megabytes there."""

    def __init__(self, folder: Path) -> None:
        files = [folder / f"written-{number}" for number in range(WRITERS)]
        commands = [[COMPUTES]] * BUSY + [[WRITES, str(file)] for file in files]
        self.processes = [
            subprocess.Popen([sys.executable, "-I", "-c", *command], stdin=subprocess.PIPE) for command in commands
        ]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
