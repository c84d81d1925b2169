"""Writes the record of an object's owners where the server can't use it as it is, see ``core/ssa/managed_fields``.

A patch says which version of the object it was made for, so no record is written over one that has changed since.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import Conflict, ServerError
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.ssa.managed_fields import has_failed_at_versions, restated


async def at_one_version(
    client: Client, path: str, api_version: str, attempt: Callable[[], Awaitable[Manifest]]
) -> Manifest:
    """Make an *attempt* to apply to the object at *path*; where the server fails at the versions of its owners, have these at *api_version*.

    Raises:
        Conflict: that was done, so trying again may succeed.
        ApiError: the server refuses, or doesn't answer.
    """
    try:
        return await attempt()
    except ServerError as error:
        patch = (
            restated(await client.get(path), api_version) if has_failed_at_versions(error.status, error.message) else ()
        )
        if not patch:
            raise
        await client.patch(path, [dict(step) for step in patch])
        raise Conflict(
            f"the owners of {path} were recorded at a version that can't be used: {error}", status=409
        ) from error


async def with_owners(client: Client, path: str, patch: Sequence[Mapping[str, Any]], answer: Manifest) -> None:
    """Have *patch* hold that was answered so: a server that can't convert to the versions of some owners forgets them all.

    Raises:
        ApiError: the server refuses, or doesn't answer; Conflict where the object has changed meanwhile.
    """
    wanted = patch[0]["value"]
    if not wanted or answer["metadata"].get("managedFields"):
        return
    if again := restated(answer, answer["apiVersion"], wanted):
        await client.patch(path, [dict(step) for step in again])
