"""What a file of a source says to whoever reads meaning into it: the one place between the bytes that sources have and all that parses them.

Manifests, those of the newest revision and those of earlier ones, come through here, and files of overlays and charts, their values among them, whichever source has
them. So this is where bytes are judged, and decrypted, before anybody parses them. What SOPS has encrypted is never taken for what it says: without a key
that fits, nothing is read of such a file.

Who edits files for a commit, or tells on which line something stands, doesn't come through here: they need a file as it is committed.
"""

from __future__ import annotations

import hashlib

from msgspec.structs import replace

from kubectl_reconcile.core.manifests.encrypted import SEALED, SopsFormat, format_of
from kubectl_reconcile.core.manifests.parse import Parsed, parse
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.sealed import unsealed, with_seals
from kubectl_reconcile.core.resources.decryption import NO_DECRYPTION, Alter, Decryption
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits, raising
from kubectl_reconcile.source.sops.decrypter import DECRYPTER


class UnreadableFileError(Exception):
    """A file that nothing is read of; the message says why, as a sentence about it, with the *line* where that is known. It *passes* where another try may end otherwise."""

    def __init__(self, message: str, hint: str, line: int = 0, *, passes: bool = False) -> None:
        self.message, self.hint, self.line = message, hint, line
        self.passes = passes
        super().__init__(f"{message}; {hint}" if hint else message)


def of(data: bytes, path: str, limits: GitLimits, decryption: Decryption = NO_DECRYPTION) -> bytes:
    """Return what the file at *path* says that holds *data*, decrypted where SOPS has encrypted it. Blocks.

    Raises:
        UnreadableFileError: nothing is read of it.
        SourceError: nobody waits any more.
    """
    if len(data) > limits.file_bytes:
        raise UnreadableFileError(f"has more than {limits.file_bytes // MEBIBYTE} MiB", raising("file_bytes"))
    form = format_of(path, data)
    return data if form is None else _decrypted(data, form, decryption)


def is_sealed(data: bytes, path: str) -> bool:
    """Tell whether SOPS has encrypted the file at *path*, which holds *data*."""
    return format_of(path, data) is not None


def _decrypted(data: bytes, form: SopsFormat, decryption: Decryption) -> bytes:
    if not decryption.asked:
        raise UnreadableFileError("is encrypted with SOPS, and nobody has named a key for it", _NAME_KEY)
    found = DECRYPTER.of(data, form, decryption)
    if found.fault:
        at = f" ({found.at})" if found.at else ""
        raise UnreadableFileError(f"{found.fault}{at}", found.hint, found.line, passes=found.passes)
    return found.data


_NAME_KEY = "set spec.source.decryption of the Sync, or --decrypt for files that no Sync follows; or list it in .reconcileignore"


def manifests(data: bytes, path: str, limits: GitLimits, decryption: Decryption = NO_DECRYPTION) -> Parsed:
    """Return the manifests of the file at *path*, which holds *data*, and what is wrong with it: a problem where nothing is read of it. Blocks.

    Values that were decrypted are marked as those of Secrets are.

    Raises:
        SourceError: nobody waits any more.
    """
    try:
        plain = of(data, path, limits, decryption)
        parsed = parse(plain, path, most_bytes=limits.file_bytes)
        if not is_sealed(data, path):
            return unsealed(parsed) if SEALED.encode() in data else parsed
        if decryption.alter is not Alter.NONE:
            return parsed
        other = of(data, path, limits, replace(decryption, alter=Alter.ALL))
    except UnreadableFileError as error:
        hint = error.hint if is_sealed(data, path) else f"split it, or {error.hint}"
        problem = Problem(path, error.line, f"the file {error.message}", hint)
        return Parsed((), (problem,), sealed=_digest(data) if is_sealed(data, path) else "")
    told = unsealed(with_seals(parsed, plain, other, data, path))
    return replace(told, sealed=_digest(data))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
