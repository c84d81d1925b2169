"""How revisions are called: commits by their hashes, what is packed by its version and digest, folders by a digest of what is in them.

Pure.
"""

from __future__ import annotations

import re
from typing import Final

_FOLDER: Final = "worktree"
"""How the shas of folders begin."""
_DIGITS: Final = 7
"""How many digits of a hash people quote."""
_LONGEST: Final = 64
_DIGEST: Final = "sha256:"


def is_folder(revision: str) -> bool:
    """Tell whether a revision is of a folder as it is now, which somebody may change."""
    return revision.startswith(_FOLDER)


def is_packed(revision: str) -> bool:
    """Tell whether a revision is something packed, which has a version or a digest, and neither a commit nor a folder."""
    return _DIGEST in revision or bool(_VERSION.match(revision))


def digest_in(revision: str) -> str:
    """Return the digest that a revision ends in; empty where it has none."""
    _, found, digits = revision.rpartition(_DIGEST)
    return f"{found}{digits}" if found else ""


def is_digest_of(digits: str, revision: str) -> bool:
    """Tell whether a revision has the digest that begins with *digits*, ``sha256:`` among them."""
    return digits.startswith(_DIGEST) and digest_in(revision).startswith(digits)


def tag_in(revision: str) -> str:
    """Return the tag, or the version, that a revision with a digest begins with; empty where it has none."""
    return revision.rpartition(_DIGEST)[0].removesuffix("@")


def short_of(revision: str) -> str:
    """Return a revision as people quote it: ``worktree``, the first seven digits of a commit, or ``1.2.3@sha256:3f9c2e1``."""
    if is_folder(revision):
        return _FOLDER
    if digest := digest_in(revision):
        tag = tag_in(revision)[:_LONGEST]
        return f"{tag}{'@' if tag else ''}{digest[: len(_DIGEST) + _DIGITS]}"
    return revision[:_LONGEST] if _VERSION.match(revision) else revision[:_DIGITS]


_VERSION: Final = re.compile(r"v?[0-9]+[.]")
"""How a version begins, and no hash does."""
