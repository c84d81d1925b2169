"""Where on this machine is kept what was learned and built: it may be removed at any time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's cache folder of this program, which may not exist yet: ``$XDG_CACHE_HOME/kubectl-reconcile``.

    A relative path counts as none given (XDG Base Directory Specification).
    """
    base = environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "kubectl-reconcile"  # noqa: PTH117 - "" too
