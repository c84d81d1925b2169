"""Build the control plane's programs from source, once per machine and user.

Vocabulary: *sources* are the Go module beside this file (``go.mod``, ``go.sum``, ``main.go``); their *digest* names a
*build*, a folder in the user's cache that holds one program and a link to it for each part of the control plane;
*assets* are programs that somebody else built, in the folder that ``KUBEBUILDER_ASSETS`` names, and are preferred to
building where that variable is set.

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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kubectl_reconcile.sandbox.errors import BuildError

Log = Callable[[str], None]
"""Where progress goes, a line at a time and without a line end."""

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
"""Every program of a complete build, by the name it is called."""

STAGES = "kwok-stages.yaml"
"""File beside the programs that tells kwok how simulated nodes and pods become Ready."""

_REQUIRED = ("etcd", "kube-apiserver")
_SOURCES = Path(__file__).parent
_SOURCE_FILES = ("go.mod", "go.sum", "main.go")
_MODULE = "kubectl-reconcile.dev/sandbox"
_PROGRESS_S = 10.0
_ENOUGH_TO_TELL = 0.05
"""Share of the packages from which on their pace says something of the rest."""

_WITHOUT_GO = (
    "or set KUBEBUILDER_ASSETS to a folder with prebuilt etcd, kube-apiserver and kubectl (then nothing is built); "
    "or do without a sandbox and point KUBECONFIG at a cluster you have"
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with the control plane's programs, ready to run."""

    folder: Path
    missing: tuple[str, ...] = ()
    """Parts that the folder lacks. Only a folder of prebuilt assets lacks any."""

    def path(self, part: str) -> Path:
        """Return the program of *part*, one of :data:`PARTS`.

        Raises:
            BuildError: the folder lacks it.
        """
        if part in self.missing:
            raise BuildError(f"{self.folder} has no {part}", "put it there, or unset KUBEBUILDER_ASSETS to build all")
        return self.folder / part

    @property
    def stages(self) -> Path:
        """The configuration of kwok."""
        return self.folder / STAGES


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's cache folder of this program, which may not exist yet."""
    base = environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "kubectl-reconcile"  # noqa: PTH117 - "" too


def build(log: Log, *, environ: Mapping[str, str] = os.environ) -> Binaries:
    """Return the control plane's programs, building them first if this machine has no build of these sources.

    A first build takes some minutes and downloads about 300 MB of Go modules; *log* hears what is going on.

    Raises:
        BuildError: there is no Go that can build them, the build failed, or the prebuilt assets are not usable.
    """
    assets = environ.get("KUBEBUILDER_ASSETS", "")
    if assets:
        return _prebuilt(Path(assets), log)
    home = cache_dir(environ) / "sandbox"
    target = home / f"build-{_digest()}"
    if not target.is_dir():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(home / "build.lock", log):
            if not target.is_dir():  # somebody else may have built it while we waited
                _build_into(target, log, environ)
    return Binaries(target)


def kubernetes_version() -> str:
    """Return the version of Kubernetes that the sources pin, as ``v1.36.3``."""
    return _pinned(r"^\tk8s\.io/kubernetes (v\S+)")


def _prebuilt(folder: Path, log: Log) -> Binaries:
    missing = tuple(part for part in PARTS if not os.access(folder / part, os.X_OK))
    if not (folder / STAGES).is_file() and "kwok" not in missing:
        missing = (*missing, "kwok")
    lacking = [part for part in _REQUIRED if part in missing]
    if lacking:
        raise BuildError(
            f"KUBEBUILDER_ASSETS={folder} has no {' and no '.join(lacking)}",
            "point it at a folder with etcd, kube-apiserver and kubectl, or unset it to build them",
        )
    if missing:
        log(f"using the programs in {folder} (KUBEBUILDER_ASSETS), which lacks {', '.join(missing)}: {_loss(missing)}")
    return Binaries(folder, missing)


def _loss(missing: tuple[str, ...]) -> str:
    if {"kube-controller-manager", "kube-scheduler", "kwok"} & set(missing):
        return "no pod will ever run; unset KUBEBUILDER_ASSETS to build them all"
    return "use your own kubectl"


