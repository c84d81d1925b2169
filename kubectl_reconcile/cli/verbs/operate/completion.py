"""``kubectl reconcile completion``: the script by which a shell completes ``kubectl-reconcile``.

``kubectl reconcile`` needs none: kubectl's own completion calls ``kubectl_complete-reconcile``.
"""

from __future__ import annotations

from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish", "powershell")


@click.command(
    epilog="""\b
Examples:
  source <(kubectl-reconcile completion bash)
  kubectl-reconcile completion zsh > "${fpath[1]}/_kubectl-reconcile"
  kubectl-reconcile completion fish | source
  kubectl-reconcile completion powershell >> $PROFILE
"""
)
@click.argument("shell", type=click.Choice(SHELLS), metavar="|".join(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script for kubectl-reconcile. Writes nothing else.

    To complete kubectl reconcile, install kubectl's own completion (kubectl completion SHELL), and put
    kubectl_complete-reconcile on PATH, as kubectl-reconcile is.
    """
    click.echo((Path(__file__).parent / "shells" / f"{shell}.txt").read_text(encoding="utf-8"), nl=False)
