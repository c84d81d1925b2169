"""Programs in Go that come with us as sources, built once per machine and user.

Vocabulary: *sources* are the files of a Go module in a folder of the installed package; their *digest*, with that of the flags
which change the outcome, names a *build*, a folder in the user's cache.

A build is published by renaming a finished folder, under a lock that all processes of the user share: it is there
completely or not at all. Never written to: the installed package and the user's Go settings. Never done: downloading
another Go toolchain.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

Log = Callable[[str], None]
"""Where progress goes, a line at a time and without a line end."""

DIGEST = "@digest@"
"""Stands in flags for the digest of the build."""

_PROGRESS_S = 10.0
_OURS = ("kubectl-reconcile.dev/", "a.kubectl-reconcile.dev/")
"""What the paths of our own modules begin with, which are compiled last."""
_ENOUGH_TO_TELL = 0.05
"""Share of the packages from which on their pace says something of the rest."""


class GoBuildError(Exception):
    """A program could not be built: *message* says why, *hint* what to do, *output* what go said at last."""

    def __init__(self, message: str, hint: str = "", *, output: str = "") -> None:
        super().__init__(f"{message} (hint: {hint})" if hint else message)
        self.message, self.hint, self.output = message, hint, output


class GoProgram(Struct, frozen=True):
    """A program whose sources are *files* in *folder*, called *what* in sentences; *otherwise* is what to do without it.

    A file that several programs share is named by its way there, as in ``../main.go``; it is built beside the others.
    """

    what: str
    folder: Path
    files: Sequence[str]
    otherwise: str

    def pinned(self, pattern: str) -> str:
        """Return what the first group of *pattern* finds in ``go.mod``.

        Raises:
            GoBuildError: nothing.
        """
        match = re.search(pattern, (self.folder / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
        if match is None:
            raise GoBuildError(
                f"{self.folder / 'go.mod'} is damaged: nothing in it matches {pattern}", "install this program again"
            )
        return match[1]

    def digest(self, flags: Sequence[str]) -> str:
        """Return what names a build: sources and the *flags* that change the outcome."""
        digest = hashlib.sha256("\0".join(["build", "-v", *flags, "-o", "", "."]).encode())
        for name in self.files:
            content = (self.folder / name).read_bytes()
            digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()[:16]

    def built(
        self,
        home: Path,
        flags: Sequence[str],
        log: Log,
        environ: Mapping[str, str],
        *,
        name: str,
        finish: Callable[[Path], None] = lambda _: None,
        platform: str = "",
    ) -> Path:
        """Return the folder below *home* with the build of these sources by *flags*, which is made first if it isn't there.

        The program in it is called *name*; *finish* adds to a new folder what else belongs there. *log* hears what is going on.
        It is for this machine, or for another *platform*, as in ``linux_arm64``; those have homes of their own.

        Raises:
            GoBuildError: there is no Go that can build it, or the build failed.
        """
        target = home / f"build-{self.digest(flags)}"
        if not target.is_dir():
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(home / "build.lock", self.what, log):
                if not target.is_dir():  # somebody else may have built it while we waited
                    self._build_into(target, flags, log, environ, name=name, finish=finish, platform=platform)
        return target

    def _build_into(
        self,
        target: Path,
        flags: Sequence[str],
        log: Log,
        environ: Mapping[str, str],
        *,
        name: str,
        finish: Callable[[Path], None],
        platform: str,
    ) -> None:
        go, go_environ = self.find_go(environ)
        if platform:
            go_environ["GOOS"], _, go_environ["GOARCH"] = platform.partition("_")
        for leftover in target.parent.glob("unfinished-*"):  # of a build that was killed: we hold the lock
            shutil.rmtree(leftover, ignore_errors=True)
        work = target.parent / f"unfinished-{target.name}"
        sources, output = work / "sources", work / "bin"
        for folder in (sources, output):
            folder.mkdir(mode=0o700, parents=True)
        for file in self.files:  # copied, since the package's folder may be read-only or inside another Go module
            copy = sources / (Path(file).name if file.startswith("..") else file)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes((self.folder / file).read_bytes())
        log(f"building {self.what} into {target} (some minutes the first time)")
        started = time.monotonic()
        stamped = [flag.replace(DIGEST, self.digest(flags)) for flag in flags]
        command = [go, "build", "-v", *stamped, "-o", str(output / name), "."]
        self._run(command, sources, go_environ, log, total=self.stale_packages(command, sources, go_environ, log))
        finish(output)
        output.rename(target)
        shutil.rmtree(work)
        log(f"built in {_elapsed(started)}")

    def find_go(self, environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
        """Return a Go that is new enough, and the environment in which it builds the same whatever the user has set.

        Raises:
            GoBuildError: there is none on the user's PATH.
        """
        needed = self.pinned(r"^go (\d+\.\d+)")
        go = shutil.which("go", path=environ.get("PATH", os.defpath))
        if go is None:
            raise GoBuildError(f"building {self.what} needs Go, and there is none on PATH", self._install(needed))
        # Not by "go env -w" either: an explicit value beats that file, an empty one would not.
        clean = {
            **environ,
            "GOTOOLCHAIN": "local",
            "GOFLAGS": "-mod=readonly -buildvcs=false",
            "GOWORK": "off",
            "GO111MODULE": "on",
        }
        answer = subprocess.run(
            [go, "env", "GOVERSION", "GOHOSTOS", "GOHOSTARCH"],
            check=False,
            capture_output=True,
            text=True,
            env=clean,
            cwd="/",
        )
        words = answer.stdout.split()
        version = re.search(r"go(\d+)\.(\d+)", answer.stdout)
        if answer.returncode or version is None:
            raise GoBuildError(
                f"{go} does not work: {answer.stderr.strip() or answer.stdout.strip()}", self._install(needed)
            )
        if (int(version[1]), int(version[2])) < tuple(int(number) for number in needed.split(".")):
            raise GoBuildError(
                f"building {self.what} needs Go {needed} or newer, and {go} is {version[0]}",
                self._install(needed),
            )
        return go, {**clean, "GOOS": words[-2], "GOARCH": words[-1]}

    def _install(self, needed: str) -> str:
        return f"install Go {needed} or newer from https://go.dev/dl/; {self.otherwise}"

    def stale_packages(self, build: list[str], folder: Path, environ: Mapping[str, str], log: Log) -> int:
        """Return how many packages the command *build* will compile in *folder*; downloads the modules that it needs.

        Raises:
            GoBuildError: a module can't be read.
        """
        go, flags = build[0], [word for word in build[2:-1] if word != "-v"]
        output = flags.index("-o")
        del flags[output : output + 2]
        template = "{{if .Stale}}{{.ImportPath}}{{end}}"
        listed = self._run([go, "list", "-deps", *flags, "-f", template, build[-1]], folder, environ, log)
        return sum(1 for each in listed.splitlines() if each)

    def _run(self, command: list[str], folder: Path, environ: Mapping[str, str], log: Log, *, total: int = 0) -> str:
        """Run go in *folder*, tell *log* every few seconds how far it is, and return what it prints."""
        started = time.monotonic()
        lines: list[str] = []
        with tempfile.TemporaryFile("w+") as printed:
            with subprocess.Popen(
                command,
                cwd=folder,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as compiler:
                assert compiler.stderr is not None  # noqa: S101 - for the type checker: PIPE was asked for
                reader = threading.Thread(target=lines.extend, args=(compiler.stderr,), daemon=True)
                reader.start()
                try:
                    while reader.is_alive():
                        reader.join(_PROGRESS_S)
                        if reader.is_alive():
                            log(f"  {_elapsed(started)}  {progress(lines, total, time.monotonic() - started)}")
                except BaseException:
                    compiler.terminate()
                    raise
            if compiler.returncode:
                hint = f"the Go modules must be reachable (see GOPROXY), and the disk needs 5 GB; {self.otherwise}"
                raise GoBuildError(f"go {command[1]} exited {compiler.returncode}", hint, output=_last_words(lines))
            printed.seek(0)
            return printed.read()


@contextlib.contextmanager
def locked(path: Path, what: str, log: Log) -> Iterator[None]:
    """Hold the lock that is the file at *path* while *what* is built; *log* hears that somebody else holds it."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"another process is building {what}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def progress(lines: list[str], total: int, elapsed_s: float) -> str:
    """Return how far go is by the *lines* that it printed, and how long it will take once enough was done to tell.

    *total* is how many packages it compiles, *elapsed_s* for how long it has.
    """
    downloads = sum(line.startswith("go: downloading ") for line in lines)
    packages = [line.strip() for line in lines if not line.startswith(("go: ", "#"))]
    if not packages:
        return f"downloaded {downloads} modules" if downloads else "checking what is already compiled"
    done, total = len(packages), max(total, len(packages))
    said = f"compiled {done} of {total} packages ({done * 100 // total} %)"
    if packages[-1].startswith(_OURS) or done == total:
        return f"{said}, linking them"
    if done < total * _ENOUGH_TO_TELL:
        return said
    return f"{said}, about {_minutes(elapsed_s * (total - done) / done)} left"


def _last_words(lines: list[str]) -> str:
    """Return the lines that say what went wrong, without the progress that ``-v`` prints between them."""
    said = [
        line.rstrip()
        for line in lines
        if not line.startswith("go: downloading ") and not re.fullmatch(r"[\w.~/-]+\s*", line)
    ]
    return "\n".join(said[-20:]) or "no output"


def _elapsed(since: float) -> str:
    return _minutes(time.monotonic() - since)


def _minutes(of_s: float) -> str:
    minutes, seconds = divmod(round(of_s), 60)
    return f"{minutes}:{seconds:02}"
