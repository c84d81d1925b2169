"""A client that writes numbers, each once, and notes which it was told are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from tests.chaos.daemon import until
from tests.chaos.live import LiveResource, soon


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


_Acked = TypeVar("_Acked", bound=Acked)


def write(
    live: LiveResource, folder: Path, program: str, env: Mapping[str, Any] | None = None, *, kind: type[_Acked] = Acked
) -> _Acked:
    """Let a client write from now on: *program* is of Python, and notes each number with the time in ``/acks/acked``."""
    acked = kind(folder / "acked")
    acked.file.touch()
    begin(live, "writer", program, env=env, acks=folder)
    until(lambda: len(acked.all()) > 20, "the client writes")
    return acked


def begin(
    live: LiveResource, name: str, program: str, *words: str, acks: Path | None = None, env: Mapping[str, Any] | None = None, again: str = "Always"
) -> None:  # fmt: skip
    """Begin a program of Python in a pod of this *name*; *acks* is the folder that it sees as ``/acks``, *again* when it is begun again."""
    container = {"name": "main", "image": "python", "command": ["python", "-uc", program, *words]}
    container["env"] = [{"name": variable, **source} for variable, source in (env or {}).items()]
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "restartPolicy": again}
    if acks:
        container["volumeMounts"] = [{"name": "acks", "mountPath": "/acks"}]
        spec["volumes"] = [{"name": "acks", "hostPath": {"path": str(acks)}}]
    live.ask("POST", live.path("pods"), {"metadata": {"name": name}, "spec": spec})


def run_once(live: LiveResource, name: str, program: str, *words: str, acks: Path | None = None) -> None:
    """Run a program of Python in a pod of this *name* to its end; where it fails it is run again."""
    begin(live, name, program, *words, acks=acks, again="OnFailure")
    soon(lambda: live.ask("GET", live.path("pods", name))["status"]["phase"] == "Succeeded", f"{name} has ended")
    live.delete_pod(name, at_once=True)
    soon(lambda: not live.ask("GET", live.path("pods", name)), f"{name} is gone")
