"""Whom the API server takes somebody for."""

from __future__ import annotations

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.objects import map_at

_REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def name_of(client: Client) -> str:
    """Return the user name that the server knows *client* by.

    Raises:
        Unauthorized: it knows them by none.
        ApiError: the server refuses, or doesn't answer.
    """
    answer = await client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", _REVIEW)
    return str(map_at(answer, "status", "userInfo").get("username") or "")
