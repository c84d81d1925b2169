"""The files of the page: read once, sent as they are, and asked for again only where they have changed."""

from __future__ import annotations

import hashlib
import importlib.resources
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from aiohttp import web

_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, as it is sent."""

    body: bytes
    type: str
    etag: str


def assets() -> dict[str, Asset]:
    """Return the files of the page by the names that they are asked for by."""
    return dict(_found(importlib.resources.files(__package__) / "page", ""))


def _found(folder: Traversable, place: str) -> Iterator[tuple[str, Asset]]:
    for each in folder.iterdir():
        suffix = each.name[each.name.rfind(".") :]
        if each.is_dir():
            yield from _found(each, f"{place}{each.name}/")
        elif suffix in _TYPES:
            body = each.read_bytes()
            yield f"{place}{each.name}", Asset(body, _TYPES[suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"')


def answer(request: web.Request, asset: Asset) -> web.Response:
    """Return an asset, or that what the browser has is still it."""
    headers = {"ETag": asset.etag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == asset.etag:
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.body, content_type=asset.type, charset="utf-8", headers=headers)
