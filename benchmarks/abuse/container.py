"""The memory of a container: a cgroup of 1 GiB where one can be made, as the daemon's container has it; else nothing but figures.

A cgroup is made below this program's own, by version 2 or 1 of cgroups, whichever has memory. That needs no root where the folder was
handed over to whoever runs this.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

BYTES: Final = 1 << 30
_PLACES: Final = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory")
_LOOK_S: Final = 0.2


@dataclass
class Container:
    """Where processes are put, and what they take. *folder* is the cgroup, None where none could be made."""

    folder: Path | None
    most_rss: int = 0
    _family: list[psutil.Process] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def put(self, pid: int) -> None:
        """Put a process into it, and those that it starts from now on; from now on it is looked at."""
        if self.folder is not None:
            (self.folder / "cgroup.procs").write_text(str(pid))
        self._family = [psutil.Process(pid)]

    @property
    def kills(self) -> int:
        """How many processes the kernel has ended for want of memory."""
        if self.folder is None:
            return 0
        texts = [(self.folder / name) for name in ("memory.events", "memory.oom_control")]
        lines = [line.split() for file in texts if file.exists() for line in file.read_text().splitlines()]
        return sum(int(count) for name, count in lines if name == "oom_kill")

    @property
    def most_bytes(self) -> int:
        """The most memory that there was at a time, with files that the kernel keeps; 0 where it doesn't count."""
        files = [self.folder / name for name in ("memory.peak", "memory.max_usage_in_bytes")] if self.folder else []
        return next((int(file.read_text()) for file in files if file.exists()), 0)

    def forget(self) -> None:
        """Begin anew to look for the most."""
        self.most_rss = 0

    def _look(self) -> None:
        while not self._over.wait(_LOOK_S):
            rss = 0
            for root in self._family:
                with contextlib.suppress(psutil.Error):
                    rss += root.memory_info().rss
                    for each in root.children(recursive=True):
                        with contextlib.suppress(psutil.Error):
                            rss += each.memory_info().rss
            self.most_rss = max(self.most_rss, rss)


@contextlib.contextmanager
def container(name: str) -> Iterator[Container]:
    """A container for the time of a block; whoever is in it has ended by then."""
    made = Container(_cgroup(name))
    looking = threading.Thread(target=made._look, daemon=True)  # noqa: SLF001 - its own
    looking.start()
    try:
        yield made
    finally:
        made._over.set()  # noqa: SLF001 - its own
        looking.join()
        if made.folder is not None:
            with contextlib.suppress(OSError):
                made.folder.rmdir()


def _cgroup(name: str) -> Path | None:
    """Return a new cgroup whose memory is bounded, None where none can be made."""
    own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    version_2 = next((path for number, _, path in own if number == "0"), "/")
    version_1 = next((path for _, controllers, path in own if "memory" in controllers.split(",")), "/")
    for place in _PLACES:
        path = version_1 if place.endswith("memory") else version_2
        folder = Path(place) / path.lstrip("/") / name
        for limit in ("memory.max", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError):
                folder.mkdir(exist_ok=True)
                if (folder / limit).exists():
                    (folder / limit).write_text(str(BYTES))
                    _group_whole(folder)
                    return folder
        with contextlib.suppress(OSError):
            folder.rmdir()
    return None


def _group_whole(folder: Path) -> None:
    """Have the whole container end where one of its processes is ended for want of memory, as a kubelet does."""
    with contextlib.suppress(OSError):
        if (folder / "memory.oom.group").exists():
            (folder / "memory.oom.group").write_text("1")
        if (folder / "memory.swap.max").exists():
            (folder / "memory.swap.max").write_text("0")
