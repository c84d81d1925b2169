"""Why a source can't be read: one exception for all sources, one readable line each, no secret in any."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from kubectl_reconcile.core.redaction import without


class SourceFault(StrEnum):
    """What kept us from reading the source. The values are fit for a condition's reason."""

    UNREACHABLE = "Unreachable"
    """No server answers there, or not in time. Worth another try."""
    UNTRUSTED = "Untrusted"
    """The server's certificate or host key isn't one that we trust."""
    UNAUTHORIZED = "Unauthorized"
    """The server wants other credentials."""
    NO_SUCH_REPOSITORY = "NoSuchRepository"
    """The server has no such repository, or hides it from these credentials."""
    NO_SUCH_REF = "NoSuchRef"
    """The repository has no such branch, tag or commit (any more)."""
    NO_SUCH_PATH = "NoSuchPath"
    """The revision, or this machine, has nothing at the path."""
    REFUSED = "Refused"
    """We don't do what the URL, the ref or the path asks for, since it isn't safe."""
    UNVERIFIED = "Unverified"
    """It isn't signed as the Sync asks for."""
    CORRUPT = "Corrupt"
    """The local copy is damaged, and recreating it didn't help."""
    UNREADABLE = "Unreadable"
    """The file system doesn't let us read or write there."""
    FAILED = "Failed"
    """Git failed in a way that none of the others describes."""
    ENDED = "Ended"
    """It was cancelled, since it isn't needed any more. Nobody is told."""


class SourceError(Exception):
    """The source can't be read: *message* says where and why, *hint* what to do about it."""

    def __init__(self, fault: SourceFault, message: str, hint: str = "") -> None:
        self.fault = fault
        self.message = one_line(message)
        self.hint = one_line(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message


_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")


def one_line(text: str, most: int = 500) -> str:
    """Return *text* on one line, clipped at *most* characters, with nothing in it that a terminal would obey."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat if len(flat) <= most else f"{flat[: most - 3]}..."


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """Return *text* without *secrets*, and without the user part of any URL."""
    return _USERINFO.sub("", without(text, secrets))
