"""What goes wrong while somebody is answered, as a status and a sentence.

Errors that a user can meet say what is wrong and what to do. Any other is a fault of ours: it is logged, and its text stays here.
"""

from __future__ import annotations

import json
import logging
from html import escape
from typing import Any

from aiohttp import web

from kubectl_reconcile.cluster.errors import ApiError, Conflict, Forbidden, NotFound, Unauthorized, Unreachable
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.engine.commands.find_object import NoSuchKind
from kubectl_reconcile.engine.sync.targets import NoSuchSync, NotInstalled
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.web.spelling import as_json

_LOG = logging.getLogger(__name__)


class Refused(Exception):  # noqa: N818 - it is what the user reads, not a fault of the program
    """A request that isn't answered: the status says how it is meant, *hint* what to do."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        self.status, self.hint = status, hint
        super().__init__(message)


_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (Unauthorized, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (NoSuchSync, 404),
    (NoSuchKind, 404),
    (NotInstalled, 404),
    (Conflict, 409),
    (Unreachable, 502),
    (SourceError, 422),
    (SyncSpecError, 422),
    (ApiError, 502),
)
"""The first that fits counts."""


class HttpLog(logging.LoggerAdapter[logging.Logger]):
    """Where the HTTP server says what it can't read: of that only the kind is logged, since the text has what was sent, tokens too."""

    def __init__(self) -> None:
        super().__init__(_LOG, {})

    def log(self, level: int, msg: object, *args: object, exc_info: Any = None, **more: Any) -> None:  # noqa: ARG002 - neither is logged
        """Log that a request wasn't answered, and the kind of error."""
        kind = type(exc_info).__name__ if isinstance(exc_info, BaseException) else "unknown"
        event(_LOG, min(level, logging.WARNING), "request not answered", error=kind)


def answer_of(error: Exception) -> web.Response:
    """Return what is answered where *error* came up."""
    if isinstance(error, Refused):
        return refused(error.status, str(error), error.hint)
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            hint = str(getattr(error, "hint", ""))
            return refused(status, str(error).removesuffix(f" (hint: {hint})"), _on_a_page(error, hint))
    _LOG.error("request failed", exc_info=error)
    return refused(500, "this is a fault of kubectl-reconcile; its log has the details")


def as_page(request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
    """Return an answer that is an error as a page to read, where a person at a browser has asked for one."""
    wants = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
    if not wants or answer.status < 400 or not isinstance(answer, web.Response) or request.path.startswith("/api/"):
        return answer
    told = json.loads(answer.text or "{}").get("error") or {}
    message, hint = escape(str(told.get("message") or "")), escape(str(told.get("hint") or ""))
    text = _PAGE.format(message=f"{message[:1].upper()}{message[1:]}", hint=hint)
    return web.Response(status=answer.status, text=text, content_type="text/html")


_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>kubectl reconcile</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml"><link rel="stylesheet" href="/assets/page.css"></head>
<body><main><h1>kubectl reconcile</h1><div class="trouble" role="alert"><p><b>{message}</b></p><p>{hint}</p></div>
<p><a href="/">All Syncs</a></p></main></body>
</html>
"""


def _on_a_page(error: Exception, hint: str) -> str:
    """Return what to do, for somebody who is at a page and not at a command line."""
    if isinstance(error, NoSuchSync):
        return f"namespace {error.elsewhere[0]} has one of that name" if error.elsewhere else ""
    if isinstance(error, NotInstalled):
        return "kubectl reconcile install creates them"
    return hint


def refused(status: int, message: str, hint: str = "", enter: str = "") -> web.Response:
    """Return an answer that says why there is no other, what to do, and at which page of ours people *enter*."""
    more = {"hint": hint, "enter": enter}
    body = {"error": {"message": message, **{name: text for name, text in more.items() if text}}}
    return web.Response(status=status, text=as_json(body), content_type="application/json")
