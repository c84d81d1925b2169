"""Passes that haven't happened yet: what would follow from a plan until nothing is left to do. Writes nothing."""

from __future__ import annotations

import functools

from kubectl_reconcile.cluster.cache import Cache
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.outlook import simulation
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.modules.action_runner import look
from kubectl_reconcile.engine.sync import gather, reconcile
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.view import OneShotView


async def foresee(session: Session, target: reconcile.Target) -> list[Plan]:
    """Return what the next sync of *target* would do, and what would follow from it until nothing is left to do.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    known: list[Inputs] = []

    async def build(inputs: Inputs) -> Plan:
        known.append(inputs)
        return planner.build(inputs)

    inputs = await reconcile.inputs_of(
        session,
        target,
        await reconcile.read(session, target),
        OneShotView(Cache(session.client)),
        children=True,
    )
    looking = functools.partial(look, session.reach)
    made = await gather.plan_with_lookups(session, inputs, build, reconcile.bases_of(target, inputs), looking)
    return [made, *simulation.passes(known[-1], made, planner.build)]
