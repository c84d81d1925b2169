"""The program ``helm`` of the version whose engine renders here, built from its Go module: to be held against, never part of the product."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from kubectl_reconcile.go_programs import Log, cache_dir
from kubectl_reconcile.source.render.program import SOURCES

BUILD_S = 3000.0


def helm_program(log: Log) -> Path:
    """Return helm, built first where it isn't there: that takes many minutes, and *log* hears of it.

    Raises:
        GoBuildError: there is no Go.
        CalledProcessError: it can't be built.
    """
    version = SOURCES.pinned(r"^\thelm\.sh/helm/v4 (v\S+)")
    place = cache_dir() / "tools" / f"helm-{version}"
    if not (place / "helm").is_file():
        log(f"building helm {version} into {place} (many minutes the first time)")
        go, environ = SOURCES.find_go(os.environ)
        environ |= {"GOBIN": str(place), "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}
        del environ["GOOS"], environ["GOARCH"]  # go install puts what it builds for another platform elsewhere
        command = [go, "install", "-trimpath", "-ldflags=-s -w", f"helm.sh/helm/v4/cmd/helm@{version}"]
        subprocess.run(command, env=environ, cwd="/", check=True, timeout=BUILD_S)
    return place / "helm"
