"""A client that writes numbers, each once, and notes which it was told are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.chaos.daemon import until
from tests.chaos.live import LiveResource


@dataclass
class Acked:
    """What the client was told is stored: numbers, and when each was."""

    file: Path
    seen: list[tuple[int, float]] = field(default_factory=list)
    _read: int = 0

    def all(self) -> list[tuple[int, float]]:
        with self.file.open() as lines:
            lines.seek(self._read)
            text = lines.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole.encode())
        self.seen += [(int(number), float(at_s)) for number, at_s in map(str.split, whole.splitlines())]
        return self.seen

    def longest_gap_s(self, since_s: float) -> float:
        """Return for how long nothing was acknowledged, at most, since a moment."""
        times = [at_s for _, at_s in self.all()]
        first = next((at for at, at_s in enumerate(times) if at_s > since_s), len(times) - 1)
        return max((later - sooner for sooner, later in pairwise(times[max(first - 1, 0) :])), default=0.0)


def write(live: LiveResource, folder: Path, program: str, env: Mapping[str, Any] | None = None) -> Acked:
    """Let a client write from now on: *program* is of Python, and notes each number with the time in ``/acks/acked``."""
    acked = Acked(folder / "acked")
    acked.file.touch()
    container = {"name": "main", "image": "python", "command": ["python", "-uc", program]}
    container["volumeMounts"] = [{"name": "acks", "mountPath": "/acks"}]
    container["env"] = [{"name": name, **source} for name, source in (env or {}).items()]
    volume = {"name": "acks", "hostPath": {"path": str(folder)}}
    spec = {"containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 0}
    live.ask("POST", live.path("pods"), {"metadata": {"name": "writer"}, "spec": spec})
    until(lambda: len(acked.all()) > 20, "the client writes")
    return acked
