"""Programs that are talked to while they run."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def talking(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a program that is talked to while it runs; it is killed at the end, and five minutes from now at the latest.

    So a line that never comes is an empty one, and nobody waits for ever.
    """
    process = subprocess.Popen(command, text=True, **options)
    patience = threading.Timer(300, process.kill)
    patience.start()
    try:
        yield process
    finally:
        patience.cancel()
        process.kill()
        process.communicate()
