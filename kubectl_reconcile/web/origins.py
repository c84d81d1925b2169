"""From where requests come: our own pages, or anybody else's. Pure."""

from __future__ import annotations

from aiohttp import web

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OWN_PAGES = frozenset({"", "same-origin", "none"})
"""What browsers say of requests that pages of ours make, or the person themself."""


def foreign(request: web.Request, origin: str) -> str:
    """Return why a request is none that a page at *origin* makes; empty where it may be one."""
    said = request.headers.get("Origin")
    changes = request.method not in {"GET", "HEAD"}
    is_other = (said is None and changes) or (said is not None and said != origin)
    is_visit = request.headers.get("Sec-Fetch-Mode") == "navigate" and not changes
    if is_other or (request.headers.get("Sec-Fetch-Site", "") not in _OWN_PAGES and not is_visit):
        return "only this page's own requests are answered"
    return ""
