"""What a Git server and a repository may make us hold; beyond it a source is refused, and only the Sync that follows it suffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1024 * 1024

SAID_KEPT_BYTES: Final = 64 * 1024
"""How much of what git complains of is kept, to tell what is wrong."""
MOST_OUTPUT_BYTES: Final = 256 * MEBIBYTE
"""How much one git command may print."""


@dataclass(frozen=True, slots=True)
class GitLimits:
    """Ceilings: *memory_bytes* of data of each git process, *clone_bytes* on disk, *files* of one revision at a path.

    *seconds* are how long each git process may take, by the clock and of a processor; *said_bytes* what it, or the server through it,
    may say before it is taken for a flood. Where the kernel can't limit a process's memory (macOS) nothing does.
    """

    memory_bytes: int = 2048 * MEBIBYTE
    clone_bytes: int = 5120 * MEBIBYTE
    files: int = 100_000
    seconds: int = 600
    said_bytes: int = 16 * MEBIBYTE
