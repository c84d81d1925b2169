"""Passes that haven't happened yet: what would follow from a plan until nothing is left to do. Writes nothing."""

from __future__ import annotations

from kubectl_reconcile.cluster.cache import Cache
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.outlook import simulation
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.sync import reconcile
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.view import OneShotView


async def foresee(session: Session, target: Target) -> list[Plan]:
    """Return what the next sync of *target* would do, and what would follow from it until nothing is left to do.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    desired, view = await reconcile.read(session, target), OneShotView(Cache(session.client))
    made = await reconcile.plan_for(session, target, desired, view)
    return [made.plan, *simulation.passes(made.inputs, made.plan, planner.build)]
