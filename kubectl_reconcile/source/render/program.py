"""Where the program that renders is: beside this file in packages that bring it, else built from its sources and kept.

Wheels of a platform bring it. Others bring its sources, and so does a checkout: building takes minutes the first time, so only
commands of somebody who sees that build it by the way; a daemon never does.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.go_programs import DIGEST, GoProgram, Log

NAME: Final = "reconcile-render"

SOURCES: Final = GoProgram(
    "the program that renders overlays and charts",
    Path(__file__).parent / "program",
    (
        "go.mod", "go.sum", "main.go", "frames.go", "files.go", "kustomize.go", "over.go", "steps.go", "trace.go",
        "helm.go", "helm_checks.go", "helm_functions.go", "helm_objects.go",
        "fence_linux.go", "fence_linux_amd64.go", "fence_linux_arm64.go", "fence_other.go",
    ),
    "or don't use overlays and charts: plain manifests don't need it",
)  # fmt: skip

_FLAGS: Final = (
    "-tags", "kustomize_disable_go_plugin_support", "-trimpath", "-ldflags", f"-s -w -X main.version={DIGEST}",
)  # fmt: skip

HOW_TO_GET: Final = (
    "the wheels of Linux and macOS, the image and the plugin of krew bring it; else install Go, and run"
    ' "python -m kubectl_reconcile.source.render" with the Python that runs this, which builds it in some minutes'
)


@functools.cache
def version() -> str:
    """Return the version of the program that belongs to these sources: their digest, which it says itself."""
    return SOURCES.digest(_FLAGS)


def find(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return where the program is; None where it wasn't built yet."""
    places = (Path(__file__).parent / NAME, _home(environ) / f"build-{version()}" / NAME)
    return next((place for place in places if os.access(place, os.X_OK)), None)


def build(log: Log, *, environ: Mapping[str, str] = os.environ, platform: str = "") -> Path:
    """Return the program, building it first if it isn't there; that takes minutes the first time, and *log* hears of it.

    It is for this machine, or for another *platform*, as in ``linux_arm64``.

    Raises:
        GoBuildError: there is no Go that can build it, or the build failed.
    """
    if not platform and (found := find(environ)) is not None:
        return found
    static = {**environ, "CGO_ENABLED": "0"}
    home = _home(environ) / platform
    return SOURCES.built(home, _FLAGS, log, static, name=NAME, platform=platform) / NAME


def _home(environ: Mapping[str, str]) -> Path:
    return cache_dir(environ) / "render"
