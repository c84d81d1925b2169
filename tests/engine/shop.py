"""A folder of manifests that belongs to a Sync, planned and synced into a real cluster, in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubectl_reconcile.cluster.errors import NotFound
from kubectl_reconcile.core.apply.results import Result
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.apply import dry_run
from kubectl_reconcile.engine.apply.writer import Hooks, Writer
from kubectl_reconcile.engine.sync import gather, targets
from kubectl_reconcile.engine.sync import reconcile as engine
from kubectl_reconcile.engine.sync.reconcile import Done, perform
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target

PATHS = {
    "Namespace": "/api/v1/namespaces/{name}",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps/{name}",
    "Secret": "/api/v1/namespaces/{namespace}/secrets/{name}",
    "Service": "/api/v1/namespaces/{namespace}/services/{name}",
    "Pod": "/api/v1/namespaces/{namespace}/pods/{name}",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}",
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
    "Job": "/apis/batch/v1/namespaces/{namespace}/jobs/{name}",
    "Memcached": "/apis/cache.example.com/v1alpha1/namespaces/{namespace}/memcacheds/{name}",
    "Sync": "/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs/{name}",
}


@dataclass
class Shop:
    """A folder that belongs to the Sync *name*, and the cluster that it is synced into."""

    session: Session
    folder: Path
    namespace: str
    name: str = "shop"
    results: list[Result] = field(default_factory=list)

    def write(self, files: Mapping[str, Any]) -> None:
        """Write manifests into files; None removes the file, text is written as it is."""
        self.folder.mkdir(exist_ok=True)
        for name, content in files.items():
            path = self.folder / name
            if content is None:
                path.unlink()
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))

    async def target(self) -> Target:
        self.folder.mkdir(exist_ok=True)
        found = await targets.folder_target(self.session, self.folder, self.name, self.namespace)
        return await targets.ensure_parent(self.session, found)

    async def settings(self, **spec: Any) -> None:
        """Give the Sync a spec."""
        await self.target()
        await self.session.client.patch(PATHS["Sync"].format(namespace=self.namespace, name=self.name), {"spec": spec})

    async def plan(self, *, confirmed: bool = True) -> Plan:
        target = await self.target()
        made = await engine.plan(self.session, target)
        if not confirmed:
            return made
        return await dry_run.confirm(self.session.client, made, target.sync, along=gather.lister(self.session))

    async def sync(self, writer: Writer | None = None) -> Done:
        target = await self.target()
        hooks = Hooks(result=self.results.append)
        made = await engine.plan(self.session, target)
        return await perform(self.session, target, made, writer or Writer(self.session.client, hooks))

    async def approve(self, made: Plan) -> None:
        from kubectl_reconcile.engine.api import sync_requests  # noqa: PLC0415

        await sync_requests.approve(self.session.client, (await self.target()).sync, made.approval)

    async def live(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        path = PATHS[kind].format(namespace=namespace or self.namespace, name=name)
        try:
            return await self.session.client.get(path)
        except NotFound:
            return None

    async def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object by hand."""
        path = PATHS[manifest["kind"]].format(namespace=self.namespace, name="").rstrip("/")
        return await self.session.client.create(path, manifest, manager="somebody")

    async def patch(self, kind: str, name: str, patch: Any, sub: str = "") -> dict[str, Any]:
        path = PATHS[kind].format(namespace=self.namespace, name=name)
        return await self.session.client.patch(f"{path}{sub}", patch, manager="somebody")