def _pinned(pattern: str) -> str:
    match = re.search(pattern, (_SOURCES / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise BuildError(
            f"{_SOURCES / 'go.mod'} is damaged: nothing in it matches {pattern}", "install this program again"
        )
    return match[1]


def _digest() -> str:
    """Return what names a build: sources and the flags that change the outcome."""
    digest = hashlib.sha256("\0".join(_build_command("")).encode())
    for name in _SOURCE_FILES:
        content = (_SOURCES / name).read_bytes()
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _build_command(output: str) -> list[str]:
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    symbols = " ".join(f"-X {package}.{key}={value}" for package in packages for key, value in stamps.items())
    return ["build", "-v", "-trimpath", "-ldflags", f"-s -w {symbols}", "-o", output, "."]


@contextlib.contextmanager
def _locked(path: Path, log: Log) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log("another process is building the control plane: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_into(target: Path, log: Log, environ: Mapping[str, str]) -> None:
    go, go_environ = find_go(environ)
    for leftover in target.parent.glob("unfinished-*"):  # of a build that was killed: we hold the lock
        shutil.rmtree(leftover, ignore_errors=True)
    work = target.parent / f"unfinished-{target.name}"
    sources, output = work / "sources", work / "bin"
    for folder in (sources, output):
        folder.mkdir(mode=0o700, parents=True)
    for name in _SOURCE_FILES:  # copied, since the package's folder may be read-only or inside another Go module
        (sources / name).write_bytes((_SOURCES / name).read_bytes())
    log(f"building the control plane of Kubernetes {kubernetes_version()} into {target} (some minutes the first time)")
    started = time.monotonic()
    command = [go, *_build_command(str(output / "control-plane"))]
    packages = stale_packages(command, sources, go_environ, log)
    _run(command, sources, go_environ, log, total=packages)
    for part in (*PARTS, "kwok-stages"):
        (output / part).symlink_to("control-plane")
    stages = subprocess.run([output / "kwok-stages"], check=True, capture_output=True).stdout
    (output / STAGES).write_bytes(stages)
    output.rename(target)
    shutil.rmtree(work)
    log(f"built in {_elapsed(started)}")


def find_go(environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a Go that is new enough, and the environment in which it builds the same whatever the user has set.

    Raises:
        BuildError: there is none on the user's PATH.
    """
    needed = _pinned(r"^go (\d+\.\d+)")
    go = shutil.which("go", path=environ.get("PATH", os.defpath))
    if go is None:
        raise BuildError("building the sandbox's control plane needs Go, and there is none on PATH", _install(needed))
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
        raise BuildError(f"{go} does not work: {answer.stderr.strip() or answer.stdout.strip()}", _install(needed))
    if (int(version[1]), int(version[2])) < tuple(int(number) for number in needed.split(".")):
        raise BuildError(
            f"building the sandbox's control plane needs Go {needed} or newer, and {go} is {version[0]}",
            _install(needed),
        )
    return go, {**clean, "GOOS": words[-2], "GOARCH": words[-1]}


def _install(needed: str) -> str:
    return f"install Go {needed} or newer from https://go.dev/dl/; {_WITHOUT_GO}"


def stale_packages(build: list[str], folder: Path, environ: Mapping[str, str], log: Log) -> int:
    """Return how many packages the command *build* will compile in *folder*; downloads the modules that it needs.

    Raises:
        BuildError: a module can't be had.
    """
    go, flags = build[0], [word for word in build[2:-1] if word != "-v"]
    output = flags.index("-o")
    del flags[output : output + 2]
    template = "{{if .Stale}}{{.ImportPath}}{{end}}"
    listed = _run([go, "list", "-deps", *flags, "-f", template, build[-1]], folder, environ, log)
    return sum(1 for each in listed.splitlines() if each)


def _run(command: list[str], folder: Path, environ: Mapping[str, str], log: Log, *, total: int = 0) -> str:
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
            hint = f"the Go modules must be reachable (see GOPROXY), and the disk needs 5 GB; {_WITHOUT_GO}"
            raise BuildError(f"go {command[1]} exited {compiler.returncode}", hint, output=_last_words(lines))
        printed.seek(0)
        return printed.read()


def progress(lines: list[str], total: int, elapsed_s: float) -> str:
    """Return how far go is by the *lines* that it printed, and how long it will take once enough was done to tell.

    *total* is how many packages it compiles, *elapsed_s* for how long it has.
    """
    downloads = sum(line.startswith("go: downloading ") for line in lines)
    packages = [line.strip() for line in lines if not line.startswith(("go: ", "#"))]
    if not packages:
        return f"downloaded {downloads} modules" if downloads else "looking at what is compiled already"
    done, total = len(packages), max(total, len(packages))
    said = f"compiled {done} of {total} packages ({done * 100 // total} %)"
    if packages[-1] == _MODULE or done == total:
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
    return "\n".join(said[-20:]) or "it said nothing"


def _elapsed(since: float) -> str:
    return _minutes(time.monotonic() - since)


def _minutes(of_s: float) -> str:
    minutes, seconds = divmod(round(of_s), 60)
    return f"{minutes}:{seconds:02}"
