"""Which pod of a workload doesn't come up, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.health.judge import HealthStatus, health
from kubectl_reconcile.core.objects import Manifest, ObjectRef, annotations_of, controller_of, labels_of, map_at
from kubectl_reconcile.core.planning.kinds import WORKLOADS

_REVISION = "deployment.kubernetes.io/revision"


class Pods(Struct, frozen=True):
    """Looks at pods as *client* may see them."""

    client: Client

    async def to_blame(
        self,
        ref: ObjectRef,
        live: Manifest,
        among: Sequence[HealthStatus] = (HealthStatus.FAILED, HealthStatus.IN_PROGRESS),
    ) -> str:
        """Return which pod of a workload is worst, and why, as ``pod web-5d8f: container web: CrashLoopBackOff: back-off 40s``.

        Empty where none has one of the verdicts *among* which it is looked, the gravest first, and for what isn't a workload.

        Raises:
            ApiError: pods may not be listed, or the server doesn't answer.
        """
        if ref.group_kind not in WORKLOADS:
            return ""
        verdicts = [(health(pod), str(pod["metadata"]["name"])) for pod in await self.of(ref, live)]
        found = [
            (among.index(verdict.status), name, verdict.message)
            for verdict, name in verdicts
            if verdict.status in among
        ]
        return f"pod {min(found)[1]}: {min(found)[2]}" if found else ""

    async def of(self, ref: ObjectRef, live: Manifest) -> list[Manifest]:
        """Return the pods of the newest template; those of an older one say nothing about this rollout.

        Raises:
            ApiError: they may not be listed, or the server doesn't answer.
        """
        selector = map_at(live, "spec", "selector", "matchLabels")
        if not selector:
            return []
        pods, _ = await self.client.list(f"/api/v1/namespaces/{ref.namespace}/pods", labelSelector=_text(selector))
        newest = await self._newest(ref, live, selector) if pods else {}
        return [pod for pod in pods if all(labels_of(pod).get(key) == value for key, value in newest.items())]

    async def _newest(self, ref: ObjectRef, live: Manifest, selector: Mapping[str, str]) -> dict[str, str]:
        """Return the label by which pods of the newest template are known."""
        if ref.kind == "StatefulSet":
            revision = map_at(live, "status").get("updateRevision")
            return {"controller-revision-hash": str(revision)} if revision else {}
        if ref.kind != "Deployment":
            return {}
        path = f"/apis/apps/v1/namespaces/{ref.namespace}/replicasets"
        sets, _ = await self.client.list(path, labelSelector=_text(selector))
        number, uid = annotations_of(live).get(_REVISION), live["metadata"].get("uid")
        ours = (each for each in sets if (controller_of(each) or {}).get("uid") == uid)
        current = next((each for each in ours if annotations_of(each).get(_REVISION) == number), None)
        key = "pod-template-hash"
        return {key: labels_of(current)[key]} if current is not None and key in labels_of(current) else {}


def _text(selector: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
