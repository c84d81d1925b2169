"""What a file of a source says to whoever reads meaning into it: the one place between the bytes that sources have and all that parses them.

Manifests, those of the newest revision and those of earlier ones, come through here, and files of overlays and charts, their values among them, whichever source has
them. So this is where bytes are judged, and would be changed, before anybody parses them.

Who edits files for a commit, or tells on which line something stands, doesn't come through here: they need a file as it is committed.
"""

from __future__ import annotations

from kubectl_reconcile.core.manifests.parse import Parsed, parse
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits, raising


class UnreadableFileError(Exception):
    """A file that nothing is read of; the message says why, as a sentence about it."""

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(f"{message}; {hint}")


def of(data: bytes, limits: GitLimits) -> bytes:
    """Return what a file says that holds *data*.

    Raises:
        UnreadableFileError: nothing is read of it.
    """
    if len(data) > limits.file_bytes:
        raise UnreadableFileError(f"has more than {limits.file_bytes // MEBIBYTE} MiB", raising("file_bytes"))
    return data


def manifests(data: bytes, path: str, limits: GitLimits) -> Parsed:
    """Return the manifests of the file at *path*, which holds *data*, and what is wrong with it: a problem where nothing is read of it."""
    try:
        return parse(of(data, limits), path, most_bytes=limits.file_bytes)
    except UnreadableFileError as error:
        return Parsed((), (Problem(path, 0, f"the file {error.message}", f"split it, or {error.hint}"),))
