"""Why a server gave no answer that can be used, in one sentence with its address."""

from __future__ import annotations

import posixpath
from enum import StrEnum
from urllib.parse import SplitResult, urlsplit

from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line


class HttpFault(StrEnum):
    """What is wrong with an answer, or kept it from coming."""

    LATE = "late"
    """The time is up."""
    UNREACHABLE = "unreachable"
    """Nobody answers there."""
    BROKEN = "broken"
    """The connection broke."""
    UNTRUSTED = "untrusted"
    """The certificate isn't trusted, or what it is to be checked by can't be read."""
    UNCLEAR = "unclear"
    """What came isn't HTTP, or not all of an answer."""
    TOO_MUCH = "too much"
    """The answer is longer than it may be."""
    NOT_FOLLOWED = "not followed"
    """The URL isn't one that is asked, wherever it comes from."""


_AS_SOURCE = {
    HttpFault.UNTRUSTED: SourceFault.UNTRUSTED,
    HttpFault.TOO_MUCH: SourceFault.REFUSED,
    HttpFault.NOT_FOLLOWED: SourceFault.REFUSED,
}


class HttpError(SourceError):
    """There is no answer that can be used; *why* is the message without the address, *verify_code* the code of OpenSSL where that is a certificate."""

    def __init__(self, what: HttpFault, url: str, why: str, hint: str = "", verify_code: int = 0) -> None:
        self.what, self.why, self.verify_code = what, one_line(why, 400), verify_code
        super().__init__(_AS_SOURCE.get(what, SourceFault.UNREACHABLE), f"{shown(url)}: {self.why}", hint)


def shown(url: str) -> str:
    """Return a URL as it may be shown: without a query, which may be a signature, and without a user."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return one_line(url.partition("?")[0].rpartition("@")[2], 200)
    host = parts.netloc.rpartition("@")[2]
    return one_line(f"{parts.scheme}://{host}{posixpath.join('/', parts.path.lstrip('/'))}", 200)


def parts_of(url: str) -> SplitResult:
    """Return the parts of a URL, each of which can be read.

    Raises:
        HttpError: it is no URL (``NOT_FOLLOWED``).
    """
    try:
        parts = urlsplit(url)
        _ = parts.port  # which is read only here
    except ValueError as error:
        raise HttpError(
            HttpFault.NOT_FOLLOWED, url, f"this is no URL: {error}", "correct it where it is written"
        ) from None
    return parts
