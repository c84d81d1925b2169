"""What modules do outside the cluster: looks at external systems, and actions on them.

A *look* runs before planning, in previews as in the daemon; it has a time limit, changes nothing, and its
result, facts or the reason why there are none, goes into the plan.

An *action* runs like this, so that it happens once whatever is killed in between:

1. The CR is read afresh. If its journal says that the action is done, that's it. If it needs approval
   and the CR doesn't carry it (any more), it isn't run.
2. The external system is observed afresh, and the action's precondition is checked against that. Where it doesn't
   hold since somebody else, by the journal, was quicker, that's it as well.
3. The journal says *started*, written only onto the version that was read: of two daemons one wins.
4. The module's driver runs, with a time limit and an idempotency key made of the CR's uid and the action's key.
5. The journal says *done*, or *failed* and why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, Conflict, NotFound
from kubectl_reconcile.core.annotations import ACTIONS, MODULE_LABEL
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress, is_approved, unmet
from kubectl_reconcile.core.module.api import POD, Module, Observation
from kubectl_reconcile.core.module.inputs import Owned
from kubectl_reconcile.core.module.outcome import Action
from kubectl_reconcile.core.module.published import recalled
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, controller_of
from kubectl_reconcile.core.planning.children import ADD_FINALIZER, ENGINE_VERBS
from kubectl_reconcile.core.planning.plan import Change, Unobserved
from kubectl_reconcile.core.retry import ACTION
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.modules.operands import NoWayError
from kubectl_reconcile.engine.modules.reach import Reach
from kubectl_reconcile.engine.modules.secrets_of_cr import secrets_of

_LOOKS_AT_ONCE = 16
_ATTEMPTS = 5


class ActionError(ApiError):
    """An action wasn't run, or the external system didn't do it; nothing in the cluster is at fault."""


async def look(reach: Reach, wanted: Mapping[ObjectRef, Unobserved]) -> dict[ObjectRef, Observation]:
    """Return what is found outside for each of these CRs. Never raises: a failure is a result.

    Where pods can't be reached from here, what the daemon noted on a CR is what is found, unless we are the one who notes it. That one looks
    again and again, so that a pod that has no time just then is nothing to tell of.
    """
    slots = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def one(each: Unobserved) -> Observation:
        async with slots:
            seen = await observed(reach, each.module, each.cr, each.owned)
            if not reach.operands.recalls:
                return replace(seen, unheard="")
            return (recalled(each.cr, seen.unreached) if seen.unreached else None) or seen

    found = await asyncio.gather(*(one(each) for each in wanted.values()))
    return dict(zip(wanted, found, strict=True))


async def observed(reach: Reach, module: Module, cr: Manifest, owned: Owned) -> Observation:
    """Return what *module* finds outside for one CR, or why it finds nothing."""
    if module.observe is None:
        return Observation()
    try:
        secrets = secrets_of(module, cr, reach.client, acts=False)
        async with reach.io(owned, secrets=secrets) as io, asyncio.timeout(module.observe_s):
            facts = await module.observe(cr, io)
            return Observation(facts, unheard=io.pods.unheard)
    except TimeoutError:
        return Observation(error=f"no answer within {module.observe_s:g} s")
    except NoWayError as error:
        return Observation(error=str(error), unreached=str(error))
    except SpecError as error:
        return Observation(error=str(error), is_refused=True)
    except Exception as error:  # noqa: BLE001 - a module's own code; whatever it is, this look failed
        return Observation(error=str(error) or type(error).__name__)


class ActionRunner(Struct, frozen=True):
    """Runs the actions of plans."""

    reach: Reach
    modules: Mapping[GroupVersionKind, Module]

    @property
    def client(self) -> Client:
        """Who the actions are run as."""
        return self.reach.client

    async def run(self, change: Change) -> Manifest | None:
        """Run the action of *change*, and return the CR as it is afterwards.

        Raises:
            ActionError: it wasn't run, or failed; the journal says so where it was begun.
            ApiError: the server refuses, or doesn't answer.
        """
        action, kind, owner = change.action, change.kind, change.provenance.owner
        if action is None or kind is None or owner is None:
            raise ActionError(f"{change.ref}: the plan doesn't say what to do")
        module, path = self.modules[kind.gvk], kind.path(owner.namespace, owner.name)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                cr = await self.client.get(path)
                if action.verb in ENGINE_VERBS:
                    return await self._keep_or_let_go(path, cr, module, action)
                return await self._act(path, cr, module, action)
            except NotFound:
                return None
            except Conflict:
                await asyncio.sleep(ACTION.pause_s(attempt))
        raise Conflict(f"{owner} keeps changing; {action.key} is run in the next pass", status=409)

    async def _keep_or_let_go(self, path: str, cr: Manifest, module: Module, action: Action) -> Manifest | None:
        before = cr["metadata"].get("finalizers") or []
        others = [each for each in before if each != module.finalizer]
        adding = action.verb == ADD_FINALIZER
        after = [*others, module.finalizer] if adding else others
        if after == before or (adding and cr["metadata"].get("deletionTimestamp")):
            return cr
        return await self._patch(path, cr, module, {"finalizers": after})

    async def _act(self, path: str, cr: Manifest, module: Module, action: Action) -> Manifest:
        journal = ActionJournal.of(cr)
        if journal.bars(action):
            return cr
        if not is_approved(action, cr):
            raise ActionError(f"{action.key} waits for approval")
        owned = await self._pods_of(module, cr)
        if why := await self._hindrance(module, cr, action, owned):
            return await self._left_to_the_quicker(path, action, why)
        begun = await self._note(path, cr, module, journal.started(action, now_text()))
        try:
            message = await self._drive(module, begun, action, owned)
        except ActionError as error:
            await self._end(path, module, action, ActionProgress.FAILED, str(error))
            raise
        return await self._end(path, module, action, ActionProgress.DONE, message)

    async def _pods_of(self, module: Module, cr: Manifest) -> Owned:
        """Return the pods that a CR controls as they are now, where its module has any."""
        if POD not in module.owns:
            return Owned()
        path = f"/api/v1/namespaces/{cr['metadata']['namespace']}/pods"
        pods, _ = await self.client.list(path, labelSelector=f"{MODULE_LABEL}={module.name}")
        return Owned(pod for pod in pods if (controller_of(pod) or {}).get("uid") == cr["metadata"]["uid"])

    async def _hindrance(self, module: Module, cr: Manifest, action: Action, owned: Owned) -> str:
        """Look again: what was true when the plan was made may not be any more."""
        seen = await observed(self.reach, module, cr, owned)
        if seen.error:
            raise ActionError(f"{action.key} isn't run, because {seen.error}")
        return unmet(action, seen.facts)

    async def _left_to_the_quicker(self, path: str, action: Action, why: str) -> Manifest:
        """Return the CR if somebody else, a daemon beside a command, runs the action or has run it meanwhile.

        Raises:
            ActionError: nobody does, so something else keeps it from being run.
        """
        cr = await self.client.get(path)
        entry = ActionJournal.of(cr).entry(action.key)
        if entry is None or entry.progress is ActionProgress.FAILED:
            raise ActionError(f"{action.key} isn't run any more: {why}")
        return cr

    async def _drive(self, module: Module, cr: Manifest, action: Action, owned: Owned) -> str:
        if module.act is None:
            raise ActionError(f"module {module.name} can't act")
        key = f"{cr['metadata']['uid']}/{action.key}"
        try:
            secrets = secrets_of(module, cr, self.reach.client, acts=True)
            async with self.reach.io(owned, key, secrets) as io, asyncio.timeout(module.act_s):
                answer = await module.act(cr, action, io)
        except TimeoutError as error:
            raise ActionError(f"{action.key}: no answer within {module.act_s:g} s") from error
        except Exception as error:
            raise ActionError(f"{action.key}: {str(error) or type(error).__name__}") from error
        return str(answer or "")

    async def _end(self, path: str, module: Module, action: Action, progress: ActionProgress, message: str) -> Manifest:
        """Write how it ended, onto whatever version the CR has by now: this line is nobody else's."""
        while True:
            cr = await self.client.get(path)
            try:
                return await self._note(
                    path, cr, module, ActionJournal.of(cr).ended(action, now_text(), progress, message)
                )
            except Conflict:
                await asyncio.sleep(0.02)

    async def _note(self, path: str, cr: Manifest, module: Module, journal: ActionJournal) -> Manifest:
        return await self._patch(path, cr, module, {"annotations": {ACTIONS: journal.text()}})

    async def _patch(self, path: str, cr: Manifest, module: Module, metadata: dict[str, Any]) -> Manifest:
        guard = {"resourceVersion": cr["metadata"]["resourceVersion"], "uid": cr["metadata"]["uid"]}
        return await self.client.patch(path, {"metadata": {**metadata, **guard}}, manager=module.manager)
