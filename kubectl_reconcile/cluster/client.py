"""Verbs on one API server: wire JSON in, wire JSON out.

Vocabulary: a *path* is the URL path of an object or a collection (``Resource.path`` makes them; a subresource is a
suffix such as ``/status``), *params* are query parameters as the API spells them (``labelSelector="app=web"``).

Rules: no model classes and no copies; bodies go through orjson. Failures are ``ApiError`` and nothing else, while
streaming too. Reads are repeated when that may help, writes never are (``transport.py``). Importing this module is
cheap; ``connect`` loads what reading a kubeconfig takes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

import orjson

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.connection import ApiConnection
from kubectl_reconcile.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Cause,
    Conflict,
    Fenced,
    Forbidden,
    Gone,
    Invalid,
    KubeconfigError,
    NotFound,
    ServerError,
    SilentWatch,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    error_of,
)
from kubectl_reconcile.cluster.messages import Param, Request, Response
from kubectl_reconcile.core.objects import FIELD_MANAGER, Manifest

__all__ = [
    "Access",
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "Cause",
    "Client",
    "Conflict",
    "Fenced",
    "Forbidden",
    "Gone",
    "Invalid",
    "KubeconfigError",
    "NotFound",
    "ServerError",
    "SilentWatch",
    "TooManyRequests",
    "Unauthorized",
    "Unreachable",
]

PAGE_SIZE = 1000
"""Objects per page: a page is held parsed, which takes ten times its size. Pages are read from etcd, a list in one go
from the server's cache, so paging takes some three times as long; it is for what may be too large for one answer."""
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

_APPLY_PATCH = "application/apply-patch+yaml"

_NOT_IN_YAML = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]|\xef\xbb\xbf")
"""Characters that JSON may hold as they are, and that a server which reads its applies as YAML refuses or takes for a line's end."""
_MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
SHORT_WATCH_S = 15
"""How long a watch lives that somebody waits at, so that a silent one doesn't keep them waiting for long: its taker makes another."""
_WATCH_S = 290
_WATCH_GRACE_S = 1.0
"""How much later than asked the server's end of a watch may arrive."""

Items: TypeAlias = list[dict[str, Any]]
"""Objects of a list, each with its apiVersion and kind."""


