"""Events of one pod."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.sandbox.pods.api import RefusedError
from kubectl_reconcile.sandbox.pods.decisions.reported import now
from kubectl_reconcile.sandbox.pods.decisions.resolve import Pod
from kubectl_reconcile.sandbox.pods.pod_folder import Surroundings

_LOG = logging.getLogger(__name__)
_LONGEST = 1024


class PodEvents:
    """Leaves Events of *pod*, each message once."""

    def __init__(self, pod: Pod, place: Surroundings) -> None:
        self._pod = pod
        self._place = place
        self._said: set[str] = set()

    def say(self, kind: str, reason: str, message: str) -> None:
        """Leave an Event of type *kind*, unless the same was said before."""
        if message in self._said:
            return
        self._said.add(message)
        meta, since = self._pod["metadata"], now()
        _LOG.info("%s/%s: %s: %s", meta["namespace"], meta["name"], reason, message)
        event = {
            "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"],
            },
            "type": kind,
            "reason": reason,
            "message": message[:_LONGEST],
            "source": {"component": "nodelet"},
            "firstTimestamp": since,
            "lastTimestamp": since,
            "count": 1,
        }  # fmt: skip
        self._place.later(self._post(event))

    async def _post(self, event: Mapping[str, Any]) -> None:
        with contextlib.suppress(RefusedError):  # the namespace may be on its way out
            await self._place.api.request("POST", f"/api/v1/namespaces/{event['metadata']['namespace']}/events", event)
