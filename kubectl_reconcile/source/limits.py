"""What a Git server and a repository may make us hold; beyond it a source is refused, and only the Sync that follows it suffers."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1024 * 1024

MOST_SAID_BYTES: Final = 16 * MEBIBYTE
"""How much git, or the server through it, may say before it is taken for a flood."""
SAID_KEPT_BYTES: Final = 64 * 1024
"""How much of that is kept, to tell what is wrong."""
MOST_OUTPUT_BYTES: Final = 256 * MEBIBYTE
"""How much one git command may print."""


@dataclass(frozen=True, slots=True)
class GitLimits:
    """Ceilings: *memory_bytes* of data of each git process, *clone_bytes* on disk, *files* of one revision at a path."""

    memory_bytes: int = 2048 * MEBIBYTE
    clone_bytes: int = 5120 * MEBIBYTE
    files: int = 100_000

    def impose(self, process_id: int) -> None:
        """Have the kernel hold a process, and all that it starts from now on, to its memory and the size of its files.

        A lower limit that we run under ourselves stays. Files that git maps to read them don't count as memory. Nothing happens where the system can't do that (macOS).
        """
        if not hasattr(resource, "prlimit"):
            return
        for kind, wanted in ((resource.RLIMIT_DATA, self.memory_bytes), (resource.RLIMIT_FSIZE, self.clone_bytes)):
            try:
                least = [each for each in resource.prlimit(process_id, kind) if each != resource.RLIM_INFINITY]
                most = min([wanted, *least])
                resource.prlimit(process_id, kind, (most, most))
            except ProcessLookupError:  # it has ended already
                return
