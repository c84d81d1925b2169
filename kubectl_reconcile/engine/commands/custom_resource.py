"""One custom resource whose kind has a module, as a person names it: found, previewed, annotated."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kubectl_reconcile.cluster.cache import Cache
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.cases import Case
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest
from kubectl_reconcile.core.planning.module_call import owned_view
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.apply.writer import Hooks, Writer
from kubectl_reconcile.engine.modules.action_runner import ActionRunner, observed
from kubectl_reconcile.engine.sync.cr_plan import inputs_of, plan_of
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.view import OneShotView

_CLI = "kubectl-reconcile-cli"


class LiveCr(Struct, frozen=True):
    """A live CR, its module, and where it lives."""

    cr: Manifest
    module: Module
    path: str


async def find(session: Session, name: str) -> LiveCr:
    """Return the CR that *name* (``candy/sweet``) means, in the namespace of the connection.

    Raises:
        ApiError: there is none, the cluster doesn't serve its kind, no module handles it, or the server refuses.
    """
    kind, _, plain = name.partition("/")
    resource = session.discovery.resolve(kind)
    if resource is None:
        raise ApiError(f"the cluster serves no kind {kind}")
    served = _served(session, resource)
    module = session.modules.get(served.gvk)
    if module is None:
        known = ", ".join(sorted(str(gvk.group_kind) for gvk in session.modules))
        raise ApiError(f"no module handles {served.gvk.group_kind}; there are modules for {known}")
    path = served.path(session.client.namespace if served.namespaced else "", plain)
    return LiveCr(await session.client.get(path), module, path)


async def of_live(session: Session, live: Manifest) -> LiveCr:
    """Return the CR that *live* is, in the version that its module speaks.

    Raises:
        ApiError: no module handles it, it is gone, or the server refuses.
    """
    gvk, metadata = GroupVersionKind.of(live), live["metadata"]
    resource = session.discovery.find(gvk.api_version, gvk.kind)
    served = _served(session, resource) if resource is not None else None
    module = session.modules.get(served.gvk) if served is not None else None
    if served is None or module is None:
        raise ApiError(f"no module handles {gvk.group_kind}")
    path = served.path(metadata.get("namespace", ""), metadata["name"])
    return LiveCr(await session.client.get(path), module, path)


def _served(session: Session, resource: Resource) -> Resource:
    """Return the version of a kind that a module speaks, which need not be the preferred one."""
    for gvk in session.modules:
        if gvk.group_kind == resource.gvk.group_kind and (found := session.discovery.find(gvk.api_version, gvk.kind)):
            return found
    return resource


async def preview(session: Session, cr: Manifest) -> Plan:
    """Return what the module of a live CR wants to be done now. Writes nothing.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    return await plan_of(session, OneShotView(Cache(session.client)), cr)


async def tend(session: Session, hooks: Hooks, cr: Manifest) -> None:
    """Do what the module of a live CR wants to be done now, where there is a module: for those that no daemon follows.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    if GroupVersionKind.of(cr) not in session.modules:
        return
    act = ActionRunner(session.reach, session.modules).run
    await Writer(session.client, hooks, act=act).run(await preview(session, cr))


async def annotate(session: Session, found: LiveCr, annotations: Mapping[str, str]) -> Manifest:
    """Set annotations of a CR, and return it as it is then.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    metadata = {"annotations": dict(annotations), "uid": found.cr["metadata"]["uid"]}
    return await session.client.patch(found.path, {"metadata": metadata}, manager=_CLI)


async def record(session: Session, found: LiveCr) -> Case:
    """Return what the module of a live CR is given now, and what it says to that. Writes nothing.

    Raises:
        ModuleError: the module failed.
        ApiError: the server refuses, or doesn't answer.
    """
    inputs = await inputs_of(session, OneShotView(Cache(session.client)), found.cr)
    owned = owned_view(inputs.live, found.module, found.cr, unread=inputs.coverage.unread)
    seen = await observed(session.reach, found.module, found.cr, owned)
    case = Case(
        module=found.module.name,
        now=inputs.now,
        cr=found.cr,
        children=owned.children,
        read=owned.others,
        facts=seen.facts,
        unobserved=seen.error,
        unread=owned.unread,
    )
    return case.answered(found.module)
