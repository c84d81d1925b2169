"""Ceilings of what custom resources may have modules do: flags of the daemon, and variables of those names, which commands take.

The daemon sets the variables by its flags; so a preview with the same variables shows what the daemon does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from kubectl_reconcile.core.module.inputs import CEILINGS
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import variable


def ceilings() -> Mapping[str, int]:
    """Return the ceilings by their flags.

    Raises:
        SourceError: a variable holds no number above zero.
    """
    return {flag: _number(flag, os.environ.get(variable(flag), "")) or most for flag, most in CEILINGS.items()}


def set_ceilings(given: Mapping[str, int]) -> None:
    """Have them be so from now on, in this process."""
    os.environ.update({variable(flag): str(most) for flag, most in given.items()})


def _number(flag: str, text: str) -> int:
    if text and (not text.isascii() or not text.isdecimal() or int(text) < 1):
        message = f"{variable(flag)} isn't a number above zero"
        raise SourceError(SourceFault.REFUSED, message, f"it stands for {flag} of the daemon")
    return int(text or 0)
