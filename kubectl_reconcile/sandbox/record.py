"""What a sandbox remembers of itself between two commands, and the lock that lets one command at a time change it.

A record names the process and the port of each component. It is replaced as a whole by a rename, so a reader needs no
lock and never sees half of one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.components import Component, Layout, Options
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.names import DEFAULT_NAME
from kubectl_reconcile.sandbox.processes import ProcessId


@dataclass(frozen=True, slots=True)
class Record:
    """One sandbox as it was left by the last command that changed it."""

    options: Options
    programs: Path
    """The folder of the programs that it was started with last."""
    components: tuple[Component, ...] = ()
    """What it consists of, in order of their start: what the options ask for, so far as there are programs for it."""
    ports: Mapping[Component, int] = field(default_factory=dict)
    processes: Mapping[Component, ProcessId | None] = field(default_factory=dict)
    """None for one that we stopped; no entry for one that never started."""

    def process(self, component: Component) -> ProcessId | None:
        """Return the process of *component* if it still runs."""
        found = self.processes.get(component)
        return found if found is not None and found.alive else None

    def running(self) -> set[ProcessId]:
        """Return the processes that still run."""
        return {process for component in self.processes if (process := self.process(component))}

    def to_json(self) -> str:
        """Return the text that :meth:`from_json` reads."""
        content = {
            "options": self.options.to_json(),
            "programs": str(self.programs),
            "components": self.components,
            "ports": self.ports,
            "processes": {name: one and [one.pid, one.born] for name, one in self.processes.items()},
        }
        return json.dumps(content, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read what :meth:`to_json` wrote.

        Raises:
            ValueError: it is something else.
        """
        try:
            content: dict[str, Any] = json.loads(text)
            return cls(
                Options.from_json(content["options"]),
                Path(content.get("programs", "")),
                tuple(Component(name) for name in content["components"]),
                {Component(name): int(port) for name, port in content["ports"].items()},
                {Component(name): one and ProcessId(*one) for name, one in content["processes"].items()},
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not a record: {error!r}") from error


@dataclass(frozen=True, slots=True)
class RecordFile:
    """Where the sandbox *name* keeps its record."""

    name: str
    layout: Layout

    def load(self) -> Record | None:
        """Return the record, None where there is no sandbox.

        Raises:
            SandboxError: it can't be read.
        """
        try:
            return Record.from_json(self.layout.record.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            hint = f"end the processes that run in {self.layout.folder}, then delete it"
            raise SandboxError(f"{self.layout.record} can't be read: {error}", hint) from error

    def require(self) -> Record:
        """Return the record.

        Raises:
            SandboxError: there is no sandbox, or its record can't be read.
        """
        record = self.load()
        if record is None:
            raise SandboxError(f"there is no sandbox {self.name}", f"start it: {self.command('up')}")
        return record

    def save(self, record: Record) -> Record:
        """Write *record* down, and return it."""
        write_private(self.layout.record, record.to_json())
        return record

    def command(self, verb: str) -> str:
        """Return the command that does *verb* to this sandbox, for hints."""
        return f"kubectl reconcile sandbox {verb}" + ("" if self.name == DEFAULT_NAME else f" --name {self.name}")


def write_private(path: Path, text: str) -> None:
    """Replace the file at *path* by *text*, readable by its owner only, at once and as a whole."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock at *path*, waiting for it as long as it takes. The holder may delete the file."""
    while True:
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    yield
                    return
        # Who held it before us has deleted the file, so the next one to come would lock another.
