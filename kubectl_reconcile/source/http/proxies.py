"""Whether a server is asked through a proxy, and which, by the variables that git reads too."""

from __future__ import annotations

import base64
import os
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from kubectl_reconcile.core.records import Guarded
from kubectl_reconcile.source.http.errors import HttpError, HttpFault

_USUAL_PORT = 1080  # git's, and curl's


class HttpProxy(Guarded, frozen=True):
    """A proxy of HTTP; *authorization* is what it is shown."""

    hidden: ClassVar = frozenset({"authorization"})

    host: str
    port: int
    authorization: str = ""


def proxy_url(url: str) -> str:
    """Return the URL of the proxy that the environment names for *url*, empty where there is none: git's names of variables, and the plainest form of ``no_proxy``."""
    parts = urlsplit(url)
    own = ("http_proxy",) if parts.scheme == "http" else ("https_proxy", "HTTPS_PROXY")
    named = next((found for name in (*own, "all_proxy", "ALL_PROXY") if (found := os.environ.get(name))), "")
    direct = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or "").replace(",", " ").lower().split()
    host = (parts.hostname or "").lower()
    is_direct = any(each in {"*", host} or host.endswith(f".{each.lstrip('.')}") for each in direct)
    return "" if is_direct else named


def proxy_of(url: str) -> HttpProxy | None:
    """Return the proxy through which *url* is asked, None where there is none.

    Raises:
        HttpError: it isn't a proxy of HTTP (``UNREACHABLE``).
    """
    named = proxy_url(url)
    if not named:
        return None
    try:
        parts = urlsplit(named if "://" in named else f"http://{named}")
        host, port = parts.hostname or "", parts.port or _USUAL_PORT
    except ValueError:
        parts, host, port = urlsplit(""), "", 0
    if parts.scheme != "http" or not host:
        hint = "https_proxy, http_proxy or all_proxy is to be http://HOST:PORT"
        raise HttpError(HttpFault.UNREACHABLE, url, "the proxy that the environment names isn't one of HTTP", hint)
    said = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
    return HttpProxy(host, port, f"Basic {base64.b64encode(said).decode()}" if parts.username else "")
