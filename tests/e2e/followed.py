"""A Sync that a daemon follows, and what people do with it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.core.annotations import SYNC_REQUESTED_AT
from kubectl_reconcile.core.objects import FIELD_MANAGER, ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from tests.e2e.cluster import Cluster
from tests.waiting import PATIENCE_S, patiently


@dataclass(frozen=True)
class Followed:
    """A Sync in the cluster, and what people do with it."""

    cluster: Cluster
    name: str

    @property
    def live(self) -> dict[str, Any]:
        return self.cluster.get("Sync", self.name)

    @property
    def status(self) -> dict[str, Any]:
        return self.live.get("status") or {}

    def condition(self, type_: str = "Ready") -> dict[str, Any]:
        found = self.status.get("conditions") or ()
        return next((one for one in found if one["type"] == type_), {})

    def change(self, **spec: Any) -> None:
        """Change the spec by hand."""
        self.cluster.edit("Sync", self.name, {"spec": spec})

    def until(self, reason: str, revision: str = "", *, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait until its condition Synced gives *reason* (at *revision*); return the condition."""

        def reached() -> dict[str, Any]:
            status = self.status
            synced = next((one for one in status.get("conditions") or () if one["type"] == "Synced"), {})
            right = synced.get("reason") == reason and (not revision or status["lastAttemptedRevision"] == revision)
            return synced if right else {}

        try:
            return patiently(reached, f"{self.name} is {reason} {revision[:7]}", timeout_s=timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; its status is {json.dumps(self.status, indent=1)}") from None

    def until_synced(self, revision: str, *, timeout_s: float = PATIENCE_S) -> dict[str, Any]:
        return self.until("Synced", revision, timeout_s=timeout_s)

    def forge_member(self, name: str, namespace: str) -> None:
        """Make a ConfigMap with all marks of a member: label, annotation and field manager."""
        set_id = applyset_id(ObjectRef("reconcile.dev", "Sync", self.cluster.namespace, self.name))
        metadata = {
            "name": name,
            "namespace": namespace,
            "labels": {PART_OF: set_id},
            "annotations": {"reconcile.dev/source": "0.json"},
        }
        path = f"{self.cluster.at(namespace).path('ConfigMap', name)}?fieldManager={FIELD_MANAGER}&force=true"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "forged"}}
        self.cluster.api.ask(path, method="PATCH", body=body, type_="application/apply-patch+yaml")

    def ask(self) -> dict[str, Any]:
        """Ask for a sync, as people do with kubectl, and wait for the answer; return the status."""
        token = f"asked-{time.time_ns()}"
        self.cluster.kubectl(
            "annotate", "sync", self.name, "-n", self.cluster.namespace, f"{SYNC_REQUESTED_AT}={token}", "--overwrite"
        )
        patiently(lambda: self.status.get("lastHandledSyncAt") == token, "the request for a sync is answered")
        return self.status
