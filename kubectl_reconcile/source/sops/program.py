"""The program that decrypts files of SOPS: what it is made of, and how people get it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from kubectl_reconcile.go_programs import GoProgram
from kubectl_reconcile.source.fenced.program import SHARED, FencedProgram

PACKAGE: Final = "kubectl_reconcile_sops"
"""The package that brings it, which is installed by itself: it has 44 MB."""


def _places() -> tuple[Path, ...]:
    found = find_spec(PACKAGE)
    return tuple(map(Path, found.submodule_search_locations or ())) if found else ()


SOPS: Final = FencedProgram(
    "reconcile-sops",
    GoProgram(
        "the program that decrypts files of SOPS",
        Path(__file__).parent / "program",
        (
            "go.mod", "go.sum", "main.go", "frames.go", "keys.go", "decrypt.go", "values.go", "bounds.go", "early/early.go", *SHARED,
        ),
        "or leave files out that SOPS has encrypted: nothing else needs it",
    ),
    "sops",
    _places(),
)  # fmt: skip

HOW_TO_GET: Final = (
    'install the package kubectl-reconcile-sops, which brings it; else install Go, and run "python -m kubectl_reconcile.source.sops" with the Python that runs'
    " this, which builds it in some minutes"
)
