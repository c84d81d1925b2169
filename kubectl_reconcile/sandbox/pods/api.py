"""The API server, as far as a nodelet needs it: single requests, and kinds that are followed."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import aiohttp
import yaml

Object = dict[str, Any]

_LOG = logging.getLogger(__name__)
_RETRY_S = 0.5
_MERGE = "application/merge-patch+json"


class RefusedError(Exception):
    """The API server refuses; *status* is the HTTP status, *message* what it says."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status, self.message = status, message


class Api:
    """One API server, as the user of a kubeconfig of the sandbox. Used as a context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
        self._server = cluster["server"]
        self._authority = cluster["certificate-authority-data"]
        self._token = user["token"]
        self._session: aiohttp.ClientSession | None = None

    @property
    def port(self) -> int:
        """The port of the machine's loopback that it listens at."""
        return int(self._server.rpartition(":")[2])

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context(cadata=base64.b64decode(self._authority).decode("ascii"))
        self._session = aiohttp.ClientSession(
            self._server,
            headers={"Authorization": f"Bearer {self._token}"},
            connector=aiohttp.TCPConnector(ssl=context, limit=64),
            timeout=aiohttp.ClientTimeout(total=30),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, kind: str = "application/json"
    ) -> Object:
        """Ask for *path*; return the answer.

        Raises:
            RefusedError: the server refuses, or can't be reached (status 0).
        """
        assert self._session is not None  # noqa: S101 - for the type checker
        data = None if body is None else json.dumps(body)
        try:
            async with self._session.request(method, path, data=data, headers={"Content-Type": kind}) as answer:
                content = await answer.read()
                if answer.status >= 400:
                    raise RefusedError(answer.status, _message(content))
                found: Object = json.loads(content)
                return found
        except (aiohttp.ClientError, TimeoutError) as error:
            raise RefusedError(0, f"no answer: {error}") from error

    async def get(self, path: str) -> Object | None:
        """Return the object at *path*, None if there is none.

        Raises:
            RefusedError: the server refuses.
        """
        try:
            return await self.request("GET", path)
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    async def patch(self, path: str, body: Mapping[str, Any]) -> Object:
        """Merge *body* into the object at *path*.

        Raises:
            RefusedError: the server refuses.
        """
        return await self.request("PATCH", path, body, kind=_MERGE)

    async def apply(self, path: str, body: Mapping[str, Any]) -> Object:
        """Make the object at *path* say what *body* says, server-side.

        Raises:
            RefusedError: the server refuses.
        """
        return await self.request(
            "PATCH", f"{path}?fieldManager=nodelet&force=true", body, kind="application/apply-patch+yaml"
        )

    async def follow(self, path: str, query: str, tell: Callable[[dict[str, Object]], None]) -> None:
        """Call *tell* with all objects of *path* by uid, now and whenever one changes, forever."""
        while True:
            try:
                listed = await self.request("GET", f"{path}?{query}")
                objects = {one["metadata"]["uid"]: one for one in listed["items"]}
                tell(objects)
                await self._watch(path, query, listed["metadata"]["resourceVersion"], objects, tell)
            except (RefusedError, aiohttp.ClientError, TimeoutError, ValueError) as error:
                _LOG.warning("following %s again: %s", path, error)
                await asyncio.sleep(_RETRY_S)

    async def _watch(
        self, path: str, query: str, version: str, objects: dict[str, Object], tell: Callable[[dict[str, Object]], None]
    ) -> None:
        assert self._session is not None  # noqa: S101 - for the type checker
        where = f"{path}?{query}&watch=true&resourceVersion={version}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        async with self._session.get(where, timeout=timeout, read_bufsize=1 << 22) as stream:
            if stream.status >= 400:
                raise RefusedError(stream.status, _message(await stream.read()))
            async for line in stream.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                one = event["object"]
                if event["type"] == "DELETED":
                    objects.pop(one["metadata"]["uid"], None)
                else:
                    objects[one["metadata"]["uid"]] = one
                tell(objects)


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content).get("message", ""))
    except (ValueError, AttributeError):
        return content.decode(errors="replace")[:200]
