"""The plan of one live CR whose kind has a module: the module is asked, its children are compared. Writes nothing."""

from __future__ import annotations

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.inputs import Coverage, Inputs, Modules
from kubectl_reconcile.core.planning.plan import Contentions, Plan
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.modules.ceilings import ceilings
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.answers import ClusterAnswers, Overwritten, Sight, nobody_overwrites
from kubectl_reconcile.engine.sync.rounds import planned
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.view import ModulesView


async def plan_of(
    session: Session,
    view: ModulesView,
    cr: Manifest,
    contentions: Contentions | None = None,
    *,
    sight: Sight = Sight.ALL,
    overwritten: Overwritten = nobody_overwrites,
) -> Plan:
    """Return what the module of one live CR wants, as seen through *view*, *contentions* left alone. Writes nothing.

    What is to be created is looked up first, in case it is there without the labels that *view* goes by; how far is a matter of *sight*.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    inputs = (await inputs_of(session, view, cr)).remembering(contentions=contentions or {})

    async def build(known: Inputs) -> Plan:
        return planner.build_children(known, cr)

    answers = ClusterAnswers(session, sight, overwritten)
    return (await planned(ObjectRef.of(cr), inputs, build, answers)).plan


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
