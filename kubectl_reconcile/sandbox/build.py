"""Build the control plane's programs from source, once per machine and user.

Vocabulary: a *build* of the Go module beside this file (``go_programs``) holds one program and a link to it for each part of
the control plane; *assets* are programs that somebody else built, in the folder that ``KUBEBUILDER_ASSETS`` names, and are
preferred to building where that variable is set.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.go_programs import GoBuildError, GoProgram, Log
from kubectl_reconcile.sandbox.errors import BuildError

PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
"""Every program of a complete build, by the name it is called."""

STAGES = "kwok-stages.yaml"
"""File beside the programs that tells kwok how simulated nodes and pods become Ready."""

_REQUIRED = ("etcd", "kube-apiserver")

PROGRAM = GoProgram(
    "the sandbox's control plane",
    Path(__file__).parent,
    ("go.mod", "go.sum", "main.go"),
    "or set KUBEBUILDER_ASSETS to a folder with prebuilt etcd, kube-apiserver and kubectl (then nothing is built); "
    "or use your own cluster (KUBECONFIG) instead of a sandbox",
)
"""All parts in one program, which behaves as the one by whose name it is called."""


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


def build(log: Log, *, environ: Mapping[str, str] = os.environ) -> Binaries:
    """Return the control plane's programs, building them first if this machine has no build of these sources.

    A first build takes some minutes and downloads about 300 MB of Go modules; *log* hears what is going on.

    Raises:
        BuildError: there is no Go that can build them, the build failed, or the prebuilt assets are not usable.
    """
    assets = environ.get("KUBEBUILDER_ASSETS", "")
    if assets:
        return _prebuilt(Path(assets), log)
    with _as_build_errors():
        return Binaries(
            PROGRAM.built(
                cache_dir(environ) / "sandbox", _build_flags(), log, environ, name="control-plane", finish=_complete
            )
        )


def kubernetes_version() -> str:
    """Return the version of Kubernetes that the sources pin, as ``v1.36.3``."""
    with _as_build_errors():
        return PROGRAM.pinned(r"^\tk8s\.io/kubernetes (v\S+)")


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


def _build_flags() -> list[str]:
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    symbols = " ".join(f"-X {package}.{key}={value}" for package in packages for key, value in stamps.items())
    return ["-trimpath", "-ldflags", f"-s -w {symbols}"]


def _complete(folder: Path) -> None:
    """Give each part of the control plane its name, and kwok its configuration."""
    for part in (*PARTS, "kwok-stages"):
        (folder / part).symlink_to("control-plane")
    stages = subprocess.run([folder / "kwok-stages"], check=True, capture_output=True).stdout
    (folder / STAGES).write_bytes(stages)


@contextlib.contextmanager
def _as_build_errors() -> Iterator[None]:
    try:
        yield
    except GoBuildError as error:
        raise BuildError(error.message, error.hint, output=error.output) from None
