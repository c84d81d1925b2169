"""The plan of one live CR whose kind has a module: the module is asked, its children are compared. Writes nothing."""

from __future__ import annotations

import functools

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.inputs import Coverage, Inputs, Modules
from kubectl_reconcile.core.planning.plan import Contentions, Plan
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.modules.action_runner import look
from kubectl_reconcile.engine.modules.ceilings import ceilings
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.view import ModulesView


async def plan_of(
    session: Session, view: ModulesView, cr: Manifest, contentions: Contentions | None = None, *, trusting: bool = False
) -> Plan:
    """Return what the module of one live CR wants, as seen through *view*, *contentions* left alone. Writes nothing.

    What is to be created is looked up first, in case it is there without the labels that *view* goes by; unless
    the caller is *trusting* and has the server judge that.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    inputs = (await inputs_of(session, view, cr)).remembering(contentions=contentions or {})
    looking = functools.partial(look, session.reach)

    async def build(known: Inputs) -> Plan:
        return planner.build_children(known, cr)

    if trusting:
        made, _ = await gather.plan_observed(inputs, build, looking)
        return made
    return await gather.plan_with_lookups(session, inputs, build, _no_bases, looking)


async def inputs_of(session: Session, view: ModulesView, cr: Manifest) -> Inputs:
    """Return everything that is known when the module of *cr* is asked.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    gvk = GroupVersionKind.of(cr)
    below = gather.modules_below(session.modules, [gvk])
    namespace = cr["metadata"].get("namespace") or ""
    feeds = gather.child_feeds(session, below) + gather.reading_feeds(session, below, namespace)
    failures = await view.ensure(feeds)
    kind = await session.kind(gvk)
    return Inputs(
        sync=Sync(name="", namespace=namespace),
        revision=Revision("", "", {}),
        desired=(),
        live=view.shown(feeds),
        kinds={gvk: kind, **await session.kinds({owned for module in below for owned in module.owns})},
        modules=Modules(session.modules, view.ask, ceilings=ceilings()),
        now=now_text(),
        coverage=Coverage(unread=gather.unread(failures)),
        grouped=False,
    )


async def _no_bases(_made: Plan) -> Inputs | None:
    """Children have no manifest in Git that could tell one reason from another."""
    return None
