"""What a Git server says when somebody pushed: is it genuine, and what is it about.

Genuine is what carries proof of a secret that only that server and the Sync share:

- GitHub: ``X-Hub-Signature-256: sha256=…``, the HMAC of the body; others send the same, without the prefix,
  as ``X-Gitea-Signature``, ``X-Forgejo-Signature``, or ``X-Signature-256`` for anything of your own;
- GitLab: ``X-Gitlab-Token``, the secret itself.

Nothing of a body is looked at before that is certain, and secrets are compared in constant time. A body needn't be held for it:
its signature is computed as it comes in.

A *replay* is a word that was heard before. Git servers number what they deliver, but don't sign the number, so the same
body under another number is a replay too. Words without a number are all taken as new: nothing tells two of them apart.

Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.core.resources.semver import VersionRange
from kubectl_reconcile.core.resources.source import GitSpec

_SIGNATURES = ("x-hub-signature-256", "x-gitea-signature", "x-forgejo-signature", "x-signature-256")
_TOKEN = "x-gitlab-token"  # noqa: S105 - the name of a header


_NUMBERS = ("idempotency-key", "x-github-delivery", "x-gitea-delivery", "x-forgejo-delivery", "x-gitlab-event-uuid")


@dataclass(slots=True)
class Word:
    """A push notification as it comes in: its headers first, then its body, piece by piece."""

    headers: Mapping[str, str]
    secret: str
    _proof: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Begin with the headers, whatever the case of their names."""
        self.headers = {name.lower(): value for name, value in self.headers.items()}
        self._proof = hmac.new(self.secret.encode(), b"", hashlib.sha256)

    @property
    def may_be_genuine(self) -> bool:
        """Tell whether it bears anything that could be a proof: without, its body needn't be read."""
        return bool(self.secret) and any(self.headers.get(name) for name in (*_SIGNATURES, _TOKEN))

    def take(self, piece: bytes) -> None:
        """Take in the next piece of the body."""
        self._proof.update(piece)

    @property
    def is_genuine(self) -> bool:
        """Tell whether who sent all that was taken in knows the secret; an empty secret is nobody's."""
        if not self.secret:
            return False
        signed = (self.headers.get(name, "").removeprefix("sha256=") for name in _SIGNATURES)
        proofs = [hmac.compare_digest(given.encode(), self._proof.hexdigest().encode()) for given in signed]
        return any([*proofs, hmac.compare_digest(self.headers.get(_TOKEN, "").encode(), self.secret.encode())])

    @property
    def marks(self) -> tuple[str, ...]:
        """Return what a replay of this word would share with it: its number and its body; nothing if it has no number."""
        number = next((self.headers[name] for name in _NUMBERS if self.headers.get(name)), "")
        return (
            (f"number {hashlib.sha256(number.encode()).hexdigest()}", f"body {self._proof.hexdigest()}")
            if number
            else ()
        )


@dataclass(slots=True)
class HeardWords:
    """The words heard lately, of each hook the last *most*; those of the hooks told longest ago are forgotten first."""

    most: int = 256
    most_hooks: int = 1024
    _marks: OrderedDict[str, OrderedDict[str, None]] = field(default_factory=OrderedDict)

    def is_replay(self, hook: str, word: Word) -> bool:
        """Tell whether *word* was heard before."""
        known = self._marks.get(hook, OrderedDict())
        return any(mark in known for mark in word.marks)

    def remember(self, hook: str, word: Word) -> None:
        """Note a word that was acted on."""
        if not word.marks:
            return
        known = self._marks.setdefault(hook, OrderedDict())
        self._marks.move_to_end(hook)
        known.update(dict.fromkeys(word.marks))
        while len(known) > 2 * self.most:
            known.popitem(last=False)
        while len(self._marks) > self.most_hooks:
            self._marks.popitem(last=False)


def is_genuine(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Tell whether who sent *body* knows *secret*."""
    word = Word(headers, secret)
    word.take(body)
    return word.is_genuine


def concerns(body: bytes, git: GitSpec) -> bool:
    """Tell whether a push may be news for who follows *git*; what names no ref may always be."""
    try:
        ref = json.loads(body).get("ref")
    except (ValueError, AttributeError, RecursionError):
        return True
    if not isinstance(ref, str) or not ref.startswith(("refs/heads/", "refs/tags/")):
        return True
    if git.semver:
        return bool(VersionRange.of(git.semver).newest([ref], lambda full: full.removeprefix("refs/tags/")))
    if git.tag or git.commit:
        return bool(git.tag) and ref == f"refs/tags/{git.tag}"
    return ref == f"refs/heads/{git.branch}" if git.branch else ref.startswith("refs/heads/")
