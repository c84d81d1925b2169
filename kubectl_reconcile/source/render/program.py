"""The program that renders overlays and charts: what it is made of, and how people get it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kubectl_reconcile.go_programs import GoProgram
from kubectl_reconcile.source.fenced.program import SHARED, FencedProgram

_HERE: Final = Path(__file__).parent

RENDER: Final = FencedProgram(
    "reconcile-render",
    GoProgram(
        "the program that renders overlays and charts",
        _HERE / "program",
        (
            "go.mod", "go.sum", "main.go", "frames.go", "files.go", "kustomize.go", "over.go", "steps.go", "trace.go",
            "helm.go", "helm_checks.go", "helm_functions.go", "helm_objects.go", *SHARED,
        ),
        "or don't use overlays and charts: plain manifests don't need it",
    ),
    "render",
    (_HERE,),
    tags="kustomize_disable_go_plugin_support",
)  # fmt: skip

HOW_TO_GET: Final = (
    "the wheels of Linux and macOS, the image and the plugin of krew bring it; else install Go, and run"
    ' "python -m kubectl_reconcile.source.render" with the Python that runs this, which builds it in some minutes'
)
