"""``kubectl reconcile completion``: the script by which a shell completes ``kubectl-reconcile``.

``kubectl reconcile`` needs none: kubectl's own completion calls ``kubectl_complete-reconcile``.
"""

from __future__ import annotations

from pathlib import Path

import click


def completion(shell: str) -> None:
    """Print the script by which a shell completes kubectl-reconcile."""
    click.echo((Path(__file__).parent / "shells" / f"{shell}.txt").read_text(encoding="utf-8"), nl=False)
