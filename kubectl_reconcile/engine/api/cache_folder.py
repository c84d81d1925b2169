"""Where on this machine is kept what was learned: it may be removed at any time."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache_dir() -> Path:
    """Return where clones and schemas are kept between runs: ``$XDG_CACHE_HOME/kubectl-reconcile``."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "kubectl-reconcile"
