"""Programs that are talked to while they run."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def talking(
    command: Sequence[str | Path], *, patience_s: float = 300.0, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """Run a program that is talked to while it runs; it is killed at the end, and *patience_s* from now at the latest.

    So a line that never comes is an empty one, and nobody waits for ever.
    """
    process = subprocess.Popen(command, text=True, **options)
    patience = threading.Timer(patience_s, process.kill)
    patience.daemon = True
    patience.start()
    try:
        yield process
    finally:
        patience.cancel()
        process.kill()
        process.communicate()