class Client(ApiConnection):
    """The verbs of one identity at one API server."""

    # --- reading ------------------------------------------------------------------------------------------------------

    async def get(self, path: str, **params: Param) -> dict[str, Any]:
        """Return the object (or whatever JSON) at *path*.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        return _parsed(await self.request("GET", path, params=params), path)

    async def get_bytes(self, path: str, **params: Param) -> bytes:
        """Return the answer at *path* as it came.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        return (await self.request("GET", path, params=params)).body

    async def list(self, path: str, **params: Param) -> tuple[Items, str]:
        """Return all objects of a collection and the list's resourceVersion; in pages only with a ``limit``.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        items: Items = []
        version = ""
        async for page, version in self.pages(path, **{"limit": None, **params}):  # noqa: B007 - the last page's is the list's
            items.extend(page)
        return items, version

    async def first_page(self, path: str, **params: Param) -> tuple[Items, str, bool]:
        """Return a collection's first page, the list's resourceVersion, and whether that page is all of it.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        answer = await self.get(path, **{"limit": PAGE_SIZE, **params})
        return _typed_items(answer), _version_of(answer), not (answer.get("metadata") or {}).get("continue")

    async def metadata(self, path: str, **params: Param) -> tuple[Items, bool]:
        """Return the metadata of a collection's objects, at most ``limit`` of them if that is given, and whether these are all.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        answer = _parsed(await self.request("GET", path, params=params, accept=_METADATA_ONLY), path)
        return answer.get("items") or [], not (answer.get("metadata") or {}).get("continue")

    async def pages(self, path: str, **params: Param) -> AsyncIterator[tuple[Items, str]]:
        """Yield a collection page by page, with the list's resourceVersion. All pages show one state of the cluster.

        Raises:
            Gone: the pages took so long that the server has forgotten that state; start again.
            ApiError: the server refuses, or doesn't answer.
        """
        query: dict[str, Param] = {"limit": PAGE_SIZE, **params}
        while True:
            answer = await self.get(path, **query)
            yield _typed_items(answer), _version_of(answer)
            query["continue"] = (answer.get("metadata") or {}).get("continue")
            if not query["continue"]:
                return
            # The token stands for the version; the server refuses to be told both.
            query = {name: value for name, value in query.items() if not name.startswith("resourceVersion")}

    async def watch(
        self,
        path: str,
        *,
        on_open: Callable[[], None] | None = None,
        **params: Param,
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        """Yield ``(type, object)`` as things change: ADDED, MODIFIED, DELETED, and BOOKMARK where asked for.

        Ends normally when the server ends it, which it does after ``timeoutSeconds`` (default: some minutes). *on_open* is
        called when the server has accepted the watch, which may be long before the first event.

        Raises:
            Gone: ``resourceVersion`` is too old to continue from.
            SilentWatch: the server's end of it hasn't come two seconds after its time; whatever it held was lost.
            Unreachable: the connection broke, or the server doesn't answer.
            ApiError: the server refuses, at once or by an ERROR event.
        """
        query: dict[str, Param] = {"timeoutSeconds": _WATCH_S, **params, "watch": True}
        longest_s = float(query["timeoutSeconds"] or _WATCH_S) + _WATCH_GRACE_S
        request = Request("GET", path, query, impersonation=self._impersonating)
        async with aclosing(self._transport.lines(request, longest_s=longest_s, on_open=on_open)) as lines:
            async for line in lines:
                yield _event(line, path)

    # --- writing ------------------------------------------------------------------------------------------------------

    async def apply(
        self,
        path: str,
        body: Manifest | bytes,
        *,
        manager: str = FIELD_MANAGER,
        force: bool = False,
        dry_run: bool = False,
        field_validation: str = "Strict",
    ) -> dict[str, Any]:
        """Apply *body* server-side to the object (or its ``/status``) at *path*; return the object as it became.

        Raises:
            Conflict: another manager owns a field and *force* is off; the causes name both.
            ApiError: the server refuses, or doesn't answer.
        """
        params = {**_write_params(manager, field_validation, dry_run=dry_run), "force": force}
        answer = await self.request("PATCH", path, params=params, body=_as_yaml(body), content_type=_APPLY_PATCH)
        return _parsed(answer, path)

    async def create(
        self,
        path: str,
        body: Manifest | bytes,
        *,
        manager: str = FIELD_MANAGER,
        dry_run: bool = False,
        field_validation: str = "Strict",
    ) -> dict[str, Any]:
        """Create *body* in the collection at *path*; return the object as it became.

        Raises:
            AlreadyExists: the name is taken.
            ApiError: the server refuses, or doesn't answer.
        """
        params = _write_params(manager, field_validation, dry_run=dry_run)
        return _parsed(await self.request("POST", path, params=params, body=body), path)

    async def replace(
        self,
        path: str,
        body: Manifest | bytes,
        *,
        manager: str = FIELD_MANAGER,
        dry_run: bool = False,
        field_validation: str = "Strict",
    ) -> dict[str, Any]:
        """Replace the object (or its ``/status``) at *path*; a resourceVersion in *body* guards against races.

        Raises:
            Conflict: the object has changed since.
            ApiError: the server refuses, or doesn't answer.
        """
        params = _write_params(manager, field_validation, dry_run=dry_run)
        return _parsed(await self.request("PUT", path, params=params, body=body), path)

    async def patch(
        self,
        path: str,
        body: Manifest | Items | bytes,
        *,
        manager: str = FIELD_MANAGER,
        dry_run: bool = False,
        field_validation: str = "Strict",
        twice_after_s: float | None = None,
    ) -> dict[str, Any]:
        """Patch the object at *path* by a merge patch (a mapping) or a JSON patch (a list of operations).

        With *twice_after_s* it may be done twice: again if no answer comes for so long, along a new connection.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        params = _write_params(manager, field_validation, dry_run=dry_run)
        content_type = _JSON_PATCH if isinstance(body, list) else _MERGE_PATCH
        answer = await self.request(
            "PATCH", path, params=params, body=body, content_type=content_type, twice_after_s=twice_after_s
        )
        return _parsed(answer, path)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "Background",
        grace_s: int | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Delete the object at *path*, only while it is the one with this *uid* and *resource_version* (where given). A pod has *grace_s* seconds to end, by default its own.

        Returns what the server says: a ``Status`` if the object is gone, else the object, which is terminating.

        Raises:
            Conflict: it is another object by now, or has changed.
            NotFound: it was gone already.
            ApiError: the server refuses, or doesn't answer.
        """
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        if any(preconditions.values()):
            body["preconditions"] = {key: value for key, value in preconditions.items() if value}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        if dry_run:
            body["dryRun"] = ["All"]
        return _parsed(await self.request("DELETE", path, body=body), path)


def _write_params(manager: str, field_validation: str, *, dry_run: bool) -> dict[str, Param]:
    return {"fieldManager": manager, "fieldValidation": field_validation, "dryRun": "All" if dry_run else None}


def _as_yaml(body: Manifest | bytes) -> bytes:
    """Return *body* as JSON that means the same to who reads it as YAML."""
    return _NOT_IN_YAML.sub(_escaped, body if isinstance(body, bytes) else orjson.dumps(body))


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def _parsed(answer: Response, path: str) -> dict[str, Any]:
    try:
        found = orjson.loads(answer.body)
    except ValueError as error:
        raise ServerError(f"the answer for {path} is not JSON: {error}", reason="BadAnswer") from error
    if not isinstance(found, dict):
        raise ServerError(f"the answer for {path} is not a JSON object", reason="BadAnswer")
    return found


def _event(line: bytes, path: str) -> tuple[str, dict[str, Any]]:
    try:
        event = orjson.loads(line)
        type_, object_ = event["type"], event["object"]
    except (ValueError, KeyError, TypeError) as error:
        raise ServerError(f"the watch of {path} sent something that isn't an event", reason="BadAnswer") from error
    if type_ == "ERROR":
        raise error_of(object_, request=f"the watch of {path}")
    return type_, object_


def _version_of(answer: Mapping[str, Any]) -> str:
    return str((answer.get("metadata") or {}).get("resourceVersion") or "")


def _typed_items(answer: Mapping[str, Any]) -> Items:
    """Return a list's items with apiVersion and kind, which the server leaves out of built-in kinds' lists."""
    items: Items = answer.get("items") or []
    if not items or "kind" in items[0]:
        return items
    api_version, kind = answer.get("apiVersion"), str(answer.get("kind") or "").removesuffix("List")
    return [{"apiVersion": api_version, "kind": kind, **item} for item in items]
