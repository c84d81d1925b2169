"""Under which addresses people reach the page of a daemon."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

NO_ORIGIN = "{} isn't an https URL with only a host"


def origins_of(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the origins of the addresses of a page.

    Raises:
        ValueError: one isn't an https URL with only a host; its message is that one.
    """
    return tuple(map(_origin, urls))


def _origin(url: str) -> str:
    parts = urlsplit(url.rstrip("/"))
    bare = parts.scheme == "https" and parts.hostname and f"https://{parts.netloc}" == url.rstrip("/")
    if not bare or "@" in parts.netloc or not url.isascii():
        raise ValueError(url)
    return f"https://{parts.netloc.lower()}"
