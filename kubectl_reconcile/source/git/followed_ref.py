"""One ref of a repository, followed in the repository's clone: where the server has it, and how it is brought here."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from msgspec import Struct

from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.cloned.objects import ObjectReader, Place
from kubectl_reconcile.source.git.cloned.refs import ClonedRefs
from kubectl_reconcile.source.git.server_refs import TAGS, Ref, RefKind, RemoteRef, refs_of
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.remote import Repository, check_ref

HASH: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
"""The name of a commit."""

_DIGITS: Final = re.compile(r"[0-9a-f]{4,64}")


class FollowedRef:
    """A *ref* of a *repository*. *timeout_s* is for one answer of the server; a fetch has all the time that git may have.

    The clone is shared by all who name its URL. Where it is *guarded*, it gives nothing before the server has let in the credentials of who asks:
    others may have brought what it holds.

    Raises:
        SourceError: the ref is none that git may be given.
    """

    def __init__(
        self,
        repository: Repository,
        ref: Ref,
        cache_dir: Path,
        limits: GitLimits | None,
        timeout_s: float,
        fetch_timeout_s: float | None,
        *,
        guarded: bool = False,
    ) -> None:
        self.repository, self.ref, self._guarded = repository, ref, guarded
        if ref.name and ref.kind is not RefKind.RANGE:
            check_ref(ref.name)
        if ref.kind is RefKind.COMMIT and not HASH.fullmatch(ref.name):
            raise SourceError(SourceFault.REFUSED, f"{ref} isn't a full hash", "give all 40 digits, in lower case")
        self._clone = Clone(repository, cache_dir, limits)
        self._refs = ClonedRefs(self._clone)
        longest_s = self._clone.limits.seconds
        self._timeout_s, self._fetch_timeout_s = min(timeout_s, longest_s), fetch_timeout_s or longest_s
        self._server = refs_of(repository, listed=ref.kind is RefKind.RANGE)
        self._server.join(self)
        self.since_s = float("inf")
        """How old an answer of the server may be that somebody else was given: from then on (monotonic); by default, none will do."""
        self._admitted = False
        self._held: _Held | None = None
        """Where the clone was found to have the ref when it was looked into last."""
        self.ref_name = self.tip = self.tag = ""
        """The full name of the ref, the commit that it was at when it was asked last, and the annotated tag that it was at, if any."""

    def remote_sha(self) -> str:
        """Ask the server which commit the ref is at now. Fetches nothing.

        Raises:
            SourceError: there is no answer, or no such ref.
        """
        return self._remote().sha

    @property
    def server(self) -> object:
        """Who answers: one and the same for all who ask the same repository with the same credentials."""
        return self._server

    def is_current(self, since_s: float) -> bool:
        """Tell whether the ref was seen where it was when this source was read, by whoever asked since then (monotonic). Asks nobody."""
        if self.ref.kind is RefKind.COMMIT and self._admitted and self.tip:
            return True
        latest, names = self._server.latest, self.ref.names()
        if not latest.tells(names, since_s) or latest.failure is not None:
            return False
        remote = latest.at(self.ref)
        return remote is not None and (remote.name, remote.sha, remote.tag) == (self.ref_name, self.tip, self.tag)

    def seen(self) -> RemoteRef | None:
        """Return where the server was last heard to say that the ref is, whether or not the clone has that; asks nobody."""
        return self._server.latest.at(self.ref)

    def tells_of_move(self) -> bool:
        """Tell whether nobody has told the others yet of what the server said last: of one answer one tells, the first who asks here."""
        return self._server.is_news()

    def tag_of(self, sha: str) -> str:
        """Return the tag by which a range of versions led to the commit *sha*; empty for any other commit, or where no range is followed. Asks nobody."""
        if self.ref.kind is not RefKind.RANGE:
            return ""
        heard = self.seen()
        names = {heard.sha: heard.name} if heard is not None else {}
        return {**names, self.tip: self.ref_name}.get(sha, "").removeprefix(TAGS)

    def is_at(self, remote: RemoteRef) -> None:
        """Note that the ref is there, and that there is nothing to be read that wasn't read."""
        self.ref_name, self.tip, self.tag = remote.name, remote.sha, remote.tag

    def fetch(self) -> str:
        """Bring the clone up to the ref and return its commit; one small request where nothing moved.

        Raises:
            SourceError: the server can't be reached or refuses, or has no such ref.
        """
        if self.ref.kind is RefKind.COMMIT and self._admitted and self._refs.at(f"commits/{self.ref.name}"):
            self.tip = self.ref.name
            return self.ref.name  # a commit never moves
        remote = self._remote()
        self._admitted = True
        name = self.ref_name = remote.name
        self.tip, self.tag = remote.sha, remote.tag
        if not (name == remote.sha != self.ref.name and self._refs.has(remote.sha)) and not self._holds(remote):
            self.tip = self._clone.repairing(lambda: self._fetch(name, _ours(name), remote))
            self.tag = self._refs.tag_at(_ours(name))
        return self.tip

    def resolve(self, text: str) -> str:
        """Return the full hash of the commit that *text*, its first digits, means among those of the clone; empty if none.

        Raises:
            SourceError: there are several (``REFUSED``).
        """
        if not _DIGITS.fullmatch(text) or not self._may_look():
            return ""
        listed = self._clone.run(["rev-parse", f"--disambiguate={text}"]).decode().split()
        found = [each for each in listed if self._refs.has(each)]
        if len(found) > 1:
            raise SourceError(SourceFault.REFUSED, f"{text} may be {' or '.join(found[:3])}", "give more digits")
        return found[0] if found else ""

    def _may_look(self) -> bool:
        """Tell whether there is a clone that may be looked into; asks nobody."""
        return (not self._guarded or self._server.lets_in) and self._clone.exists()

    def _remote(self) -> RemoteRef:
        """Return where the ref is on the server."""
        name, kind = self.ref.name, self.ref.kind
        since_s = min(self.since_s, time.monotonic())
        if (remote := self._server.ask(self.ref.names(), since_s, self._question).at(self.ref)) is not None:
            self._clone.by_sha256 = len(remote.sha) == 64
            return remote
        if kind in {RefKind.COMMIT, RefKind.ANY} and HASH.fullmatch(name):
            self._clone.by_sha256 = len(name) == 64
            return RemoteRef(name, name)
        if kind is RefKind.ANY and _DIGITS.fullmatch(name) and (sha := self._abbreviated(name)):
            return RemoteRef(sha, sha)
        raise self._no_such_ref()

    def _question(self, names: Sequence[str]) -> dict[str, str]:
        """Ask the server where these refs are."""
        return self._server.asking.refs(names, self._timeout_s, self._clone.limits, self._question_by_git)

    def _question_by_git(self, names: Sequence[str], timeout_s: float) -> dict[str, str]:
        which = ["--tags"] if self.ref.kind is RefKind.RANGE else []
        asked = ["ls-remote", "--quiet", *which, "--", self.repository.url, *(each for each in names if each != TAGS)]
        lines = self._clone.talk(asked, timeout_s).decode(errors="replace").splitlines()
        return {full: sha for sha, _, full in (line.partition("\t") for line in lines) if HASH.fullmatch(sha)}

    def _abbreviated(self, digits: str) -> str:
        """Return the commit that begins with *digits*, if the clone has it or the default branch brings it."""
        return self.resolve(digits) or (self._fetch("HEAD", _DEFAULT) and self.resolve(digits))

    def _no_such_ref(self) -> SourceError:
        if not self.ref.name:
            return SourceError(SourceFault.NO_SUCH_REF, f"{self.repository}: it is empty", "push a first commit")
        hints = {
            RefKind.BRANCH: "has it been deleted or renamed?",
            RefKind.TAG: "has it been pushed?",
            RefKind.RANGE: "has it been pushed? versions before a release count only where the range names one, as in >=1.2.0-0",
            RefKind.COMMIT: "is it on any branch of that repository?",
            RefKind.ANY: "give a branch, a tag, a ref such as refs/pull/12/head, or the digits of a commit",
        }
        return SourceError(SourceFault.NO_SUCH_REF, f"{self.repository}: it has no {self.ref}", hints[self.ref.kind])

    def _promised(self, sha: str) -> bool:
        """Return whether a ref of the clone says that it has *sha*: if it hasn't, the clone is damaged."""
        return sha in self._refs.tips()

    def _renew(self, *, partial: bool = True) -> None:
        """Recreate the clone, with this ref in it, and with all its files unless *partial*."""
        with self._clone.locked(self._fetch_timeout_s):
            if partial:
                self._clone.discard()
            else:
                self._clone.begin(partial=False)
        name = self._remote().name
        self._fetch(name, _ours(name))

    def _holds(self, remote: RemoteRef) -> bool:
        """Tell whether the clone has what the ref is at now; a tag may be another one at the same commit.

        What it had a while ago it has unless it was recreated or packs have gone: so who asks whether anything moved needs no git.
        """
        now = _Held.by(self._clone.reader, remote)
        if self._held is not None and self._held.tells(now):
            return True
        ours = _ours(remote.name)
        has = self._refs.at(ours) == remote.sha and (not remote.tag or self._refs.tag_at(ours) == remote.tag)
        self._held = now if has else None
        return has

    def _fetch(self, name: str, ours: str, wanted: RemoteRef | None = None) -> str:
        """Fetch a ref, unless somebody else has brought it to where it is *wanted* while we waited; return its commit."""
        if wanted is not None:
            with self._clone.locked(self._fetch_timeout_s):  # whoever fetches now may bring it
                if self._holds(wanted):
                    return wanted.sha
        return self._clone.fetching(self._fetch_timeout_s, lambda limits: self._fetched(name, ours, wanted, limits))

    def _fetched(self, name: str, ours: str, wanted: RemoteRef | None, limits: GitLimits) -> str:
        self._clone.ready()
        if wanted is not None and self._holds(wanted):
            return wanted.sha
        try:
            self._clone.fetch(f"+{name}:refs/{ours}", self._fetch_timeout_s, limits)
        except SourceError as error:
            if error.fault is SourceFault.NO_SUCH_REF:
                raise self._no_such_ref() from None
            raise
        sha = self._refs.at(ours)
        if sha:
            self._held = _Held.by(self._clone.reader, RemoteRef(name, sha, self._refs.tag_at(ours)))
            return sha
        if self._refs.is_other_than_commit(ours):
            what = f'tag "{name.removeprefix(TAGS)}"' if self.ref.kind is RefKind.RANGE else self.ref
            raise SourceError(SourceFault.NO_SUCH_REF, f"{self.repository}: {what} isn't a commit")
        raise SourceError(SourceFault.CORRUPT, f"{self.repository}: the local clone is damaged")


class _Held(Struct, frozen=True):
    """That a clone, told from others by its *place* and *packs*, has what the *remote* ref is at, as of *at_s* (monotonic)."""

    place: Place | None
    packs: int
    remote: RemoteRef
    at_s: float

    @classmethod
    def by(cls, reader: ObjectReader, remote: RemoteRef) -> Self:
        """Return what a look into the clone now would tell."""
        return cls(reader.place(), reader.packs(), remote, time.monotonic())

    def tells(self, now: _Held) -> bool:
        """Tell whether another look isn't worth a git: nothing has changed that shows, and the last was a while ago at most."""
        is_same = (self.place, self.packs, self.remote) == (now.place, now.packs, now.remote)
        return self.place is not None and is_same and now.at_s - self.at_s < _LOOKS_AGAIN_S


_LOOKS_AGAIN_S = 600.0
"""After so long a clone is looked into although nothing shows that it has changed: it may be damaged."""
_DEFAULT = "default/HEAD"
"""What the server's default branch is called in the clone, below ``refs/``."""


def _ours(name: str) -> str:
    """Return what a ref of the server is called in the clone, below ``refs/``."""
    return f"commits/{name}" if HASH.fullmatch(name) else name.removeprefix("refs/")
