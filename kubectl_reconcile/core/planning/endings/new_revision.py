"""New revisions that wait for a person (``spec.approval: Always``).

Nothing that such a revision changes is written before it is approved, drift included. An approval names the revision, and for charts what the Sync
itself says of them; what it changes by the time is shown each time. One that was applied before is no new one.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.hold import NEW_REVISION, Hold, is_approved
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.plan import Change, Plan
from kubectl_reconcile.core.resources.history import settings_of
from kubectl_reconcile.core.resources.sync import ApprovalPolicy
from kubectl_reconcile.core.revisions import is_folder, short_of


def with_approval(inputs: Inputs, made: Plan) -> Plan:
    """Return *made* with all that it writes held, where its revision waits for a person."""
    sync = inputs.sync
    if sync.approval is not ApprovalPolicy.ALWAYS or sync.source is None or not inputs.grouped or inputs.memory.applied:
        return made
    states = (made.revision, str(settings_of(sync.source.told()).get("settings", "")))
    if is_folder(made.revision) or is_approved(sync, (), states):
        return made
    held = [change for change in made.acting() if change.writes and not change.is_child]
    if not held:
        return made
    short = short_of(made.revision)
    objects = "1 object" if len(held) == 1 else f"{len(held)} objects"
    hold = Hold(
        NEW_REVISION, f"revision {short}, which changes {objects}, waits for approval", _refs(held), states=states
    )
    changes = (change.gated(held=True) if change.writes else change for change in made.changes)
    return replace(made, changes=tuple(changes), holds=(*made.holds, hold))


def _refs(changes: Iterable[Change]) -> tuple[ObjectRef, ...]:
    return tuple(sorted(change.ref for change in changes))
