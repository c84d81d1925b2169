"""Builds an image from a Dockerfile into an empty folder, and runs programs in it, without a container engine.

Each step runs as the Dockerfile has it, in namespaces of its own that have the folder as their root. This machine's system and
Python stand in for the base images. Steps of the distribution's package manager are left out: they would change the machine.

It knows the instructions that our Dockerfile uses, and refuses all others.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = [*(f"/{name}" for name in ("bin", "lib", "lib64", "sbin", "usr") if Path("/", name).exists()), sys.base_prefix]
"""Folders of this machine that steps read; they write to a copy of ``/etc``."""
NETWORK = ("PIP_", "UV_", "SSL_", "HTTP_", "HTTPS_", "NO_PROXY")
"""How variables begin that tell installers what this machine's network is like."""
LEFT_OUT = ("apt-get ",)
TIMEOUT_S = 300


@dataclass(frozen=True)
class Instruction:
    line: int
    name: str
    flags: tuple[str, ...]
    text: str

    @property
    def words(self) -> list[str]:
        return json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)


def parsed(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile, each with the number of its first line."""
    start, whole = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        start, whole = start or number, whole + line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        flags = re.match(r"\w+((?:\s+--\S+)*)\s+", whole)
        assert flags, f"line {start}: no instruction: {whole}"
        yield Instruction(start, whole.split()[0], tuple(flags[1].split()), whole[flags.end() :].strip())
        start, whole = 0, ""


@dataclass
class Image:
    """A root in the making, and what programs in it start with."""

    root: Path
    kept: Mapping[str, Path]  # what lies beneath targets of RUN --mount, which are empty otherwise
    folder: str = "/"
    user: str = "0"
    environ: dict[str, str] = field(
        default_factory=lambda: {"PATH": f"{sys.base_prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    )
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree("/etc", self.root / "etc", symlinks=True, ignore=_what_only_root_reads)
        (self.root / "tmp").mkdir()

    def at(self, name: str) -> Path:
        """Where a path of the image is on this machine."""
        return Path(f"{self.root}{os.path.normpath(Path(self.folder, name))}")

    def takes(self, step: Instruction, context: Path, stages: Mapping[str, Image]) -> None:
        """Carry out one instruction."""
        match step.name:
            case "WORKDIR":
                self.folder = step.text
                self.at(".").mkdir(parents=True, exist_ok=True)
            case "ENV":
                for word in step.words:
                    name, _, value = word.partition("=")
                    self.environ[name] = value.replace("$PATH", self.environ["PATH"])
            case "USER":
                self.user = step.text
            case "ENTRYPOINT":
                self.entrypoint = step.words
            case "CMD":
                self.command = step.words
            case "COPY":
                [stage] = [flag.removeprefix("--from=") for flag in step.flags] or [""]
                self._copy(step, stages[stage].root if stage else context, () if stage else ("__pycache__",))
            case "RUN" if not step.text.startswith(LEFT_OUT):
                self._run(step)
            case "RUN":
                pass
            case _:
                raise NotImplementedError(f"line {step.line}: {step.name}")

    def _copy(self, step: Instruction, origin: Path, but: tuple[str, ...]) -> None:
        *sources, target = step.words
        for source in (Path(f"{origin}/{each}") for each in sources):
            if source.is_dir():
                shutil.copytree(source, self.at(target), symlinks=True, ignore=shutil.ignore_patterns(*but))
            else:
                shutil.copy(source, self.at(target))

    def _run(self, step: Instruction) -> None:
        targets = [match[1] for flag in step.flags for match in re.finditer(r"\btarget=([^,]+)", flag)]
        binds = dict.fromkeys(targets, self.root / "tmp")
        binds |= {
            name: kept for name, kept in self.kept.items() if any(Path(name).is_relative_to(each) for each in targets)
        }
        done = self.started("/bin/sh", "-ec", step.text, binds=binds)
        assert done.returncode == 0, f"line {step.line}: {step.text}\n{done.stdout}{done.stderr}"

    def started(
        self, *words: str, binds: Mapping[str, Path], read_only: bool = False, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in this root and return what came of it."""
        seen = {each: Path(each) for each in (*SYSTEM, "/dev", "/proc")} | dict(binds)
        for target in seen:
            Path(f"{self.root}{target}").mkdir(parents=True, exist_ok=True)
        script = [_mounted(self.root, self.root, read_only=read_only)]
        for target, source in seen.items():
            script.append(_mounted(source, Path(f"{self.root}{target}"), read_only=target in SYSTEM))
        network = {name: value for name, value in os.environ.items() if name.upper().startswith(NETWORK)}
        there = shlex.join(
            f"{name}={value}" for name, value in {**network, "HOME": "/root", **self.environ, **environ}.items()
        )
        uid, _, gid = f"{self.user}".partition(":")
        who = ["--user", f"--map-user={uid}", f"--map-group={gid or uid}", f"--root={self.root}", f"--wd={self.folder}"]
        script += [f"exec env -i {there} unshare {shlex.join([*who, *words])}"]
        return subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-euc", "\n".join(script)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=TIMEOUT_S,
        )  # fmt: skip


def _mounted(source: Path, target: Path, *, read_only: bool) -> str:
    """The commands that show *source* at *target*."""
    commands = [["mkdir", "-p", target], ["mount", "--rbind", source, target]]
    commands += [["mount", "-o", "remount,bind,ro", target]] if read_only else []
    return "\n".join(shlex.join(map(str, command)) for command in commands)


def _what_only_root_reads(folder: str, names: list[str]) -> list[str]:
    """Shadowed passwords among it: without them, a user is added where only one of this machine's users is known."""
    return [
        name for name in names if name.startswith(("shadow", "gshadow")) or not os.access(Path(folder, name), os.R_OK)
    ]


def built(file: Path, into: Path, kept: Mapping[str, Path]) -> Image:
    """Build the image of a Dockerfile, whose context is the folder it is in, and return its last stage.

    Raises:
        AssertionError: a step failed; the message has its line and what it printed.
        NotImplementedError: an instruction that nobody needed yet.
    """
    stages: dict[str, Image] = {}
    image = None
    for step in parsed(file.read_text()):
        if step.name == "ARG":
            continue
        if step.name == "FROM":
            name = step.words[-1] if len(step.words) == 3 else f"{len(stages)}"
            root = into / name
            root.mkdir(parents=True)
            image = stages[name] = Image(root, kept)
            continue
        assert image, f"line {step.line}: {step.name} before FROM"
        image.takes(step, file.parent, stages)
    assert image, "no FROM"
    return image
