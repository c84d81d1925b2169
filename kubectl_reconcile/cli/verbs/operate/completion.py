"""Declares ``kubectl reconcile completion``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.verbs.loading import loaded

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
@loaded
def completion() -> None:
    """Print the completion script for kubectl-reconcile. Writes nothing else.

    To complete kubectl reconcile, install kubectl's own completion (kubectl completion SHELL), and put
    kubectl_complete-reconcile on PATH, as kubectl-reconcile is.
    """
