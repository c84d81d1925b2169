"""External systems, as modules reach them: by name, over HTTP, within limits.

Where a system is, the administrator says: ``KUBECTL_RECONCILE_SYSTEM_CANDY_FACTORY=http://factory:8080`` is the system
``candy-factory``. A CR can never name an address, so nobody who may write CRs can make the
daemon call one. Answers are JSON of at most a mebibyte; redirects aren't followed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from msgspec import Struct, field

from kubectl_reconcile.core.module.api import Answer

PREFIX = "KUBECTL_RECONCILE_SYSTEM_"
_REQUEST_S = 5.0
_LARGEST = 1 << 20


class OutsideError(Exception):
    """An external system isn't known, doesn't answer, or was asked for what isn't allowed now."""


class ExternalSystems(Struct):
    """All external systems; *urls* are their base addresses by name. Close it when done."""

    urls: Mapping[str, str] = field(default_factory=lambda: urls_of(os.environ))
    _session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = _REQUEST_S,
    ) -> Answer:
        """Send one request and return its answer, whatever its status.

        Raises:
            OutsideError: no answer came, or one that is too large.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession()
        data = None if body is None else orjson.dumps(body)
        sent = {
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if data is not None else {}),
            **(headers or {}),
        }
        try:
            timeout = aiohttp.ClientTimeout(total=timeout_s)
            async with self._session.request(
                method, url, data=data, headers=sent, allow_redirects=False, timeout=timeout
            ) as response:
                content = await response.content.read(_LARGEST + 1)
                while len(content) <= _LARGEST and (more := await response.content.read(_LARGEST)):
                    content += more
                if len(content) > _LARGEST:
                    raise OutsideError(f"{_place(url)} answers with more than 1 MiB")
                return Answer(response.status, _json(content), content.decode(errors="replace"))
        except TimeoutError as error:
            raise OutsideError(f"{_place(url)} doesn't answer within {timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise OutsideError(f"{_place(url)} doesn't answer: {_why(error)}") from error

    def url(self, system: str) -> str:
        """Return the base address of a system.

        Raises:
            OutsideError: nobody said where it is.
        """
        found = self.urls.get(system)
        if not found:
            raise OutsideError(f"no URL is known for {system}; set {variable_of(system)} to its URL")
        return found

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def urls_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the systems that an environment names, by their names in lower case with dashes."""
    return {
        name.removeprefix(PREFIX).lower().replace("_", "-"): url.rstrip("/")
        for name, url in environ.items()
        if name.startswith(PREFIX) and url
    }


def variable_of(system: str) -> str:
    """Return the environment variable that says where *system* is."""
    return PREFIX + system.upper().replace("-", "_")


def _why(error: Exception) -> str:
    """Return what kept an answer away, without what the HTTP library notes about itself."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate isn't trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = error.os_error
        refused = isinstance(reason, ConnectionRefusedError) or reason.errno == errno.ECONNREFUSED
        return "connection refused" if refused else str(reason.strerror or reason)
    return str(error) or type(error).__name__


def _place(url: str) -> str:
    """Return *url* without what may be a credential."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _json(content: bytes) -> Any:
    try:
        return orjson.loads(content) if content else None
    except ValueError:
        return None
