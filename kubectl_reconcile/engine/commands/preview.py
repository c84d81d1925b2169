"""What a sync of a target would do, as the server judges it, and who asked for what changes.

Writes nothing. What only changes need is imported where there are some.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.apply import dry_run
from kubectl_reconcile.engine.sync import gather, reconcile
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target


def _all(plan: Plan) -> Plan:
    return plan


async def judged(
    session: Session,
    target: Target,
    *,
    by_account: bool,
    chosen: Callable[[Plan], Plan] = _all,
    offline: bool = False,
) -> Plan:
    """Return the part that is *chosen* of what a sync of *target* would do; unless *offline*, as the server judges it.

    *by_account* tells that the Sync's account makes the changes; files are applied by whoever gives them.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    made = chosen(await reconcile.preview(session, target))
    if target.reader.unread():
        sealed = importlib.import_module(
            "kubectl_reconcile.engine.commands.sealed_files"
        )  # only such files have changes to tell
        made = await sealed.with_changes(target, made)
    if offline:
        return made
    along = gather.lister(session)
    plan = await dry_run.confirm(session.client, made, target.sync, along=along, for_others=by_account)
    if by_account and not plan.is_clean:
        rights = importlib.import_module("kubectl_reconcile.engine.commands.rights.preview")  # only changes take rights
        plan = await rights.checked(session, target.sync, plan)
    return plan


async def explained(target: Target, made: Plan, *, reasons: bool = False) -> Plan:
    """Return *made* with who asked for what changes, and where what is rendered has it from.

    *reasons* asks for those that take long to find.
    """
    if made.is_clean:
        return made
    blame = importlib.import_module("kubectl_reconcile.engine.commands.blame")  # only changes have somebody to blame
    plan: Plan = await blame.with_commits(target, made)
    if any(change.provenance.line < 0 for change in plan.changes):
        overlays = importlib.import_module("kubectl_reconcile.engine.commands.overlays")
        plan = await overlays.with_origins(target, plan, asked=reasons)
    return plan
