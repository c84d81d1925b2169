"""The program that renders, as a process."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubectl_reconcile.source.fenced.process import FencedProcess
from kubectl_reconcile.source.render.program import RENDER
from kubectl_reconcile.source.running.memory import LEAST_BYTES, LIGHT_RENDERING_BYTES

SECONDS: Final = 30.0
"""How long one rendering may take."""


class RenderProcess(FencedProcess):
    """One running process, which renders one overlay or chart at a time; it may write *memory_bytes* of *all_bytes*.

    Raises:
        ProgramEndedError: it doesn't start, or is of another version.
        SourceError: nobody waits any more.
    """

    def __init__(self, place: Path, memory_bytes: int = LIGHT_RENDERING_BYTES, all_bytes: int = LEAST_BYTES) -> None:
        super().__init__(RENDER, place, memory_bytes, all_bytes)
