"""What tests of domain modules import, besides `kubectl_reconcile.module_api`; stable within a major version.

`asked` calls a module twice and watches it: what it does that a pure function mustn't is a `ModuleError` that names it.
`outcome_of` calls it once, as the daemon does.
"""

from __future__ import annotations

from kubectl_reconcile.core.module.call import ModuleError, outcome_of
from kubectl_reconcile.engine.modules.purity import asked

__all__ = ["ModuleError", "asked", "outcome_of"]
