"""The files that a partial clone hasn't got yet, fetched when somebody wants to read them: by name, in one request for all.

A server may promise files by name and then refuse them (the old protocol, a setting); from that one everything is fetched.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable

from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import FETCH, Clone
from kubectl_reconcile.source.git.tree import listed
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.remote import Repository

_REMEMBERED = 64
_MOST_FOR_OTHERS = 20_000


class MissingFiles:
    """What *clone* lacks of the files of its commits; *fetch_whole* recreates it with all of them.

    *timeout_s* is for one fetch.
    """

    def __init__(
        self, clone: Clone, repository: Repository, timeout_s: float, fetch_whole: Callable[[], object]
    ) -> None:
        self._clone, self._repository, self._timeout_s = clone, repository, timeout_s
        self._fetch_whole = fetch_whole
        self._brought: dict[str, None] = {}
        self.sizes: dict[str, int] = {}
        """How many bytes those files have that were looked for last and are here."""

    def bring(self, blob_ids: Iterable[str], others: Callable[[], Iterable[str]] = tuple) -> None:
        """Fetch those of the files that aren't in the clone; where that takes a request, it asks for what *others* will read as well.

        Raises:
            SourceError: the server can't be reached or refuses, or has them no more.
        """
        if not self._clone.is_partial or not (missing := self._missing(blob_ids)):
            return
        if not self._clone.fetching(self._timeout_s, lambda limits: self._fetch(missing, others, limits)):
            self._fetch_whole()

    def has_brought(self, sha: str) -> None:
        """Note that what the commit *sha* holds was fetched; of many commits the last ones are remembered."""
        self._brought[sha] = None
        while len(self._brought) > _REMEMBERED:
            del self._brought[next(iter(self._brought))]

    def bring_revision(self, sha: str, path: str) -> None:
        """Fetch what the commit *sha* holds at *path*, as far as it can be read; tried once for each commit.

        Who asks for one file of an older commit asks for others.
        """
        if self._clone.is_partial and sha not in self._brought:
            self.has_brought(sha)
            with contextlib.suppress(SourceError):
                listed(self._clone, sha, path, self.bring)

    def _missing(self, blob_ids: Iterable[str]) -> list[str]:
        wanted = list(blob_ids)
        found = dict(zip(wanted, self._clone.reader.facts(wanted), strict=True))
        self.sizes = {each: facts.size for each, facts in found.items() if facts is not None}
        return [each for each, facts in found.items() if facts is None]

    def _fetch(self, blob_ids: Iterable[str], others: Callable[[], Iterable[str]], limits: GitLimits) -> bool:
        """Fetch what nobody else has fetched meanwhile; return False if the server gives nothing by name. Call it locked."""
        self._clone.ready()
        if not self._clone.is_partial:
            return False
        if not (missing := self._missing(blob_ids)):
            return True
        more = self._missing(dict.fromkeys(itertools.islice(others(), _MOST_FOR_OTHERS)).keys() - set(missing))
        if not (more and self._given([*missing, *more], limits)) and not self._given(missing, limits):
            return False
        if self._missing(missing):  # git keeps a damaged pack when the same one comes again
            raise SourceError(SourceFault.CORRUPT, f"{self._repository}: the local clone is damaged")
        return True

    def _given(self, blob_ids: Iterable[str], limits: GitLimits) -> bool:
        """Fetch these files; return False if the server doesn't give all of them by name."""
        command = ["-c", "fetch.negotiationAlgorithm=noop", *FETCH, "--stdin", "--", self._repository.url]
        wanted = "".join(f"{blob_id}\n" for blob_id in blob_ids).encode()
        try:
            self._clone.talk(command, self._timeout_s, stdin=wanted, fills=True, limits=limits)
        except SourceError as error:
            if error.fault in {SourceFault.NO_SUCH_REF, SourceFault.FAILED}:
                return False
            raise
        return True
