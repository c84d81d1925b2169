"""What goes to an API server, and what comes back, as HTTP has it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, TypeAlias
from urllib.parse import urlencode

from msgspec import Struct, field
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from kubectl_reconcile import __version__
from kubectl_reconcile.cluster.access.cluster import Route
from kubectl_reconcile.cluster.errors import printable
from kubectl_reconcile.core.records import Guarded

JSON = "application/json"

Param: TypeAlias = str | int | bool | None
"""A query parameter; None leaves it out."""

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""HTTP headers in order; a name may come more than once."""


class Request(Guarded, frozen=True):
    """What to send. *impersonation* replaces the route's own, if it isn't None."""

    hidden: ClassVar = frozenset({"impersonation"})

    method: str
    path: str
    params: Mapping[str, Param] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    etag: str = ""
    impersonation: Headers | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def url(self, server: str) -> URL:
        """Return the whole URL, its query spelt as the API expects it (``true``, not ``True``)."""
        query = _query(tuple((name, _param_text(value)) for name, value in self.params.items() if value is not None))
        separator = "&" if "?" in self.path else "?"
        return URL(f"{server}{self.path}{separator}{query}" if query else f"{server}{self.path}", encoded=True)

    def headers(self, route: Route) -> CIMultiDict[str]:
        """Return all headers, with the identity of *route* unless another is impersonated."""
        far = self.method == "GET" and not route.near
        found = CIMultiDict({"Accept": self.accept, "Accept-Encoding": "gzip" if far else "identity"})
        found["User-Agent"] = f"kubectl-reconcile/{__version__}"
        if self.body is not None:
            found["Content-Type"] = self.content_type
        if self.etag:
            found["If-None-Match"] = self.etag
        for name, value in route.headers:
            if self.impersonation is None or not name.startswith("Impersonate-"):
                found.add(name, value)
        for name, value in self.impersonation or ():
            found.add(name, value)
        return found


class Response(Struct, frozen=True):
    """A successful answer (2xx, or 304 to an *etag*) as it came."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the server's ``Warning`` headers."""
        return tuple(_warning_text(value) for value in self.headers.getall("Warning", ()))


@lru_cache(maxsize=256)
def _query(params: tuple[tuple[str, str], ...]) -> str:
    """Return *params* as a query, remembered: thousands of requests have the same."""
    return urlencode(params)


def _param_text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _warning_text(header: str) -> str:
    """Return the text of a ``Warning: 299 - "text"`` header."""
    _, quote, text = header.partition('"')
    return printable(text.rpartition('"')[0].replace('\\"', '"').replace("\\\\", "\\") if quote else header)
