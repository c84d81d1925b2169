"""What must be known of Checkups outside their module: their kind, and how healthy one is.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_reconcile.core.objects import GroupKind

CHECKUP: Final = GroupKind("checks.reconcile.dev", "Checkup")
"""The kind. The Jobs of a Checkup come and go: a scan looks at what makes them instead."""
CHECKUP_HEALTH: Final[Sequence[Mapping[str, Any]]] = (
    {"Failed": {"Degraded": "True"}},
    {"Failed": {"Passed": "False"}},
    {"Current": {"Passed": "True"}},
    {"InProgress": {"Passed": "Unknown"}},
    {"InProgress": {}},
)
"""The health of a Checkup: its verdict."""
