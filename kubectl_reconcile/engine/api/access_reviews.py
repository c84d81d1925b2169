"""Reviews: the API server's own word on whom it takes somebody for, and on what somebody may do, which it answers and doesn't keep."""

from __future__ import annotations

from typing import Any

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.objects import Manifest, map_at
from kubectl_reconcile.core.planning.rights.rules import Right

_GROUP = "authorization.k8s.io"
_WHO = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


async def name_of(client: Client) -> str:
    """Return the user name that the server knows *client* by.

    Raises:
        Unauthorized: it knows them by none.
        ApiError: the server refuses, or doesn't answer.
    """
    answer = await client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", _WHO)
    return str(map_at(answer, "status", "userInfo").get("username") or "")


async def may(client: Client, place: str, right: Right) -> bool:
    """Tell whether whoever *client* is has a right in the namespace *place*; empty: in all.

    Raises:
        ApiError: the server refuses to say, or doesn't answer.
    """
    return await _allowed(client, "SelfSubjectAccessReview", attributes_of(place, right))


async def may_other(client: Client, who: Manifest, place: str, right: Right, *, local: bool) -> bool:
    """Tell whether *who* (their ``user`` and ``groups``) has a right; *local*, by a review that lives in the namespace *place*.

    Raises:
        ApiError: the server refuses to say, or doesn't answer.
    """
    kind = "LocalSubjectAccessReview" if local else "SubjectAccessReview"
    return await _allowed(client, kind, {**who, **attributes_of(place, right)}, place if local else "")


async def _allowed(client: Client, kind: str, spec: Manifest, namespace: str = "") -> bool:
    where = f"/namespaces/{namespace}" if namespace else ""
    body: dict[str, Any] = {"apiVersion": f"{_GROUP}/v1", "kind": kind, "spec": spec}
    if namespace:
        body["metadata"] = {"namespace": namespace}
    answer = await client.create(f"/apis/{_GROUP}/v1{where}/{kind.lower()}s", body)
    return bool((answer.get("status") or {}).get("allowed"))


def attributes_of(place: str, right: Right) -> dict[str, Any]:
    """Return a right as access reviews have it; one of any name is asked for without a name, and so of all."""
    if right.url:
        return {"nonResourceAttributes": {"verb": right.verb, "path": right.url}}
    resource, _, sub = right.resource.partition("/")
    asked = {
        "verb": right.verb, "group": right.group, "resource": resource, "subresource": sub, "name": right.name,
        "namespace": place,
    }  # fmt: skip
    return {"resourceAttributes": {key: value for key, value in asked.items() if value}}
